"""What became of a run, for people and machines: its projection, what happened to it, and what is ordered for it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ledger.cli.current_projections import current_projections
from ledger.commit import utc_text
from ledger.errors import Finding
from ledger.exit_codes import ExitCode

if TYPE_CHECKING:
    from ledger.audit.run_story import Step
    from ledger.binding import DestinationBinding
    from ledger.projections.run_summary import RunSummary
    from ledger.store.embedded import Dsns
    from ledger.store.ledger import BindingRow, Ledger, Order
    from ledger.store.projections import ProjectionStore
    from ledger.store.served import ServedLedger

MOST_STEPS = 1000
"""Steps of one run that are read; nobody resumes a run that often."""

_EXIT_CODES = {
    "applied": ExitCode.DONE,
    "failed": ExitCode.STOPPED_UNWRITTEN,
    "interrupted": ExitCode.STOPPED_MAYBE_WRITTEN,
    "stopped": ExitCode.INTERRUPTED,
    "open": ExitCode.INTERRUPTED,
}


@dataclass(frozen=True, slots=True)
class RunResult:
    """What became of a run.

    ``goes_on``: an order to carry it out is still open. ``was_over``: none was when the waiting began.
    """

    document: dict[str, Any]
    findings: Sequence[Finding]
    goes_on: bool = False
    was_over: bool = False

    @property
    def state(self) -> str:
        """The run's last terminal event, or ``open`` while an order to continue the run is open."""
        return "open" if self.goes_on else str(self.document["state"])

    @property
    def exit_code(self) -> ExitCode:
        """By state; a refusal has the code of what was found."""
        from consumers.errors import exit_code_of_refusal

        if self.state == "refused":
            return exit_code_of_refusal(self.findings)
        return _EXIT_CODES[self.state]


def state_word(state: str, *, running: bool, written: bool) -> str:
    """The one word for the state of a run, in every list and summary.

    Args:
        state: its last terminal event, or ``open``.
        running: it was started or resumed and has not ended since.
        written: a process holds the lease of its destination now.
    """
    if running:
        return "running" if written else "open"
    return state


async def is_served(ledger: ServedLedger, row: BindingRow) -> bool:
    """Whether a process carries out what is ordered for a destination: it holds the lease, or said that it serves it.

    A worker names the destinations that it serves a few times a minute; one that was killed counts for a moment more.
    """
    return row.has_live_lease or any(str(row.binding) in worker.serves for worker in await ledger.live_workers())


async def are_current(projections: ProjectionStore, ledger: ServedLedger) -> bool:
    """Bring the projections up to date; whether they are. A login that only reads, an auditor's, cannot move them."""
    from ledger.store.errors import LedgerPermissionError

    try:
        await projections.catch_up()
    except LedgerPermissionError:
        return not await ledger.projections_are_behind()
    return True


def order_document(order: Order) -> dict[str, Any]:
    """An open order for machines: what, by whom, why, since when."""
    return {
        "kind": order.kind,
        "by": order.body.get("by", order.body.get("actor")),
        "reason": order.body.get("reason"),
        "received_at": utc_text(order.received_at.astimezone(UTC)),
    }


async def run_result(dsns: Dsns, ledger: ServedLedger, binding: DestinationBinding, run_id: str) -> RunResult:
    """A run from its projection, brought up to date first, with its orders and the findings of a refusal.

    Raises:
        LookupError: the run has no events there.
        StoreError: the database.
    """
    from ledger.audit.run_story import steps
    from ledger.projections.run_summary import fold_run

    row = await ledger.binding(binding)
    async with current_projections(dsns, tell=False) as projections:
        summary = None if row is None else await projections.run_summary(row.id, run_id)
        if row is not None and await projections.events_behind():  # this login may not move them; the log says it too
            summary = fold_run([event async for event in ledger.events(row.id, run_id=run_id)], run_id)
    if row is None or summary is None:
        raise LookupError(f"run {run_id} has no events on {binding}")
    findings = await _findings(ledger, row.id, run_id) if summary.state == "refused" else []
    rate = summary.operations_per_second
    commit = await ledger.run_commit(row.id, run_id)
    marks = await ledger.run_marks(row.id, run_id, limit=MOST_STEPS)
    document = {
        **summary.document(),
        "operations_per_second": None if rate is None else round(rate, 1),
        "failure": await _failure(ledger, row.id, run_id) if summary.failed_operation else None,
        "reason": None if commit is None else commit.reason,
        "committed_at": None if commit is None else commit.committed_at,
        "events": _events_of(summary),
        "happened": [_step_document(step) for step in reversed(steps(marks))],
        "attempts": _attempts(summary),
        "open_orders": [order_document(order) for order in await ledger.open_orders(row.id) if order.run_id == run_id],
        "served": await is_served(ledger, row),
        "writer": writer_document(row),
        "in_flight": _in_flight(row, run_id),
        "progress": _progress(summary, datetime.now(UTC)) if summary.is_running and row.has_live_lease else None,
    }
    return RunResult(document, findings)


def _step_document(step: Step) -> dict[str, Any]:
    texts = {name: getattr(step, name) or None for name in ("by", "reason", "policy", "detail")}
    return {"position": step.position, "what": step.word, "at": utc_text(step.at.astimezone(UTC)), **texts}


def _events_of(summary: RunSummary) -> int:
    """How many events of the log are of this run; those between its first and its last may be of others."""
    run = summary.run
    outcomes = sum(len(operation.attempts) for operation in summary.operations)
    return (run.commitment is not None) + len(run.starts) + len(run.ends) + run.unrecognised + outcomes


def _attempts(summary: RunSummary) -> list[dict[str, Any]]:
    """Each attempt at the operations that did not succeed at once: they were in doubt, failed or were repeated."""
    return [
        {
            "operation_id": operation.operation_id,
            "ordinal": operation.ordinal,
            "attempts": [attempt.model_dump(mode="json") for attempt in operation.attempts],
        }
        for operation in summary.operations
        if operation.success is None or len(operation.attempts) > 1
    ]


def writer_document(row: BindingRow) -> dict[str, Any] | None:
    """Who holds the lease of a destination now, for machines."""
    if not row.has_live_lease:
        return None
    since = None if row.lease_taken_at is None else utc_text(row.lease_taken_at.astimezone(UTC))
    return {"host": row.lease_host, "since": since, "epoch": row.writer_epoch}


def _in_flight(row: BindingRow, run_id: str) -> dict[str, int] | None:
    mark = row.in_flight
    return None if mark is None or mark.run_id != run_id else {"ordinal": mark.ordinal, "attempt": mark.attempt}


def _progress(summary: RunSummary, now: datetime) -> dict[str, float] | None:
    """Rate since the last start and seconds to go, by this machine's clock: for display, nothing is decided by it."""
    start = summary.run.starts[-1]
    seconds = (now - datetime.fromisoformat(start.at)).total_seconds()
    done = sum(operation.position > start.position for operation in summary.operations)
    if seconds < 1.0 or not done or summary.not_attempted is None:
        return None
    rate = done / seconds
    return {"operations_per_second": round(rate, 1), "seconds_to_go": round(summary.not_attempted / rate)}


async def _failure(ledger: Ledger, binding_id: int, run_id: str) -> dict[str, Any] | None:
    """What the last failed or unknown operation of a run said: the reason a person looks for first."""
    last = None
    async for event in ledger.events(binding_id, run_id=run_id):
        if event.kind in ("operation.failed", "operation.unknown"):
            last = event
    if last is None:
        return None
    body: dict[str, Any] = json.loads(last.body)
    return {key: body[key] for key in ("error", "message", "next_action")}


async def _findings(ledger: Ledger, binding_id: int, run_id: str) -> list[Finding]:
    from ledger.events import PlanRefused

    refusals = [event async for event in ledger.events(binding_id, run_id=run_id) if event.kind == "plan.refused"]
    return list(PlanRefused.model_validate_json(refusals[-1].body).findings) if refusals else []
