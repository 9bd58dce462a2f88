"""Records the events of a run: builds them with their ids, appends them under the lease, updates its history."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Literal

from consumers.history import RunHistory
from consumers.lease import LeaseKeeper, to_its_end
from ledger.events import (
    Body,
    NewEvent,
    OperationSkipped,
    RunEnded,
    new_event,
)
from ledger.plan.model import PlannedOperation
from ledger.store.records import Appended, InFlight, OrderState

RECORDED_DELETE = "recorded delete"


class RunRecorder:
    """Builds and appends the events of one run in its current episode (the number of its start or resumption).

    Events are collected and appended together with the next mark, so that an operation costs one commit. What is
    appended is folded into ``history`` in the same breath: the history neither runs ahead of the ledger nor behind it.
    """

    def __init__(self, keeper: LeaseKeeper, history: RunHistory, *, operations_count: int) -> None:
        self.keeper = keeper
        self.history = history
        self.operations_count = operations_count
        self.pending: list[NewEvent] = []
        self.in_flight: InFlight | None = None
        """The mark as this process last set it."""

    def run_event(self, kind: str, body: Body) -> NewEvent:
        """An event of the run itself; its id carries the episode."""
        lease = self.keeper.lease
        return new_event(
            kind, body, url=lease.url, branch=lease.branch, run_id=self.history.run_id, n=self.history.episodes
        )

    def operation_event(self, kind: str, body: Body, *, operation_id: str, ordinal: int, attempt: int) -> NewEvent:
        """The outcome of one attempt at one operation."""
        lease = self.keeper.lease
        return new_event(
            kind,
            body,
            url=lease.url,
            branch=lease.branch,
            run_id=self.history.run_id,
            operation_id=operation_id,
            ordinal=ordinal,
            attempt=attempt,
            n=attempt,
        )

    def skipped_event(self, operation: PlannedOperation, ordinal: int) -> NewEvent:
        """The record of a delete, which is never dispatched (P111, P145)."""
        return self.operation_event(
            "operation.skipped",
            OperationSkipped(why=RECORDED_DELETE),
            operation_id=operation.operation_id,
            ordinal=ordinal,
            attempt=1,
        )

    def ended_event(
        self,
        kind: Literal["run.applied", "run.failed", "run.interrupted"],
        *,
        failed_operation: str | None = None,
    ) -> NewEvent:
        """The end of an episode; counts are those of the history with what is pending appended to it."""
        applied = len(self.history.applied) + self._pending_of("operation.applied")
        skipped = len(self.history.skipped) + self._pending_of("operation.skipped")
        body = RunEnded(
            applied=applied,
            skipped=skipped,
            not_attempted=self.operations_count - applied - skipped - (1 if failed_operation is not None else 0),
            failed_operation=failed_operation,
            failed_operation_wrote=False if kind == "run.failed" else None,
            last_ordinal=self.last_ordinal,
        )
        return self.run_event(kind, body)

    @property
    def done(self) -> int:
        """How many operations have a success, recorded or pending."""
        known = len(self.history.applied) + len(self.history.skipped)
        return known + self._pending_of("operation.applied") + self._pending_of("operation.skipped")

    @property
    def last_ordinal(self) -> int | None:
        """The ordinal of the last outcome, recorded or pending."""
        ordinals = [event.ordinal for event in self.pending if event.ordinal is not None]
        return ordinals[-1] if ordinals else self.history.last_ordinal

    async def commit(
        self,
        *,
        in_flight: InFlight | None,
        settle: float | None = None,
        close_orders: Sequence[tuple[int, OrderState]] = (),
        meanwhile: Callable[[], None] | None = None,
    ) -> Appended:
        """Append what is pending and set or clear the mark, to its end even when this task is cancelled.

        ``meanwhile`` is called while the database works.

        Raises:
            StoreError, LeaseLostError: see :meth:`consumers.lease.LeaseKeeper.append`.
        """
        return await to_its_end(self._commit(in_flight, settle, close_orders, meanwhile))

    async def _commit(
        self,
        in_flight: InFlight | None,
        settle: float | None,
        close_orders: Sequence[tuple[int, OrderState]],
        meanwhile: Callable[[], None] | None,
    ) -> Appended:
        appended = await self.keeper.append(
            tuple(self.pending), in_flight=in_flight, settle=settle, close_orders=close_orders, meanwhile=meanwhile
        )
        for event in self.pending:
            self.history.take(event)
        self.pending.clear()
        self.in_flight = in_flight
        return appended

    def _pending_of(self, kind: str) -> int:
        return sum(event.kind == kind for event in self.pending)


def claim_identity() -> str:
    """A name for one claim: random, so that a restarted process of the same name is another writer."""
    return uuid.uuid4().hex
