"""Finds the processes that work in a folder, to distinguish a server from another process with its number."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

_PROC = Path("/proc")


def process_runs_in(pid: int, folder: Path) -> bool:
    """Whether process ``pid`` is alive (no zombie) and works in ``folder``, as a PostgreSQL server does in its data."""
    if (_PROC / "self").exists():
        try:
            return (_PROC / str(pid) / "cwd").resolve(strict=True) == folder.resolve()
        except OSError:
            # Gone, a zombie, or a process of an account that we may not look at: none of these is our server.
            return False
    listing = subprocess.run(["ps", "-o", "args=", "-p", str(pid)], check=False, capture_output=True, text=True)
    return str(folder) in listing.stdout


def process_is_alive(pid: int) -> bool:
    """Whether a process of that number exists, of any owner."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def processes_in(folder: Path) -> list[int]:
    """All live processes that work in ``folder``; empty where the system has no ``/proc``."""
    if not (_PROC / "self").exists():
        return []
    return [
        int(entry.name)
        for entry in _PROC.iterdir()
        if entry.name.isdigit() and process_runs_in(int(entry.name), folder)
    ]
