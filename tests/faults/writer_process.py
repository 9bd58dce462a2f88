"""A writer in a process of its own that does something to itself at a named point. Run by the fault tests only.

It works the inbox until its run has ended and sends the ending. At the ``occurrence``-th time that ``point`` is reached
it kills or freezes itself, or says so and waits for an answer.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Literal

import structlog

from consumers.errors import LeaseLostError
from consumers.pauses import PausePoint
from consumers.stores import postgres_connector
from consumers.writer import BindingWriter
from ledger.binding import DestinationBinding
from ledger.store.errors import FencedWriterError, LeaseHeldError
from tests.support.real_writer import opener_for, short_times

Action = Literal["kill", "freeze", "wait"]
WAITING = "waiting"
_LOST = (FencedWriterError, LeaseLostError)


@dataclass(frozen=True)
class Task:
    """What a writer process works on, and what happens to it."""

    dsn: str
    url: str
    branch: str
    token: str
    root: str
    run_id: str
    point: PausePoint | None = None
    occurrence: int = 1
    action: Action = "kill"
    retake: bool = True
    lease_ttl: float | None = None


class Fate:
    """The hook: counts how often the point was passed, and strikes at its time."""

    def __init__(self, task: Task, connection: Connection) -> None:
        self._task = task
        self._connection = connection
        self._passed = 0

    async def reached(self, point: PausePoint) -> None:
        if not self._is_time(point):
            return
        if point is PausePoint.INSIDE_APPEND:
            # The append runs in a task of its own: a few turns of the loop, and its statement is on its way.
            for _ in range(5):
                await asyncio.sleep(0)
        if self._task.action == "wait":
            self._connection.send(WAITING)
            await asyncio.to_thread(self._connection.recv)
            return
        self._strike()

    def reached_guard(self) -> None:
        if self._is_time(PausePoint.AFTER_GUARD):
            self._strike()

    def _is_time(self, point: PausePoint) -> bool:
        if point is not self._task.point:
            return False
        self._passed += 1
        return self._passed == self._task.occurrence

    def _strike(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL if self._task.action == "kill" else signal.SIGSTOP)


def run(task: Task, connection: Connection) -> None:
    """The process: works, and sends how it ended."""
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    connection.send(asyncio.run(_work(task, connection)))


async def _work(task: Task, connection: Connection) -> str:
    """Drain until the run has ended; a lease held elsewhere is waited for, one that was lost is retaken where told."""
    longer = {} if task.lease_ttl is None else {"lease_ttl": task.lease_ttl}
    settings = short_times(Path(task.root), **longer)
    writer = BindingWriter(
        task.dsn,
        DestinationBinding(url=task.url, branch=task.branch),
        opener_for(task.url, task.branch, task.token, settings.request_timeout),
        settings,
        connect=postgres_connector(settings, allow_unsafe_fsync=True),
        pause=Fate(task, connection),
    )
    leave = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, leave.set)
    while True:
        try:
            return (await writer.drain(task.run_id, by="the test", leave=leave)).ending
        except LeaseHeldError:
            await asyncio.sleep(0.05)
        except _LOST as lost:
            if not task.retake:
                return type(lost).__name__
