"""Opens the destination of a run, with retries, until it answers or somebody stops the run or this process.

Opening only reads, so it may be given up at any moment. A destination that hangs must hold up neither the end of this
process nor somebody who stops the run, and one that is unreachable is no fault of the plan.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from consumers.control import RunControl
from consumers.errors import DispatchRefusedError, StoppedBeforeItsStartError
from consumers.settings import WriterSettings
from ledger.destination import DestinationAwayError, OpenDestination
from ledger.store.records import Order

_TRANSIENT_ERRORS = (DestinationAwayError, DispatchRefusedError)
"""A destination that does not answer now, or a request that was held back until the lease is renewed."""


class LeftWhileOpening(Exception):
    """This process must end while a run waits for its destination; the run is unchanged."""


async def open_while_wanted(
    open_once: Callable[[], Awaitable[OpenDestination]], *, order: Order, control: RunControl, settings: WriterSettings
) -> OpenDestination:
    """Open the destination, asking again while it is unreachable; stop if the run or this process is ended.

    Args:
        open_once: one attempt.
        order: what is carried out.
        control: tells who wants an end; asked every ``poll_interval`` seconds.
        settings: times and limits.

    Raises:
        LeftWhileOpening: this process is told to end.
        StoppedBeforeItsStartError: the run is.
        DestinationAwayError: it did not answer ``open_attempts`` times.
        ApplyLedgerError: whatever else the opener raises, at once.
    """
    opening = asyncio.ensure_future(_open_patiently(open_once, settings))
    try:
        while not opening.done():
            await control.wait(settings.poll_interval, over=opening)
            if not opening.done() or isinstance(opening.exception(), DestinationAwayError):
                await _require_wanted(order, control)
        return opening.result()
    finally:
        opening.cancel()
        await asyncio.gather(opening, return_exceptions=True)


async def _open_patiently(
    open_once: Callable[[], Awaitable[OpenDestination]], settings: WriterSettings
) -> OpenDestination:
    """A server that restarts just now is asked again before anything is said about it."""
    retrying = AsyncRetrying(
        retry=retry_if_exception_type(_TRANSIENT_ERRORS),
        stop=stop_after_attempt(settings.open_attempts),
        wait=wait_exponential(multiplier=settings.open_retry_wait),
        reraise=True,
    )
    return await retrying(open_once)


async def _require_wanted(order: Order, control: RunControl) -> None:
    stop = await control.requested()
    if stop is not None:
        raise StoppedBeforeItsStartError(
            checked=f"the order to {order.kind} run {order.run_id}, while its destination was opened",
            expected="that the run is not stopped",
            found=f"{stop.by} ended it: {stop.reason}",
            next_action="nothing; to order it again use `resume`",
        )
    if control.must_leave:
        raise LeftWhileOpening
