"""Reads snapshots, which may come from others, in a separate process.

Parquet is made of claims: a file of thirty kilobytes may hold a column of a gigabyte, or say that it has a quintillion
rows. What unpacking it costs is not known before, and memory that is once asked for is taken from the writer. So the
digests of a plan's snapshots are taken by another process, whose memory and time are limited. What it does not survive
is a verdict about the snapshot, if it had what it was promised: a process that could not begin, or that a narrower
limit of this machine held down, proves nothing.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import resource
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from ledger.plan.errors import PlanArtifactUnreadableError, SnapshotCorruptError
from ledger.shortage import MachineShortageError, shortage_of

MAX_MEMORY = 2 * 1024**3
"""Bytes of address space of the reading process; a thousand rows are held at a time."""

MAX_SECONDS = 300
"""Seconds of processor time for one snapshot; a million rows of twenty fields take about fifteen."""

_BEGUN = "begun"
_TOO_LARGE = f"a table that cannot be read with {MAX_MEMORY // 1024**2:,} MiB of memory in {MAX_SECONDS} seconds"

_INHERITED = ("PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONHOME", "TMPDIR")
"""Of the environment, in which there are credentials, the reading process gets no more than it needs to start."""

_ENVIRONMENT = {"ARROW_DEFAULT_MEMORY_POOL": "system", "ARROW_IO_THREADS": "1", "OMP_NUM_THREADS": "1"}


@dataclass(frozen=True, slots=True)
class SnapshotReading:
    """What a snapshot holds, or why that cannot be said: then ``problem`` is not empty."""

    digest: str = ""
    rows: int = 0
    problem: str = ""
    unreadable: bool = False


def read_apart(paths: Sequence[Path]) -> list[SnapshotReading]:
    """Digest these snapshots in one process of its own, in their order.

    The first that the process does not survive ends it; the others are then not looked at, which is their problem.

    Raises:
        MachineShortageError: the process could not begin, or a snapshot was not read where the memory of processes is
            limited to less than ``MAX_MEMORY``.
    """
    if not paths:
        return []
    try:
        done = subprocess.run(
            # -P: never import from the current folder
            [sys.executable, "-P", "-m", __name__],
            input=json.dumps([os.fspath(path) for path in paths]),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**{name: os.environ[name] for name in _INHERITED if name in os.environ}, **_ENVIRONMENT},
            text=True,
            check=False,
            # a Ctrl-C of the terminal is the writer's to answer; it must not turn into a verdict about the plan
            start_new_session=True,
        )
    except OSError as exc:
        raise shortage_of(exc) or _short(exc.strerror or type(exc).__name__) from exc
    lines = done.stdout.splitlines()
    if lines[:1] != [_BEGUN]:
        raise _short(f"a process that ended with status {done.returncode} before it had begun")
    readings = [SnapshotReading(**json.loads(line)) for line in lines[1:] if line.endswith("}")]
    missing = len(paths) - len(readings)
    unread = SnapshotReading(problem="it was not looked at, because another snapshot could not be read")
    readings += [SnapshotReading(problem=_TOO_LARGE)] + [unread] * (missing - 1) if missing else []
    _require_promised_memory(readings)
    return readings


def _require_promised_memory(readings: Sequence[SnapshotReading]) -> None:
    """A problem that was met with less memory than promised may be one of the machine's."""
    problem = next((reading.problem for reading in readings if reading.problem), "")
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    if problem and hard != resource.RLIM_INFINITY and hard < MAX_MEMORY:
        raise _short(f"a limit of {hard // 1024**2:,} MiB, and with that: {problem}")


def _short(found: str) -> MachineShortageError:
    return MachineShortageError(
        checked="the process that reads a plan's snapshots",
        expected=f"one that starts, with up to {MAX_MEMORY // 1024**2:,} MiB of memory",
        found=found,
        next_action="raise the limits of memory, open files and processes (ulimit -v, -n, -u), then try again",
    )


def read_here(path: Path) -> SnapshotReading:
    """Digest a snapshot in this process, whatever it takes."""
    # Imported late: where the memory is limited, the limit must hold for what the import takes too.
    from ledger.plan.snapshot_digest import snapshot_digest

    try:
        digest, rows = snapshot_digest(path)
    except PlanArtifactUnreadableError as exc:
        return SnapshotReading(problem=exc.found, unreadable=True)
    except SnapshotCorruptError as exc:
        return SnapshotReading(problem=exc.found)
    except MemoryError:
        return SnapshotReading(problem=_TOO_LARGE)
    return SnapshotReading(digest, rows)


def _main() -> None:
    """The reading process: paths on stdin as one JSON list; on stdout a line when it begins, and a reading for each."""
    _limit(resource.RLIMIT_AS, MAX_MEMORY)
    _limit(resource.RLIMIT_CORE, 0)
    importlib.import_module("ledger.plan.snapshot_digest")
    sys.stdout.write(f"{_BEGUN}\n")
    sys.stdout.flush()
    for path in json.load(sys.stdin):
        _limit(resource.RLIMIT_CPU, int(_seconds_used()) + MAX_SECONDS)
        sys.stdout.write(json.dumps(asdict(read_here(Path(path)))) + "\n")
        sys.stdout.flush()


def _limit(what: int, most: int) -> None:
    hard = resource.getrlimit(what)[1]
    # macOS knows no limit of the address space; there a bomb is stopped by its time alone.
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(what, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def _seconds_used() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    _main()
