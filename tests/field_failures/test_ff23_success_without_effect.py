"""FF23: applied needs ``ok: true`` and the node's id, on an update the recorded one; only outcomes are counted."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from consumers.infrahub.connection import InfrahubOpener, declared
from consumers.infrahub.sandbox import FaultAnswer, FaultRule
from ledger.binding import DestinationBinding
from ledger.destination import DispatchGuard, OpenDestination, PeerResolver, PlannedWriteDestination
from ledger.exit_codes import ExitCode
from ledger.plan.model import PlannedOperation
from ledger.schema import parse_schema
from tests.support.command_line import CommandLine
from tests.support.inventory_operations import changed_manufacturer, manufacturer
from tests.support.real_writer import REAL_SCHEMA, RealWriter
from tests.support.scripted_destination import RememberingResolver
from tests.support.scripted_infrahub import ScriptedInfrahub, graphql

pytestmark = pytest.mark.integration

MAKER = "OrganizationManufacturer"
FIELD = f"{MAKER}Upsert"
DOCUMENT = json.loads(REAL_SCHEMA.read_bytes())
RECORDED = "18d52a8a-7e7d-9bf5-3967-c51149d169da"

EMPTY_SUCCESSES: dict[str, Any] = {
    "no data": {},
    "no result": {FIELD: None},
    "a result of another mutation": {f"{MAKER}Create": {"ok": True, "object": {"id": "n"}}},
    "a list": {FIELD: [{"ok": True, "object": {"id": "n"}}]},
    "ok alone": {FIELD: {"ok": True}},
    "no ok": {FIELD: {"object": {"id": "n"}}},
    "ok false": {FIELD: {"ok": False, "object": {"id": "n"}}},
    "ok null": {FIELD: {"ok": None, "object": {"id": "n"}}},
    "ok as text": {FIELD: {"ok": "true", "object": {"id": "n"}}},
    "ok as a number": {FIELD: {"ok": 1, "object": {"id": "n"}}},
    "object null": {FIELD: {"ok": True, "object": None}},
    "object as text": {FIELD: {"ok": True, "object": "n"}},
    "no id": {FIELD: {"ok": True, "object": {}}},
    "id null": {FIELD: {"ok": True, "object": {"id": None}}},
    "id empty": {FIELD: {"ok": True, "object": {"id": ""}}},
    "id blank": {FIELD: {"ok": True, "object": {"id": " \t"}}},
    "id as a number": {FIELD: {"ok": True, "object": {"id": 17}}},
    "id true": {FIELD: {"ok": True, "object": {"id": True}}},
    "id as a list": {FIELD: {"ok": True, "object": {"id": ["n"]}}},
}


async def require_nothing_counted(real: RealWriter, first: PlannedOperation, outcome: Any) -> None:
    """Two operations were planned; the first is in doubt, and neither event nor summary counts a success."""
    assert (outcome.ending, outcome.exit_code) == ("run.interrupted", ExitCode.STOPPED_MAYBE_WRITTEN)
    assert await real.kinds("run-1") == ["plan.committed", "run.started", "operation.unknown", "run.interrupted"]
    ended = await real.body("run-1", "run.interrupted")
    assert (ended["applied"], ended["failed_operation"], ended["not_attempted"]) == (0, first.operation_id, 1)
    body = await real.body("run-1", "operation.unknown")
    assert (body["wrote"], body["sent"]) == (None, True)


@pytest.mark.rules("P113", "P147", "G6")
async def test_ff23_no_success_is_believed_that_names_no_node(real: RealWriter) -> None:
    server = ScriptedInfrahub(schema_document=DOCUMENT)
    opener = InfrahubOpener(declared(real.destination), factory=server.new_transport)
    real.changes["settle_seconds"] = 0.0
    [first, _] = await real.commit("run-1", [manufacturer("Juniper"), manufacturer("Cisco")])
    answers = list(EMPTY_SUCCESSES.values())
    server.will_answer(graphql({"data": answers[0]}))
    await require_nothing_counted(real, first, await real.writer(opener).drain("run-1", by="ada"))
    for data in answers[1:]:
        server.will_answer(graphql({"data": data}))
        await real.resume("run-1")
        assert (await real.writer(opener).drain("run-1", by="ada")).ending == "run.interrupted", data
    assert len(server.mutations) == len(answers)
    kinds = await real.kinds("run-1")
    assert kinds.count("operation.unknown") == len(answers)
    assert "operation.applied" not in kinds
    server.will_answer(*(graphql({"data": {FIELD: {"ok": True, "object": {"id": name}}}}) for name in ("n1", "n2")))
    await real.resume("run-1")
    assert (await real.writer(opener).drain("run-1", by="ada")).ending == "run.applied"
    assert (await real.body("run-1", "run.applied"))["applied"] == 2


@pytest.mark.rules("P113", "P28", "G6")
@pytest.mark.parametrize("answered", ["another-id", RECORDED.upper(), f" {RECORDED}", RECORDED[:-1]])
async def test_ff23_an_update_that_answers_with_another_id_is_in_doubt(real: RealWriter, answered: str) -> None:
    server = ScriptedInfrahub(schema_document=DOCUMENT)
    opener = InfrahubOpener(declared(real.destination), factory=server.new_transport)
    server.will_answer(graphql({"data": {FIELD: {"ok": True, "object": {"id": answered}}}}))
    [first, _] = await real.commit(
        "run-1", [changed_manufacturer("Juniper", RECORDED, description="x"), manufacturer("Cisco")]
    )
    await require_nothing_counted(real, first, await real.writer(opener).drain("run-1", by="ada"))
    error = "OtherNodeError" if answered == answered.strip() else "UnconfirmedWriteError"
    assert (await real.body("run-1", "operation.unknown"))["error"] == error


class Polite(PlannedWriteDestination):
    """Another destination than Infrahub, which fails politely: it returns something instead of raising."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked = 0

    def new_peer_resolver(self) -> RememberingResolver:
        return RememberingResolver()

    async def apply_planned_operation(self, *, operation: PlannedOperation, peers: PeerResolver) -> str:
        self.asked += 1
        answer: str = self.answer
        return answer

    @asynccontextmanager
    async def __call__(
        self, binding: DestinationBinding, *, run_id: str, guard: DispatchGuard
    ) -> AsyncIterator[OpenDestination]:
        yield OpenDestination(writes=self, schema=parse_schema(DOCUMENT), longest_request=0.0)


@pytest.mark.rules("P113", "P147", "G6")
@pytest.mark.parametrize("answer", [None, "", "  ", False, 0, [], "another-id"], ids=repr)
async def test_ff23_a_destination_that_fails_politely_is_not_counted(real: RealWriter, answer: Any) -> None:
    """diffsync, measured, counts a create that returned None."""
    polite = Polite(answer)
    [first, _] = await real.commit(
        "run-1", [changed_manufacturer("Juniper", RECORDED, description="x"), manufacturer("Cisco")]
    )
    await require_nothing_counted(real, first, await real.writer(polite).drain("run-1", by="ada"))
    assert polite.asked == 1


@pytest.mark.rules("P113", "P125", "P126", "P138", "G6", "C50")
def test_ff23_a_job_whose_every_request_was_rejected_reports_no_created_object(cli: CommandLine) -> None:
    cli.source({"name": "prod", "description": None}, {"name": "lab", "description": None})
    planned = cli.plan()
    cli.sandbox.faults.add(FaultRule(branch=cli.branch, answer=FaultAnswer.EMPTY_ID, write=False))
    summary = cli.summary(cli.apply(planned), 5)
    assert (summary["planned"], summary["applied"], summary["applied_operations"]) == (2, 0, [])
    assert (summary["unknown"], summary["not_attempted"]) == (1, 1)
    run_file = json.loads((cli.folder / "runs" / planned["run"] / "run.json").read_text())
    assert (run_file["status"], run_file["summary"]["applied_operations"]) == ("interrupted", [])
    assert cli.sandbox.store.count("BuiltinTag", branch=cli.branch) == 0
    assert not (cli.folder / "runs" / "tags" / "last-successful-rowcounts.json").exists()
    done = cli.summary(cli.run("resume", planned["run"], "--output", "json"), 0)
    assert len(done["applied_operations"]) == done["applied"] == 2
