"""Keeps the projections up to date while the API serves, in a thread of its own: folding is work for a processor."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from types import TracebackType
from typing import Protocol, Self

import structlog

from ledger import event_loop
from ledger.errors import ApplyLedgerError

_log = structlog.get_logger(__name__)

EVERY = 0.5
"""Seconds between two looks at the log while nobody asks."""

PATIENCE = 1.0
"""Seconds that a request waits for the projections; then it answers with what they have, which says how far that is."""


class Follows(Protocol):
    """What follows the log: a :class:`ledger.store.projections.ProjectionStore`."""

    async def catch_up(self, *, page_size: int = ...) -> int:
        """Take all that is new."""

    async def close(self) -> None:
        """Give the connections back."""


class ProjectionFollower:
    """Follows the log from one thread for all requests. Use it as an asynchronous context manager."""

    def __init__(self, opened: Callable[[], Awaitable[Follows]], *, every: float = EVERY) -> None:
        """``opened`` opens a projection store with the projector's rights; ``every`` in seconds."""
        self._opened = opened
        self._every = every
        self._thread = threading.Thread(target=self._run, name="projections", daemon=True)
        self._stopping = threading.Event()
        self._asked = threading.Event()
        self._begun = 0
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self.last_success = time.monotonic()
        self.trouble: str | None = None

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        event_loop.start_thread(self._thread)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._asked.set()
        await asyncio.to_thread(self._thread.join)

    async def caught_up(self, *, within: float = PATIENCE) -> bool:
        """Wait until everything that is in the log by now is taken, for at most ``within`` seconds; whether it is."""
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((self._begun + 1, waiting))
        self._asked.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                await waiting
        return waiting.done() and not waiting.cancelled()

    def _round_done(self, number: int) -> None:
        """Wakes who waited for this round; called on the loop of the requests."""
        for wanted, waiting in self._waiting:
            if wanted <= number and not waiting.done():
                waiting.set_result(None)
        self._waiting = [(wanted, waiting) for wanted, waiting in self._waiting if not waiting.done()]

    def _run(self) -> None:
        event_loop.run(self._follow())

    async def _follow(self) -> None:
        store: Follows | None = None
        while not self._stopping.is_set():
            self._asked.clear()
            self._begun += 1
            try:
                store = store or await self._opened()
                await store.catch_up()
                self.last_success, self.trouble = time.monotonic(), None
            except ApplyLedgerError as exc:
                self.trouble = f"{type(exc).__name__}: {exc.checked}"
                _log.warning("the projections cannot be followed", error=str(exc))
            except Exception as exc:  # noqa: BLE001 - a defect: a thread that ends leaves pages that never move again
                self.trouble = f"{type(exc).__name__}: a defect of this program"
                _log.error("the projections cannot be followed", exc_info=exc)
            if self._loop is not None:
                with suppress(RuntimeError):  # the loop of the requests is closed: nobody waits any more
                    self._loop.call_soon_threadsafe(self._round_done, self._begun)
            self._asked.wait(self._every)
        if store is not None:
            with suppress(ApplyLedgerError):
                await store.close()
