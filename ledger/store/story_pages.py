"""What a page tells of a run, a refusal or a writer, each read from an index of its own; for readers."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from ledger.events import StoredEvent
from ledger.projections.fold import Key
from ledger.projections.run_lines import RUN_LINES, RunLine
from ledger.store.bindings import stored_event
from ledger.store.pages import END_OF_TIME, LAST, ClosedOrder, TimePlace, closed_order
from ledger.store.session import Session

UNINDEXED_KINDS = frozenset({"operation.applied", "operation.skipped"})
"""A log is full of these; :meth:`StoryQueries.events_of_kind` finds every other kind."""


@dataclass(frozen=True, slots=True)
class RefusalMark:
    """A ``plan.refused`` as it is stored."""

    binding_id: int
    run_id: str
    position: int
    recorded_at: datetime
    body: bytes

    @property
    def place(self) -> TimePlace:
        """Where it stands in the list of all refusals."""
        return (self.recorded_at, self.binding_id, self.position)


@dataclass(frozen=True, slots=True)
class OpeningMark:
    """The ``writer.opened`` of an epoch as it is stored."""

    binding_id: int
    epoch: int
    position: int
    recorded_at: datetime
    body: bytes


class StoryQueries:
    """Part of :class:`ledger.store.served.ServedLedger`."""

    _session: Session

    async def refusals_page(self, *, behind: TimePlace | None, limit: int) -> list[RefusalMark]:
        """Every refusal of a plan that was ever recorded, newest first, whatever became of its run since."""
        place = behind or (END_OF_TIME, LAST, LAST)
        return [
            RefusalMark(row["binding_id"], row["run_id"], row["position"], row["recorded_at"], row["body"].encode())
            for row in await self._session.rows("refusals_page", *place, limit)
        ]

    async def events_of_kind(self, binding_id: int, kind: str, *, before: int, limit: int) -> list[StoredEvent]:
        """Events of one kind in front of a position, newest first; none of :data:`UNINDEXED_KINDS`."""
        return [
            stored_event(row) for row in await self._session.rows("events_of_kind", binding_id, kind, before, limit)
        ]

    async def attempted_ordinals(
        self, binding_id: int, run_id: str, outcome: str, *, since: int, until: int, behind: int, limit: int
    ) -> list[int]:
        """Which operations of a run had an attempt that failed or stayed unknown, in stored order.

        Args:
            binding_id: of the run.
            run_id: of the run.
            outcome: ``failed`` or ``unknown``.
            since: the position of the run's commit; nothing of it stands in front of that.
            until: the position of its newest event.
            behind: operations behind this ordinal.
            limit: how many of the newest events with this outcome are looked at.
        """
        rows = await self._session.rows(
            "attempted_ordinals", binding_id, f"operation.{outcome}", run_id, since, until, behind, limit
        )
        return sorted({row["ordinal"] for row in rows})

    async def writer_openings(self, epochs: Sequence[tuple[int, int]]) -> list[OpeningMark]:
        """Who claimed a binding under an epoch, for each of these pairs; oldest first."""
        bindings, numbers = [binding_id for binding_id, _ in epochs], [epoch for _, epoch in epochs]
        return [
            OpeningMark(
                row["binding_id"], row["writer_epoch"], row["position"], row["recorded_at"], row["body"].encode()
            )
            for row in await self._session.rows("writer_openings", bindings, numbers)
        ]

    async def orders_of_run(self, binding_id: int, run_id: str, *, limit: int) -> list[ClosedOrder]:
        """What was ordered for a run, newest first."""
        return [closed_order(row) for row in await self._session.rows("orders_of_run", binding_id, run_id, limit)]

    async def run_lines(self, runs: Collection[tuple[int, str]]) -> dict[tuple[int, str], RunLine]:
        """The lines of these runs, as far as the projection has come."""
        bindings, names = [binding_id for binding_id, _ in runs], [run_id for _, run_id in runs]
        rows = await self._session.rows("lines_of_runs", bindings, names, RUN_LINES.name, RUN_LINES.version)
        return {
            (row["binding_id"], row["run_id"]): RunLine.read(row["document"], row["binding_id"], Key(row["run_id"], ""))
            for row in rows
        }
