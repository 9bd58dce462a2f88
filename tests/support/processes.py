"""Processes of the fault tests: start them, see them die or freeze, thaw them, and leave none behind."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tests.support.waiting import until

_CONTEXT = multiprocessing.get_context("forkserver")
# Imported once in the server that the processes are forked from: a writer starts in milliseconds instead of seconds.
_CONTEXT.set_forkserver_preload(
    [
        "tests.faults.writer_process",
        "tests.faults.campaign.writer_process",
        "tests.faults.campaign.operator_process",
        "tests.resources.program",
    ]
)


_LONGEST = 100.0
"""Seconds that a process may take to say something, or to end."""


class RealProcess:
    """A function running in a process of its own, with a connection to it. ``target`` gets the other end last."""

    def __init__(self, target: Callable[..., None], *arguments: Any) -> None:
        self._connection, theirs = _CONTEXT.Pipe()
        self._process = _CONTEXT.Process(target=target, args=(*arguments, theirs))
        self._process.start()
        theirs.close()

    @property
    def connection(self) -> Connection:
        """This side's end."""
        return self._connection

    async def ended(self) -> tuple[int | None, str]:
        """Wait for the end: exit status (negative: the signal that killed it) and the last word, empty without one.

        Not for ever: a thread that waited on after its test would keep the whole of the tests from their end.
        """
        await asyncio.to_thread(self._process.join, _LONGEST)
        if self._process.exitcode is None:
            self._process.kill()
            raise AssertionError(f"the process did not end within {_LONGEST:.0f} s")
        return self._process.exitcode, self._last_word()

    async def said(self, word: str) -> None:
        """Wait until the process says this word; anything else, or its end, is an error."""
        if not await asyncio.to_thread(self._connection.poll, _LONGEST):
            raise AssertionError(f"expected {word!r}, the process said nothing for {_LONGEST:.0f} s")
        heard = self._connection.recv()
        if heard != word:
            raise AssertionError(f"expected {word!r}, the process said {heard!r}")

    @property
    def is_alive(self) -> bool:
        """Whether it has not ended."""
        return self._process.is_alive()

    @property
    def is_frozen(self) -> bool:
        """Whether it is stopped (SIGSTOP)."""
        return self._state() == "T"

    async def frozen(self) -> None:
        """Wait until the process is stopped."""
        while not self.is_frozen:
            if not self._process.is_alive():
                raise AssertionError(f"the process ended with {self._process.exitcode} instead of freezing")
            await asyncio.sleep(0.005)

    def go_on(self) -> None:
        """Answer a process that waits."""
        self._connection.send("go on")

    def send_signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        os.kill(self._pid, number)

    async def takes(self, number: signal.Signals) -> None:
        """Send it a signal, and return when it has been delivered: what is sent afterwards comes after it."""
        self.send_signal(number)
        await until(lambda: not self._pending() & (1 << (number - 1)))

    def _pending(self) -> int:
        status = Path(f"/proc/{self._pid}/status").read_text(encoding="ascii", errors="replace")
        return int(next(line for line in status.splitlines() if line.startswith("ShdPnd:")).split()[1], 16)

    def clean_up(self) -> None:
        """Kill it where it still runs, and close this side."""
        if self._process.is_alive():
            self._process.kill()
        self._process.join()
        self._process.close()
        self._connection.close()

    @property
    def _pid(self) -> int:
        if self._process.pid is None:
            raise RuntimeError("the process was not started")
        return self._process.pid

    def _state(self) -> str:
        try:
            status = Path(f"/proc/{self._pid}/stat").read_text(encoding="ascii", errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            return ""  # it ended before the file was opened, or before it was read
        return status.rpartition(")")[2].split()[0]

    def _last_word(self) -> str:
        try:
            return str(self._connection.recv()) if self._connection.poll() else ""
        except EOFError:
            return ""
