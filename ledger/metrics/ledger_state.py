"""The part of the metrics that is read from the ledger's database, a moment before it is shown.

The database is asked at most once in a few seconds, however often metrics are scraped, and for a bounded time. Without
an answer the gauges have no series instead of old values, and ``apply_ledger_database_up`` is 0.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from ledger.errors import ApplyLedgerError
from ledger.metrics import table
from ledger.metrics.declaring import Meters
from ledger.store.states import BindingState, ProjectionLag

ASK_EVERY = 5.0
"""Seconds between two looks at the database."""

ASK_WITHIN = 3.0
"""Seconds that one look may take; a scrape waits no longer."""


class StateReader(Protocol):
    """What is asked. Contracts: :class:`ledger.store.ledger.Ledger`."""

    async def binding_states(self) -> list[BindingState]: ...  # noqa: D102 - see the class

    async def projection_lags(self) -> list[ProjectionLag]: ...  # noqa: D102


class LedgerStateMetrics:
    """The gauges of the ledger's state."""

    def __init__(
        self,
        meters: Meters,
        *,
        with_projections: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Make the gauges; none has a value before :meth:`refresh`.

        Args:
            meters: makes them.
            with_projections: whether this process keeps projections up to date, and shows how far they are behind.
            clock: seconds.
        """
        self._clock = clock
        self._asked_at: float | None = None
        self._asking = asyncio.Lock()
        self._up = meters.gauge(table.DATABASE_UP)
        self._head = meters.gauge(table.HEAD_POSITION)
        self._orders = meters.gauge(table.OPEN_ORDERS)
        self._oldest = meters.gauge(table.OLDEST_OPEN_ORDER)
        self._checkpoint = meters.gauge(table.CHECKPOINT_POSITION)
        self._age = meters.gauge(table.CHECKPOINT_AGE)
        self._lag = meters.gauge(table.PROJECTION_LAG) if with_projections else None

    async def refresh(self, reader: StateReader) -> None:
        """Bring the gauges up to date, unless that was done just now. A ledger without an answer is a value, no error.

        ``reader`` is asked for at most :data:`ASK_WITHIN` seconds.
        """
        async with self._asking:  # who comes meanwhile waits for this answer instead of seeing none
            if self._asked_at is not None and self._clock() - self._asked_at < ASK_EVERY:
                return
            try:
                async with asyncio.timeout(ASK_WITHIN):
                    states = await reader.binding_states()
                    lags = [] if self._lag is None else await reader.projection_lags()
            except (ApplyLedgerError, TimeoutError):
                self.unreadable()
            else:
                self._forget()
                self._up.set(1)
                self._show(states, lags)
            self._asked_at = self._clock()

    def unreadable(self) -> None:
        """Show that the database gives no answer."""
        self._forget()
        self._up.set(0)

    def _show(self, states: Sequence[BindingState], lags: Sequence[ProjectionLag]) -> None:
        for state in states:
            names = (state.binding.url, state.binding.branch)
            self._head.labels(*names).set(state.head_position)
            self._orders.labels(*names).set(state.open_orders)
            self._oldest.labels(*names).set(state.oldest_open_order)
            self._checkpoint.labels(*names).set(state.checkpoint_position)
            if state.checkpoint_age is not None:
                self._age.labels(*names).set(state.checkpoint_age)
        for lag in lags:
            if self._lag is not None:
                self._lag.labels(lag.binding.url, lag.binding.branch, lag.projection).set(lag.events)

    def _forget(self) -> None:
        for gauge in (self._head, self._orders, self._oldest, self._checkpoint, self._age, self._lag):
            if gauge is not None:
                gauge.clear()
