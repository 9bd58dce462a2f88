"""A directory of JSON Lines files, one per endpoint: ``<directory>/<endpoint>.jsonl``.

Lines end with the byte ``\\n`` only. What a JSON parser would guess about is refused: a BOM, a blank line, a duplicate
key, bytes that are no UTF-8. NaN and infinities are read, so that the plan maker can name the kind and field.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, ClassVar

from ledger.errors import ConfigurationError
from ledger.plan.decode import MAX_LINE_BYTES, decode_json
from ledger.plan.errors import JsonDocumentError
from producers.errors import SourceUnreadableError

MAX_NAMED = 100
"""Lines of one file that are named as no records; all are counted."""

_CHUNK = 1 << 20
_EXPECTED = "one JSON object in UTF-8"


class JsonLinesSource:
    """Rows from files. Setting: ``directory``, absolute or relative to the configuration file."""

    KNOWN_SETTINGS: ClassVar[frozenset[str]] = frozenset({"directory"})

    def __init__(self, *, settings: Mapping[str, Any], base_directory: Path) -> None:
        directory = settings.get("directory")
        if not isinstance(directory, str) or not directory:
            raise ConfigurationError(
                checked="source.settings.directory",
                expected="the path of a directory of .jsonl files",
                found="none" if directory is None else f"a {type(directory).__name__}",
                next_action="set it in the file or with --source-setting directory=...",
            )
        self._directory = (base_directory / directory).resolve()
        if not self._directory.is_dir():
            raise ConfigurationError(
                checked="source.settings.directory",
                expected=f"a directory, relative to {base_directory}",
                found=f"none at {self._directory}",
                next_action="correct the path",
            )

    @property
    def location(self) -> str:
        """The directory, by its full path."""
        return str(self._directory)

    def count(self, endpoint: str) -> int:
        """The number of lines of the endpoint's file, an unterminated last one included."""
        path = self._path(endpoint)
        lines, last = 0, b"\n"
        try:
            with path.open("rb") as file:
                while chunk := file.read(_CHUNK):
                    lines += chunk.count(b"\n")
                    last = chunk[-1:]
        except OSError as exc:
            raise self._unreadable(endpoint, exc) from exc
        return lines + (last != b"\n")

    def rows(self, endpoint: str) -> Iterator[Mapping[str, Any]]:
        """The records of the endpoint's file, in file order.

        Raises:
            SourceUnreadableError: after the last record, naming every invalid line (at most a hundred of them).
        """
        path = self._path(endpoint)
        faults = _Faults(path.name)
        try:
            with path.open("rb") as file:
                for number, line in enumerate(_lines(file), start=1):
                    try:
                        record = _record(line, f"{path.name} line {number}")
                    except SourceUnreadableError as exc:
                        faults.add(exc)
                        continue
                    if not faults.total:
                        yield record
        except OSError as exc:
            raise self._unreadable(endpoint, exc) from exc
        faults.require_none()

    def _path(self, endpoint: str) -> Path:
        path = (self._directory / f"{endpoint}.jsonl").resolve()
        if not path.is_relative_to(self._directory):
            raise ConfigurationError(
                checked=f"the endpoint {endpoint!r}",
                expected="a file below the source directory",
                found="a path that leads out of it",
                next_action="correct the mapping",
            )
        if not path.is_file():
            raise SourceUnreadableError(
                checked=f"the endpoint {endpoint!r} of the source",
                expected=f"a file {path.name} in {self._directory}",
                found="no such file: a missing endpoint is not an empty one",
                next_action="correct the mapping or the directory, or put an empty file there",
            )
        return path

    @staticmethod
    def _unreadable(endpoint: str, exc: OSError) -> SourceUnreadableError:
        return SourceUnreadableError(
            checked=f"the endpoint {endpoint!r} of the source",
            expected="a readable file",
            found=exc.strerror or type(exc).__name__,
            next_action="check the file's permissions",
        )


class _Faults:
    """Lines that are no records; the first hundred are kept, all are counted."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._kept: list[SourceUnreadableError] = []
        self.total = 0

    def add(self, fault: SourceUnreadableError) -> None:
        self.total += 1
        if len(self._kept) < MAX_NAMED:
            self._kept.append(fault)

    def require_none(self) -> None:
        """Raise what was found: the one fault, or all of them together."""
        if self.total == 1:
            raise self._kept[0]
        if self.total:
            raise SourceUnreadableError(
                checked=self._name,
                expected=_EXPECTED,
                found=f"{self.total:,} invalid lines, the first of them in {self._kept[0].checked}",
                next_action="correct these lines of the source",
                faults=[finding for fault in self._kept for finding in fault.findings],
            )


def _lines(file: IO[bytes]) -> Iterator[bytes]:
    """Lines with their ends; of a line that is longer than a record may be, only so much that this can be seen."""
    while line := file.readline(MAX_LINE_BYTES + 2):
        yield line
        while len(line) > MAX_LINE_BYTES + 1 and not line.endswith(b"\n"):
            line = file.readline(_CHUNK) or b"\n"


def _record(line: bytes, where: str) -> Mapping[str, Any]:
    if len(line.rstrip(b"\n")) > MAX_LINE_BYTES:
        raise _not_a_record(where, f"more than {MAX_LINE_BYTES:,} bytes")
    if not line.strip():
        raise _not_a_record(where, "a blank line")
    try:
        value = decode_json(line, what=where, any_values=True)
    except JsonDocumentError as exc:
        raise _not_a_record(where, exc.found) from exc
    if not isinstance(value, dict):
        raise _not_a_record(where, f"a {type(value).__name__}")
    return value


def _not_a_record(where: str, found: str) -> SourceUnreadableError:
    return SourceUnreadableError(
        checked=where,
        expected=_EXPECTED,
        found=found,
        next_action="correct this line of the source",
    )
