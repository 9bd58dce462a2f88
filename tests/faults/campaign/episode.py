"""One episode: real plans, writers killed and frozen, a database and a destination that fail; then the check."""

from __future__ import annotations

import asyncio
import shutil
import signal
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import asyncpg

from tests.faults.campaign.findings import Findings, nodes_of
from tests.faults.campaign.operator_process import OperatorTask
from tests.faults.campaign.operator_process import run as run_operator
from tests.faults.campaign.rest import come_to_rest
from tests.faults.campaign.runs import Committed, make_runs
from tests.faults.campaign.script import Script, Timed, WriterScript
from tests.faults.campaign.writer_process import WriterTask
from tests.faults.campaign.writers import Writers, writers_of
from tests.support.processes import RealProcess

if TYPE_CHECKING:
    from tests.faults.campaign.lane import Database, Lane

_LONGEST = 25.0
"""Seconds for which an episode may be disturbed at most, where the machine is slow."""

_LOOK_EVERY = 0.25
_THROUGH = (
    "select count(distinct e.run_id) from ledger.event e join ledger.binding b on b.id = e.binding_id"
    " where b.branch = any($1::text[]) and (e.kind = 'run.applied'"
    " or e.kind in ('run.failed', 'run.interrupted') and e.run_id = any($2))"
)
_SEEN = (
    "select b.branch, e.position, encode(e.hash, 'hex') as hash from ledger.event e"
    " join ledger.binding b on b.id = e.binding_id where b.branch = any($1::text[])"
)
_AWAY = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)


class Episode:
    """Runs one script on a lane. One object, one call of :meth:`run`."""

    def __init__(self, lane: Lane, script: Script, *, keep: bool) -> None:
        self._lane = lane
        self._script = script
        self._keep = keep
        self._folder = lane.folder / f"episode-{script.number}"
        self._branches = tuple(f"e{script.number}-{place}" for place in range(script.branches))
        self._sandbox = lane.sandbox
        self._url = lane.sandbox.url
        self._seen: dict[str, list[tuple[int, str]]] = {branch: [] for branch in self._branches}
        self._stops: list[float] = []
        self._done: Counter[str] = Counter()
        self._findings = Findings(script, lane.sandbox, self._folder)

    async def run(self) -> dict[str, Any]:
        """The whole episode; returns what the report needs, violations among it."""
        began = time.monotonic()
        self._folder.mkdir()
        database = await self._lane.database(self._script.version)
        for branch in self._branches:
            self._sandbox.store.create_branch(branch)
        before = {branch: nodes_of(self._sandbox.store.branches[branch]) for branch in self._branches}
        runs = make_runs(
            self._lane.pool, self._script, url=self._url, branches=self._branches, root=self._folder / "runs"
        )
        writers, found = self._make_writers(database), self._findings
        try:
            operator = await self._disturb(database, writers, runs)
            found.wrong += await writers.rest()
            operator.clean_up()
            found.wrong += await come_to_rest(database.direct, self._url, self._folder, runs, self._script.times)
        finally:
            writers.clean_up()
            self._sandbox.faults.clear()
        for branch in self._branches:
            await found.check_branch(
                branch,
                dsn=database.admin,
                runs=runs,
                before=before[branch],
                writers=writers.all,
                seen=self._seen,
                stops=self._stops,
            )
        found.check_logs()
        self._leave()
        return self._told(writers, began)

    def _make_writers(self, database: Database) -> Writers:
        def task(name: str, script: WriterScript) -> WriterTask:
            return WriterTask(
                name=name,
                dsn=database.relayed if self._script.by_relay else database.direct,
                url=self._url,
                branches=self._branches,
                root=self._folder / "runs",
                trail=self._folder / f"{name}.trail",
                log=self._folder / f"{name}.log",
                times=self._script.times,
                strike=script.strike,
            )

        return Writers(writers_of(self._script.writers, task), together=self._script.together)

    async def _disturb(self, database: Database, writers: Writers, runs: list[Committed]) -> RealProcess:
        """Everything at once, until the runs are through or the time is up; then the faults are taken away."""
        script = self._script
        for rule in script.faults:
            self._sandbox.faults.add(rule)
        operator = RealProcess(
            run_operator,
            OperatorTask(
                dsn=database.relayed if script.by_relay else database.direct,
                url=self._url,
                branches=self._branches,
                commits=tuple((run.script.branch, run.commit) for run in runs),
                orders=script.orders,
                trail=self._folder / "operator.trail",
                log=self._folder / "operator.log",
                seed=f"operator {script.number}",
            ),
        )
        writers.start()
        await writers.first_started()
        disturbances = [
            asyncio.create_task(self._disturb_database(database)),
            asyncio.create_task(self._take_sandbox_away()),
            asyncio.create_task(self._kill_operator(operator)),
        ]
        try:
            await self._until_enough(database, writers, operator, runs)
        finally:
            disturbances[2].cancel()
            await asyncio.gather(*disturbances[:2])  # what was killed or taken away is there again
        database.relay.disarm()
        for active in self._sandbox.faults.active():
            self._done[f"answer {active.rule.answer}"] += active.fired if active.rule.count is not None else 0
        self._sandbox.faults.clear()
        if operator.is_alive:
            operator.send_signal(signal.SIGKILL)
        status, _ = await operator.ended()
        if status not in (0, -signal.SIGKILL):
            self._findings.wrong.append(f"the operator ended with status {status}")
        return operator

    async def _until_enough(
        self, database: Database, writers: Writers, operator: RealProcess, runs: list[Committed]
    ) -> None:
        """Until all runs are through, or nothing more is to happen: no writer to strike, or nobody who orders."""
        began = time.monotonic()
        doomed = [run.files.run_id for run in runs if run.files.doomed is not None]
        while (passed := time.monotonic() - began) < _LONGEST:
            if passed > self._script.lasts and (writers.are_through or not operator.is_alive):
                return
            try:
                if await _value(database.admin, _THROUGH, list(self._branches), doomed) == len(runs):
                    return
            except _AWAY:
                self._done["looks while the database was away"] += 1
            await asyncio.sleep(_LOOK_EVERY)

    async def _disturb_database(self, database: Database) -> None:
        began = time.monotonic()
        for timed in self._script.on_database:
            await asyncio.sleep(max(0.0, began + timed.at - time.monotonic()))
            await self._strike_database(database, timed)
            self._done[f"database: {timed.what}"] += 1

    async def _strike_database(self, database: Database, timed: Timed) -> None:
        match timed.what:
            case "kill postmaster" | "kill all":
                await self._look(database)
                await asyncio.to_thread(database.kill, all_processes=timed.what == "kill all")
            case "restart":
                await asyncio.to_thread(database.restart)
            case "cut":
                await database.relay.end()
            case "hold":
                database.relay.arm("hold", after=timed.number)
                await asyncio.sleep(self._script.times["lease_ttl"])
                database.relay.disarm()
            case "lose answer":
                database.relay.arm("lose answer", after=timed.number)
            case _:
                database.relay.arm("lose request", after=timed.number)

    async def _look(self, database: Database) -> None:
        """What anybody can have read before the database is killed has to be there afterwards."""
        connection = await asyncpg.connect(database.admin)
        try:
            for row in await connection.fetch(_SEEN, list(self._branches)):
                self._seen[row["branch"]].append((row["position"], row["hash"]))
        finally:
            await connection.close()

    async def _take_sandbox_away(self) -> None:
        began = time.monotonic()
        for at, away in self._script.sandbox_away:
            await asyncio.sleep(max(0.0, began + at - time.monotonic()))
            rules = [active.rule for active in self._sandbox.faults.active()]
            await asyncio.to_thread(self._sandbox.stop)
            self._stops.append(time.time())
            self._done["sandbox restarts"] += 1
            await asyncio.sleep(away)
            await asyncio.to_thread(self._sandbox.start)
            for rule in rules[-1:]:
                self._sandbox.faults.add(rule)

    async def _kill_operator(self, operator: RealProcess) -> None:
        if self._script.operator_dies_at is not None:
            await asyncio.sleep(self._script.operator_dies_at)
            if operator.is_alive:
                operator.send_signal(signal.SIGKILL)
                self._done["operator killed"] += 1

    def _told(self, writers: Writers, began: float) -> dict[str, Any]:
        """What the report needs of this episode."""
        counts = self._done + self._findings.counts
        counts["writers"] += sum(writer.process is not None for writer in writers.all)
        counts["ended by SIGTERM"] += sum(
            w.ended == "ended" and w.script.outside is not None and w.script.outside.what == "term" for w in writers.all
        )
        return {
            "episode": self._script.number,
            "version": self._script.version,
            "violations": self._findings.wrong,
            "seconds": time.monotonic() - began,
            "killed_in": [writer.phase for writer in writers.all if writer.ended == "killed"],
            "frozen_in": [phase for writer in writers.all for phase in writer.frozen_in],
            "counts": dict(counts),
        }

    def _leave(self) -> None:
        """Keep what is needed to look at a violation; else leave nothing."""
        self._sandbox.journal.clear()
        for branch in self._branches:
            self._sandbox.store.delete_branch(branch)
        if self._findings.wrong or self._keep:
            self._findings.keep()
        else:
            shutil.rmtree(self._folder)


async def _value(dsn: str, text: str, *arguments: Any) -> Any:
    connection = await asyncpg.connect(dsn, timeout=2)
    try:
        return await connection.fetchval(text, *arguments)
    finally:
        await connection.close()
