"""Transcripts without what differs from run to run: ids, times, names, the order of what has none."""

from __future__ import annotations

import json
import re
from typing import Any

_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIMES = frozenset({"updated_at", "created_at", "branched_from"})
_UNORDERED = frozenset({"edges", "errors", "answers"})
"""Answers to requests that were sent in parallel; objects, whose order a case notes where it matters; and errors: those
about several fields come in the order in which the server has these, which differs from server to server.
"""
_UNREAD = frozenset({"locations"})
"""Where in the document an error is: nobody reads it, and it follows from the text that was sent."""

_BEGINNING = re.compile(r"(?<=created at ')[^']*")
"""Of a branch, in the words of a refusal."""

_VIOLATION = " constraint violation on schema "
"""Of which a merge names several, in no order."""

_LIST_OF_PERMISSIONS = "one of the following permissions: "
"""What stands behind it comes in another order with each start of the server."""


class Names:
    """What stands for which text in a transcript."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._shown: dict[str, str] = {}
        self._appeared: dict[str, int] = {}

    def show(self, text: str, label: str) -> None:
        """Write ``<label>`` for ``text``."""
        self._shown[text] = f"<{label}>"

    def appear(self, text: str) -> None:
        """Remember in which order ids appear: mostly the one in which the objects were made."""
        for found in _ID.findall(text):
            self._appeared.setdefault(found, len(self._appeared))

    def place(self, text: str) -> tuple[str, list[int]]:
        """Where a text stands among others: by what it says, and then by the ids in it."""
        return self.text(text, number=False), [self._appeared.get(found, 0) for found in _ID.findall(text)]

    def text(self, text: str, *, number: bool) -> str:
        """The text with every known one replaced; an id that has no label yet gets a number."""
        for known in sorted(self._shown, key=len, reverse=True):
            text = text.replace(known, self._shown[known])
        text = text.replace(self._prefix, "~")
        return _ID.sub(self._numbered if number else "<id>", text)

    def _numbered(self, match: re.Match[str]) -> str:
        return self._shown.setdefault(match[0], f"<id {len(self._shown) + 1}>")


def normal_transcript(steps: list[dict[str, Any]], names: Names) -> list[dict[str, Any]]:
    """The steps in normal form; ids are numbered in the order in which they appear."""
    names.appear(json.dumps(steps))
    ordered = [_ordered(step, names) for step in steps]
    return [_replaced(step, names) for step in ordered]


def _ordered(value: Any, names: Names) -> Any:
    """Keys in order; what has none of its own in the order of its text."""
    if isinstance(value, dict):
        return {name: _part(name, value[name], names) for name in sorted(value) if name not in _UNREAD}
    return [_ordered(item, names) for item in value] if isinstance(value, list) else value


def _part(name: str, value: Any, names: Names) -> Any:
    if name in _TIMES and isinstance(value, str):
        return "<time>"
    found = _ordered(value, names)
    if name == "message" and isinstance(found, str):
        if _VIOLATION in found:
            return ",\n".join(sorted(found.split(",\n"), key=names.place))
        before, listed, permissions = _BEGINNING.sub("<time>", found).partition(_LIST_OF_PERMISSIONS)
        return before + listed + " | ".join(sorted(permissions.split(" | ")))
    if name in _UNORDERED and isinstance(found, list):
        found.sort(key=lambda item: names.place(json.dumps(item, sort_keys=True)))
    return found


def _replaced(value: Any, names: Names) -> Any:
    match value:
        case dict():
            return {names.text(name, number=True): _replaced(item, names) for name, item in value.items()}
        case list():
            return [_replaced(item, names) for item in value]
        case str():
            return names.text(value, number=True)
        case _:
            return value
