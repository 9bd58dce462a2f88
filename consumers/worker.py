"""One process that serves many bindings, one task each (design 7.8)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import structlog

from consumers.writer import BindingWriter
from ledger.shortage import shortage_of
from ledger.stopping import wait_unless_stopped

_log = structlog.get_logger(__name__)

_PAUSE_AFTER_DEFECT = 5.0


class Worker:
    """Runs the writers of several bindings until it is stopped. An error that ends one does not affect the others."""

    def __init__(self, writers: Sequence[BindingWriter], *, pause_after_defect: float = _PAUSE_AFTER_DEFECT) -> None:
        """``pause_after_defect``: seconds before a writer that ended by a defect or an alarm is started again."""
        self._writers = tuple(writers)
        self._pause_after_defect = pause_after_defect

    async def run_until(self, stop: asyncio.Event) -> None:
        """Serve all bindings until ``stop`` is set; returns when every one has released its lease."""
        async with asyncio.TaskGroup() as group:
            for writer in self._writers:
                group.create_task(self._supervise(writer, stop))

    async def _supervise(self, writer: BindingWriter, stop: asyncio.Event) -> None:
        while not stop.is_set():
            try:
                await writer.run_until(stop)
            except Exception as exc:  # noqa: BLE001 - a defect was recorded with its run; the service and its other bindings go on
                shortage = shortage_of(exc)
                if shortage is None:
                    _log.exception("a writer ended by a defect or an alarm and will be started again")
                else:
                    _log.error("a writer ended for want of something and will be started again", error=str(shortage))
                await wait_unless_stopped(stop, self._pause_after_defect)
