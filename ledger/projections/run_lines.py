"""The projection ``run_lines``: one small document per run that says what a list of runs shows.

The documents of :mod:`ledger.projections.runs` say the same and more, with one for each operation: too many to count
for every line of a list. Here the counts move with the events. A run stops at each operation that does not succeed, so
those that have no success are few, and they are named.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from ledger.events import OUTCOME_KINDS, TERMINAL_KINDS, OperationFailed, OperationUnknown, StoredEvent
from ledger.projections.fold import Fold, Key, Projection, State, body_of, is_recognised, moment_of
from ledger.projections.runs import RUN_FOLD, Commitment, Mark, RunState

Unsettled = Literal["failed", "unknown"]


class UnsettledOperation(BaseModel):
    """An operation that was attempted and never succeeded; ``position`` and ``error`` are of its last attempt."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    operation_id: str
    ordinal: int
    outcome: Unsettled
    error: str
    position: int


class RunLine(State):
    """One run in a list.

    Attributes:
        run_id: its id.
        commitment: of the last commit that was taken.
        first_start: its start.
        last_start: its last start or resumption.
        last_end: its last terminal event.
        applied: how many operations were applied.
        skipped: how many recorded deletes were passed over.
        unsettled: the operations without a success, in the order of their last attempts.
    """

    run_id: str
    commitment: Commitment | None = None
    first_start: Mark | None = None
    last_start: Mark | None = None
    last_end: Mark | None = None
    applied: int = 0
    skipped: int = 0
    unsettled: tuple[UnsettledOperation, ...] = ()

    @property
    def state(self) -> str:
        """As :attr:`ledger.projections.runs.RunState.state`."""
        return self._run.state

    @property
    def is_running(self) -> bool:
        """Whether it was started or resumed and has not ended since."""
        return self._run.is_running

    @property
    def planned(self) -> int | None:
        """How many operations the plan has; unknown where no commit was recorded."""
        return self.commitment.operations_count if self.commitment else None

    def count(self, outcome: Unsettled) -> int:
        """How many operations failed for good so far, or may have written."""
        return sum(operation.outcome == outcome for operation in self.unsettled)

    @property
    def not_attempted(self) -> int | None:
        """How many operations of the plan have no outcome."""
        done = self.applied + self.skipped + len(self.unsettled)
        return None if self.planned is None else max(0, self.planned - done)

    @property
    def failed_operation(self) -> str | None:
        """The operation that stopped the run and was not applied since (P129)."""
        return self.unsettled[-1].operation_id if self.unsettled else None

    @property
    def failed_operation_wrote(self) -> Literal[False] | None:
        """False: proven to have written nothing. None: not known, or nothing failed. Never True (P130, P131)."""
        return False if self.unsettled and self.unsettled[-1].outcome == "failed" else None

    @property
    def may_have_partially_written(self) -> bool:
        """Something failed, and it is not proven to have written nothing (P134)."""
        return self.failed_operation is not None and self.failed_operation_wrote is not False

    @property
    def _run(self) -> RunState:
        return RunState(
            run_id=self.run_id,
            position=self.position,
            starts=() if self.last_start is None else (self.last_start,),
            ends=() if self.last_end is None else (self.last_end,),
        )


def _key(event: StoredEvent) -> Key | None:
    return None if event.run_id is None else Key(event.run_id, "")


def _step(state: RunLine | None, event: StoredEvent) -> RunLine:
    before = state or RunLine(run_id=event.run_id or "", position=0)
    changes: dict[str, Any] = {"position": event.position}
    if not is_recognised(event):
        return before.model_copy(update=changes)
    if event.kind in OUTCOME_KINDS:
        return before.model_copy(update=changes | _outcome(before, event))
    mark = Mark(kind=event.kind, position=event.position, at=moment_of(event))
    if event.kind == "plan.committed":
        changes["commitment"] = RUN_FOLD.step(None, event).commitment
    elif event.kind in ("run.started", "run.resumed"):
        changes |= {"last_start": mark, "first_start": before.first_start or mark}
    elif event.kind in TERMINAL_KINDS:
        changes["last_end"] = mark
    return before.model_copy(update=changes)


def _outcome(before: RunLine, event: StoredEvent) -> dict[str, Any]:
    known = next((item for item in before.unsettled if item.operation_id == event.operation_id), None)
    others = tuple(item for item in before.unsettled if item is not known)
    if event.kind in ("operation.applied", "operation.skipped"):
        name = event.kind.removeprefix("operation.")
        return {name: getattr(before, name) + 1, "unsettled": others}
    body = body_of(event)
    doubtful = event.kind == "operation.unknown" or (known is not None and known.outcome == "unknown")
    operation = UnsettledOperation(
        operation_id=event.operation_id or "",
        ordinal=event.ordinal or 0,
        outcome="unknown" if doubtful else "failed",
        error=body.error if isinstance(body, OperationFailed | OperationUnknown) else "",
        position=event.position,
    )
    return {"unsettled": (*others, operation)}


RUN_LINE_FOLD = Fold(model=RunLine, key=_key, step=_step)
RUN_LINES = Projection(name="run_lines", version=1, folds=(RUN_LINE_FOLD,))
