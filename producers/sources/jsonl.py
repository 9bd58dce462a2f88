"""A directory of JSON Lines files, one per endpoint: ``<directory>/<endpoint>.jsonl``.

Lines end with the byte ``\\n`` only. What a JSON parser would guess about is refused: a BOM, a blank line, a duplicate
key, bytes that are no UTF-8. NaN and infinities are read, so that the plan maker can name the kind and field.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ledger.errors import ConfigurationError
from producers.errors import SourceUnreadableError

_CHUNK = 1 << 20


class JsonLinesSource:
    """Rows from files. Setting: ``directory``, absolute or relative to the configuration file."""

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
        """The records of the endpoint's file, in file order."""
        path = self._path(endpoint)
        try:
            with path.open("rb") as file:
                for number, line in enumerate(file, start=1):
                    yield _record(line, f"{path.name} line {number}")
        except OSError as exc:
            raise self._unreadable(endpoint, exc) from exc

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


def _record(line: bytes, where: str) -> Mapping[str, Any]:
    try:
        value = json.loads(line.decode("utf-8"), object_pairs_hook=_without_duplicates)
    except (ValueError, RecursionError) as exc:
        reason = exc.msg if isinstance(exc, json.JSONDecodeError) else str(exc) or type(exc).__name__
        raise _not_a_record(where, "a blank line" if not line.strip() else reason) from exc
    if not isinstance(value, dict):
        raise _not_a_record(where, f"a {type(value).__name__}")
    return value


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the key {next(name for name in names if names.count(name) > 1)!r} twice in one object")
    return record


def _not_a_record(where: str, found: str) -> SourceUnreadableError:
    return SourceUnreadableError(
        checked=where,
        expected="one JSON object in UTF-8",
        found=found,
        next_action="correct this line of the source",
    )
