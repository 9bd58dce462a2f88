"""The inbox: strict order, repeats, resume."""

from __future__ import annotations

import json

import pytest

from consumers.pauses import PausePoint
from ledger.commit import Policy
from ledger.exit_codes import ExitCode
from tests.support.committed_plans import gone_tag, tag
from tests.support.scripted_destination import refused, unknown
from tests.support.writer_bench import Bench


@pytest.mark.rules("G2")
async def test_runs_of_one_binding_follow_each_other_in_the_order_of_their_commits(bench: Bench) -> None:
    bench.commit([tag("a")], run_id="run-1")
    bench.commit([tag("b")], run_id="run-2")
    bench.commit([tag("c")], run_id="run-3")
    await bench.drain("run-3")
    runs = [event.run_id for event in bench.ledger.log if event.kind in ("run.started", "run.applied")]
    assert runs == ["run-1", "run-1", "run-2", "run-2", "run-3", "run-3"]


@pytest.mark.rules("G7")
async def test_g07_a_commit_that_comes_again_after_its_run_writes_nothing(bench: Bench) -> None:
    bench.commit([tag("a")])
    await bench.drain()
    first = len(bench.ledger.log)
    # As if the first row had been lost: the same commit is open once more.
    bench.ledger._order("commit", "run-1", bench.commit_of().model_dump(mode="json"))
    outcome = await bench.drain()
    assert (outcome.ending, outcome.repeated) == ("run.applied", True)
    assert len(bench.destination.received) == 1
    assert [event.kind for event in bench.ledger.log[first:]] == ["writer.opened"]


@pytest.mark.rules("G7")
async def test_g07_a_resume_of_an_applied_run_writes_nothing(bench: Bench) -> None:
    bench.commit([tag("a")])
    await bench.drain()
    late = bench.ledger.resume("run-1")
    outcome = await bench.drain()
    assert (outcome.ending, outcome.repeated) == ("run.applied", True)
    assert bench.ledger.kinds("run-1") == ["run.started", "operation.applied", "run.applied"]
    assert bench.ledger.state_of(late) == "done"


@pytest.mark.rules("G7")
async def test_g07_a_commit_that_comes_again_does_not_repeat_a_run_that_was_stopped(bench: Bench) -> None:
    bench.commit([tag("a")])
    bench.ledger.stop("run-1")
    await bench.drain()
    bench.ledger._order("commit", "run-1", bench.commit_of().model_dump(mode="json"))
    outcome = await bench.drain()
    assert (outcome.run_id, outcome.ending, outcome.repeated) == ("run-1", "run.stopped", True)
    assert bench.destination.received == []


@pytest.mark.rules("G7", "A54")
async def test_g07_a_commit_that_comes_again_does_not_repeat_a_run_that_failed(bench: Bench) -> None:
    operations = bench.commit([tag("a")])
    bench.destination.answers = {operations[0].operation_id: [refused()]}
    await bench.drain()
    bench.ledger._order("commit", "run-1", bench.commit_of().model_dump(mode="json"))
    outcome = await bench.drain()
    assert (outcome.ending, outcome.repeated) == ("run.failed", True)
    assert len(bench.destination.received) == 1


@pytest.mark.rules("G7", "A54")
async def test_ff38_the_same_operation_of_another_run_is_applied_again(bench: Bench) -> None:
    bench.commit([tag("a", description="one")], run_id="run-1")
    bench.commit([tag("a", description="two")], run_id="run-2")
    await bench.drain("run-2")
    assert len(bench.destination.received) == 2


@pytest.mark.rules("P66", "P112", "P129", "G3")
async def test_ff29_resume_starts_at_the_first_operation_without_success_after_the_whole_gate(bench: Bench) -> None:
    operations = bench.commit([tag("a"), gone_tag("gone"), tag("b"), tag("c")])
    bench.destination.answers = {operations[2].operation_id: [refused()]}
    assert (await bench.drain()).ending == "run.failed"
    order = bench.ledger.resume("run-1", by="grace", reason="peer was created")
    assert (await bench.drain()).ending == "run.applied"
    assert bench.destination.opened == 2
    assert bench.destination.received == [operations[index].operation_id for index in (0, 2, 2, 3)]
    resumed = bench.ledger.body("run.resumed")
    assert (resumed["by"], resumed["reason"], resumed["from_ordinal"]) == ("grace", "peer was created", 2)
    attempts = [e.attempt for e in bench.ledger.of_run("run-1") if e.operation_id == operations[2].operation_id]
    assert attempts == [1, 2]
    ended = bench.ledger.body("run.applied")
    assert (ended["applied"], ended["skipped"], ended["not_attempted"]) == (3, 1, 0)
    assert bench.ledger.state_of(order) == "done"


async def test_a_resume_whose_gate_fails_is_refused_and_can_be_ordered_again(bench: Bench) -> None:
    operations = bench.commit([tag("a"), tag("b")])
    bench.destination.answers = {operations[1].operation_id: [refused()]}
    await bench.drain()
    path = bench.root / "sync/run-1/plan/operations.jsonl"
    original = path.read_bytes()
    path.write_bytes(original[:-1])
    bench.ledger.resume("run-1")
    assert (await bench.drain()).ending == "plan.refused"
    path.write_bytes(original)
    bench.ledger.resume("run-1")
    assert (await bench.drain()).ending == "run.applied"
    assert bench.ledger.kinds("run-1").count("plan.refused") == 1


async def test_a_refused_run_is_refused_again_under_an_event_of_its_own(bench: Bench) -> None:
    bench.commit([tag("a")], commit={"config_version": "another"})
    await bench.drain()
    bench.ledger.resume("run-1")
    assert (await bench.drain()).ending == "plan.refused"
    assert bench.ledger.kinds("run-1") == ["plan.refused", "plan.refused"]


@pytest.mark.rules("G8")
async def test_g08_who_has_a_refused_run_begin_stands_in_the_log(bench: Bench) -> None:
    operations = bench.commit([tag("a")])
    path = bench.root / "sync/run-1/plan/operations.jsonl"
    original = path.read_bytes()
    path.write_bytes(original[:-1])
    await bench.drain()
    bench.ledger.resume("run-1", by="grace", reason="copied anew")
    await bench.drain()
    path.write_bytes(original)
    bench.ledger.resume("run-1", by="ada", reason="copied right")
    assert (await bench.drain()).ending == "run.applied"
    assert bench.ledger.kinds("run-1") == [
        "plan.refused",
        "plan.refused",
        "run.started",
        "operation.applied",
        "run.applied",
    ]
    words = [
        bench.ledger.body(kind, index) for kind, index in (("plan.refused", 0), ("plan.refused", 1), ("run.started", 0))
    ]
    assert [(body["by"], body["reason"]) for body in words] == [
        (None, None),
        ("grace", "copied anew"),
        ("ada", "copied right"),
    ]
    assert len(operations) == 1


async def test_a_resume_carries_a_policy_of_its_own(bench: Bench) -> None:
    operations = bench.commit([tag("a")])
    bench.destination.answers = {operations[0].operation_id: [unknown(), unknown()]}
    assert (await bench.drain()).ending == "run.interrupted"
    bench.ledger.resume("run-1", Policy(on_unknown="converge"))
    assert (await bench.drain()).ending == "run.applied"
    attempts = [e.attempt for e in bench.ledger.of_run("run-1") if e.operation_id == operations[0].operation_id]
    assert attempts == [1, 2, 3]


async def test_the_attempts_of_a_resumption_are_counted_afresh(bench: Bench) -> None:
    operations = bench.commit([tag("a")], policy=Policy(on_unknown="converge"))
    bench.changes["max_converge_attempts"] = 2
    bench.destination.answers = {operations[0].operation_id: [unknown() for _ in range(3)]}
    assert (await bench.drain()).ending == "run.interrupted"
    bench.ledger.resume("run-1", Policy(on_unknown="converge"))
    assert (await bench.drain()).ending == "run.applied"


async def test_an_order_that_cannot_be_read_is_refused_by_name(bench: Bench) -> None:
    operations = bench.commit([tag("a")])
    bench.destination.answers = {operations[0].operation_id: [refused()]}
    await bench.drain()
    bench.ledger._order("resume", "run-1", {"by": "ada", "reason": "", "policy": {"on_unknown": "pray"}})
    outcome = await bench.drain()
    assert [finding.name for finding in outcome.findings] == ["UnusableOrderError"]


@pytest.mark.rules("G10")
async def test_g10_a_commit_that_cannot_be_read_is_refused_and_the_next_one_handled(bench: Bench) -> None:
    bench.ledger._order("commit", "run-0", {"run_id": "run-0", "commit_id": "planted-value", "surprise": 1})
    bench.ledger._order("resume", "run-9", {"by": "ada", "reason": ""})
    bench.commit([tag("a")])
    assert (await bench.drain()).ending == "run.applied"
    assert bench.ledger.kinds("run-0") == bench.ledger.kinds("run-9") == ["plan.refused"]
    finding = bench.ledger.body("plan.refused", 0)["findings"][0]
    assert finding["name"] == "UnusableOrderError"
    assert "surprise" in finding["found"]
    assert "planted-value" not in finding["found"]
    assert [order.state for order in bench.ledger.orders] == ["refused", "refused", "done"]


@pytest.mark.rules("G5", "P130", "P134")
async def test_g05_a_refusal_after_an_attempt_that_may_have_written_proves_nothing(bench: Bench) -> None:
    """The second attempt is proven unwritten, the operation is not: the first one's answer was lost."""
    operations = bench.commit([tag("a"), tag("b")], policy=Policy(on_unknown="converge"))
    bench.destination.answers = {operations[0].operation_id: [unknown(), refused()]}
    outcome = await bench.drain()
    assert (outcome.ending, outcome.exit_code) == ("run.interrupted", ExitCode.STOPPED_MAYBE_WRITTEN)
    assert bench.ledger.kinds("run-1") == ["run.started", "operation.unknown", "operation.failed", "run.interrupted"]
    ended = bench.ledger.body("run.interrupted")
    assert (ended["failed_operation"], ended["failed_operation_wrote"]) == (operations[0].operation_id, None)


@pytest.mark.rules("G5")
async def test_g05_the_doubt_outlives_a_resumption(bench: Bench) -> None:
    operations = bench.commit([tag("a")])
    bench.destination.answers = {operations[0].operation_id: [unknown(), refused()]}
    await bench.drain()
    bench.ledger.resume("run-1")
    assert (await bench.drain()).ending == "run.interrupted"
    bench.ledger.resume("run-1")
    bench.ledger.stop("run-1")
    assert (await bench.drain()).ending == "run.interrupted"
    assert "run.stopped" not in bench.ledger.kinds("run-1")
    bench.ledger.resume("run-1")
    assert (await bench.drain()).ending == "run.applied"


async def test_events_of_one_run_have_ids_of_their_own_in_every_episode(bench: Bench) -> None:
    operations = bench.commit([tag("a")])
    bench.destination.answers = {operations[0].operation_id: [refused(), refused()]}
    await bench.drain()
    bench.ledger.resume("run-1")
    await bench.drain()
    bench.ledger.resume("run-1")
    assert (await bench.drain()).ending == "run.applied"
    ids = [event.event_id for event in bench.ledger.log]
    assert len(ids) == len(set(ids))


async def test_progress_is_shown_for_each_operation(bench: Bench) -> None:
    bench.commit([tag("a"), tag("b")])
    await bench.drain()
    applying = [(p.done, p.total) for p in bench.shown if p.phase == "applying"]
    assert applying == [(1, 2), (2, 2)]
    assert bench.shown[0].phase == "verifying"
    assert (bench.shown[-1].phase, bench.shown[-1].detail) == ("ended", "run.applied")


async def test_the_points_of_a_run_are_passed_in_order(bench: Bench) -> None:
    bench.commit([tag("a")])
    await bench.drain()
    seen = [p for p in bench.pauses.seen if p not in (PausePoint.INSIDE_APPEND, PausePoint.AFTER_APPEND)]
    assert seen == [
        PausePoint.BEFORE_CLAIM,
        PausePoint.AFTER_CLAIM,
        PausePoint.BEFORE_GATE,
        PausePoint.BEFORE_PLAN_STORED,
        PausePoint.BEFORE_RUN_STARTED,
        PausePoint.AFTER_RUN_STARTED,
        PausePoint.BEFORE_DISPATCH,
        PausePoint.AFTER_WRITE_BEFORE_APPEND,
        PausePoint.BEFORE_TERMINAL,
        PausePoint.AFTER_TERMINAL,
        PausePoint.BEFORE_RELEASE,
    ]


async def test_nothing_of_the_time_of_appending_is_in_a_body(bench: Bench) -> None:
    bench.commit([tag("a")])
    await bench.drain()
    for event in bench.ledger.of_run("run-1"):
        assert not {"recorded_at", "position", "hash"} & json.loads(event.body).keys()
