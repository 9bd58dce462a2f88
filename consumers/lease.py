"""The lease of one binding as its holder sees it: renewal, the deadline, and the last check before a request (G2).

The database decides who holds the lease, by its own clock, and compares the epoch inside every append. What it cannot
do is call back a request that is already on its way to the destination. So the holder keeps a deadline of its own:
the moment *before* a claim or renewal was sent, plus the lease's time, on a clock that continues while the machine
sleeps. A request whose time-out could pass that deadline is not begun. What remains is a process frozen between this
check and the socket write; no fence can stop that one request.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

import structlog

from consumers.errors import DispatchRefusedError, LeaseLostError
from consumers.pauses import NoPause, PauseHook, PausePoint
from consumers.ports import WriterStorePort
from consumers.progress import RecordedEvents, uncounted
from consumers.settings import WriterSettings
from ledger.events import NewEvent
from ledger.store.errors import FencedWriterError, StoreError, TransientStoreError
from ledger.store.outlasting import outlasting
from ledger.store.records import Appended, InFlight, Lease, OrderState

Clock = Callable[[], float]
_T = TypeVar("_T")
_SUSPEND_CLOCK: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Linux's monotonic clock stops in suspend, while a lease continues; elsewhere the monotonic clock continues too."""

_RETRY_RENEWAL_AFTER = 0.2
_log = structlog.get_logger(__name__)


def suspend_clock() -> float:
    """Seconds on a clock that never goes back and continues while the machine sleeps."""
    return time.clock_gettime(_SUSPEND_CLOCK)


async def to_its_end(work: Coroutine[Any, Any, _T]) -> _T:
    """Await ``work`` to its end although this task is cancelled meanwhile; the cancellation is raised afterwards.

    A cancelled append is not undone, it is only no longer known; so an append is never left half-way (G4).
    """
    outcome = await outlasting(work)
    result = outcome.result()
    if outcome.cancelled is not None:
        raise outcome.cancelled
    return result


class LeaseKeeper:
    """Renews a claimed lease while its block runs, and serialises everything that uses the lease's connection."""

    def __init__(
        self,
        store: WriterStorePort,
        lease: Lease,
        settings: WriterSettings,
        *,
        claim_sent_at: float,
        clock: Clock = suspend_clock,
        pause: PauseHook | None = None,
        recorded: RecordedEvents = uncounted,
    ) -> None:
        """``claim_sent_at`` is this process's clock before the claim was sent; ``recorded`` receives each append."""
        self._store = store
        self._settings = settings
        self._clock = clock
        self._pause = pause or NoPause()
        self._recorded = recorded
        self._connection = asyncio.Lock()
        self._renewal: asyncio.Task[None] | None = None
        self._lost: LeaseLostError | None = None
        self.lease = lease
        self.deadline = claim_sent_at + settings.lease_ttl
        self._quiet_until = clock() + lease.quiet_for

    @property
    def is_lost(self) -> bool:
        """Whether another process was seen to hold the binding, or renewal failed until the deadline."""
        return self._lost is not None

    async def __aenter__(self) -> Self:
        """Start renewing at a third of the lease's time."""
        self._renewal = asyncio.create_task(self._keep_renewing(), name="lease renewal")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        """Stop renewing and give the lease back where it is still ours."""
        if self._renewal is not None:
            self._renewal.cancel()
            with suppress(asyncio.CancelledError):
                await self._renewal
        if not self.is_lost:
            await self._pause.reached(PausePoint.BEFORE_RELEASE)
            await to_its_end(self._release())

    async def append(
        self,
        events: Sequence[NewEvent],
        *,
        in_flight: InFlight | Literal["keep"] | None = "keep",
        settle: float | None = None,
        close_orders: Sequence[tuple[int, OrderState]] = (),
        meanwhile: Callable[[], None] | None = None,
    ) -> Appended:
        """Append through the lease's connection. Callers run it to its end (:func:`to_its_end`).

        ``meanwhile`` is called when the append is on its way to the database, once for each time that it is asked.

        Raises:
            LeaseLostError: this process is known to have lost the binding; nothing was sent to the database.
            FencedWriterError: the database says so now; nothing was appended.
            LedgerUnavailableError: the outcome of the append is unknown.
        """
        if self._lost is not None:
            raise self._lost
        async with self._connection:
            sent: Awaitable[Appended] = self._store.append(
                self.lease,
                events,
                in_flight=in_flight,
                settle=settle,
                close_orders=close_orders,
                meanwhile=meanwhile,
            )
            if not isinstance(self._pause, NoPause):  # only then something happens while it is under way
                sent = asyncio.ensure_future(sent)
                await self._pause.reached(PausePoint.INSIDE_APPEND)
            try:
                appended = await sent
            except FencedWriterError:
                self._mark_lost("the append was fenced")
                raise
        self._recorded(events)
        if settle is not None:
            self.extend_quiet(settle)
        await self._pause.reached(PausePoint.AFTER_APPEND)
        return appended

    async def renew(self) -> None:
        """Renew now and move the deadline.

        Raises:
            FencedWriterError: another process claimed the binding since.
        """
        async with self._connection:
            sent_at = self._clock()
            try:
                await self._store.renew(self.lease)
            except FencedWriterError:
                self._mark_lost("the renewal was fenced")
                raise
            self.deadline = sent_at + self._settings.lease_ttl

    async def close_order(self, inbox_id: int, state: OrderState = "done") -> None:
        """Close an order that nothing is to be recorded for.

        Raises:
            FencedWriterError: another process claimed the binding since.
        """
        self.require_known_held()
        async with self._connection:
            await to_its_end(self._store.close_order(self.lease, inbox_id, state))

    async def make_room(self) -> None:
        """Renew where what is left of the lease is short for a request, or will be soon.

        Raises:
            LeaseLostError: the lease is gone, or could not be renewed in time.
        """
        spare = self._settings.lease_ttl - self._needed
        if self._lost is None and self._left() < self._needed + spare / 2:
            try:
                await self.renew()
            except TransientStoreError as exc:  # it may be asked for again; being fenced may not
                if self._left() < self._needed:
                    raise self._mark_lost("the lease could not be renewed in time") from exc
        if self._lost is not None:
            raise self._lost

    @property
    def _needed(self) -> float:
        """Seconds that a request may take at most."""
        return self._settings.request_timeout + self._settings.margin

    def _left(self) -> float:
        return self.deadline - self._clock()

    def quiet_for(self) -> float:
        """Seconds until the destination may be written again after an unknown outcome; 0 or less: now."""
        return self._quiet_until - self._clock()

    def extend_quiet(self, seconds: float) -> None:
        """The database, whose clock decides, says that it is not quiet yet."""
        self._quiet_until = max(self._quiet_until, self._clock() + seconds)

    def require_known_held(self) -> None:
        """Raise where the lease is known to be lost.

        Raises:
            LeaseLostError: it is.
        """
        if self._lost is not None:
            raise self._lost

    def require_held(self) -> None:
        """Raise where a request begun now could meet the next holder at the destination.

        Raises:
            LeaseLostError: known to be lost.
            DispatchRefusedError: too little is left of it.
        """
        if self._lost is not None:
            raise self._lost
        left = self._left()
        if left < self._needed:
            raise DispatchRefusedError(
                checked=f"what is left of the lease on {self.lease.url} [{self.lease.branch}]",
                expected=f"at least {self._needed:.2f} s",
                found=f"{left:.2f} s",
                next_action="nothing: the request was not sent, and the run continues when the lease is held again",
            )

    async def _keep_renewing(self) -> None:
        wait = self._settings.lease_ttl / 3
        while not self.is_lost:
            await asyncio.sleep(wait)
            wait = self._settings.lease_ttl / 3
            try:
                await self.renew()
            except FencedWriterError:
                return
            except StoreError as exc:
                # Whatever it is: an idle writer whose renewals had silently ended would believe that it still holds on.
                if self._clock() >= self.deadline:
                    self._mark_lost("the ledger could not be reached until the lease had run out")
                    return
                _log.warning("lease not renewed, trying again", error=str(exc))
                wait = min(wait, _RETRY_RENEWAL_AFTER)

    async def _release(self) -> None:
        async with self._connection:
            try:
                await self._store.release(self.lease)
            except StoreError as exc:
                # The lease runs out by itself; an error here must not hide the one that ended the block.
                _log.warning("lease not released, it will run out", error=str(exc))

    def _mark_lost(self, found: str) -> LeaseLostError:
        if self._lost is None:
            self._lost = LeaseLostError(
                checked=f"the lease on {self.lease.url} [{self.lease.branch}]",
                expected=f"held by this process with epoch {self.lease.epoch}",
                found=found,
                next_action="nothing: the process that holds it now continues the run",
            )
            _log.error("lease lost", url=self.lease.url, branch=self.lease.branch, epoch=self.lease.epoch, found=found)
        return self._lost


class LeaseGuard:
    """The :class:`~ledger.destination.DispatchGuard` of one run: asked as the last step before each request."""

    def __init__(self, keeper: LeaseKeeper, pause: PauseHook | None = None) -> None:
        self._keeper = keeper
        self._pause = pause or NoPause()
        self._marked = asyncio.Event()
        self._marked.set()
        self.allowed = 0
        """Requests let through since :meth:`begin`; 0 proves that an attempt sent nothing."""
        self.writes = 0
        """Those among them that may write; 0 proves that an attempt wrote nothing (G5)."""

    def begin(self) -> None:
        """An attempt at one operation starts; its mark is durable."""
        self.allowed = self.writes = 0
        self._marked.set()

    def begin_unmarked(self) -> None:
        """An attempt starts whose mark is not known to be durable: nothing leaves before :meth:`go`."""
        self.allowed = self.writes = 0
        self._marked.clear()

    def go(self) -> None:
        """The mark is durable: what waits may leave."""
        self._marked.set()

    async def ready(self) -> None:
        """Wait until the attempt is marked (G4)."""
        await self._marked.wait()

    def before_send(self, *, write: bool = True) -> None:
        """Let the request go, or raise.

        Raises:
            LeaseLostError, DispatchRefusedError: see :meth:`LeaseKeeper.require_held`. Nothing was sent.
        """
        self._keeper.require_held()
        self.allowed += 1
        self.writes += write
        self._pause.reached_guard()
