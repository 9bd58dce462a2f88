"""What a process of the campaign leaves behind: one line for each step, written before the step is taken.

A line is one ``write`` to a file opened for appending, so it survives a kill -9 of its process. Times are seconds since
1970 by this machine's clock, which is also the database's and the sandbox's.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

Action = Literal["kill", "freeze"]


@dataclass(frozen=True)
class Strike:
    """What a process does to itself: at the ``nth`` step called ``at`` (empty: any step), ``delay`` seconds later."""

    action: Action
    at: str = ""
    nth: int = 1
    delay: float = 0.0


@dataclass
class Trail:
    """The file of one process, and what is to happen to that process on its way."""

    path: Path
    strike: Strike | None = None
    _passed: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def step(self, name: str, branch: str = "", **facts: Any) -> None:
        """Write a step down; strike where it is the one."""
        line = json.dumps({"t": time.time(), "step": name, "branch": branch, **facts}, separators=(",", ":"))
        os.write(self._file, line.encode() + b"\n")
        if self.strike is not None and self.strike.at in ("", name):
            self._passed += 1
            if self._passed == self.strike.nth:
                self._strike(self.strike)

    def _strike(self, strike: Strike) -> None:
        if strike.delay:
            asyncio.get_running_loop().call_later(strike.delay, self._now, strike.action)
        else:
            self._now(strike.action)

    def _now(self, action: Action) -> None:
        os.kill(os.getpid(), signal.SIGKILL if action == "kill" else signal.SIGSTOP)


def read_trail(path: Path) -> list[dict[str, Any]]:
    """The steps of a process; a last line that its death cut is left out."""
    if not path.exists():
        return []
    lines = path.read_bytes().split(b"\n")
    return [json.loads(line) for line in lines[:-1]]
