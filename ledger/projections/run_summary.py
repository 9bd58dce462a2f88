"""The summary of a run, derived from its documents: the six keys of P125, counts that add up, state and places."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from ledger.events import StoredEvent
from ledger.projections.runs import OPERATION_FOLD, RUN_FOLD, OperationState, Outcome, RunState

SUMMARY_KEYS = (
    "applied_operations",
    "skipped_delete_operations",
    "skipped_delete_count",
    "failed_operation",
    "failed_operation_wrote",
    "may_have_partially_written",
)


@dataclass(frozen=True, slots=True)
class RunSummary:
    """What became of a run. Only what events say is held; everything else is a property (P138).

    Attributes:
        run: the run's document.
        operations: the documents of its operations that have an outcome, in the order of their deciding events.
    """

    run: RunState
    operations: tuple[OperationState, ...]

    @property
    def state(self) -> str:
        """The run's last terminal event: applied, stopped, failed, interrupted, refused; ``open`` without one."""
        return self.run.state

    @property
    def is_running(self) -> bool:
        """Whether it was started or resumed and has not ended since."""
        return self.run.is_running

    @property
    def planned(self) -> int | None:
        """How many operations the plan has; unknown where no commit was recorded."""
        return self.run.planned

    @property
    def applied_operations(self) -> list[str]:
        """Ids of applied operations in the order in which they were applied; the last one is the last (P110, P120)."""
        return self._with("applied")

    @property
    def skipped_delete_operations(self) -> list[str]:
        """Ids of recorded deletes, in stored order (P110, P145)."""
        return self._with("skipped")

    @property
    def skipped_delete_count(self) -> int:
        """How many deletes were recorded and not executed."""
        return len(self.skipped_delete_operations)

    @property
    def failed_operation(self) -> str | None:
        """The operation that stopped the run and was not applied since (P129)."""
        failure = self._failure()
        return failure.operation_id if failure else None

    @property
    def failed_operation_wrote(self) -> Literal[False] | None:
        """False: proven to have written nothing. None: not known, or nothing failed. Never True (P130, P131)."""
        failure = self._failure()
        return False if failure is not None and failure.outcome == "failed" else None

    @property
    def may_have_partially_written(self) -> bool:
        """Something failed, and it is not proven to have written nothing (P134)."""
        return self.failed_operation is not None and self.failed_operation_wrote is not False

    @property
    def not_attempted(self) -> int | None:
        """How many operations of the plan have no outcome."""
        return None if self.planned is None else max(0, self.planned - len(self.operations))

    def count(self, outcome: Outcome) -> int:
        """How many operations have this outcome over all their attempts; each operation has exactly one (G3)."""
        return sum(operation.outcome == outcome for operation in self.operations)

    @property
    def operations_per_second(self) -> float | None:
        """Dispatched operations since the last start or resumption, by the database's clock; None before the run ended.

        Recorded deletes are left out: they cost no request, and thousands of them would make any rate look good.
        """
        if not self.run.starts or not self.run.ends or self.is_running:
            return None
        start, end = self.run.starts[-1], self.run.ends[-1]
        seconds = (datetime.fromisoformat(end.at) - datetime.fromisoformat(start.at)).total_seconds()
        dispatched = sum(
            operation.position > start.position and operation.outcome != "skipped" for operation in self.operations
        )
        return dispatched / seconds if seconds > 0 and dispatched else None

    def keys(self) -> dict[str, Any]:
        """The six keys of P125, all of them, whatever happened (P126)."""
        return {name: getattr(self, name) for name in SUMMARY_KEYS}

    def document(self) -> dict[str, Any]:
        """The whole summary for machines: the six keys, counts, state and ledger positions."""
        commitment, starts, ends = self.run.commitment, self.run.starts, self.run.ends
        return {
            **self.keys(),
            "run_id": self.run.run_id,
            "state": self.state,
            "running": self.is_running,
            "source": commitment.source if commitment else None,
            "actor": commitment.actor if commitment else None,
            "plan_checksum": commitment.plan_checksum if commitment else None,
            "planned": self.planned,
            "applied": self.count("applied"),
            "skipped": self.count("skipped"),
            "failed": self.count("failed"),
            "unknown": self.count("unknown"),
            "not_attempted": self.not_attempted,
            "committed_position": commitment.position if commitment else None,
            "started_position": starts[0].position if starts else None,
            "started_at": starts[0].at if starts else None,
            "ended_position": ends[-1].position if ends else None,
            "ended_at": ends[-1].at if ends else None,
            "overlaps": [overlap.model_dump(mode="json") for overlap in self.run.overlaps],
            "overlaps_total": self.run.overlaps_total,
            "unrecognised_events": self.run.unrecognised,
            "position": max([self.run.position, *(operation.position for operation in self.operations)]),
        }

    def _with(self, outcome: Outcome) -> list[str]:
        return [operation.operation_id for operation in self.operations if operation.outcome == outcome]

    def _failure(self) -> OperationState | None:
        failures = [operation for operation in self.operations if operation.success is None]
        return failures[-1] if failures else None


@dataclass(frozen=True, slots=True)
class RunOverview:
    """One line of a list of runs: the run's document and how many operations have which outcome."""

    run: RunState
    applied: int
    skipped: int
    failed: int
    unknown: int

    @property
    def not_attempted(self) -> int | None:
        """How many operations of the plan have no outcome."""
        done = self.applied + self.skipped + self.failed + self.unknown
        return None if self.run.planned is None else max(0, self.run.planned - done)


def summarise(run: RunState, operations: Iterable[OperationState]) -> RunSummary:
    """Put a run's documents together, whatever order they come in."""

    def decided(operation: OperationState) -> int:
        return operation.success.position if operation.success else operation.attempts[-1].position

    return RunSummary(run=run, operations=tuple(sorted(operations, key=decided)))


def fold_run(events: Iterable[StoredEvent], run_id: str) -> RunSummary:
    """The summary of one run straight from events in stored order; other runs' events may be among them."""
    run: RunState | None = None
    operations: dict[str, OperationState] = {}
    for event in events:
        if event.run_id != run_id:
            continue
        if RUN_FOLD.key(event):
            run = RUN_FOLD.take(run, event)
        elif key := OPERATION_FOLD.key(event):
            operations[key.item] = OPERATION_FOLD.take(operations.get(key.item), event)
    return summarise(run or RunState(run_id=run_id, position=0), operations.values())
