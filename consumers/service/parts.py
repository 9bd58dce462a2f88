"""The parts of the service side by side: each is restarted if only brokers or ledger are unreachable.

Everything else that ends a part ends the service, by name: messages that are gone, a client that does not come back, a
topic that is not there are for a person, and a process that goes on without one of its parts would hide them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import structlog

from consumers.intake.errors import BrokerUnavailableError
from ledger.errors import ApplyLedgerError
from ledger.stopping import wait_unless_stopped
from ledger.store.errors import TransientStoreError

_log = structlog.get_logger(__name__)

TRANSIENT_ERRORS = (BrokerUnavailableError, TransientStoreError)
"""Transient errors of a dependency: the part waits and is started again."""

RETRY_WAIT = 2.0

Run = Callable[[asyncio.Event], Awaitable[None]]


@dataclass(slots=True)
class Part:
    """One part of the service.

    Attributes:
        name: as logs, metrics and health show it.
        run: runs until the event is set, or raises.
        trouble: why it does not run now; empty while it does.
    """

    name: str
    run: Run
    trouble: str = ""


def _uncounted(part: str) -> None:
    """A counter of restarts that does nothing."""


async def run_parts(
    parts: Sequence[Part],
    stop: asyncio.Event,
    *,
    retry_wait: float = RETRY_WAIT,
    restarted: Callable[[str], None] = _uncounted,
) -> None:
    """Run all parts until ``stop`` is set, or until one of them ends by an error; then the others are told to end too.

    Each part ends in its own bounded time: the operation, message or batch in hand is finished or recorded first.

    Args:
        parts: the parts.
        stop: ends them all.
        retry_wait: seconds before a part is started again.
        restarted: receives the name of a part each time that it is about to be started again.

    Raises:
        Exception: what ended a part, once all others have ended.
    """
    tasks = [asyncio.create_task(_supervise(part, stop, retry_wait, restarted), name=part.name) for part in parts]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        stop.set()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    errors = [outcome for outcome in outcomes if isinstance(outcome, Exception)]
    for error in errors[1:]:
        _log.error("another part ended too", error=str(error))
    if errors:
        raise errors[0]


async def _supervise(part: Part, stop: asyncio.Event, retry_wait: float, restarted: Callable[[str], None]) -> None:
    while not stop.is_set():
        try:
            await part.run(stop)
        except TRANSIENT_ERRORS as exc:
            part.trouble = f"{type(exc).__name__}: {exc.checked}: {exc.found}"
            restarted(part.name)
            _log.warning("a part of the service waits and will be started again", part=part.name, error=str(exc))
            await wait_unless_stopped(stop, retry_wait)
            part.trouble = ""
        except ApplyLedgerError as exc:
            part.trouble = f"{type(exc).__name__}: {exc.checked}: {exc.found}"
            _log.error("a part of the service has ended, and the service with it", part=part.name, error=str(exc))
            raise
        except Exception as exc:
            part.trouble = f"a defect ({type(exc).__name__})"
            raise
