"""One episode: real plans, writers killed and frozen, a database and a destination that fail; then the check."""

from __future__ import annotations

import asyncio
import json
import random
import shutil
import signal
import time
import uuid
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import asyncpg

from consumers.infrahub.sandbox.branch import BranchStore
from ledger.binding import DestinationBinding
from ledger.commit import PlanCommit
from ledger.plan.model import PlannedOperation, RelationshipReference
from tests.faults.campaign.operator_process import OperatorTask
from tests.faults.campaign.operator_process import run as run_operator
from tests.faults.campaign.plans import key_of, keyed_by_constraint_alone, slice_of
from tests.faults.campaign.rest import come_to_rest
from tests.faults.campaign.script import RunScript, Script, Timed, WriterScript, describe
from tests.faults.campaign.trail import read_trail
from tests.faults.campaign.writer_process import WriterTask
from tests.faults.campaign.writers import Writers, logs_in, writers_of
from tests.faults.checker import starved, strays, violations
from tests.faults.facts import Facts, Node, PlannedRun, planned_run, request_of, rows_of
from tests.support.committed_plans import commit_of, save
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
_DEFECT = "a writer ended by a defect or an alarm"


@dataclass(frozen=True)
class Committed:
    """A run of the episode with its files and its commit."""

    script: RunScript
    files: PlannedRun
    commit: PlanCommit


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
        self._wrong: list[str] = []

    async def run(self) -> dict[str, Any]:
        """The whole episode; returns what the report needs, violations among it."""
        began = time.monotonic()
        self._folder.mkdir()
        database = await self._lane.database(self._script.version)
        for branch in self._branches:
            self._sandbox.store.create_branch(branch)
        before = {branch: nodes_of(self._sandbox.store.branches[branch]) for branch in self._branches}
        runs = self._make_runs()
        writers = self._make_writers(database)
        try:
            operator = await self._disturb(database, writers, runs)
            self._wrong += await writers.rest()
            operator.clean_up()
            self._wrong += await come_to_rest(
                database.direct,
                self._url,
                self._folder,
                [(self._branches[run.script.branch], run.script, run.commit) for run in runs],
                self._script.times,
            )
        finally:
            writers.clean_up()
            self._sandbox.faults.clear()
        return await self._result(database, writers, runs, before, began)

    def _make_runs(self) -> list[Committed]:
        rng = random.Random(f"slices {self._script.number} {self._script.times}")
        once: dict[int, set[bytes]] = {}
        return [self._make_run(run, rng, once.setdefault(run.branch, set())) for run in self._script.runs]

    def _make_run(self, run: RunScript, rng: random.Random, once: set[bytes]) -> Committed:
        plan = self._lane.pool.plans[run.source]
        operations = slice_of(plan, rng, size=run.size, text=f"written by {run.run_id}", without=once)
        once |= {key_of(operation) for operation in operations if keyed_by_constraint_alone(operation)}
        operations, doomed = doom(operations, run, rng)
        root = self._folder / "runs"
        binding = DestinationBinding(url=self._url, branch=self._branches[run.branch])
        run_dir = save(root, run.run_id, operations, source=run.source, binding=binding)
        commit = commit_of(root, run_dir, binding=binding, policy=run.policy, source=run.source)
        return Committed(run, planned_run(run_dir, doomed=doomed), commit)

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
            await self._until_enough(database, writers, runs)
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
            self._wrong.append(f"the operator ended with status {status}")
        return operator

    async def _until_enough(self, database: Database, writers: Writers, runs: list[Committed]) -> None:
        began = time.monotonic()
        doomed = [run.files.run_id for run in runs if run.files.doomed is not None]
        while (passed := time.monotonic() - began) < _LONGEST:
            if passed > self._script.lasts and writers.are_through:
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

    async def _result(
        self,
        database: Database,
        writers: Writers,
        runs: list[Committed],
        before: dict[str, dict[str, Node]],
        began: float,
    ) -> dict[str, Any]:
        found = list(self._wrong)
        counts = self._done
        for branch in self._branches:
            facts = await self._facts(database, writers, runs, branch, before[branch])
            if isinstance(facts, str):
                found.append(facts)
                continue
            found += [f"{branch}: {violation}" for violation in violations(facts)]
            counts += tally(facts)
        for name, text in logs_in(self._folder).items():
            if _DEFECT in text or "Traceback" in text:
                found.append(f"{name}: a defect, see the log")
        for step in read_trail(self._folder / "operator.trail"):
            if step["step"] == "wrong":
                found.append(f"operator: {step['error']}")
        phases = [[writer.ended, writer.phase] for writer in writers.all if writer.ended == "killed"]
        frozen = [phase for writer in writers.all for phase in writer.frozen_in]
        counts["writers"] += sum(writer.process is not None for writer in writers.all)
        counts["ended by SIGTERM"] += sum(
            w.ended == "ended" and w.script.outside is not None and w.script.outside.what == "term" for w in writers.all
        )
        self._leave(database, found)
        return {
            "episode": self._script.number,
            "version": self._script.version,
            "violations": found,
            "seconds": time.monotonic() - began,
            "killed_in": [phase for _, phase in phases],
            "frozen_in": frozen,
            "counts": dict(counts),
        }

    async def _facts(
        self, database: Database, writers: Writers, runs: list[Committed], branch: str, before: dict[str, Node]
    ) -> Facts | str:
        rows = await rows_of(database.admin, self._url, branch)
        entries = [entry for entry in self._sandbox.journal.as_json() if entry["branch"] == branch]
        if self._keep or self._wrong:
            (self._folder / f"{branch}.journal.json").write_text(json.dumps(entries, indent=1), encoding="utf-8")
        try:
            requests = [request_of(entry) for entry in entries]
        except ValueError as unnamed:
            return f"{branch}: G4: {unnamed}"
        trails = [read_trail(path) for path in self._folder.glob("*.trail")]
        steps = [step for trail in trails for step in trail if step["branch"] == branch]
        times = self._script.times
        return Facts(
            binding=rows["binding"],
            events=rows["event"],
            inbox=rows["inbox"],
            artifacts=rows["artifact"],
            lines=rows["line"],
            runs={run.files.run_id: run.files for run in runs if self._branches[run.script.branch] == branch},
            requests=requests,
            before=before,
            after=nodes_of(self._sandbox.store.branches[branch]),
            seen=[(s["position"], s["hash"]) for s in steps if s["step"] == "acknowledged"] + self._seen[branch],
            freezes=[freeze for writer in writers.all for freeze in writer.freezes],
            stops=self._stops,
            receipts=[s for s in steps if s["step"] == "receipt" and s["what"] == "commit"],
            request_limit=times["request_timeout"] + times["margin"],
        )

    def _leave(self, database: Database, found: list[str]) -> None:
        """Keep what is needed to look at a violation; else leave nothing."""
        self._sandbox.journal.clear()
        for branch in self._branches:
            self._sandbox.store.delete_branch(branch)
        if not found and not self._keep:
            shutil.rmtree(self._folder)
            return
        document = {"script": describe(self._script), "violations": found, "database": database.server.root.name}
        (self._folder / "episode.json").write_text(json.dumps(document, indent=1, default=str), encoding="utf-8")


def nodes_of(branch: BranchStore) -> dict[str, Node]:
    """The objects of a branch, as the checker reads them."""
    return {
        node.id: Node(
            kind=node.kind.name,
            values={name: node.read(name) for name in node.kind.attributes},
            peers={end.name: tuple(node.peer_ids(end.slot)) for end in node.kind.ends.values()},
        )
        for node in branch.nodes.values()
    }


def doom(
    operations: list[PlannedOperation], run: RunScript, rng: random.Random
) -> tuple[list[PlannedOperation], str | None]:
    """Change one operation so that it must be proven unwritten: an id that nobody has, or a peer that is not there."""
    if run.doom is None:
        return operations, None
    found = [(number, changed) for number, o in enumerate(operations) if (changed := _doomed(o, run)) is not None]
    if not found:
        return operations, None
    number, changed = rng.choice(found)
    return [*operations[:number], changed, *operations[number + 1 :]], changed.operation_id


def _doomed(operation: PlannedOperation, run: RunScript) -> PlannedOperation | None:
    if run.doom == "stale id":
        nobody = str(uuid.uuid5(uuid.NAMESPACE_OID, run.run_id))
        return operation.model_copy(update={"destination_id": nobody}) if operation.action == "update" else None
    for place, reference in enumerate(operation.relationships or ()):
        (peer, *others) = reference.peers or [{}]
        is_plain = len(peer) == 1 and all(isinstance(part, str) for part in peer.values())
        if reference.field not in operation.identity and is_plain and not others:
            gone = RelationshipReference(
                field=reference.field,
                peer_kind=reference.peer_kind,
                cardinality=reference.cardinality,
                peers=[dict.fromkeys(peer, f"nobody of {run.run_id}")],
            )
            references = [*(operation.relationships or ())]
            references[place] = gone
            return operation.model_copy(update={"relationships": references})
    return None


def tally(facts: Facts) -> Counter[str]:
    """What happened on one binding, for the report."""
    counts: Counter[str] = Counter()
    for event in facts.events:
        counts["events"] += 1
        counts["writers that claimed"] += event["kind"] == "writer.opened"
        if event["kind"] == "operation.unknown":
            error = facts.body(event)["error"]
            counts[f"unknown: {error}"] += 1
            counts["take-overs of an operation in flight"] += error == "WriterDiedError"
        elif event["kind"].startswith(("operation.", "run.")) or event["kind"] == "plan.refused":
            counts[event["kind"]] += 1
    counts["runs"] += len(facts.runs)
    counts["requests"] += len(facts.requests)
    counts["requests of a starved machine"] += len(starved(facts))
    counts["stray requests of frozen writers"] += len(strays(facts)) - len(starved(facts))
    return counts


async def _value(dsn: str, text: str, *arguments: Any) -> Any:
    connection = await asyncpg.connect(dsn, timeout=2)
    try:
        return await connection.fetchval(text, *arguments)
    finally:
        await connection.close()
