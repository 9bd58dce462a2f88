"""Exhausted resources of the machine: memory, disk, open files, processes. They say nothing about a plan.

A program that is out of memory or disk space has no defect, and what it was asked to do has no fault. So these ends
have one name of their own, whatever library met the limit first.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ledger.errors import ApplyLedgerError


class MachineShortageError(ApplyLedgerError):
    """The machine, or a limit of this process, has no more memory, disk, open files or processes to give."""


@dataclass(frozen=True, slots=True)
class _Shortage:
    expected: str
    next_action: str


_MEMORY: Final = _Shortage("enough memory", "give the process more memory (ulimit -v), then run the command again")
_PROCESSES: Final = _Shortage(
    "another process or thread",
    "end others or raise the limits of processes and memory (ulimit -u, -v), and try again",
)
_FILES: Final = _Shortage("another open file", "raise the limit of open files (ulimit -n), then run the command again")
_SPACE: Final = _Shortage("room for a file", "free disk space and inodes (df, df -i), then run the command again")

_BY_NUMBER: Final[Mapping[int, _Shortage]] = {
    errno.ENOMEM: _MEMORY,
    errno.EAGAIN: _PROCESSES,
    errno.EMFILE: _FILES,
    errno.ENFILE: _FILES,
    errno.ENOSPC: _SPACE,
    errno.EDQUOT: _SPACE,
    errno.EFBIG: _Shortage("a file of that size", "raise the limit of a file's size (ulimit -f), then try again"),
    errno.EROFS: _Shortage("a file system that can be written", "mount it for writing, or choose another folder"),
}

_DEEPEST: Final = 20
"""Causes of causes that are looked at: a chain of them may be a circle."""

_NO_THREAD: Final = "can't start new thread"
_UNMAPPED: Final = ("failed to map", "cannot allocate memory", "cannot create shared object")
"""How the dynamic linker says that a library found no room; it reaches Python as an ImportError."""


def shortage_of(error: BaseException) -> MachineShortageError | None:
    """The shortage that an exception means; None for any other exception.

    An error is a shortage where one is its cause: a plan that cannot be read for want of a file descriptor is no worse
    a plan for it, and a connection that broke because an answer found no memory was not broken by the other end. A
    group is one where all of its parts are.
    """
    cause: BaseException | None = error
    for _ in range(_DEEPEST):
        if cause is None or isinstance(cause, MachineShortageError):
            return cause
        if isinstance(cause, BaseExceptionGroup):
            parts = [shortage_of(part) for part in cause.exceptions]
            return parts[0] if all(part is not None for part in parts) else None
        if (found := _named(cause)) is not None:
            return found
        cause = cause.__cause__
    return None


def _named(error: BaseException) -> MachineShortageError | None:
    lack = _shortage(error)
    if lack is None:
        return None
    where = str(getattr(error, "filename", None) or "this process")
    said = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return MachineShortageError(
        checked=f"what the machine has left for {where}",
        expected=lack.expected,
        found=str(said),
        next_action=lack.next_action,
    )


def _shortage(error: BaseException) -> _Shortage | None:
    if isinstance(error, MemoryError):
        return _MEMORY
    if isinstance(error, BlockingIOError) and hasattr(error, "characters_written"):
        return None  # a pipe that is not read just now; the same number as a process that cannot be made
    if isinstance(error, OSError):
        return _BY_NUMBER.get(error.errno or 0)
    if isinstance(error, ImportError):
        return _MEMORY if any(words in str(error).lower() for words in _UNMAPPED) else None
    return _PROCESSES if isinstance(error, RuntimeError) and _NO_THREAD in str(error) else None
