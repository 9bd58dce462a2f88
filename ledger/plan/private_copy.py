"""The bytes of a file as they were read, once: what is hashed, parsed and applied later comes from here (G1, A84).

A small file is held in memory. A large one is copied while it is read into a file without a name, which nobody can
open by a path, replace or shorten, and which is gone when the process ends, however it ends. From then on everything is
read from that descriptor; the path is never opened again. So a plan of any size costs a few megabytes of memory, and
reading it five times still means that it was read once.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import tempfile
import weakref
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import IO, Final

from ledger.plan.errors import PlanCopyFailedError
from ledger.plan.files import open_regular, unreadable

HELD_IN_MEMORY: Final = 8 * 1024 * 1024
"""Files of up to so many bytes are not copied to a disk: ordinary plans need no folder for temporary files."""

MAX_COPIED_BYTES: Final = 960 * 1024 * 1024
"""Larger files of lines are refused: PostgreSQL hashes a plan as one value, and a value ends at 1 GiB."""

_CHUNK: Final = 1024 * 1024


class PrivateCopy:
    """Bytes that nobody else can change. Any number of readers may stand at different places of one copy.

    Args:
        data: the whole content, to be held in memory.
    """

    def __init__(self, data: bytes = b"") -> None:
        self._data = data
        self._descriptor: int | None = None
        self._size = len(data)
        self._feeds = data.count(b"\n")
        self._ends_with_feed = data.endswith(b"\n")

    @classmethod
    def read_from(cls, file: IO[bytes], *, path: Path, at_most: int = MAX_COPIED_BYTES) -> PrivateCopy:
        """Read an open file to its end.

        Args:
            file: where to read; left at its end.
            path: how messages name it.
            at_most: the largest size in bytes.

        Raises:
            PlanArtifactUnreadableError: reading failed, or there are more than ``at_most`` bytes.
            PlanCopyFailedError: the folder for temporary files has no room, or cannot be written.
        """
        start = _read(file, HELD_IN_MEMORY + 1, path)
        if len(start) > at_most:
            raise unreadable(path, f"more than {at_most} bytes")
        if len(start) <= HELD_IN_MEMORY:
            return cls(start)
        copy = cls()
        copy._take(start, file, path, at_most)
        return copy

    def _take(self, start: bytes, file: IO[bytes], path: Path, at_most: int) -> None:
        folder = copy_folder()
        with _copy_failures(folder, path):
            self._descriptor = _nameless_file(folder)
        weakref.finalize(self, os.close, self._descriptor)
        data = start
        while data:
            if self._size + len(data) > at_most:
                raise unreadable(path, f"more than {at_most} bytes")
            with _copy_failures(folder, path):
                _write_all(self._descriptor, data)
            self._size += len(data)
            self._feeds += data.count(b"\n")
            self._ends_with_feed = data.endswith(b"\n")
            data = _read(file, _CHUNK, path)

    def __len__(self) -> int:
        """Size in bytes."""
        return self._size

    @property
    def in_memory(self) -> bool:
        """Whether the bytes are held in memory; otherwise they are in a file without a name."""
        return self._descriptor is None

    @property
    def line_count(self) -> int:
        """How many lines there are, cut at the line feed alone; an unterminated rest counts as one."""
        return self._feeds + (1 if self._size and not self._ends_with_feed else 0)

    def read(self, start: int = 0, size: int | None = None) -> bytes:
        """``size`` bytes from ``start`` on, fewer at the end; by default everything, which may be large."""
        stop = self._size if size is None else min(start + size, self._size)
        if self._descriptor is None:
            return self._data if (start, stop) == (0, self._size) else self._data[start:stop]
        parts = []
        while start < stop:
            # One call gives at most 2 GiB, and may be interrupted before.
            part = os.pread(self._descriptor, stop - start, start)
            if not part:
                raise EOFError(f"the private copy of {self._size} bytes ends at {start}")
            parts.append(part)
            start += len(part)
        return b"".join(parts)

    def chunks(self) -> Iterator[bytes]:
        """The content in pieces of about one megabyte."""
        for start in range(0, self._size, _CHUNK):
            yield self.read(start, _CHUNK)

    def open_at(self, start: int = 0) -> io.BufferedReader | io.BytesIO:
        """A reader of its own that begins at ``start``; closing it leaves the copy open."""
        if self._descriptor is not None:
            return io.BufferedReader(_Window(self, start), _CHUNK)
        reader = io.BytesIO(self._data)
        reader.seek(start)
        return reader

    def lines(self) -> CopiedLines:
        """The lines with their newlines, read as they are asked for."""
        return CopiedLines(self)

    def digest(self, before: bytes) -> str:
        """Lower-case sha256 over ``before`` and then the whole content."""
        digest = hashlib.sha256(before)
        for chunk in self.chunks():
            digest.update(chunk)
        return digest.hexdigest()


class CopiedLines(Collection[bytes]):
    """The lines of a copy, cut at the line feed alone. Made for lines that were checked: each is held whole."""

    def __init__(self, copy: PrivateCopy) -> None:
        self._copy = copy

    def __len__(self) -> int:
        return self._copy.line_count

    def __iter__(self) -> Iterator[bytes]:
        with self._copy.open_at() as reader:
            yield from reader

    def __contains__(self, line: object) -> bool:
        return any(line == one for one in self)


class _Window(io.RawIOBase):
    """Reads a copy from a place on, without a file position that another reader could move."""

    def __init__(self, copy: PrivateCopy, start: int) -> None:
        self._copy = copy
        self._at = start

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]  # typeshed's Buffer is 3.12's
        data = self._copy.read(self._at, len(buffer))
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


def private_copy(path: Path, *, at_most: int = MAX_COPIED_BYTES) -> PrivateCopy | None:
    """The bytes of a regular file, read once; None if there is nothing at that path.

    Raises:
        PlanArtifactUnreadableError: see :func:`ledger.plan.files.open_regular`; also a file of more than ``at_most``
            bytes, found by its size before anything is copied.
        PlanCopyFailedError: a large file could not be copied.
    """
    file = open_regular(path)
    if file is None:
        return None
    with file:
        if os.fstat(file.fileno()).st_size > at_most:
            raise unreadable(path, f"more than {at_most} bytes")
        return PrivateCopy.read_from(file, path=path, at_most=at_most)


def copy_folder() -> Path:
    """Where large files are copied to: ``TMPDIR`` where it is set, else ``/var/tmp``, else what Python finds.

    ``/var/tmp`` comes before ``/tmp``, because on many systems the latter is memory.
    """
    named = os.environ.get("TMPDIR")
    if named:
        return Path(named)
    usual = Path("/var/tmp")  # noqa: S108 - the file has no name there, so nobody can foresee or take it
    return usual if os.access(usual, os.W_OK | os.X_OK) else Path(tempfile.gettempdir())


def _nameless_file(folder: Path) -> int:
    # TemporaryFile asks for O_TMPFILE and, where a file system has none, makes a file of mode 0600 and unlinks it.
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        return os.dup(file.fileno())


def _write_all(descriptor: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]


def _read(file: IO[bytes], size: int, path: Path) -> bytes:
    try:
        return file.read(size)
    except OSError as exc:
        raise unreadable(path, exc.strerror or type(exc).__name__) from exc


@contextlib.contextmanager
def _copy_failures(folder: Path, path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        raise PlanCopyFailedError(
            checked=f"copying {path} into the folder for temporary files {folder}",
            expected="room for a private copy, from which the plan is then read",
            found=exc.strerror or type(exc).__name__,
            next_action=f"make space in {folder}, or name another folder in TMPDIR, and run the command again",
        ) from exc
