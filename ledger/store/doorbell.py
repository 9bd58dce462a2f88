"""A hint that something was ordered, so that an idle writer looks at once: NOTIFY behind the commit, never in it.

A commit that notifies takes a lock of the whole server, and the inbox is filled together with the log; so the hint is
sent by a statement of its own afterwards, at most ten times a second, and may get lost. Nothing depends on it:
writers look at the inbox from time to time as well.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import structlog

from ledger.stopping import wait_unless_stopped
from ledger.store.connect import Limits, open_connection
from ledger.store.errors import StoreError
from ledger.store.sqlstates import DRIVER_ERRORS

_log = structlog.get_logger(__name__)

CHANNEL = "apply_ledger_orders"
_REST = 0.1
_CLOSE_WITHIN = 2.0


class Ringer:
    """Sends hints in the background, several at once where they come quickly."""

    def __init__(self, send: Callable[[list[int]], Awaitable[object]]) -> None:
        """``send`` notifies of these bindings; what it raises of the store's errors is the hint's loss."""
        self._send = send
        self._waiting: set[int] = set()
        self._task: asyncio.Task[None] | None = None
        self._resting = asyncio.Event()

    def ring(self, binding_id: int) -> None:
        """Something was ordered on a binding."""
        self._waiting.add(binding_id)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name="doorbell: ring")

    async def close(self) -> None:
        """Send what waits, and end."""
        self._resting.set()
        if self._task is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(_CLOSE_WITHIN):
                    await asyncio.gather(self._task, return_exceptions=True)  # its cancellation is not ours

    async def _run(self) -> None:
        while self._waiting:
            bindings, self._waiting = sorted(self._waiting), set()
            try:
                await self._send(bindings)
            except StoreError as exc:
                _log.info("writers were not told of an order, they find it by themselves", error=str(exc))
            except Exception:  # noqa: BLE001 - a hint must not keep whoever orders from closing; the defect is logged whole
                _log.exception("writers were not told of an order because of a defect, they find it by themselves")
            with suppress(TimeoutError):
                async with asyncio.timeout(_REST):
                    await self._resting.wait()


class Doorbell:
    """Listens for hints on a connection of its own, and hands them to the writers of this process."""

    def __init__(self, dsn: str, *, look_every: float = 5.0, limits: Limits | None = None) -> None:
        """``look_every``: seconds between two looks whether the connection still works, and before a new one."""
        self._dsn = dsn
        self._look_every = look_every
        self._limits = limits or Limits()
        self._events: dict[str, asyncio.Event] = {}
        self.is_heard = False
        """Whether it listens now."""

    def of(self, binding_id: int) -> asyncio.Event:
        """Set when something is ordered on the binding; whoever waits for it clears it before looking."""
        return self._events.setdefault(str(binding_id), asyncio.Event())

    async def run_until(self, stop: asyncio.Event) -> None:
        """Listen until ``stop`` is set; a database that is unreachable is tried again."""
        while not stop.is_set():
            try:
                await self._listen(stop)
            except DRIVER_ERRORS as exc:
                _log.info("hints of orders cannot be heard now, writers look by themselves", why=type(exc).__name__)
            self.is_heard = False
            await wait_unless_stopped(stop, self._look_every)

    async def _listen(self, stop: asyncio.Event) -> None:
        connection = await open_connection(self._dsn, application_name="apply-ledger doorbell", limits=self._limits)
        try:
            async with asyncio.timeout(self._limits.command):  # the driver gives this statement no limit
                await connection.add_listener(CHANNEL, self._heard)
            self.is_heard = True
            for event in self._events.values():  # what was ordered while nobody listened
                event.set()
            while not stop.is_set():
                await wait_unless_stopped(stop, self._look_every)
                await connection.execute("select 1", timeout=self._look_every)
        finally:
            connection.terminate()

    def _heard(self, _connection: Any, _process: int, _channel: str, payload: str) -> None:
        """Every role of the database may notify, of anything: what nobody here waits for is left alone."""
        event = self._events.get(payload)
        if event is not None:
            event.set()
