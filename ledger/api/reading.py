"""What can be read of the ledger, page by page; the HTTP routes answer with it, and so can pages for people.

Lists go on behind a key. A filter that no index has is applied to at most :data:`SCAN` rows for one page, so a page may
be short, and its cursor goes on where the looking ended.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, TypeVar

from ledger.api import models, views
from ledger.api.cursors import new_cursor, read_cursor
from ledger.api.errors import not_there
from ledger.api.filters import OperationFilter, RunFilter
from ledger.api.following import ProjectionFollower
from ledger.audit.before_images import coverage_of
from ledger.audit.bodies import parsed_object
from ledger.events import StoredEvent
from ledger.plan.asserted import observed_values
from ledger.projections.run_lines import RunLine
from ledger.store.pages import CommittedRun, OperationRow, TimePlace
from ledger.store.projections import ProjectionStore
from ledger.store.records import BindingRow
from ledger.store.served import ServedLedger

SCAN = 1000
"""Rows that a filter looks at for one page."""

_RUNS_URL = "list the runs: GET /api/v1/runs"
_BINDINGS_URL = "list the bindings: GET /api/v1/bindings"
T = TypeVar("T")


class LedgerReader:
    """Reads for any number of requests at once. Every method may raise ``StoreError``."""

    def __init__(self, ledger: ServedLedger, projections: ProjectionStore, follower: ProjectionFollower) -> None:
        """``ledger`` and ``projections`` need the reader's rights, ``follower`` brings the projections up to date."""
        self.ledger = ledger
        self._projections = projections
        self._follower = follower

    async def _fresh(self) -> None:
        """Wait a moment for the projections, where they are behind; an answer says how far they are."""
        if await self.ledger.projections_are_behind():
            await self._follower.caught_up()

    async def bindings(self, *, after: int = 0, limit: int | None = None) -> list[models.BindingView]:
        """Destinations, oldest first.

        Args:
            after: those behind this one.
            limit: how many at most; None is all.
        """
        await self._fresh()
        rows = [row for row in await self.ledger.bindings() if row.id > after][:limit]
        return await self._bindings(rows)

    async def binding(self, binding_id: int) -> models.BindingView:
        """One destination.

        Raises:
            NotThereError: there is none with this id.
        """
        await self._fresh()
        [found] = await self._bindings([await self.binding_row(binding_id)])
        return found

    async def binding_row(self, binding_id: int) -> BindingRow:
        """A binding as the store has it; raises as :meth:`binding`."""
        row = await self.ledger.binding_by_id(binding_id)
        if row is not None:
            return row
        raise not_there(f"the binding {binding_id}", _BINDINGS_URL)

    async def _bindings(self, rows: Sequence[BindingRow]) -> list[models.BindingView]:
        projected, waiting = await self.ledger.projected_positions(), await self.ledger.waiting_orders()
        statuses = await self._projections.binding_statuses([row.id for row in rows])
        return [
            views.binding_view(row, statuses.get(row.id), projected.get(row.id, 0), waiting.get(row.id)) for row in rows
        ]

    async def runs(self, wanted: RunFilter, *, cursor: str | None, limit: int) -> models.Page[models.RunView]:
        """Runs of all bindings or of one, newest first.

        Raises:
            InvalidCursorError, NotThereError: the cursor; the binding.
        """
        await self._fresh()
        scope = ["runs", wanted.binding_id, wanted.source, wanted.state, wanted.since, wanted.until, wanted.text]
        scan = limit + 1 if wanted.takes_all else max(SCAN, limit + 1)
        if wanted.binding_id is not None:
            await self.binding_row(wanted.binding_id)
        if wanted.binding_id is None or wanted.by_time:
            place: TimePlace | None = None if wanted.until is None else (wanted.until, 0, 0)
            if cursor is not None:
                place = read_cursor(cursor, scope, (datetime, int, int))
            rows = await self.ledger.runs_page(behind=place, limit=scan)
        else:
            behind = None if cursor is None else read_cursor(cursor, scope, (int,))[0]
            rows = await self.ledger.runs_page_of_binding(wanted.binding_id, behind=behind, limit=scan)
        shown = [row for row in rows if wanted.takes(row)][:limit]
        last = _last_seen(rows, shown, limit, scan)
        if last is not None and wanted.is_behind(rows[-1]) and not any(map(wanted.takes, _behind(rows, last))):
            last = None  # what follows is older still
        return models.Page(
            items=[views.run_view(row) for row in shown],
            next=last and new_cursor(scope, last.place if wanted.by_time else (last.inbox_id,)),
        )

    async def run(self, binding_id: int, run_id: str) -> models.RunDetail:
        """One run.

        Raises:
            NotThereError: it was never committed to this binding.
        """
        await self._fresh()
        run = await self._committed(binding_id, run_id)
        document = await self.ledger.run_document(binding_id, run_id)
        return views.run_detail(
            run,
            await self.ledger.run_end(binding_id, run_id),
            document.overlaps if document else (),
            document.overlaps_total if document else 0,
            plan_stored=await self.ledger.plan(run.commit.plan_checksum) is not None,
        )

    async def summary(self, binding_id: int, run_id: str) -> models.SummaryView:
        """The six keys of a run's summary; raises as :meth:`run`."""
        await self._fresh()
        line = (await self._committed(binding_id, run_id)).row.line
        applied, skipped = await self.ledger.succeeded_operations(binding_id, run_id)
        return models.SummaryView(
            applied_operations=applied,
            skipped_delete_operations=skipped,
            skipped_delete_count=len(skipped),
            failed_operation=line and line.failed_operation,
            failed_operation_wrote=line and line.failed_operation_wrote,
            may_have_partially_written=line is not None and line.may_have_partially_written,
        )

    async def operations(
        self, binding_id: int, run_id: str, wanted: OperationFilter, *, cursor: str | None, limit: int
    ) -> models.Page[models.OperationView]:
        """The operations of a run in stored order, none before a writer has verified its plan.

        Raises:
            InvalidCursorError, NotThereError: the cursor; the run.
        """
        await self._fresh()
        run = await self._committed(binding_id, run_id)
        scope = ["operations", binding_id, run_id, wanted.outcome, wanted.kind, wanted.had, wanted.but]
        behind = -1 if cursor is None else read_cursor(cursor, scope, (int,))[0]
        scan = limit + 1 if wanted.takes_all else max(SCAN, limit + 1)
        if wanted.had is not None:
            rows = await self._attempted(run, wanted.had, behind, scan)
        elif wanted.outcome in ("failed", "unknown"):
            rows = await self._unsettled(run, wanted.outcome, behind)
        else:
            rows = await self.ledger.operations_page(
                binding_id, run_id, run.commit.plan_checksum, behind=behind, limit=scan
            )
        shown = [row for row in rows if wanted.takes(row)][:limit]
        last = _last_seen(rows, shown, limit, scan)
        return models.Page(
            items=[views.operation_view(row) for row in shown], next=last and new_cursor(scope, (last.ordinal,))
        )

    async def operation(self, binding_id: int, run_id: str, ordinal: int) -> models.OperationDetail:
        """One operation by its place in the plan.

        Raises:
            NotThereError: the run, or no stored plan of it has this operation.
        """
        await self._fresh()
        run = await self._committed(binding_id, run_id)
        checksum = run.commit.plan_checksum
        rows = await self.ledger.operations_at(binding_id, run_id, checksum, [ordinal])
        if not rows:
            raise not_there(
                f"the operation {ordinal} of run {run_id}",
                "list its operations; there are none before a writer has verified the plan",
            )
        coverage = await coverage_of(self.ledger, checksum, parsed_object(rows[0].line) or {}, ordinal=ordinal)
        return views.operation_detail(rows[0], observed_values(coverage))

    async def events(
        self, binding_id: int, *, cursor: str | None, after: int, limit: int, of: Sequence[str] = ()
    ) -> tuple[list[StoredEvent], str | None]:
        """Events by position, and the cursor behind them; ``of``: a run id, or a run id and an operation id.

        Raises:
            InvalidCursorError, NotThereError: the cursor; the binding, or the run.
        """
        await self.binding_row(binding_id)
        if of:
            await self._committed(binding_id, of[0])
        scope = ["events", binding_id, *of]
        behind = after if cursor is None else max(after, read_cursor(cursor, scope, (int,))[0])
        run_id, operation_id = [*of, None, None][:2]
        found = await self.ledger.events_page(
            binding_id, after=behind, until=None, limit=limit + 1, run_id=run_id, operation_id=operation_id
        )
        shown = found[:limit]
        return shown, new_cursor(scope, (shown[-1].position,)) if len(found) > limit else None

    async def event(self, binding_id: int, position: int) -> StoredEvent:
        """One event.

        Raises:
            NotThereError: the binding, or its log has not come to this position.
        """
        await self.binding_row(binding_id)
        found = await self.ledger.events_page(binding_id, after=position - 1, until=position, limit=1)
        if not found:
            raise not_there(f"the event {position} of binding {binding_id}", "read the binding for its head")
        return found[0]

    async def orders(self, binding_id: int, *, cursor: str | None, limit: int) -> models.Page[models.OrderView]:
        """The inbox of a binding, newest first; raises as :meth:`events`."""
        await self.binding_row(binding_id)
        scope = ["orders", binding_id]
        behind = None if cursor is None else read_cursor(cursor, scope, (int,))[0]
        rows = await self.ledger.orders_page(binding_id, behind=behind, limit=limit + 1)
        last = _last_seen(rows, rows[:limit], limit, limit + 1)
        return models.Page(
            items=[views.order_view(row) for row in rows[:limit]],
            next=last and new_cursor(scope, (last.order.inbox_id,)),
        )

    async def run_lines(self, runs: Collection[tuple[int, str]]) -> dict[tuple[int, str], RunLine]:
        """What is known of each of these runs, by binding and run id; one that the projection has not is left out."""
        await self._fresh()
        return await self.ledger.run_lines(runs)

    async def orders_of_run(self, binding_id: int, run_id: str, *, limit: int) -> list[models.OrderView]:
        """The newest orders for a run: its commit, resumptions and stops."""
        return [views.order_view(row) for row in await self.ledger.orders_of_run(binding_id, run_id, limit=limit)]

    async def refused_messages(self, *, cursor: str | None, limit: int) -> models.Page[models.RefusedMessageView]:
        """Messages that could not become an order, newest first; raises InvalidCursorError."""
        scope = ["refused-messages"]
        place: Any = None if cursor is None else read_cursor(cursor, scope, (datetime, str, int, int))
        rows = await self.ledger.refused_messages_page(behind=place, limit=limit + 1)
        last = _last_seen(rows, rows[:limit], limit, limit + 1)
        return models.Page(
            items=[views.refused_message_view(row) for row in rows[:limit]], next=last and new_cursor(scope, last.place)
        )

    async def plan_refusals(self, *, cursor: str | None, limit: int) -> models.Page[models.PlanRefusalView]:
        """Every refusal of a plan in the logs of all bindings, newest first; raises InvalidCursorError."""
        await self._fresh()
        scope = ["plan-refusals"]
        place: Any = None if cursor is None else read_cursor(cursor, scope, (datetime, int, int))
        marks = await self.ledger.refusals_page(behind=place, limit=limit + 1)
        last = _last_seen(marks, marks[:limit], limit, limit + 1)
        runs = [(mark, await self.ledger.committed_run(mark.binding_id, mark.run_id)) for mark in marks[:limit]]
        return models.Page(
            items=[views.plan_refusal_view(mark, run.row if run else None) for mark, run in runs],
            next=last and new_cursor(scope, last.place),
        )

    async def workers(self) -> list[models.WorkerView]:
        """Processes that said lately that they serve bindings."""
        return [views.worker_view(row) for row in await self.ledger.live_workers()]

    async def _committed(self, binding_id: int, run_id: str) -> CommittedRun:
        run = await self.ledger.committed_run(binding_id, run_id)
        if run is None:
            raise not_there(f"the run {run_id} of binding {binding_id}", _RUNS_URL)
        return run

    async def _unsettled(self, run: CommittedRun, outcome: str, behind: int) -> list[OperationRow]:
        """They are few and named, so the plan is not searched for them."""
        row = run.row
        named = row.line.unsettled if row.line else ()
        ordinals = [item.ordinal for item in named if item.outcome == outcome and item.ordinal > behind]
        return await self.ledger.operations_at(row.binding_id, row.run_id, run.commit.plan_checksum, ordinals)

    async def _attempted(self, run: CommittedRun, outcome: str, behind: int, limit: int) -> list[OperationRow]:
        """They are few, too: a run stops at each of them, and only the log still tells of those that were applied."""
        row, line = run.row, run.row.line
        if line is None:
            return []
        since = line.commitment.position if line.commitment else 0
        ordinals = await self.ledger.attempted_ordinals(
            row.binding_id, row.run_id, outcome, since=since, until=line.position, behind=behind, limit=limit
        )
        return await self.ledger.operations_at(row.binding_id, row.run_id, run.commit.plan_checksum, ordinals)


def _behind(rows: Sequence[T], row: T) -> Sequence[T]:
    """What of a page stands behind one of its rows."""
    return rows[rows.index(row) + 1 :]


def _last_seen(rows: Sequence[T], shown: Sequence[T], limit: int, scan: int) -> T | None:
    """The row behind which a list goes on, or None at its end: the last one shown where more may follow on this page,
    else the last one that was looked at."""
    if len(shown) == limit and shown and shown[-1] is not rows[-1]:
        return shown[-1]
    return rows[-1] if len(rows) >= scan else None
