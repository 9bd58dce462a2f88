"""Reasons to end a run early: an order to stop it, an interrupted command, or a process that must end."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import structlog

from consumers.lease import Clock, suspend_clock
from consumers.ports import StopOrderPort
from ledger.store.errors import StoreError

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class StopRequest:
    """A request to stop this run between two operations. ``inbox_id`` is that of the order, if it is one."""

    by: str
    reason: str
    inbox_id: int | None = None


class RunControl:
    """Asked between two operations. It looks into the inbox while one is under way, so that asking costs nothing."""

    def __init__(
        self,
        ledger: StopOrderPort,
        binding_id: int,
        run_id: str,
        *,
        leave: asyncio.Event,
        interrupt: StopRequest | None = None,
        interrupted: asyncio.Event | None = None,
        poll_interval: float = 0.0,
        clock: Clock = suspend_clock,
    ) -> None:
        """``leave`` ends the process's work and leaves the run open.

        ``interrupted`` stops the run as ``interrupt`` says; without an ``interrupt`` the run is somebody else's, and is
        left open too.
        """
        self._ledger = ledger
        self._binding_id = binding_id
        self._run_id = run_id
        self._leave = leave
        self._interrupt = interrupt
        self._interrupted = interrupted
        self._poll_interval = poll_interval
        self._clock = clock
        self._looked_at: float | None = None
        self._look: asyncio.Task[StopRequest | None] | None = None

    @property
    def must_leave(self) -> bool:
        """Whether the process must end, or its command was interrupted during the run of another command."""
        interrupted = self._interrupted is not None and self._interrupted.is_set()
        return self._leave.is_set() or (interrupted and self._interrupt is None)

    def look_ahead(self) -> None:
        """Begin to look for a stop order, where it is time to; the answer is read by :meth:`requested`."""
        due = self._looked_at is None or self._clock() - self._looked_at >= self._poll_interval
        if self._look is None and due:
            self._looked_at = self._clock()
            self._look = asyncio.create_task(self._look_for_order(), name=f"look for a stop of {self._run_id}")

    async def requested(self) -> StopRequest | None:
        """The request to stop this run, if there is one."""
        if self._interrupted is not None and self._interrupted.is_set():
            return self._interrupt
        self.look_ahead()
        if self._look is None:
            return None
        look, self._look = self._look, None
        return await look

    async def wait(self, seconds: float, *, over: asyncio.Future[Any] | None = None) -> None:
        """Wait; return early when the process is told to end, the command was interrupted, or ``over`` is done."""
        events = [self._leave] if self._interrupted is None else [self._leave, self._interrupted]
        waits = [asyncio.create_task(event.wait()) for event in events]
        ends = waits if over is None else [*waits, over]
        try:
            await asyncio.wait(ends, timeout=max(seconds, 0.0), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.gather(*waits, return_exceptions=True)

    async def close(self) -> None:
        """End a look that nobody waits for any more."""
        if self._look is not None:
            self._look.cancel()
            await asyncio.gather(self._look, return_exceptions=True)
            self._look = None

    async def _look_for_order(self) -> StopRequest | None:
        try:
            order = await self._ledger.pending_stop(self._binding_id, self._run_id)
        except StoreError as exc:
            # Not being able to look must not stop a run: the next append tells whether the ledger is there.
            _log.warning("could not look for a stop order", run_id=self._run_id, error=str(exc))
            return None
        if order is None:
            return None
        body = order.body
        return StopRequest(by=str(body["by"]), reason=str(body["reason"]), inbox_id=order.inbox_id)
