"""stdout and stderr: data that cannot be written is an error, messages for people are not.

A log on a full disk or a pipe that nobody reads must not end a run in the middle: what is said about an operation would
decide what becomes of it. So stderr forgets what it cannot write.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable


class ForgivingOutput(io.RawIOBase):
    """Writes to a descriptor; what the operating system does not take is dropped."""

    def __init__(self, descriptor: int) -> None:
        """The descriptor stays open when this is closed."""
        self._descriptor = descriptor

    def fileno(self) -> int:
        """The descriptor, which is used to find the size of the terminal."""
        return self._descriptor

    def isatty(self) -> bool:
        """Whether a person reads along."""
        return os.isatty(self._descriptor)

    def writable(self) -> bool:
        """Always."""
        return True

    def write(self, data: bytes | bytearray | memoryview) -> int:  # type: ignore[override] # typeshed's Buffer is 3.12's
        """All of the data, as far as anybody can tell."""
        try:
            return os.write(self._descriptor, data)
        except OSError:
            return len(data)


def prepare_streams() -> None:
    """A closed stream is an empty one, and what a terminal's encoding cannot show is shown escaped."""
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - open until the process ends
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - likewise
        return
    sys.stderr = io.TextIOWrapper(
        io.BufferedWriter(ForgivingOutput(sys.stderr.fileno())),
        encoding=sys.stderr.encoding,
        errors="backslashreplace",
        line_buffering=True,
    )


def last_words(say: Callable[[], None], words: str) -> None:
    """Say something at the end of a program that may have no memory left to say it well."""
    try:
        say()
    except MemoryError:
        os.write(2, words.encode())
