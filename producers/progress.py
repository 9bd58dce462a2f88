"""Progress of a plan, reported from whatever thread does the work to the event loop that started it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

_Result = TypeVar("_Result")
_STEP = 250
"""Of single objects every so many are reported: a callback for each would cost more than the work."""


@dataclass(frozen=True, slots=True)
class PlanProgress:
    """Where a plan is: a phase, how much of it is done, and the total where it is known."""

    phase: str
    done: int
    total: int | None


class _StoppedError(Exception):
    """Ends work in a thread whose caller was cancelled, so it is never reported."""


class Reporter:
    """Runs blocking work in threads and passes its progress on.

    Args:
        callback: called in the thread of the event loop in which the reporter was made; None for nobody.
    """

    def __init__(self, callback: Callable[[PlanProgress], None] | None) -> None:
        self._callback = callback
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._stopped = threading.Event()

    def report(self, phase: str, done: int, total: int | None) -> None:
        """Pass one state on, thinned out; may be called from any thread."""
        if self._stopped.is_set():
            raise _StoppedError
        if self._callback is None or (done % _STEP and done != total):
            return
        state = PlanProgress(phase=phase, done=done, total=total)
        if threading.get_ident() == self._loop_thread:
            self._callback(state)
        else:
            self._loop.call_soon_threadsafe(self._callback, state)

    def phase(self, name: str) -> Callable[[int, int | None], None]:
        """A callback for the progress of one phase."""
        return partial(self.report, name)

    async def in_thread(self, work: Callable[..., _Result], *arguments: Any) -> _Result:
        """Run blocking work; when this is cancelled, the work is stopped at its next report and waited for."""
        future = self._loop.run_in_executor(None, partial(work, *arguments))
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            self._stopped.set()
            await asyncio.wait([future])
            future.cancelled() or future.exception()
            raise
