"""Processes that outlive the command that started them: found again by pid and start time, ended by nobody else.

A pid alone can have been given to a stranger since; together with the moment of its start it cannot.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_STEP = 0.05
_LINES_SHOWN = 25
_STARTED_HERE: list[subprocess.Popen[bytes]] = []
"""Kept to the end of this process: one that is forgotten while it runs is a warning, and these are meant to go on."""


@dataclass
class ManagedProcesses:
    """The processes of one folder, their logs beside them; what is known of them is in ``state.json``."""

    folder: Path
    known: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        self.known = json.loads(self._file.read_text(encoding="utf-8")) if self._file.is_file() else {}

    @property
    def _file(self) -> Path:
        return self.folder / "state.json"

    def save(self) -> None:
        """Write what is known, all or nothing."""
        new = self._file.with_suffix(".new")
        new.write_text(json.dumps(self.known, indent=1), encoding="utf-8")
        new.replace(self._file)

    def spawn(self, name: str, command: Sequence[str], environment: Mapping[str, str]) -> None:
        """Start a process in a session of its own; it goes on when this one ends."""
        with self.log(name).open("ab") as log:
            process = subprocess.Popen(
                command,
                cwd=self.folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        _STARTED_HERE.append(process)
        self.known.setdefault("processes", {})[name] = [process.pid, _started(process.pid)]
        self.save()

    def pid(self, name: str) -> int | None:
        """The pid of a living process of ours."""
        pid, started = self.known.get("processes", {}).get(name, (0, None))
        return pid if started is not None and _started(pid) == started else None

    def end(self, name: str, number: signal.Signals = signal.SIGTERM, *, grace: float = 30.0) -> None:
        """Send a signal to its group and return when it is gone; SIGKILL after ``grace`` seconds."""
        pid = self.pid(name)
        if pid is None:
            return
        self._remember_memory(name, pid)
        _signal(pid, number)
        deadline = time.monotonic() + grace
        while self.pid(name) is not None:
            with suppress(ChildProcessError):  # started by another command: then init takes it
                os.waitpid(pid, os.WNOHANG)
            if time.monotonic() > deadline:
                _signal(pid, signal.SIGKILL)
            time.sleep(_STEP)

    def peak_memory(self) -> dict[str, int]:
        """The highest resident memory of each process so far, in MB."""
        for name in self.known.get("processes", {}):
            if (pid := self.pid(name)) is not None:
                self._remember_memory(name, pid)
        found: dict[str, int] = self.known.get("peak_memory", {})
        return found

    def log(self, name: str) -> Path:
        """Where its output goes."""
        return self.folder / f"{name}.log"

    def log_tail(self, name: str) -> str:
        """The end of its output."""
        return "\n".join(self.log(name).read_text(encoding="utf-8", errors="replace").splitlines()[-_LINES_SHOWN:])

    def _remember_memory(self, name: str, pid: int) -> None:
        peak = sum(_peak_of(member) for member in _group(pid))
        memory = self.known.setdefault("peak_memory", {})
        memory[name] = max(memory.get(name, 0), round(peak * 1024 / 1e6))


def _started(pid: int) -> int | None:
    """When a living process began, in ticks since the machine did; None where there is none, or only its remains."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def _group(leader: int) -> list[int]:
    """The living processes of a group."""
    pids = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal()]
    members = []
    for pid in pids:
        with suppress(OSError):
            if os.getpgid(pid) == leader:
                members.append(pid)
    return members


def _peak_of(pid: int) -> int:
    """The highest resident memory of a process, in KiB; 0 for one that is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")), 0)


def _signal(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(pid, number)
