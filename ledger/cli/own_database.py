"""Keeps the embedded database of a service running: restarts its server if it was killed or failed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from ledger.stopping import wait_unless_stopped

if TYPE_CHECKING:
    from ledger.store.embedded import EmbeddedPostgres

_log = structlog.get_logger(__name__)

LOOK_EVERY = 2.0
"""Seconds between two looks."""


async def keep_running(server: EmbeddedPostgres, stop: asyncio.Event, *, look_every: float = LOOK_EVERY) -> None:
    """Start the server again whenever it has crashed, until ``stop`` is set; one that was stopped stays stopped.

    Raises:
        EmbeddedServerError: it cannot be started; whoever supervises the service has to know.
    """
    while not stop.is_set():
        status = await asyncio.to_thread(server.status)
        if status.crashed:
            _log.error("the embedded database has crashed and is started again", log=str(status.log))
            await server.ensure_running()
        await wait_unless_stopped(stop, look_every)
