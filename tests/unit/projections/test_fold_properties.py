"""The folds against a tiny model that counts in another way: no fold of ours, no positions, no states."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.events import StoredEvent
from ledger.projections.binding_status import BINDING_FOLD
from ledger.projections.fold import Fold, Key, State
from ledger.projections.registry import PROJECTIONS
from ledger.projections.run_summary import fold_run
from tests.support.events import EventLog, operation_id

RUNS = ("run-a", "run-b")


@dataclass
class Model:
    """What a run is, told by the steps that made it."""

    planned: int = 0
    results: dict[int, list[str]] = field(default_factory=dict)
    state: str = "open"
    first_success: list[int] = field(default_factory=list)

    def record(self, ordinal: int, outcome: str) -> None:
        self.results.setdefault(ordinal, []).append(outcome)
        if outcome in ("applied", "skipped"):
            self.first_success.append(ordinal)

    def total(self, outcome: str) -> int:
        return sum(self.verdict(results) == outcome for results in self.results.values())

    @staticmethod
    def verdict(results: list[str]) -> str:
        for name in ("applied", "skipped", "unknown"):
            if name in results:
                return name
        return "failed"


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[StoredEvent], dict[str, Model]]:
    """A log of two runs as a writer makes it: in plan order, stopping at failures, resuming, ending several times."""
    log = EventLog()
    models = {run: Model(planned=draw(st.integers(0, 6))) for run in RUNS}
    for run, model in models.items():
        log.commit(model.planned, run_id=run)
        _one_run(draw, log, run, model)
    return log.events, models


def _one_run(draw: st.DrawFn, log: EventLog, run: str, model: Model) -> None:
    ordinal, attempt = 0, 1
    for turn in range(draw(st.integers(0, 4))):
        if turn == 0:
            log.started(model.planned, run_id=run)
        else:
            log.resumed(ordinal, run_id=run)
        while ordinal < model.planned:
            outcome = draw(st.sampled_from(["applied", "applied", "skipped", "failed", "unknown", "stop"]))
            if outcome == "stop":
                log.stopped(run_id=run)
                model.state = "stopped"
                break
            getattr(log, outcome)(ordinal, attempt=attempt, run_id=run)
            model.record(ordinal, outcome)
            if outcome in ("failed", "unknown"):
                attempt += 1
                log.ended("run.failed" if outcome == "failed" else "run.interrupted", run_id=run)
                model.state = "failed" if outcome == "failed" else "interrupted"
                break
            ordinal, attempt = ordinal + 1, 1
        else:
            log.ended("run.applied", run_id=run)
            model.state = "applied"
            return


@pytest.mark.rules("G3", "G6", "G9", "P110", "P114", "P129", "P134", "P147")
@given(histories())
def test_g03_the_fold_agrees_with_a_model_that_counts_differently(
    history: tuple[list[StoredEvent], dict[str, Model]],
) -> None:
    events, models = history
    for run, model in models.items():
        summary = fold_run(events, run)
        document = summary.document()
        for outcome in ("applied", "skipped", "failed", "unknown"):
            assert document[outcome] == model.total(outcome)
        assert document["state"] == model.state
        assert (
            document["applied"]
            + document["skipped"]
            + document["failed"]
            + document["unknown"]
            + document["not_attempted"]
            == document["planned"]
        )
        successes = summary.applied_operations + summary.skipped_delete_operations
        assert sorted(successes) == sorted(operation_id(n) for n in model.first_success)
        if model.state == "applied":
            assert set(successes) == {operation_id(n) for n in range(model.planned)}
            assert summary.failed_operation is None
        open_ones = [n for n, results in model.results.items() if model.verdict(results) in ("failed", "unknown")]
        assert summary.failed_operation == (operation_id(open_ones[-1]) if open_ones else None)
        assert summary.may_have_partially_written == any("unknown" in model.results[n] for n in open_ones)


@pytest.mark.rules("G9")
@given(histories(), st.data())
def test_g09_repeats_and_restarts_at_any_place_change_no_byte(
    history: tuple[list[StoredEvent], dict[str, Model]], data: st.DataObject
) -> None:
    events, _ = history
    replayed = list(events)
    for _turn in range(3):
        # At-least-once delivery: a reader that lost its place starts again somewhere behind it.
        end = data.draw(st.integers(0, len(events)))
        start = data.draw(st.integers(0, end))
        replayed[end:end] = events[start:end]

    for projection in PROJECTIONS:
        for fold in projection.folds:
            assert _documents(fold, _in_reach(replayed)) == _documents(fold, events)


def _in_reach(replayed: list[StoredEvent]) -> list[StoredEvent]:
    """Only what can happen: an event comes after all events before it were seen at least once."""
    seen, result = 0, []
    for event in replayed:
        if event.position <= seen + 1:
            seen = max(seen, event.position)
            result.append(event)
    return result


def _documents(fold: Fold[State], events: list[StoredEvent]) -> dict[Key, bytes]:
    states: dict[Key, State] = {}
    for event in events:
        if key := fold.key(event):
            states[key] = fold.take(states.get(key), event)
    return {key: state.canonical_bytes() for key, state in states.items()}


@pytest.mark.rules("G9")
@given(histories())
def test_g09_a_document_read_back_is_the_same_state(history: tuple[list[StoredEvent], dict[str, Model]]) -> None:
    events, _ = history
    for projection in PROJECTIONS:
        for fold in projection.folds:
            for document in _documents(fold, events).values():
                assert fold.model.model_validate_json(document).canonical_bytes() == document


@pytest.mark.rules("G9")
@given(histories())
def test_g09_the_folds_of_a_projection_never_share_a_key(history: tuple[list[StoredEvent], dict[str, Model]]) -> None:
    events, _ = history
    for projection in PROJECTIONS:
        for event in events:
            keys = [key for fold in projection.folds if (key := fold.key(event))]
            assert len(keys) == len(set(keys)) <= 1


def test_binding_status_follows_claims_commits_and_ends() -> None:
    log = EventLog()
    log.append("writer.opened", {"epoch": 1, "process_id": "p1", "host": "h", "role": "ledger_writer"}, run_id=None)
    log.commit(1, run_id="run-a")
    log.started(1, run_id="run-a")
    log.applied(0, run_id="run-a")
    log.ended("run.applied", run_id="run-a")
    log.append("kind.tocome", {}, run_id=None)
    status = None
    for event in [*log.events, *log.events]:
        status = BINDING_FOLD.take(status, event)

    assert status is not None
    assert status.position == 6
    assert status.writer is not None
    assert (status.writer.epoch, status.writer.process_id) == (1, "p1")
    assert status.last_applied is not None
    assert (status.last_applied.run_id, status.last_applied.position) == ("run-a", 5)
    assert status.unrecognised == {"kind.tocome": 1}


@pytest.mark.rules("G9")
def test_g09_a_body_that_is_not_what_its_kind_says_is_named() -> None:
    from ledger.projections.errors import UnreadableBodyError

    log = EventLog()
    log.append("plan.committed", {"commit": "gone"})
    with pytest.raises(UnreadableBodyError, match="event 1"):
        fold_run(log.events, "20261129T1900-0a1b2c3d")
