"""The ledger as metrics look at it: one connection of their own, opened at the first scrape.

The connections of the parts are not used: a scrape must not wait behind an append, nor an append behind a scrape.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

from ledger.errors import ApplyLedgerError
from ledger.metrics.ledger_state import ASK_WITHIN, LedgerStateMetrics
from ledger.store.ledger import Ledger


class SampledLedger:
    """Opens the ledger when it is first asked, and again where that failed. Use it as an async context manager."""

    def __init__(self, dsn: str, *, allow_unsafe_fsync: bool = False) -> None:
        """``dsn``: of a role that may read; ``allow_unsafe_fsync`` is for tests."""
        self._dsn = dsn
        self._allow_unsafe_fsync = allow_unsafe_fsync
        self._ledger: Ledger | None = None
        self._opening = asyncio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._ledger is not None:
            await self._ledger.close()

    async def refresh(self, state: LedgerStateMetrics) -> None:
        """Bring ``state`` up to date; a ledger that cannot be opened in time is shown as unreachable."""
        try:
            async with asyncio.timeout(ASK_WITHIN), self._opening:
                self._ledger = self._ledger or await Ledger.open(
                    self._dsn,
                    application_name="apply-ledger metrics",
                    connections=1,
                    ask_again_for=ASK_WITHIN,
                    allow_unsafe_fsync=self._allow_unsafe_fsync,
                )
        except (ApplyLedgerError, TimeoutError):
            state.unreadable()
            return
        await state.refresh(self._ledger)
