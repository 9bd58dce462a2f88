"""A private folder for temporary files that somebody removes, however its process ends.

A process that is killed with SIGKILL removes nothing. So every folder holds a file that its process keeps locked for as
long as it lives (``flock``: the kernel gives the lock back with the last descriptor, whatever ended the process), and
whoever makes the next folder removes those whose lock is free. Process ids prove nothing: they are used again, and
another container has others. The lock proves it only where all who could hold it have the same kernel, so folders on
any other file system than a local one are left alone, as is everything that is not ours.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

PREFIX: Final = "apply-ledger-run-"

_LOCK: Final = "held-while-its-process-lives"
_ROOT: Final = "files"
_MOUNTS: Final = "/proc/self/mountinfo"
_LOCAL: Final = frozenset(
    ("bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "overlay", "ramfs", "tmpfs", "xfs", "zfs")
)
"""File systems whose locks are this kernel's own. A share may be mounted elsewhere, under other locks."""

_TRIES: Final = 100
_READ_WRITE: Final = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW


@contextmanager
def private_folder(within: Path) -> Iterator[Path]:
    """An empty folder for this user alone, gone at the end of the block; what killed processes left is removed first.

    Args:
        within: where to make it.

    Raises:
        OSError: it cannot be made there.
    """
    remove_abandoned(within)
    folder, lock = _made(within)
    try:
        yield folder / _ROOT
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def remove_abandoned(within: Path) -> None:
    """Remove the private folders in a folder whose processes are dead. What cannot be looked at is left there."""
    if _file_system(within) not in _LOCAL:
        return
    with suppress(OSError), os.scandir(within) as entries:
        for entry in entries:
            if entry.name.startswith(PREFIX):
                with suppress(OSError):
                    _remove_if_abandoned(within / entry.name)


def _made(within: Path) -> tuple[Path, int]:
    """A folder and the descriptor of its lock; another one where somebody took the first for abandoned meanwhile."""
    for _ in range(_TRIES):
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=within))
        try:
            lock = os.open(folder / _LOCK, _READ_WRITE | os.O_CREAT | os.O_EXCL, 0o600)
        except FileNotFoundError:
            continue
        if _is_ours_now(lock):
            (folder / _ROOT).mkdir(mode=0o700)
            return folder, lock
        os.close(lock)
    raise FileNotFoundError(f"a private folder in {within} is removed as soon as it is made")


def _is_ours_now(lock: int) -> bool:
    """Lock a file that was made a moment ago; False where it was removed, or is being removed, in that moment."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # no locks on this file system: then nobody takes the folder for abandoned either
    return os.fstat(lock).st_nlink > 0


def _remove_if_abandoned(path: Path) -> None:
    """Everything goes through a descriptor of the folder that was looked at, whatever the path means meanwhile."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        found = os.fstat(folder)
        if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) != 0o700:
            return
        try:
            lock = os.open(_LOCK, _READ_WRITE, dir_fd=folder)
        except FileNotFoundError:
            path.rmdir()  # only an empty one goes: one that is being made is made again
            return
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # an OSError where its process lives
            shutil.rmtree(_ROOT, ignore_errors=True, dir_fd=folder)
            os.unlink(_LOCK, dir_fd=folder)
            path.rmdir()
        finally:
            os.close(lock)
    finally:
        os.close(folder)


def _file_system(folder: Path) -> str | None:
    """The type of the file system that a folder is on; None where nothing tells."""
    try:
        place = os.path.realpath(folder)
        with open(_MOUNTS, encoding="utf-8", errors="surrogateescape") as mounts:
            lines = [line.split() for line in mounts]
    except OSError:
        return None
    best, found = -1, None
    for fields in lines:
        point = re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), fields[4])
        holds = place == point or place.startswith(point.rstrip("/") + "/")
        if holds and len(point) >= best:  # of two at one place the later one covers the earlier
            best, found = len(point), fields[fields.index("-") + 1]
    return found
