"""The run summary: six keys, always all, from outcomes alone, over every attempt in stored order."""

from __future__ import annotations

import pytest

from ledger.events import Overlap
from ledger.projections.run_summary import SUMMARY_KEYS, RunSummary, fold_run
from tests.support.events import RUN, EventLog, operation_id


def _summary(log: EventLog) -> RunSummary:
    return fold_run(log.events, RUN)


def _counts(summary: RunSummary) -> dict[str, int | None]:
    document = summary.document()
    return {name: document[name] for name in ("applied", "skipped", "failed", "unknown", "not_attempted")}


@pytest.mark.rules("P125", "P126", "P121")
def test_an_empty_plan_that_was_applied_has_all_six_keys_and_none_is_absent() -> None:
    log = EventLog()
    log.commit(0)
    log.started(0)
    log.ended("run.applied")
    summary = _summary(log)

    assert summary.keys() == {
        "applied_operations": [],
        "skipped_delete_operations": [],
        "skipped_delete_count": 0,
        "failed_operation": None,
        "failed_operation_wrote": None,
        "may_have_partially_written": False,
    }
    assert tuple(summary.keys()) == SUMMARY_KEYS
    assert summary.state == "applied"


@pytest.mark.rules("P126")
def test_a_run_without_any_event_has_all_six_keys_too() -> None:
    assert tuple(fold_run([], RUN).keys()) == SUMMARY_KEYS
    assert fold_run([], RUN).state == "open"


@pytest.mark.rules("P110", "P111", "P113", "P120", "P145", "P146", "P147", "G3")
def test_g03_a_completed_run_applied_and_skipped_are_the_whole_plan_in_stored_order() -> None:
    log = EventLog()
    log.commit(5)
    log.started(5)
    log.applied(0)
    log.skipped(1)
    log.applied(2)
    log.skipped(3)
    log.applied(4)
    log.ended("run.applied")
    summary = _summary(log)

    assert summary.applied_operations == [operation_id(n) for n in (0, 2, 4)]
    assert summary.applied_operations[-1] == operation_id(4), "the last applied one is the last of the list"
    assert summary.skipped_delete_operations == [operation_id(1), operation_id(3)]
    assert summary.skipped_delete_count == 2
    assert {*summary.applied_operations, *summary.skipped_delete_operations} == {operation_id(n) for n in range(5)}
    assert _counts(summary) == {"applied": 3, "skipped": 2, "failed": 0, "unknown": 0, "not_attempted": 0}


@pytest.mark.rules("P112", "P127", "P129", "P130", "P132", "P133", "P134", "P136", "P137", "G3")
def test_g03_a_proven_unwritten_failure_keeps_what_was_applied_and_claims_only_itself() -> None:
    log = EventLog()
    log.commit(5)
    log.started(5)
    log.applied(0)
    log.applied(1)
    log.failed(2)
    log.ended("run.failed")
    summary = _summary(log)

    assert summary.state == "failed"
    assert summary.failed_operation == operation_id(2)
    assert summary.failed_operation_wrote is False
    assert summary.may_have_partially_written is False
    assert summary.applied_operations == [operation_id(0), operation_id(1)]
    assert operation_id(2) not in summary.applied_operations + summary.skipped_delete_operations
    assert _counts(summary) == {"applied": 2, "skipped": 0, "failed": 1, "unknown": 0, "not_attempted": 2}


@pytest.mark.rules("P128", "P129", "P130", "P131", "P134", "G3", "G5")
def test_g05_an_unknown_outcome_may_have_written() -> None:
    log = EventLog()
    log.commit(3)
    log.started(3)
    log.applied(0)
    log.unknown(1)
    log.ended("run.interrupted")
    summary = _summary(log)

    assert summary.state == "interrupted"
    assert summary.failed_operation == operation_id(1)
    assert summary.failed_operation_wrote is None
    assert summary.may_have_partially_written is True
    assert _counts(summary) == {"applied": 1, "skipped": 0, "failed": 0, "unknown": 1, "not_attempted": 1}


@pytest.mark.rules("P130", "P134", "G5")
def test_g05_a_later_proof_does_not_cover_an_earlier_attempt_that_may_have_written() -> None:
    log = EventLog()
    log.commit(1)
    log.started(1)
    log.unknown(0, attempt=1)
    log.failed(0, attempt=2)
    log.ended("run.failed")
    summary = _summary(log)

    assert summary.failed_operation_wrote is None
    assert summary.may_have_partially_written is True
    assert _counts(summary) == {"applied": 0, "skipped": 0, "failed": 0, "unknown": 1, "not_attempted": 0}


@pytest.mark.rules("P129", "G3", "G6")
def test_g06_failed_and_then_applied_is_applied_and_nothing_is_failed_any_more() -> None:
    log = EventLog()
    log.commit(2)
    log.started(2)
    log.unknown(0, attempt=1)
    log.ended("run.interrupted")
    assert _summary(log).may_have_partially_written is True
    log.resumed(0)
    assert _summary(log).is_running
    assert _summary(log).state == "interrupted", "the state is the last terminal event"
    log.applied(0, attempt=2)
    log.applied(1)
    log.ended("run.applied")
    summary = _summary(log)

    assert summary.state == "applied"
    assert summary.applied_operations == [operation_id(0), operation_id(1)]
    assert (summary.failed_operation, summary.failed_operation_wrote) == (None, None)
    assert summary.may_have_partially_written is False
    assert _counts(summary) == {"applied": 2, "skipped": 0, "failed": 0, "unknown": 0, "not_attempted": 0}


@pytest.mark.rules("G3")
def test_g03_a_run_may_end_several_times() -> None:
    log = EventLog()
    log.commit(2)
    log.started(2)
    log.applied(0)
    first_end = log.stopped()
    assert _summary(log).state == "stopped"
    assert _counts(_summary(log))["not_attempted"] == 1
    log.resumed(1)
    log.applied(1)
    last_end = log.ended("run.applied")
    document = _summary(log).document()

    assert document["state"] == "applied"
    assert (document["started_position"], document["ended_position"]) == (2, last_end.position)
    assert first_end.position < last_end.position


@pytest.mark.rules("P105")
def test_a_refused_run_is_refused_and_everything_is_not_attempted() -> None:
    log = EventLog()
    log.commit(4)
    log.append("plan.refused", {"findings": []})

    assert _summary(log).state == "refused"
    assert _counts(_summary(log)) == {"applied": 0, "skipped": 0, "failed": 0, "unknown": 0, "not_attempted": 4}


@pytest.mark.rules("G6")
def test_g06_counts_come_from_outcomes_and_never_from_what_an_end_claims() -> None:
    log = EventLog()
    log.commit(2)
    log.started(2)
    log.applied(0)
    log.ended("run.applied")

    assert _counts(_summary(log)) == {"applied": 1, "skipped": 0, "failed": 0, "unknown": 0, "not_attempted": 1}
    assert _summary(log).failed_operation is None


@pytest.mark.rules("G3", "G9")
def test_g09_every_event_twice_gives_the_same_summary() -> None:
    log = EventLog()
    log.commit(3)
    log.started(3)
    log.applied(0)
    log.failed(1)
    log.ended("run.failed")
    doubled = [event for event in log.events for _ in range(2)]

    assert fold_run(doubled, RUN).document() == _summary(log).document()
    assert fold_run([*log.events, *log.events], RUN).document() == _summary(log).document()
    assert _summary(log).count("applied") == 1


@pytest.mark.rules("G3", "G9")
def test_g09_an_attempt_recorded_twice_at_two_positions_counts_once() -> None:
    log = EventLog()
    log.commit(2)
    log.started(2)
    log.applied(0)
    log.applied(0)

    assert _summary(log).applied_operations == [operation_id(0)]
    assert _counts(_summary(log))["applied"] == 1
    assert [attempt.position for attempt in _summary(log).operations[0].attempts] == [3], "the first one stands"


@pytest.mark.rules("G9")
def test_g09_unknown_kinds_and_versions_are_counted_once_and_hide_nothing() -> None:
    log = EventLog()
    log.commit(1)
    strange = log.append("run.reconciled", {"note": "later"})
    log.append("operation.applied", {"another": "shape"}, ordinal=0, schema_version=2)
    summary = fold_run([*log.events, strange], RUN)

    assert summary.run.unrecognised == 2
    assert summary.count("applied") == 0


@pytest.mark.rules("P138")
def test_derived_values_are_not_in_the_stored_documents() -> None:
    log = EventLog()
    log.commit(2)
    log.started(2)
    log.skipped(0)
    log.unknown(1)
    summary = _summary(log)

    stored = {*type(summary.run).model_fields, *type(summary.operations[0]).model_fields}
    derived = {*SUMMARY_KEYS, "applied", "skipped", "failed", "unknown", "not_attempted", "state"}
    assert stored.isdisjoint(derived)


def test_overlaps_stand_in_the_summary() -> None:
    overlap = Overlap(
        kind="OrganizationManufacturer",
        identity={"name": "Cisco"},
        operation_id=operation_id(0),
        fields=["description"],
        source="device-library",
        run_id="20261129T1800-00000000",
        position=7,
    )
    log = EventLog()
    log.commit(1)
    log.started(1, overlaps=[overlap])
    log.resumed(0)

    document = _summary(log).document()
    assert document["overlaps"] == [overlap.model_dump(mode="json")]
    assert document["overlaps_total"] == 1


def test_the_rate_counts_outcomes_since_the_last_start() -> None:
    log = EventLog()
    log.commit(2)
    log.started(2)
    log.applied(0)
    assert _summary(log).operations_per_second is None
    log.stopped()
    log.resumed(1)
    log.applied(1)
    log.ended("run.applied")

    # Events of the test log are one millisecond apart: one outcome in two milliseconds.
    assert _summary(log).operations_per_second == pytest.approx(500)
