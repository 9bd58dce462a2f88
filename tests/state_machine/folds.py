"""The projections beside folds so plain that they can be seen to be right, over the model's log, not the tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ledger.events import TERMINAL_KINDS, StoredEvent
from ledger.projections.binding_status import BINDING_FOLD, BindingStatus
from ledger.projections.run_summary import fold_run
from tests.state_machine.facts import OPERATIONS, RUNS
from tests.state_machine.model import SUCCESSES, BindingModel


def check_projections(events: Sequence[StoredEvent], model: BindingModel) -> None:
    """Compare what the projections make of the stored events with what the model's log says."""
    for run_id in RUNS:
        summary = fold_run(events, run_id)
        found = {
            **summary.keys(),
            "state": summary.state,
            "running": summary.is_running,
            "not_attempted": summary.not_attempted,
            "unknown": summary.count("unknown"),
            "failed": summary.count("failed"),
        }
        assert found == plain_summary(model, run_id), f"G9: the projection of {run_id}"
    status: BindingStatus | None = None
    for event in events:
        status = BINDING_FOLD.take(status, event)
    assert _told(status) == plain_status(model), "G9: the projection of the binding"


def plain_summary(model: BindingModel, run_id: str) -> dict[str, Any]:
    """A run by counting."""
    log = [event for event, _ in model.log if event.run_id == run_id]
    told: dict[str, list[str]] = {}
    for event in log:
        if event.operation_id is not None:
            told.setdefault(event.operation_id, []).append(event.kind)
    applied = [e.operation_id for e in log if e.kind == "operation.applied"]
    skipped = [e.operation_id for e in log if e.kind == "operation.skipped"]
    open_ones = {name: kinds for name, kinds in told.items() if not SUCCESSES & set(kinds)}
    last = [e.operation_id for e in log if e.operation_id in open_ones]
    failed = last[-1] if last else None
    unwritten = failed is not None and set(open_ones[failed]) == {"operation.failed"}
    marks = [event.kind for event in log if event.operation_id is None]
    ends = [kind for kind in marks if kind in TERMINAL_KINDS]
    return {
        "applied_operations": applied,
        "skipped_delete_operations": skipped,
        "skipped_delete_count": len(skipped),
        "failed_operation": failed,
        "failed_operation_wrote": False if unwritten else None,
        "may_have_partially_written": failed is not None and not unwritten,
        "state": ends[-1].removeprefix("run.") if ends else "open",
        "running": any(kind in ("run.started", "run.resumed") for kind in marks) and marks[-1] not in TERMINAL_KINDS,
        "not_attempted": len(OPERATIONS) - len(told) if "plan.committed" in marks else None,
        "unknown": sum("operation.unknown" in kinds for kinds in open_ones.values()),
        "failed": sum("operation.unknown" not in kinds for kinds in open_ones.values()),
    }


def plain_status(model: BindingModel) -> list[Any]:
    """A binding by looking for the last of each."""

    def last(*kinds: str) -> tuple[str | None, int] | None:
        found = [(event.run_id, place) for place, (event, _) in enumerate(model.log, 1) if event.kind in kinds]
        return found[-1] if found else None

    return [
        len(model.log),
        model.epoch or None,
        last("plan.committed"),
        last("run.started", "run.resumed"),
        last(*TERMINAL_KINDS),
        last("run.applied"),
    ]


def _told(status: BindingStatus | None) -> list[Any]:
    if status is None:
        return [0, None, None, None, None, None]
    marks = (status.last_commit, status.last_start, status.last_end, status.last_applied)
    return [
        status.position,
        status.writer.epoch if status.writer else None,
        *((mark.run_id, mark.position) if mark else None for mark in marks),
    ]
