"""The loop: stored order, the durable mark, one outcome per operation, stop at the first that fails."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from structlog.testing import capture_logs

from consumers.apply import RunApplication
from consumers.control import RunControl
from consumers.errors import KnowabilityError
from consumers.history import RunHistory
from consumers.lease import LeaseGuard, LeaseKeeper
from consumers.outcomes import OPERATIONAL_FAILURES
from consumers.recorder import RunRecorder
from ledger.commit import Policy
from ledger.destination import OutcomeUnknownError, ProvenUnwrittenError
from ledger.exit_codes import ExitCode
from ledger.plan.model import PlannedOperation
from ledger.store.records import InFlight
from tests.support.committed_plans import changed_tag, gone_tag, tag
from tests.support.scripted_destination import refused, unknown
from tests.support.writer_bench import Bench


def _bodies(bench: Bench, kind: str, run_id: str = "run-1") -> list[dict[str, Any]]:
    return [json.loads(event.body) for event in bench.ledger.of_run(run_id) if event.kind == kind]


def _ids(bench: Bench, kind: str, run_id: str = "run-1") -> list[str | None]:
    return [event.operation_id for event in bench.ledger.of_run(run_id) if event.kind == kind]


@pytest.mark.rules("P1", "P110", "P113", "P120", "G3")
async def test_g03_operations_are_applied_in_stored_order_with_one_outcome_each(bench: Bench) -> None:
    operations = bench.commit([tag("zeta"), tag("alpha"), changed_tag("mid", "id-7", description="x")])
    outcome = await bench.drain()
    planned = [operation.operation_id for operation in operations]
    assert outcome.ending == "run.applied"
    assert outcome.exit_code is ExitCode.DONE
    assert bench.destination.received == planned
    assert _ids(bench, "operation.applied") == planned
    assert [event.ordinal for event in bench.ledger.of_run("run-1") if event.operation_id] == [0, 1, 2]
    ended = bench.ledger.body("run.applied")
    assert (ended["applied"], ended["skipped"], ended["not_attempted"]) == (3, 0, 0)
    assert ended["failed_operation"] is None
    assert bench.ledger.state_of(bench.ledger.orders[0]) == "done"


@pytest.mark.rules("G4", "P124")
async def test_g04_the_operation_in_flight_is_durable_before_its_request(bench: Bench) -> None:
    operations = bench.commit([tag("a"), tag("b")])
    marks: list[InFlight | None] = []

    async def look(operation: PlannedOperation) -> str:
        marks.append(bench.ledger.in_flight)
        return bench.destination.write(operation)

    bench.destination.answers = {operation.operation_id: [look] for operation in operations}
    await bench.drain()
    assert marks == [InFlight("run-1", 0, 1), InFlight("run-1", 1, 1)]
    assert bench.ledger.in_flight is None


@pytest.mark.rules("P119", "P103")
async def test_run_started_stands_before_the_first_request(bench: Bench) -> None:
    (operation,) = bench.commit([tag("a")])
    seen: list[str] = []

    async def look(op: PlannedOperation) -> str:
        seen.extend(bench.ledger.kinds("run-1"))
        return bench.destination.write(op)

    bench.destination.answers = {operation.operation_id: [look]}
    await bench.drain()
    assert seen == ["run.started"]


@pytest.mark.rules("G4")
async def test_g04_outcome_and_next_mark_travel_in_one_append(bench: Bench) -> None:
    bench.commit([tag("a"), tag("b"), tag("c")])
    await bench.drain()
    assert bench.ledger.appends == [
        (["run.started"], None),
        ([], InFlight("run-1", 0, 1)),
        (["operation.applied"], InFlight("run-1", 1, 1)),
        (["operation.applied"], InFlight("run-1", 2, 1)),
        (["operation.applied", "run.applied"], None),
    ]


@pytest.mark.rules("P111", "P115", "P145", "P146", "P147", "P148", "P149", "A28")
async def test_g03_deletes_are_recorded_and_never_dispatched(bench: Bench) -> None:
    operations = bench.commit([tag("a"), gone_tag("x"), gone_tag("y"), tag("b"), gone_tag("z")])
    with capture_logs() as logs:
        outcome = await bench.drain()
    deletes = [operation.operation_id for operation in operations if operation.action == "delete"]
    assert outcome.ending == "run.applied"
    assert _ids(bench, "operation.skipped") == deletes
    assert not set(deletes) & set(bench.destination.received)
    assert {body["why"] for body in _bodies(bench, "operation.skipped")} == {"recorded delete"}
    assert bench.ledger.body("run.applied")["skipped"] == 3
    warnings = [entry for entry in logs if "deletes" in entry["event"]]
    assert [entry["count"] for entry in warnings] == [3]
    shared = [kinds for kinds, _ in bench.ledger.appends if "operation.skipped" in kinds]
    assert shared == [
        ["operation.applied", "operation.skipped", "operation.skipped"],
        ["operation.applied", "operation.skipped", "run.applied"],
    ]


@pytest.mark.rules("P111")
async def test_many_consecutive_deletes_share_appends_of_bounded_size(bench: Bench) -> None:
    bench.commit([gone_tag(f"gone-{number}") for number in range(1203)])
    outcome = await bench.drain()
    assert outcome.ending == "run.applied"
    assert bench.destination.received == []
    sizes = [len(kinds) for kinds, _ in bench.ledger.appends]
    assert max(sizes) <= 500
    assert len(sizes) <= 5


@pytest.mark.rules("P121")
async def test_an_empty_plan_is_a_successful_no_op(bench: Bench) -> None:
    bench.commit([])
    assert (await bench.drain()).ending == "run.applied"
    assert bench.ledger.kinds("run-1") == ["run.started", "run.applied"]


@pytest.mark.rules("P65", "P66", "P112", "P127", "P132", "P135", "P136", "P137", "G3", "G5")
async def test_g05_a_refusal_before_the_send_stops_the_run_as_failed_and_unwritten(bench: Bench) -> None:
    operations = bench.commit([tag("a"), tag("b"), tag("c"), tag("d")])
    bench.destination.answers = {operations[1].operation_id: [refused()]}
    outcome = await bench.drain()
    assert outcome.ending == "run.failed"
    assert outcome.exit_code is ExitCode.STOPPED_UNWRITTEN
    assert bench.destination.received == [operations[0].operation_id, operations[1].operation_id]
    failed = bench.ledger.body("operation.failed")
    assert failed["error"] == "ProvenUnwrittenError"
    assert failed["wrote"] is False
    assert failed["next_action"] == "create it"
    assert "may have written" not in failed["message"]
    ended = bench.ledger.body("run.failed")
    assert ended == {
        "applied": 1,
        "skipped": 0,
        "not_attempted": 2,
        "failed_operation": operations[1].operation_id,
        "failed_operation_wrote": False,
        "last_ordinal": 1,
    }
    assert bench.ledger.quiet_until == 0


@pytest.mark.rules("P127", "P128", "P129", "P130", "P131", "P134", "G5")
async def test_g05_a_lost_answer_stops_the_run_as_interrupted_and_starts_settling(bench: Bench) -> None:
    operations = bench.commit([tag("a"), tag("b"), tag("c")])
    bench.destination.answers = {operations[1].operation_id: [unknown(http_status=500, code="UNDEFINED_ERROR")]}
    outcome = await bench.drain()
    assert outcome.ending == "run.interrupted"
    assert outcome.exit_code is ExitCode.STOPPED_MAYBE_WRITTEN
    body = bench.ledger.body("operation.unknown")
    assert (body["wrote"], body["sent"], body["http_status"], body["code"]) == (None, True, 500, "UNDEFINED_ERROR")
    assert "may have written" in body["message"]
    ended = bench.ledger.body("run.interrupted")
    assert ended["failed_operation"] == operations[1].operation_id
    assert ended["failed_operation_wrote"] is None
    assert (ended["applied"], ended["not_attempted"]) == (1, 1)
    assert bench.ledger.quiet_until == bench.ledger.clock.now + 30
    assert bench.ledger.in_flight is None


@pytest.mark.rules("G5")
async def test_g05_a_request_that_never_left_is_unknown_but_needs_no_settling(bench: Bench) -> None:
    operations = bench.commit([tag("a")])
    bench.destination.answers = {operations[0].operation_id: [unknown(sent=False, found="connection refused")]}
    assert (await bench.drain()).ending == "run.interrupted"
    assert bench.ledger.body("operation.unknown")["sent"] is False
    assert bench.ledger.quiet_until == 0


@pytest.mark.rules("G6", "P113")
@pytest.mark.parametrize("answer", ["", "  "])
async def test_g06_a_blank_node_id_is_not_an_applied_operation(bench: Bench, answer: str) -> None:
    operations = bench.commit([tag("a")])
    bench.destination.answers = {operations[0].operation_id: [answer]}
    assert (await bench.drain()).ending == "run.interrupted"
    assert bench.ledger.body("operation.unknown")["error"] == "EmptyNodeIdError"


@pytest.mark.rules("G6")
async def test_g06_a_destination_that_answers_nothing_has_not_applied(bench: Bench) -> None:
    operations = bench.commit([tag("a")])

    async def nothing(operation: PlannedOperation) -> Any:
        return None

    bench.destination.answers = {operations[0].operation_id: [nothing]}
    assert (await bench.drain()).ending == "run.interrupted"


@pytest.mark.rules("G6")
async def test_g06_an_update_that_answers_with_another_id_is_not_applied(bench: Bench) -> None:
    operations = bench.commit([changed_tag("a", "id-1", description="x")])
    bench.destination.answers = {operations[0].operation_id: ["id-2"]}
    assert (await bench.drain()).ending == "run.interrupted"
    assert bench.ledger.body("operation.unknown")["error"] == "OtherNodeAnsweredError"


@pytest.mark.rules("G4", "G5")
async def test_converge_repeats_the_same_operation_after_settling_and_records_each_attempt(bench: Bench) -> None:
    operations = bench.commit([tag("a"), tag("b")], policy=Policy(on_unknown="converge"))
    dispatched_at: list[float] = []

    async def note(operation: PlannedOperation) -> str:
        dispatched_at.append(bench.ledger.clock.now)
        raise unknown()

    async def write(operation: PlannedOperation) -> str:
        dispatched_at.append(bench.ledger.clock.now)
        return bench.destination.write(operation)

    bench.destination.answers = {operations[0].operation_id: [note, write]}
    assert (await bench.drain()).ending == "run.applied"
    attempts = [
        (e.kind, e.attempt) for e in bench.ledger.of_run("run-1") if e.operation_id == operations[0].operation_id
    ]
    assert attempts == [("operation.unknown", 1), ("operation.applied", 2)]
    assert dispatched_at[1] - dispatched_at[0] >= 30
    assert any(progress.phase == "settling" and progress.seconds > 0 for progress in bench.shown)


async def test_converge_is_bounded(bench: Bench) -> None:
    operations = bench.commit([tag("a")], policy=Policy(on_unknown="converge"))
    bench.destination.answers = {operations[0].operation_id: [unknown() for _ in range(9)]}
    bench.changes["max_converge_attempts"] = 3
    assert (await bench.drain()).ending == "run.interrupted"
    assert len(bench.destination.received) == 3
    assert len(_bodies(bench, "operation.unknown")) == 3


async def test_stop_is_the_default_after_an_unknown_outcome(bench: Bench) -> None:
    operations = bench.commit([tag("a")])
    bench.destination.answers = {operations[0].operation_id: [unknown()]}
    await bench.drain()
    assert len(bench.destination.received) == 1


@pytest.mark.rules("P140", "P144")
def test_operational_failures_are_a_short_named_list() -> None:
    assert (ProvenUnwrittenError, OutcomeUnknownError) == OPERATIONAL_FAILURES


@pytest.mark.rules("P141", "P142", "G5")
@pytest.mark.parametrize("defect", [TypeError("secret-ish text"), KeyError("x"), AssertionError()])
async def test_g05_a_defect_propagates_after_it_was_recorded_as_unknown(bench: Bench, defect: Exception) -> None:
    operations = bench.commit([tag("a"), tag("b"), tag("c")])
    bench.destination.answers = {operations[1].operation_id: [defect]}
    with pytest.raises(type(defect)) as raised:
        await bench.drain()
    assert raised.value is defect
    assert any("run-1" in note for note in getattr(raised.value, "__notes__", []))
    assert bench.ledger.kinds("run-1")[-2:] == ["operation.unknown", "run.interrupted"]
    body = bench.ledger.body("operation.unknown")
    assert body["error"] == type(defect).__name__
    assert "secret-ish" not in json.dumps(body)
    assert len(bench.destination.received) == 2
    assert bench.ledger.in_flight is None
    assert bench.ledger.state_of(bench.ledger.orders[0]) == "done"


@pytest.mark.rules("P114", "P147", "G3")
async def test_g03_a_completed_run_whose_records_do_not_add_up_is_never_called_applied(bench: Bench) -> None:
    operations = bench.commit([tag("a")])
    lease = await bench.ledger.claim(1, owner="me", ttl=60, settle=0, body_host="here", body_process_id="me")
    keeper = LeaseKeeper(
        bench.ledger, lease, bench.settings, claim_sent_at=bench.ledger.clock(), clock=bench.ledger.clock
    )
    # What no path of the program does: a success of an operation that the plan does not hold.
    history = RunHistory("run-1", started=True, open=True, applied=["op_" + "0" * 16])
    application = RunApplication(
        operations=operations,
        destination=bench.destination,
        recorder=RunRecorder(keeper, history, operations_count=1),
        guard=LeaseGuard(keeper),
        control=RunControl(bench.ledger, 1, "run-1", leave=asyncio.Event()),
        policy=Policy(),
        settings=bench.settings,
    )
    with pytest.raises(KnowabilityError, match="differ by 1"):
        await application.run()
    assert bench.ledger.kinds("run-1") == ["operation.applied", "run.stopped"]


@pytest.mark.rules("P122", "P116")
async def test_the_writer_leaves_the_artifact_root_as_it_was(bench: Bench) -> None:
    bench.commit([tag("a")])
    before = {path: path.read_bytes() for path in bench.root.rglob("*") if path.is_file()}
    await bench.drain()
    after = {path: path.read_bytes() for path in bench.root.rglob("*") if path.is_file()}
    assert after == before


async def test_ff19_an_answer_that_the_ledger_cannot_hold_is_escaped_and_recorded(bench: Bench) -> None:
    operations = bench.commit([tag("a")])
    bench.destination.answers = {operations[0].operation_id: [unknown(found="bad \x00 and \ud800 text")]}
    assert (await bench.drain()).ending == "run.interrupted"
    message = bench.ledger.body("operation.unknown")["message"]
    assert "\\u0000" in message
    assert "\\ud800" in message
