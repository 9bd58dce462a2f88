"""``python -m tests.streams --readers 50 --operations 20000``: every reader sees every position once, in order."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time

from tests.support.postgres import ROLES, PostgresServer, migrate_fully
from tests.support.recorded_runs import recorder
from tests.support.stream_readers import Followed, follow_with_restarts


def main() -> int:
    """Print what was seen; 1 where a reader missed, repeated or mixed up anything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--readers", type=int, default=50)
    parser.add_argument("--operations", type=int, default=20_000)
    parser.add_argument("--restarts", type=int, default=2)
    wanted = parser.parse_args()
    server = PostgresServer.start("18")
    try:
        name = server.create_database(server.template("newest", migrate_fully))
        dsns = {key: server.dsn(name, user=role) for key, role in ROLES.items()}
        began = time.monotonic()
        followed = asyncio.run(_follow(dsns, wanted.readers, wanted.operations, wanted.restarts))
        seconds = time.monotonic() - began
    finally:
        server.stop()
    wrong = [reader for reader in followed.readers if reader.seen != list(range(1, followed.head + 1))]
    events = sum(len(reader.seen) for reader in followed.readers)
    print(
        f"{wanted.readers} readers, {followed.head:,} positions, {wanted.restarts} restarts, "
        f"{sum(reader.connections for reader in followed.readers)} connections: {events:,} events in {seconds:.0f} s "
        f"({events / seconds:,.0f}/s); {len(wrong)} readers saw anything else than every position once and in order"
    )
    return 1 if wrong else 0


async def _follow(dsns: dict[str, str], readers: int, operations: int, restarts: int) -> Followed:
    async with recorder(dsns) as recording:
        return await follow_with_restarts(
            dsns, recording, readers=readers, operations=operations, restarts=restarts, within=3600.0
        )


if __name__ == "__main__":
    sys.exit(main())
