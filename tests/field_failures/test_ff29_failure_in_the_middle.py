"""FF29: what came before stays, 3 has its verdict, 4 and 5 were not attempted; the three add up to the plan."""

from __future__ import annotations

import json
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from consumers.infrahub.sandbox import FaultAnswer, FaultRule
from ledger.exit_codes import ExitCode
from ledger.plan.layout import OPERATIONS_FILE
from ledger.plan.model import PlannedOperation
from producers.planning import PlannedRun
from tests.support.command_line import CommandLine
from tests.support.planning import Rows, entry, mapped, operations
from tests.support.real_writer import RealWriter
from tests.support.sync_bench import SyncBench

pytestmark = pytest.mark.integration

MAKER, TYPE = "OrganizationManufacturer", "DcimDeviceType"
MAPPING = [
    entry(MAKER, "makers", ["name"], mapped("name")),
    entry(TYPE, "types", ["manufacturer", "name"], mapped("name"), mapped("manufacturer", reference=MAKER)),
]
FIVE = ("one", "two", "three", "four", "five")
ROWS: Rows = {
    "makers": [{"id": name, "name": name} for name in FIVE],
    "types": [{"id": name, "name": f"type {name}", "manufacturer": {"id": name}} for name in FIVE],
}


@dataclass
class Five:
    """A plan of five creates, each of which needs a peer of its own that is there while the plan is made."""

    real: RealWriter
    sync: SyncBench
    makers: dict[str, str]
    run: PlannedRun

    @classmethod
    async def planned(cls, real: RealWriter) -> Five:
        store, branch = real.sandbox.store, real.branch
        makers = {name: store.create(MAKER, {"name": name}, branch=branch) for name in FIVE}
        sync = SyncBench(real, MAPPING)
        five = cls(real, sync, makers, await sync.plan(ROWS))
        assert len(five.operations) == 5
        return five

    @property
    def operations(self) -> Sequence[PlannedOperation]:
        return operations(self.run)

    def peer_of(self, ordinal: int) -> str:
        """Which maker an operation needs."""
        name: str = self.operations[ordinal].identity["manufacturer"]["identity"]["name"]
        return name

    def types(self) -> set[str]:
        """The names of the types that are there."""
        return {row["values"]["name"] for row in self.real.content() if row["kind"] == TYPE}

    def names(self, *ordinals: int) -> set[str]:
        """The names of the types that these operations create."""
        return {self.operations[ordinal].identity["name"] for ordinal in ordinals}

    async def require_stopped_at_3(self, verdict: str, terminal: str) -> None:
        """1 and 2 applied in order, 3 with its verdict, 4 and 5 not attempted."""
        assert await self.real.outcomes(self.run.run_id) == [(0, "applied", 1), (1, "applied", 1), (2, verdict, 1)]
        ended = await self.real.body(self.run.run_id, terminal)
        assert (ended["applied"], ended["skipped"], ended["not_attempted"]) == (2, 0, 2)
        assert ended["failed_operation"] == self.operations[2].operation_id
        assert ended["failed_operation_wrote"] is (False if verdict == "failed" else None)
        assert [e.data["name"]["value"] for e in self.real.sent()[:2]] == [
            operation.identity["name"] for operation in self.operations[:2]
        ]


async def refused_at_3(real: RealWriter) -> Five:
    five = await Five.planned(real)
    real.sandbox.store.delete(five.makers[five.peer_of(2)], branch=real.branch)
    outcome = await five.sync.apply(five.run)
    assert outcome.exit_code is ExitCode.STOPPED_UNWRITTEN
    await five.require_stopped_at_3("failed", "run.failed")
    assert five.types() == five.names(0, 1)
    assert len(real.sent()) == 2
    return five


def bring_back(five: Five) -> None:
    """The missing peer is there again."""
    five.real.sandbox.store.create(MAKER, {"name": five.peer_of(2)}, branch=five.real.branch)


@pytest.mark.rules("G3", "P65", "P66", "P110", "P112", "P127")
async def test_ff29_refused_at_3_and_resumed_at_3_after_the_whole_gate(real: RealWriter) -> None:
    five = await refused_at_3(real)
    bring_back(five)
    file = five.run.run_dir / OPERATIONS_FILE
    reviewed = file.read_bytes()
    file.write_bytes(reviewed.replace(five.operations[4].identity["name"].encode(), b"type edited"))
    await real.resume(five.run.run_id)
    refused = await real.writer().drain(five.run.run_id, by="ada")
    assert (refused.ending, refused.exit_code) == ("plan.refused", ExitCode.REFUSED)
    assert len(real.sent()) == 2

    file.write_bytes(reviewed)
    await real.resume(five.run.run_id)
    assert (await real.writer().drain(five.run.run_id, by="ada")).ending == "run.applied"
    assert (await real.body(five.run.run_id, "run.resumed"))["from_ordinal"] == 2
    assert (await real.outcomes(five.run.run_id))[3:] == [(2, "applied", 2), (3, "applied", 1), (4, "applied", 1)]
    assert five.types() == five.names(0, 1, 2, 3, 4)
    assert len(real.sent()) == 5


@pytest.mark.rules("G3", "P127", "H30", "H31")
async def test_ff29_refused_at_3_and_a_fresh_plan_holds_only_the_rest(real: RealWriter) -> None:
    five = await refused_at_3(real)
    bring_back(five)
    fresh = await five.sync.plan(ROWS)
    assert {operation.identity["name"] for operation in operations(fresh)} == five.names(2, 3, 4)
    assert (await five.sync.apply(fresh)).ending == "run.applied"
    assert five.types() == five.names(0, 1, 2, 3, 4)
    assert len(real.sent()) == 5
    assert operations(await five.sync.plan(ROWS)) == ()
    await real.resume(five.run.run_id)
    stale = await real.writer().drain(five.run.run_id, by="ada")
    assert [finding.name for finding in stale.findings] == ["StalePlanError"]
    assert len(real.sent()) == 5


@pytest.mark.rules("G3", "G5", "P127", "P129")
@pytest.mark.parametrize("wrote", [True, False], ids=["written", "not written"])
async def test_ff29_unknown_at_3_then_resumed_or_planned_afresh(real: RealWriter, wrote: bool) -> None:
    five = await Five.planned(real)
    real.sandbox.faults.add(FaultRule(branch=real.branch, nth=3, answer=FaultAnswer.DROP, write=wrote))
    assert (await five.sync.apply(five.run)).exit_code is ExitCode.STOPPED_MAYBE_WRITTEN
    await five.require_stopped_at_3("unknown", "run.interrupted")
    fresh = operations(await five.sync.plan(ROWS))
    left = five.names(3, 4) if wrote else five.names(2, 3, 4)
    assert {operation.identity["name"] for operation in fresh} == left
    await real.resume(five.run.run_id)
    assert (await real.writer().drain(five.run.run_id, by="ada")).ending == "run.applied"
    assert (await real.body(five.run.run_id, "run.resumed"))["from_ordinal"] == 2
    assert [entry.data["name"]["value"] for entry in real.sent()] == [
        five.operations[ordinal].identity["name"] for ordinal in (0, 1, 2, 2, 3, 4)
    ]
    assert real.sandbox.store.count(TYPE, branch=real.branch) == 5


def counts(summary: dict[str, Any]) -> dict[str, int]:
    return {name: summary[name] for name in ("applied", "skipped", "failed", "unknown", "not_attempted")}


@pytest.mark.rules("G3", "G4", "P124", "P138")
def test_ff29_killed_at_3_the_status_adds_up_and_apply_goes_on(cli: CommandLine) -> None:
    cli.variables = {
        "APPLY_LEDGER_WRITER__LEASE_TTL": "2.5",
        "APPLY_LEDGER_WRITER__REQUEST_TIMEOUT": "1.5",
        "APPLY_LEDGER_WRITER__MARGIN": "0.5",
    }
    cli.source(*({"name": name} for name in FIVE))
    planned = cli.plan()
    held = cli.sandbox.faults.add(FaultRule(branch=cli.branch, nth=3, hold="before-answer"))
    process = cli.start("apply", planned["run"], "--expected-checksum", planned["plan_checksum"])
    assert held.wait_reached(60)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    held.release()
    shown = json.loads(cli.run("runs", "show", planned["run_id"], "--output", "json").stdout)
    assert (shown["state"], shown["planned"], shown["running"]) == ("open", 5, True)
    assert counts(shown) == {"applied": 2, "skipped": 0, "failed": 0, "unknown": 0, "not_attempted": 3}
    assert f"in flight: operation 2 of run {planned['run_id']}" in cli.run("runs").stderr

    done = cli.summary(cli.apply(planned), 0)
    assert counts(done) == {"applied": 5, "skipped": 0, "failed": 0, "unknown": 0, "not_attempted": 0}
    assert cli.mutations() == 6
    assert cli.sandbox.store.count("BuiltinTag", branch=cli.branch) == 5
