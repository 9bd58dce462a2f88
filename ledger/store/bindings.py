"""Bindings and their events, as read."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Sequence
from contextlib import aclosing
from datetime import datetime
from typing import Any

from ledger.binding import DestinationBinding
from ledger.events import StoredEvent
from ledger.hashed_event import position_of
from ledger.store.errors import UnknownBindingError
from ledger.store.reading_ahead import PAGE, read_ahead
from ledger.store.records import BindingRow, InFlight, OutcomeHeads, OutcomeRow
from ledger.store.session import Session

_COUNTED = 1_000_000
"""Positions in one statement, so that a log of any length is counted within the time limit of statements."""


class BindingQueries:
    """Part of :class:`ledger.store.ledger.Ledger`."""

    _session: Session

    async def register_binding(self, binding: DestinationBinding) -> int:
        """The id of a binding, made at its first use; spelled as :meth:`DestinationBinding.normalised`."""
        normalised = binding.normalised()
        return int(await self._session.value("register_binding", normalised.url, normalised.branch))

    async def binding(self, binding: DestinationBinding) -> BindingRow | None:
        """The current state of a binding, or None if nothing was ever committed to it."""
        normalised = binding.normalised()
        rows = await self._session.rows("bindings", normalised.url, normalised.branch, None)
        return _binding(rows[0]) if rows else None

    async def binding_by_id(self, binding_id: int) -> BindingRow | None:
        """The current state of a binding by its id, or None if there is none."""
        rows = await self._session.rows("bindings", None, None, binding_id)
        return _binding(rows[0]) if rows else None

    async def bindings(self) -> list[BindingRow]:
        """The current state of all bindings, oldest first."""
        return [_binding(row) for row in await self._session.rows("bindings", None, None, None)]

    async def events(
        self,
        binding_id: int,
        *,
        after: int = 0,
        until: int | None = None,
        run_id: str | None = None,
        page_size: int = 5000,
    ) -> AsyncIterator[StoredEvent]:
        """Events by position, exactly as stored, page by page; each page is a statement of its own.

        Args:
            binding_id: whose events.
            after: the first position is the one above this.
            until: the last position, or None for all that are there when the last page is read.
            run_id: of this run alone.
            page_size: events in one round trip.
        """
        name, run = ("events", ()) if run_id is None else ("events_of_run", (run_id,))
        while True:
            rows = await self._session.rows(name, binding_id, after, until, page_size, *run)
            for row in rows:
                yield stored_event(row)
            if len(rows) < page_size:
                return
            after = rows[-1]["position"]

    async def hashed_pages(
        self, binding_id: int, *, after: int = 0, until: int
    ) -> AsyncGenerator[tuple[Sequence[bytes], Sequence[bytes]], None]:
        """Events by position, some at a time: the bytes that each one's hash is taken over, and the hashes as stored.

        :func:`ledger.hashed_event.event_of` makes the event of them.
        """

        def page_after(position: int) -> Awaitable[list[Any]]:
            return self._session.rows("hashed_events", binding_id, position, until, PAGE)

        async with aclosing(read_ahead(page_after, after, lambda rows: position_of(rows[-1][0]))) as pages:
            async for rows in pages:
                hashed, hashes = zip(*rows, strict=True)
                yield hashed, hashes

    async def count_events(self, binding_id: int, *, after: int, until: int) -> int:
        """How many rows the log has up to a position, counted apart from the pages in which they are read.

        Args:
            binding_id: whose events.
            after: rows at this position and below are not counted, but for those below 1 or at no position.
            until: the last position.
        """
        count = int(await self._session.value("count_misplaced_events", binding_id))
        for first in range(after, until, _COUNTED):
            count += int(await self._session.value("count_events", binding_id, first, min(first + _COUNTED, until)))
        return count

    async def recorded_at(self, binding_id: int, position: int) -> datetime | None:
        """When the event at a position was recorded, UTC; None if there is none."""
        moment: datetime | None = await self._session.value("recorded_at", binding_id, position)
        return moment

    async def outcome_pages(
        self, binding_id: int, *, until: int, page_size: int = 5000
    ) -> AsyncIterator[list[OutcomeRow]]:
        """Events up to a position, page by page, as far as a state is folded from them."""
        after = 0
        while after < until:
            rows = await self._session.rows("outcomes_page", binding_id, after, until, page_size)
            if not rows:
                return
            yield [OutcomeRow._make(row) for row in rows]
            after = rows[-1]["position"]

    async def outcome_heads(self, binding_id: int, *, until: int) -> AsyncGenerator[OutcomeHeads, None]:
        """The same, some at a time, in columns; the head of an event is None where it says nothing of an object."""

        def page_after(position: int) -> Awaitable[list[Any]]:
            return self._session.rows("outcome_heads", binding_id, position, until, PAGE)

        async with aclosing(read_ahead(page_after, 0, lambda rows: int(rows[-1][0]), piece=PAGE)) as pages:
            async for rows in pages:
                yield OutcomeHeads(*zip(*rows, strict=True))

    async def _known_binding(self, binding_id: int) -> BindingRow:
        row = await self.binding_by_id(binding_id)
        if row is not None:
            return row
        raise UnknownBindingError(
            checked="the binding's id",
            expected="a registered binding",
            found=str(binding_id),
            next_action="register the binding first",
        )


def _binding(row: Any) -> BindingRow:
    return BindingRow(
        id=row["id"],
        url=row["url"],
        branch=row["branch"],
        head_position=row["head_position"],
        head_hash=row["head_hash"],
        writer_epoch=row["writer_epoch"],
        lease_owner=row["lease_owner"],
        lease_host=row["lease_host"],
        lease_taken_at=row["lease_taken_at"],
        lease_expires_in=row["lease_expires_in"],
        in_flight=in_flight_of(row),
        quiet_for=row["quiet_for"],
    )


def in_flight_of(row: Any) -> InFlight | None:
    """The mark in a row that has its three columns."""
    if row["in_flight_run"] is None:
        return None
    return InFlight(row["in_flight_run"], row["in_flight_ordinal"], row["in_flight_attempt"])


def stored_event(row: Any) -> StoredEvent:
    """An event from its row, whose columns are its fields in order; the body's bytes are those that were hashed."""
    *before, body, prev_hash, own_hash = row
    return StoredEvent._make((*before, body.encode(), prev_hash, own_hash))
