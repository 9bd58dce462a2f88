"""What was on the wire: every mutation that the sandbox received, in order, and whether it wrote."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

SENDER_HEADER = "x-sandbox-sender"
"""A client that wants its requests to be told apart names itself here; Infrahub knows nothing of it."""


@dataclass(slots=True)
class JournalEntry:
    """One mutation as it was received. ``data`` is the mutation's coerced input (empty where GraphQL itself
    refused the request), ``variables`` what was sent.

    ``written`` says whether it wrote (an upsert that changed nothing counts), ``object_id`` what it wrote to.
    ``fault`` is the answer that a fault gave instead of the true one. ``sender`` is who the client said it was (in
    :data:`SENDER_HEADER`). ``received_at`` is the moment of its arrival, ``decided_at`` the one from which on it writes
    nothing any more, both in seconds since 1970; None where it is still under way, or ended with the sandbox.
    """

    position: int
    branch: str
    mutation: str
    key: str
    kind: str | None
    action: str | None
    data: Mapping[str, Any]
    variables: Mapping[str, Any]
    sender: str | None = None
    received_at: float = 0.0
    decided_at: float | None = None
    written: bool = False
    object_id: str | None = None
    fault: str | None = None

    def decided(self) -> None:
        """It was executed, or is known not to be: it writes nothing after this."""
        self.decided_at = time.time()


class Journal:
    """The entries of one sandbox; readable from any thread while it serves."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: list[JournalEntry] = []
        self._dropped = 0

    def receive(self, **facts: Any) -> JournalEntry:
        """Append a mutation at the moment of its arrival; positions start at 1 and are never used again."""
        with self._lock:
            position = self._dropped + len(self._entries) + 1
            entry = JournalEntry(position=position, received_at=time.time(), **facts)
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
