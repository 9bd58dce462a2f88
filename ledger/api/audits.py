"""Audits that requests ask for: long work, each on a thread and with connections of its own.

The loop that answers requests never folds or hashes. An audit hands over what it has to say piece by piece, the next
one only when there is room for it, so what a slow reader costs is a few pieces. It ends with its request: when it is
done, when nobody waits any more, when it took too long, when the server stops. Its connections and files are given back
then, and only when its thread has ended is its place free for the next one.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager, suppress
from functools import partial
from typing import Any, Generic, TypeVar

from ledger import event_loop
from ledger.api.errors import AuditEndedError, AuditTooLongError
from ledger.api.limits import ApiLimits, AuditSlots
from ledger.api.metrics import ApiMetrics
from ledger.errors import ApplyLedgerError
from ledger.shortage import shortage_of
from ledger.store.ledger import Ledger

T = TypeVar("T")
OpenLedger = Callable[[], Awaitable[Ledger]]
Work = Callable[["Audit[T]"], Awaitable[T]]
"""What an audit does, on its own thread."""

_WAITING = 2
"""Pieces that wait for their reader."""


class Audit(Generic[T]):
    """One audit. Its first half is for its own thread, its second half for the loop of the requests."""

    done: asyncio.Future[T]
    """What comes of it; set by :class:`Audits`. Never awaited without a shield: the thread cannot be cancelled."""

    def __init__(self, opened: OpenLedger, work: Work[T]) -> None:
        """Made on the loop of the requests."""
        self._opened = opened
        self._work = work
        self._requests = asyncio.get_running_loop()
        self._pieces: asyncio.Queue[bytes] = asyncio.Queue(_WAITING)
        self._ending = False
        self._error: ApplyLedgerError | None = None
        self._handing_over: concurrent.futures.Future[None] | None = None
        self._own: tuple[asyncio.AbstractEventLoop, asyncio.Task[T]] | None = None
        self._unwinding = False

    def run(self) -> T:
        """Do it; called on its thread.

        Raises:
            AuditEndedError, AuditTooLongError: it was ended.
            MachineShortageError: the machine has no more to give.
            ApplyLedgerError: as the work does.
        """
        try:
            return event_loop.run(self._run())
        except asyncio.CancelledError:
            raise self._error or _nobody_waits() from None
        except (OSError, MemoryError) as exc:
            shortage = shortage_of(exc)
            if shortage is None:
                raise
            raise shortage from exc

    async def _run(self) -> T:
        self._own = asyncio.get_running_loop(), asyncio.create_task(self._begin())
        return await self._own[1]

    async def _begin(self) -> T:
        self.require_wanted()  # also for who ended it before there was a task to cancel
        return await self._work(self)

    @asynccontextmanager
    async def ledger(self) -> AsyncIterator[Ledger]:
        """The ledger over connections of its own, for as long as it is needed."""
        async with await self._opened() as ledger:
            yield ledger

    def require_wanted(self) -> None:
        """For work that gives its loop no turn: ends it where it is wanted no more.

        Raises:
            asyncio.CancelledError: it was ended.
        """
        if self._ending:
            raise self._unwound()

    def progress(self, _done: int, _total: int) -> None:
        """The same, in the form in which audits tell how far they are."""
        self.require_wanted()

    def say(self, piece: bytes) -> None:
        """Hand over some bytes; waits until there is room for them.

        Raises:
            asyncio.CancelledError: it was ended.
        """
        self._handing_over = asyncio.run_coroutine_threadsafe(self._pieces.put(piece), self._requests)
        if self._ending:
            self._handing_over.cancel()
        try:
            self._handing_over.result()
        except concurrent.futures.CancelledError:
            raise self._unwound() from None

    def _unwound(self) -> asyncio.CancelledError:
        """Ends it once: another cancellation would meet the giving back of what it holds."""
        self._unwinding = True
        return asyncio.CancelledError()

    def _cancel(self, task: asyncio.Task[T]) -> None:
        if not self._unwinding:
            self._unwinding = True
            task.cancel()

    # On the loop of the requests

    def end(self, error: ApplyLedgerError | None = None) -> None:
        """End it as soon as it can end; ``error`` is what then comes of it. One that is done stays as it is."""
        if self._ending:
            return
        self._error, self._ending = error, True
        if self._handing_over is not None:
            self._handing_over.cancel()
        if self._own is not None:
            loop, task = self._own
            with suppress(RuntimeError):  # that loop is closed: it is done
                loop.call_soon_threadsafe(self._cancel, task)

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """What it says, until its thread has ended.

        Raises:
            ApplyLedgerError: what ended it, behind what it had said by then.
        """
        while not self.done.done():
            getting = asyncio.ensure_future(self._pieces.get())
            try:
                either: set[asyncio.Future[Any]] = {getting, self.done}
                await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
                if getting.done():
                    yield getting.result()
            finally:
                getting.cancel()
        while not self._pieces.empty():
            yield self._pieces.get_nowait()
        self.done.result()

    async def result(self) -> T:
        """What comes of it; raises what it did."""
        return await asyncio.shield(self.done)


class Audits:
    """Runs audits, some at once."""

    def __init__(self, opened: OpenLedger, limits: ApiLimits, metrics: ApiMetrics) -> None:
        """``opened`` opens a ledger with a reader's rights, on the loop that it is called on."""
        self._opened = opened
        self._seconds = limits.audit_seconds
        self._metrics = metrics
        self._threads = event_loop.ThreadPool(limits.max_audits, name="audit")
        self._running: set[Audit[Any]] = set()
        self._closing = False
        self.slots = AuditSlots(limits.max_audits, limits.max_audits_each)

    def start(self, caller: str, work: Work[T]) -> Audit[T]:
        """Begin an audit. Whoever begins one sees to it that :meth:`Audit.end` is called, whatever happens.

        Raises:
            TooManyAuditsError: as many run as may.
            AuditEndedError: the server stops.
        """
        if self._closing:
            raise _stopping()
        self.slots.require_free(caller)
        loop = asyncio.get_running_loop()
        audit = Audit(self._opened, work)
        audit.done = loop.run_in_executor(self._threads, audit.run)
        held = ExitStack()
        held.enter_context(self.slots.taken(caller))
        held.callback(loop.call_later(self._seconds, audit.end, _too_long(self._seconds)).cancel)
        self._running.add(audit)
        audit.done.add_done_callback(partial(self._ended, audit, held))
        self._metrics.audits.set(self.slots.open)
        return audit

    def _ended(self, audit: Audit[Any], held: ExitStack, done: asyncio.Future[Any]) -> None:
        held.close()
        self._running.discard(audit)
        error = None if done.cancelled() else done.exception()
        self._metrics.audits.set(self.slots.open)
        self._metrics.ended_audits.labels("done" if error is None else type(error).__name__).inc()

    async def close(self) -> None:
        """End all of them, and wait until their threads have given back what they held."""
        self._closing = True
        for audit in list(self._running):
            audit.end(_stopping())
        await asyncio.to_thread(self._threads.shutdown)


def _nobody_waits() -> AuditEndedError:
    return AuditEndedError(
        checked="whether anybody waits for this audit",
        expected="somebody",
        found="nobody any more",
        next_action="ask again",
    )


def _stopping() -> AuditEndedError:
    return AuditEndedError(
        checked="whether this server goes on",
        expected="a server that serves",
        found="one that stops",
        next_action="ask again when it is back",
    )


def _too_long(seconds: float) -> AuditTooLongError:
    return AuditTooLongError(
        checked="how long this audit takes",
        expected=f"at most {seconds:g} s",
        found="more",
        next_action="ask for less (a later checkpoint to resume from, an earlier place), raise audit_seconds in the"
        " settings, or use the command line",
    )
