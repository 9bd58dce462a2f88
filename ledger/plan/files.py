"""Files of a run directory: written durably, read once, and never outside the directory (design 4.11)."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Final, Self

from ledger.plan.errors import (
    PathOutsideRunError,
    PlanAlreadyWrittenError,
    PlanArtifactUnreadableError,
    PlanWriteFailedError,
)
from ledger.plan.layout import REPLAN, shown

# A FIFO in a plan's place must not block; a symlink was followed and confined before.
_READ_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


MAX_PATH: Final = 1_024
"""Characters of a path inside a run; following it costs the square of its length."""

MAX_PATH_PARTS: Final = 16


class DurableFile:
    """A file that is either absent (or as before) or complete, also after a power loss.

    Content goes to a temporary file in the same directory; :meth:`commit` syncs it, puts it in place and syncs the
    directory. A block that ends without ``commit`` leaves nothing behind.

    Args:
        path: the final name; its directory must exist.
        replace: whether an existing file may be replaced.

    Raises:
        PlanWriteFailedError: the operating system refused (no space, no permission, no directory).
    """

    def __init__(self, path: Path, *, replace: bool = True) -> None:
        self._path = path
        self._replace = replace
        self._temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
        with write_failures_of(path):
            self.file: IO[bytes] = os.fdopen(os.open(self._temporary, _CREATE_FLAGS, 0o666), "wb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.discard()

    def commit(self) -> None:
        """Make the content durable under the final name.

        Raises:
            PlanAlreadyWrittenError: the file exists and may not be replaced.
            PlanWriteFailedError: the operating system refused.
        """
        with write_failures_of(self._path):
            self.file.flush()
            os.fsync(self.file.fileno())
            if self._replace:
                self._temporary.replace(self._path)
            else:
                self._link()
            sync_directory(self._path.parent)

    def _link(self) -> None:
        try:
            # Unlike a rename, a link fails where the name is taken, with no gap between looking and doing.
            self._path.hardlink_to(self._temporary)
        except FileExistsError:
            raise already_written(self._path) from None

    def discard(self) -> None:
        """Close, and remove what is left of the temporary file; a committed file stays."""
        with contextlib.suppress(OSError):  # The error that led here is the one to report.
            self.file.close()
        with contextlib.suppress(OSError):
            self._temporary.unlink(missing_ok=True)


def write_durably(path: Path, chunks: bytes | Iterable[bytes], *, replace: bool = True) -> None:
    """Write a whole file as :class:`DurableFile` does; an error of ``chunks`` itself passes through.

    Raises:
        PlanAlreadyWrittenError: the file exists and ``replace`` is false.
        PlanWriteFailedError: the operating system refused (no space, no permission, no directory).
    """
    with DurableFile(path, replace=replace) as durable:
        for chunk in (chunks,) if isinstance(chunks, bytes) else chunks:
            # Only the write is named here: an error of the content is not one of the file.
            try:
                durable.file.write(chunk)
            except OSError as exc:
                raise _write_failed(path, exc) from exc
        durable.commit()


@contextlib.contextmanager
def write_failures_of(path: Path) -> Iterator[None]:
    """Name errors of the operating system as failures to write ``path``."""
    try:
        yield
    except OSError as exc:
        raise _write_failed(path, exc) from exc


def _write_failed(path: Path, exc: OSError) -> PlanWriteFailedError:
    return PlanWriteFailedError(
        checked=f"writing {path}",
        expected="a complete file on disk",
        found=exc.strerror or type(exc).__name__,
        next_action="free disk space or correct the permissions, and run the command again",
    )


def already_written(path: Path) -> PlanAlreadyWrittenError:
    """The refusal to replace a file of a run that is there."""
    return PlanAlreadyWrittenError(
        checked=f"whether {path} can be written",
        expected="a run without a plan",
        found="a plan, which may have been reviewed",
        next_action="plan again under a new run id; a plan is never overwritten",
    )


def sync_directory(directory: Path) -> None:
    """Make the names in a directory durable."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def confined(run_dir: Path, relative: str) -> Path:
    """The path of a file that a manifest names, when it is inside the run directory.

    Args:
        run_dir: the run directory; it may itself be reached through a link.
        relative: as recorded: POSIX, relative to the run directory.

    Raises:
        PathOutsideRunError: absolute, empty, with ``.``, ``..``, a backslash or a zero byte, or reached through a
            symbolic link that leads out.
        PlanArtifactUnreadableError: the links on the way cannot be followed.
    """
    path = run_dir / require_inside(relative)
    try:
        inside = path.resolve().is_relative_to(run_dir.resolve())
    except (OSError, RuntimeError) as exc:  # RuntimeError is how pathlib reports a loop of links before 3.13.
        raise unreadable(path, "its symbolic links cannot be followed") from exc
    if not inside:
        raise _outside_run(relative, "a symbolic link that leads out of the run directory")
    return path


def require_inside(relative: str) -> PurePosixPath:
    """A recorded path that names a place below where it is looked for, whatever is there.

    Raises:
        PathOutsideRunError: absolute, empty, with ``.``, ``..``, a backslash or a zero byte.
    """
    parts = relative.split("/", MAX_PATH_PARTS)
    if len(relative) > MAX_PATH or len(parts) > MAX_PATH_PARTS:
        raise _outside_run(relative, f"a path of {len(relative):,} characters, deeper or longer than any of a run")
    if any(part in ("", ".", "..") or "\\" in part or "\x00" in part for part in parts):
        raise _outside_run(relative, "a path with an empty, '.' or '..' part, a backslash or a zero byte")
    return PurePosixPath(relative)


def _outside_run(relative: str, found: str) -> PathOutsideRunError:
    return PathOutsideRunError(
        checked=f"the recorded path {shown(relative)}",
        expected="a path inside the run directory",
        found=found,
        next_action=REPLAN,
    )


def unreadable(path: Path, found: str) -> PlanArtifactUnreadableError:
    """The verdict about a path that is there and cannot be read (A12)."""
    return PlanArtifactUnreadableError(
        checked=f"reading {path}",
        expected="a readable regular file",
        found=found,
        next_action="correct the owner, the permissions or the kind of that path, and run the command again",
    )


def open_regular(path: Path) -> IO[bytes] | None:
    """Open a regular file for reading; None if there is nothing at that path.

    Raises:
        PlanArtifactUnreadableError: the path is there and is no regular file, or must not be read.
    """
    try:
        descriptor = os.open(path, _READ_FLAGS)
    except FileNotFoundError:
        if path.is_symlink():
            raise unreadable(path, "a symbolic link to nothing") from None
        return None
    except OSError as exc:
        raise unreadable(path, exc.strerror or type(exc).__name__) from exc
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise unreadable(path, "something that is not a regular file")
    return os.fdopen(descriptor, "rb")


def read_regular(path: Path, *, at_most: int | None = None) -> bytes | None:
    """The bytes of a regular file; None if there is nothing at that path.

    Raises:
        PlanArtifactUnreadableError: see :func:`open_regular`; also a file of more than ``at_most`` bytes.
    """
    file = open_regular(path)
    if file is None:
        return None
    with file:
        try:
            # Not at_most + 1: as many bytes would be set aside, whatever the file holds.
            size = os.fstat(file.fileno()).st_size
            data = file.read() if at_most is None or size <= at_most else file.read(at_most + 1)
        except OSError as exc:
            raise unreadable(path, exc.strerror or type(exc).__name__) from exc
    if at_most is not None and len(data) > at_most:
        raise unreadable(path, f"more than {at_most} bytes")
    return data
