"""The projection ``runs``: one document per run and one per operation with an outcome.

Documents hold what events say and nothing that follows from it: counts, lists and flags are derived when they are
read, in :mod:`ledger.projections.run_summary` (P138).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from ledger.events import (
    OUTCOME_KINDS,
    TERMINAL_KINDS,
    OperationFailed,
    OperationUnknown,
    Overlap,
    PlanCommitted,
    RunStarted,
    StoredEvent,
)
from ledger.projections.fold import Fold, Key, Projection, State, body_of, is_recognised, moment_of

Outcome = Literal["applied", "skipped", "failed", "unknown"]
_OUTCOMES: Mapping[str, Outcome] = {
    "operation.applied": "applied",
    "operation.skipped": "skipped",
    "operation.failed": "failed",
    "operation.unknown": "unknown",
}
_STATES: Mapping[str, str] = {
    "run.applied": "applied",
    "run.stopped": "stopped",
    "run.failed": "failed",
    "run.interrupted": "interrupted",
    "plan.refused": "refused",
}
SUCCESSES: frozenset[Outcome] = frozenset({"applied", "skipped"})


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Commitment(_Part):
    """What was committed, as claimed by the committer."""

    position: int
    plan_checksum: str
    operations_count: int
    source: str
    actor: str
    committed_at: str


class Mark(_Part):
    """A start, resumption or end of a run, and when."""

    kind: str
    position: int
    at: str


class RunState(State):
    """One run.

    Attributes:
        run_id: its id.
        commitment: of the last commit that was taken.
        starts: each start and resumption, in order.
        ends: each terminal event, in order; the last one is the run's state.
        overlaps: what other sources wrote to the same objects since the plan was made, as ``run.started`` says.
        overlaps_total: how many there are where the list was cut.
        unrecognised: events of this run that this program does not know.
    """

    run_id: str
    commitment: Commitment | None = None
    starts: tuple[Mark, ...] = ()
    ends: tuple[Mark, ...] = ()
    overlaps: tuple[Overlap, ...] = ()
    overlaps_total: int = 0
    unrecognised: int = 0

    @property
    def state(self) -> str:
        """The run's last terminal event: applied, stopped, failed, interrupted, refused; ``open`` without one."""
        return _STATES[self.ends[-1].kind] if self.ends else "open"

    @property
    def is_running(self) -> bool:
        """Whether it was started or resumed and has not ended since."""
        return bool(self.starts) and (not self.ends or self.ends[-1].position < self.starts[-1].position)

    @property
    def planned(self) -> int | None:
        """How many operations the plan has; unknown where no commit was recorded."""
        return self.commitment.operations_count if self.commitment else None

    @property
    def first_position(self) -> int:
        """Where the run first shows in the log."""
        marks = [mark.position for mark in (*self.starts[:1], *self.ends[:1])]
        return min([self.commitment.position] if self.commitment else marks or [self.position])


class Attempt(_Part):
    """What became of one attempt."""

    attempt: int
    outcome: Outcome
    position: int
    error: str | None = None


class OperationState(State):
    """One operation of one run, with every attempt once, in stored order."""

    run_id: str
    operation_id: str
    ordinal: int
    attempts: tuple[Attempt, ...]

    @property
    def success(self) -> Attempt | None:
        """The attempt that applied or skipped it, if there is one. Nothing that came before or after undoes it."""
        return next((attempt for attempt in self.attempts if attempt.outcome in SUCCESSES), None)

    @property
    def outcome(self) -> Outcome:
        """The one thing that is true of the operation over all its attempts (G3).

        An attempt that may have written is not made good by a later one that proves to have written nothing: the
        operation is ``failed`` only where every attempt is proven unwritten (G5).
        """
        if (success := self.success) is not None:
            return success.outcome
        return "unknown" if any(attempt.outcome == "unknown" for attempt in self.attempts) else "failed"


def _run_key(event: StoredEvent) -> Key | None:
    if event.run_id is None or (event.kind in OUTCOME_KINDS and is_recognised(event)):
        return None
    return Key(event.run_id, "")


def _run_step(state: RunState | None, event: StoredEvent) -> RunState:
    before = state or RunState(run_id=event.run_id or "", position=0)
    changes: dict[str, Any] = {"position": event.position}
    if not is_recognised(event):
        changes["unrecognised"] = before.unrecognised + 1
    elif event.kind == "plan.committed":
        body = body_of(event)
        if isinstance(body, PlanCommitted):
            changes["commitment"] = _commitment(body, event.position)
    elif event.kind in TERMINAL_KINDS:
        changes["ends"] = (*before.ends, _mark(event))
    elif event.kind in ("run.started", "run.resumed"):
        changes["starts"] = (*before.starts, _mark(event))
        body = body_of(event)
        if isinstance(body, RunStarted):
            changes["overlaps"] = tuple(body.overlaps)
            changes["overlaps_total"] = body.cut.total if body.cut else len(body.overlaps)
    return before.model_copy(update=changes)


def _mark(event: StoredEvent) -> Mark:
    return Mark(kind=event.kind, position=event.position, at=moment_of(event))


def _commitment(body: PlanCommitted, position: int) -> Commitment:
    return Commitment(
        position=position,
        plan_checksum=body.commit.plan_checksum,
        operations_count=body.commit.operations_count,
        source=body.commit.source,
        actor=body.commit.actor,
        committed_at=body.commit.committed_at,
    )


def _operation_key(event: StoredEvent) -> Key | None:
    if event.kind not in OUTCOME_KINDS or not is_recognised(event):
        return None
    if event.run_id is None or event.operation_id is None:
        return None
    return Key(event.run_id, event.operation_id)


def _operation_step(state: OperationState | None, event: StoredEvent) -> OperationState:
    before = state or OperationState(
        run_id=event.run_id or "",
        operation_id=event.operation_id or "",
        ordinal=event.ordinal or 0,
        attempts=(),
        position=0,
    )
    number = event.attempt or 1
    attempts = before.attempts
    # One outcome per attempt: the database sees to it, and a log where it did not is not counted double here.
    if all(attempt.attempt != number for attempt in attempts):
        attempts = (*attempts, _attempt(number, event))
    return before.model_copy(update={"attempts": attempts, "position": event.position})


def _attempt(number: int, event: StoredEvent) -> Attempt:
    outcome = _OUTCOMES[event.kind]
    error = None
    if outcome not in SUCCESSES:
        body = body_of(event)
        error = body.error if isinstance(body, OperationFailed | OperationUnknown) else None
    return Attempt(attempt=number, outcome=outcome, position=event.position, error=error)


RUN_FOLD = Fold(model=RunState, key=_run_key, step=_run_step)
OPERATION_FOLD = Fold(model=OperationState, key=_operation_key, step=_operation_step)
RUNS = Projection(name="runs", version=1, folds=(RUN_FOLD, OPERATION_FOLD))
