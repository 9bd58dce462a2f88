"""A lane: one sandbox and one durable PostgreSQL of each version, on which episodes run one after the other.

A process of its own. It reads the numbers of episodes from its standard input and writes a result for each, as JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import socket
import sys
import traceback
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import structlog

from consumers.infrahub.sandbox import RunningSandbox
from tests.faults.campaign.episode import Episode
from tests.faults.campaign.plans import Pool, prepare
from tests.faults.campaign.script import script_of
from tests.support.postgres import ROLES, PostgresServer, Version, migrate_fully
from tests.support.postgres_relay import PostgresRelay, relay_to
from tests.support.real_writer import REAL_SCHEMA, TOKEN


@dataclass
class Database:
    """The ledger of a lane on one version: its server may be killed at any time."""

    server: PostgresServer
    name: str
    relay: PostgresRelay
    relayed: str

    @property
    def admin(self) -> str:
        """The superuser's way in, past the relay."""
        return self.server.dsn(self.name)

    @property
    def direct(self) -> str:
        """The writer's way in."""
        return self.server.dsn(self.name, user=ROLES["writer"])

    def kill(self, *, all_processes: bool) -> None:
        """kill -9 of the postmaster, or of every process of the server at once, and start it again."""
        self.server.crash(all_processes=all_processes)

    def restart(self) -> None:
        """An administrator's restart."""
        self.server.cluster.stop(mode="fast")
        self.server.cluster.start()


@dataclass
class Lane:
    """What the episodes of a lane share."""

    folder: Path
    sandbox: RunningSandbox
    pool: Pool
    _stack: AsyncExitStack
    _databases: dict[Version, Database] = field(default_factory=dict)

    async def database(self, version: Version) -> Database:
        """The ledger on that version, made when the first episode asks for it."""
        if version not in self._databases:
            server = await asyncio.to_thread(PostgresServer.start, version, durable=True)
            self._stack.callback(server.stop)
            name = await asyncio.to_thread(server.template, "newest", migrate_fully)
            dsn = server.dsn(name, user=ROLES["writer"])
            relay, relayed = await self._stack.enter_async_context(relay_to(dsn))
            self._databases[version] = Database(server, name, relay, relayed)
        return self._databases[version]


@asynccontextmanager
async def open_lane(folder: Path, seed: str) -> AsyncIterator[Lane]:
    """Start the sandbox and plan both sources against it."""
    folder.mkdir(parents=True)
    with RunningSandbox(REAL_SCHEMA, token=TOKEN, seed=seed, port=_free_port()) as sandbox:
        pool = await prepare(sandbox, folder / "pool", seed)
        async with AsyncExitStack() as stack:
            yield Lane(folder, sandbox, pool, stack)


async def serve(folder: Path, seed: int, *, keep: bool) -> None:
    """Run the episodes whose numbers come in; an empty line or the end of the input ends it."""
    async with open_lane(folder, f"seed {seed}") as lane:
        while number := (await asyncio.to_thread(sys.stdin.readline)).strip():
            print(json.dumps(await run_episode(lane, seed, int(number), keep=keep)), flush=True)


async def run_episode(lane: Lane, seed: int, number: int, *, keep: bool) -> dict[str, Any]:
    """One episode; a failure of the campaign itself is told like a violation."""
    script = script_of(seed, number, sorted(lane.pool.plans))
    try:
        return await Episode(lane, script, keep=keep).run()
    except Exception:  # noqa: BLE001 - whatever it is, the other episodes go on and this one is reported
        return {"episode": number, "violations": [f"the campaign itself failed: {traceback.format_exc()}"]}


def _free_port() -> int:
    """A port that stays the sandbox's own through its restarts."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def main() -> None:
    """``python -m tests.faults.campaign.lane --folder F --seed S``."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    structlog.configure(
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
    )
    asyncio.run(serve(options.folder, options.seed, keep=options.keep))


if __name__ == "__main__":
    main()
