"""One soak: everything is started, disturbed at the times of its script, comes to rest, and is checked."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg

from consumers.infrahub.sandbox import RunningSandbox
from ledger.binding import DestinationBinding
from ledger.commit_message import message_key
from producers.publish import PublishSettings
from tests.faults.campaign.findings import nodes_of
from tests.faults.facts import Facts, Node, rows_of, unsigned_request_of
from tests.faults.soak.accounts import check_binding, check_commits, check_events
from tests.faults.soak.plans import add_known, make_run, place_of
from tests.faults.soak.rest import Place, come_to_rest, messages_of, resume_what_failed
from tests.faults.soak.script import BINDINGS, LEASE, REQUEST_TIMEOUT, SESSION, SOURCES, WORKERS, Script
from tests.faults.soak.sources import Published, commit_all
from tests.faults.soak.strikes import Breaker
from tests.faults.soak.workers import WorkerProcess
from tests.support.kafka_broker import KafkaCluster, broker_jars
from tests.support.postgres import ROLES, PostgresServer, migrate_fully
from tests.support.real_writer import REAL_SCHEMA, TOKEN

_PROGRAM = (sys.executable, "-m", "ledger.cli.main")
_COMMITS, _EVENTS, _GROUP = "plan-commits", "ledger-events", "apply-ledger-intake"
_REFUSALS = 'select topic, partition, "offset", digest from ledger.intake_refusal'
_INBOX = "select * from ledger.inbox"
BRANCHES = tuple(f"branch-{number}" for number in range(BINDINGS))
Tell = Callable[[str], None]


@dataclass
class Report:
    """What a soak shows."""

    script: Script
    wrong: list[str]
    counts: Counter[str]
    seconds: float

    def lines(self) -> list[str]:
        """For a person."""
        counts = ", ".join(f"{name} {number}" for name, number in sorted(self.counts.items()) if number)
        head = f"seed {self.script.seed}: {self.script.seconds:.0f} s of disturbances, {self.seconds:.0f} s in all"
        return [f"{head}: {counts}", f"violations: {len(self.wrong)}"]


class Soak:
    """One object, one call of :meth:`run`."""

    def __init__(self, script: Script, folder: Path, tell: Tell = lambda _text: None) -> None:
        self._script = script
        self._folder = folder
        self._tell = tell
        self._wrong: list[str] = []
        self._published = Published()

    async def run(self) -> Report:
        """Start everything, break it, let it rest, check it."""
        began = time.monotonic()
        with (
            RunningSandbox(REAL_SCHEMA, token=TOKEN, seed=f"soak {self._script.seed}") as sandbox,
            KafkaCluster(broker_jars(), self._folder / "kafka") as kafka,
        ):
            known = add_known(sandbox)
            for branch in BRANCHES:
                sandbox.store.create_branch(branch)
            before = {branch: nodes_of(sandbox.store.branches[branch]) for branch in BRANCHES}
            async with _ledger() as (server, name):
                place = Place(
                    server.dsn(name),
                    server.dsn(name, user=ROLES["writer"]),
                    kafka.bootstrap(),
                    *(_COMMITS, _EVENTS, _GROUP),
                )
                workers = self._workers(sandbox, place)
                breaker = Breaker(workers, kafka, server, place.admin, sandbox)
                await self._live(place, breaker, known)
                counts = await self._check(place, breaker, before)
        for worker in workers:
            counts += worker.counts
            self._wrong += worker.wrong
        return Report(
            self._script,
            self._wrong,
            counts + breaker.counts + self._published.counts,
            time.monotonic() - began,
        )

    def _workers(self, sandbox: RunningSandbox, place: Place) -> list[WorkerProcess]:
        environment = _environment(sandbox, place, self._folder)
        subprocess.run([*_PROGRAM, "kafka", "init"], env=environment, check=True, capture_output=True)
        return [WorkerProcess(f"worker-{number}", environment, self._folder) for number in range(WORKERS)]

    async def _live(self, place: Place, breaker: Breaker, known: dict[str, str]) -> None:
        """The disturbed time and the rest after it."""
        url = breaker.sandbox.url
        runs = [
            make_run(o, known=known, url=url, branch=BRANCHES[o.binding], root=self._folder / "runs")
            for o in self._script.orders
        ]
        for worker in breaker.workers:
            worker.start()
        side = [asyncio.create_task(worker.watch()) for worker in breaker.workers]
        side.append(asyncio.create_task(resume_what_failed(place)))
        settings = PublishSettings(brokers=place.brokers, topic=_COMMITS, request_timeout=5.0, publish_within=10.0)
        began = time.monotonic()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(breaker.carry_out(self._script.strikes, began=began))
                for source in range(SOURCES):
                    own = [run for run in runs if run.order.source == source]
                    group.create_task(commit_all(own, settings, self._published, began=began))
            self._tell(f"{len(self._script.strikes)} strikes, {len(self._published.runs)} runs; now it may rest")
            breaker.sandbox.faults.clear()
            if missing := await come_to_rest(place, len(self._published.runs)):
                self._wrong.append(missing)
            for task in side:
                task.cancel()
            await asyncio.gather(*(worker.stop() for worker in breaker.workers))
        finally:
            for task in side:
                task.cancel()
            await asyncio.gather(*side, return_exceptions=True)
            for worker in breaker.workers:
                worker.clean_up()

    async def _check(self, place: Place, breaker: Breaker, before: Mapping[str, Mapping[str, Node]]) -> Counter[str]:
        counts: Counter[str] = Counter()
        url, bindings, inbox = breaker.sandbox.url, {}, []
        for branch in BRANCHES:
            rows = await rows_of(place.admin, url, branch)
            inbox += rows["inbox"]
            bindings[message_key(DestinationBinding(url=url, branch=branch).normalised())] = (
                rows["binding"],
                rows["event"],
            )
            violations, seen = check_binding(self._facts(rows, breaker, branch, before[branch]))
            self._wrong += [f"{branch}: {violation}" for violation in violations]
            counts += seen
        refusals = await _rows(place.admin, _REFUSALS)
        commits, events = await messages_of(place.brokers, _COMMITS), await messages_of(place.brokers, _EVENTS)
        bodies = {run.commit.canonical_bytes(): run.commit.commit_id for run in self._published.runs}
        self._wrong += map(str, check_commits(commits, bodies, inbox, refusals))
        self._wrong += map(str, check_events(events, bindings))
        counts += Counter(
            {
                "distinct commits": len(bodies),
                "messages of commits": len(commits),
                "recorded refusals": len(refusals),
                "rows of commits in the inbox": sum(row["kind"] == "commit" for row in inbox),
                "events relayed more than once": len(events) - sum(len(found) for _, found in bindings.values()),
            }
        )
        return counts

    def _facts(self, rows: dict[str, Any], breaker: Breaker, branch: str, before: Mapping[str, Node]) -> Facts:
        entries = [entry for entry in breaker.sandbox.journal.as_json() if entry["branch"] == branch]
        requests = []
        for entry in entries:
            place = place_of(entry["variables"]["data"])
            if place is None:
                self._wrong.append(f"{branch}: G1: request {entry['position']} is of no operation")
            else:
                requests.append(unsigned_request_of(entry, place))
        return Facts(
            binding=rows["binding"],
            events=rows["event"],
            inbox=rows["inbox"],
            artifacts=rows["artifact"],
            lines=rows["line"],
            runs={r.files.run_id: r.files for r in self._published.runs if BRANCHES[r.order.binding] == branch},
            requests=requests,
            before=before,
            after=nodes_of(breaker.sandbox.store.branches[branch]),
            seen=breaker.seen.get(branch, ()),
            freezes=[freeze for worker in breaker.workers for freeze in worker.freezes],
        )


@asynccontextmanager
async def _ledger() -> AsyncIterator[tuple[PostgresServer, str]]:
    """A durable server that may be killed, with an empty ledger."""
    server = await asyncio.to_thread(PostgresServer.start, "18", durable=True)
    try:
        yield server, await asyncio.to_thread(server.template, "newest", migrate_fully)
    finally:
        await asyncio.to_thread(server.stop)


def _environment(sandbox: RunningSandbox, place: Place, folder: Path) -> dict[str, str]:
    """What the workers are told; nothing of this process but the paths of its programs."""
    declared = "\n".join(f'[[destination]]\nurl = "{sandbox.url}"\nbranch = "{branch}"\n' for branch in BRANCHES)
    (folder / "apply-ledger.toml").write_text(declared, encoding="utf-8")
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith(("INFRAHUB", "APPLY_LEDGER"))},
        "INFRAHUB_API_TOKEN": TOKEN,
        "INFRAHUB_SYNC_CACHE_DIR": str(folder / "runs"),
        "APPLY_LEDGER_CONFIG": str(folder / "apply-ledger.toml"),
        "APPLY_LEDGER_DSN": place.writer,
        "APPLY_LEDGER_KAFKA__BROKERS": place.brokers,
        "APPLY_LEDGER_KAFKA__REQUEST_TIMEOUT": "5",
        "APPLY_LEDGER_KAFKA__SESSION_TIMEOUT": str(SESSION),
        "APPLY_LEDGER_WRITER__LEASE_TTL": str(LEASE),
        "APPLY_LEDGER_WRITER__REQUEST_TIMEOUT": str(REQUEST_TIMEOUT),
        "APPLY_LEDGER_WRITER__MARGIN": "1",
        "APPLY_LEDGER_WRITER__SETTLE_SECONDS": "1",
        "APPLY_LEDGER_WRITER__POLL_INTERVAL": "0.3",
    }


async def _rows(dsn: str, text: str) -> list[dict[str, Any]]:
    connection = await asyncpg.connect(dsn)
    try:
        return [dict(row) for row in await connection.fetch(text)]
    finally:
        await connection.close()
