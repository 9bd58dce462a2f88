"""Commands as processes of their own, and what each needed."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_CHILD = Path(__file__).with_name("child.py")
_SHOWN = 4000


@dataclass(frozen=True, slots=True)
class Need:
    """What one or several commands needed: wall and processor time in seconds, and the peak of memory in MiB."""

    seconds: float
    cpu_seconds: float
    peak_mib: float

    def __add__(self, other: Need) -> Need:
        """One after the other: the times add up, the memory does not."""
        return Need(
            self.seconds + other.seconds, self.cpu_seconds + other.cpu_seconds, max(self.peak_mib, other.peak_mib)
        )


async def run_measured(
    command: Sequence[str], *, folder: Path, environment: Mapping[str, str], report: Path
) -> tuple[str, Need]:
    """Run a command in ``folder``; returns what it printed and what it needed.

    Raises:
        RuntimeError: it ended with something else than 0; the end of its messages is in the text.
    """
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-S", str(_CHILD), str(report), *command),
        cwd=folder,
        env=dict(environment),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    printed, messages = await process.communicate()
    if process.returncode != 0:
        end = (messages or printed).decode(errors="replace")[-_SHOWN:]
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}\n{end}")
    return printed.decode(), Need(**json.loads(report.read_text(encoding="ascii")))
