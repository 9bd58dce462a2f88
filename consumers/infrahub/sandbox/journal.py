"""What was on the wire: every mutation that the sandbox received, in order, and whether it wrote."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(slots=True)
class JournalEntry:
    """One mutation as it was received. ``data`` is the mutation's coerced input (empty where GraphQL itself
    refused the request), ``variables`` what was sent.

    ``written`` says whether it wrote (an upsert that changed nothing counts), ``object_id`` what it wrote to.
    ``fault`` is the answer that a fault gave instead of the true one.
    """

    position: int
    branch: str
    mutation: str
    key: str
    kind: str | None
    action: str | None
    data: Mapping[str, Any]
    variables: Mapping[str, Any]
    written: bool = False
    object_id: str | None = None
    fault: str | None = None


class Journal:
    """The entries of one sandbox; readable from any thread while it serves."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: list[JournalEntry] = []
        self._dropped = 0

    def receive(self, **facts: Any) -> JournalEntry:
        """Append a mutation at the moment of its arrival; positions start at 1 and are never used again."""
        with self._lock:
            entry = JournalEntry(position=self._dropped + len(self._entries) + 1, **facts)
            self._entries.append(entry)
            return entry

    def entries(self, *, after: int = 0) -> list[JournalEntry]:
        """All entries behind a position, oldest first."""
        with self._lock:
            return [entry for entry in self._entries if entry.position > after]

    def clear(self) -> None:
        """Forget all entries."""
        with self._lock:
            self._dropped += len(self._entries)
            self._entries.clear()

    def __len__(self) -> int:
        with self._lock:
            return len(self._entries)

    def as_json(self, *, after: int = 0) -> list[dict[str, Any]]:
        """The entries as documents."""
        return [asdict(entry) for entry in self.entries(after=after)]
