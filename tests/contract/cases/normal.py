"""Transcripts without what differs from run to run: ids, times, names, the order of what has none."""

from __future__ import annotations

import json
import re
from typing import Any

_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIMES = frozenset({"updated_at", "created_at", "branched_from"})
_UNREAD = frozenset({"locations"})
"""Where in the document an error is: nobody reads it, and it follows from the text that was sent."""

_LIST_OF_PERMISSIONS = "one of the following permissions: "
"""What stands behind it comes in another order with each start of the server."""


class Names:
    """What stands for which text in a transcript."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._shown: dict[str, str] = {}

    def show(self, text: str, label: str) -> None:
        """Write ``<label>`` for ``text``."""
        self._shown[text] = f"<{label}>"

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
    ordered = [_ordered(step, names) for step in steps]
    return [_replaced(step, names) for step in ordered]


def _ordered(value: Any, names: Names) -> Any:
    """Keys in order; peers, errors and answers that came in parallel have none of their own."""
    if isinstance(value, dict):
        return {name: _part(name, value[name], names) for name in sorted(value) if name not in _UNREAD}
    return [_ordered(item, names) for item in value] if isinstance(value, list) else value


def _part(name: str, value: Any, names: Names) -> Any:
    if name in _TIMES and isinstance(value, str):
        return "<time>"
    found = _ordered(value, names)
    if name == "message" and isinstance(found, str):
        before, listed, permissions = found.partition(_LIST_OF_PERMISSIONS)
        return before + listed + " | ".join(sorted(permissions.split(" | ")))
    if name in ("edges", "errors", "answers") and isinstance(found, list):
        found.sort(key=lambda item: names.text(json.dumps(item, sort_keys=True), number=False))
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
