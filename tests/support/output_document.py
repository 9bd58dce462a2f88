"""The table of ``docs/output.md``: what each command prints as JSON and as NDJSON, compared with what it does print."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parents[2] / "docs" / "output.md"
SAME = "the same"
_ROW = re.compile(
    r"^\| `(?P<command>[^|`]+)` \| (?P<json>[^|]*) \| `(?P<stream>[^|`]*)` \| (?P<records>[^|]*) \|$", re.MULTILINE
)


@dataclass(frozen=True)
class Shape:
    """What one command prints.

    Attributes:
        form: ``object``, or ``array of`` objects.
        fields: of the object, or of each object of the array.
        stream: the name in the first line of NDJSON.
        records: fields of the lines behind it.
    """

    form: str
    fields: tuple[str, ...]
    stream: str
    records: tuple[str, ...]

    def row(self, command: str) -> str:
        """A line of the table."""
        records = SAME if self.records == self.fields else _names(self.records)
        return f"| `{command}` | {self.form}: {_names(self.fields)} | `{self.stream}` | {records} |"


def _names(fields: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in fields)


def shape_of(printed_json: str, printed_ndjson: str) -> Shape:
    """The shape of two answers of one command."""
    document: Any = json.loads(printed_json)
    head, *lines = [json.loads(line) for line in printed_ndjson.splitlines()]
    objects: list[Mapping[str, Any]] = document if isinstance(document, list) else [document]
    return Shape(
        form="array of" if isinstance(document, list) else "object",
        fields=_fields(objects),
        stream=head["stream"],
        records=_fields(lines),
    )


def _fields(objects: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """In the order in which they come; several kinds of record have their fields joined."""
    found = tuple(dict.fromkeys(name for each in objects for name in each))
    if not found:
        raise LookupError("nothing was printed, so nothing can be said about its fields")
    return found


def documented() -> dict[str, re.Match[str]]:
    """Each row of the page by its command; the groups are ``json``, ``stream`` and ``records``."""
    return {match["command"]: match for match in _ROW.finditer(PAGE.read_text(encoding="utf-8"))}
