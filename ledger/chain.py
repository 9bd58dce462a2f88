"""The hash chain of a binding's events, and its verifier (G8).

Written from the description of the chain, independently of the database function that builds it; both are held
together by test vectors alone, so that one mistake cannot hide itself on both sides.

What an intact chain says: between the first event and the head, nothing was changed, taken out, put in or moved by
anybody who did not recompute everything after it. What it cannot say by itself: that the end was not cut off. For that
the head is compared with one that is kept elsewhere.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from enum import StrEnum

from ledger.events import StoredEvent
from ledger.hashed_event import hashed_bytes

GENESIS = bytes(32)
"""What the first event chains to."""


class BreakKind(StrEnum):
    """How an event can fail to be where and what the chain says."""

    GAP = "gap"
    ORDER = "order"
    LINK = "link"
    HASH = "hash"
    BINDING = "binding"


@dataclass(frozen=True, slots=True)
class ChainBreak:
    """One place where the chain does not hold.

    Attributes:
        position: of the event at which it shows.
        kind: what does not hold.
        expected: what had to be there.
        found: what is there.
    """

    position: int
    kind: BreakKind
    expected: str
    found: str


def event_hash(event: StoredEvent) -> bytes:
    """The hash that an event must carry, 32 bytes, from its fields and its own ``prev_hash``.

    Raises:
        ValueError: ``recorded_at`` has no time zone, or a number does not fit its field.
    """
    return hashlib.sha256(hashed_bytes(event)).digest()


@dataclass(slots=True)
class ChainVerifier:
    """Checks the events of one binding as they come, in bounded memory.

    Attributes:
        url: of the binding.
        branch: of the binding.
        position: of the last event seen, 0 before the first.
        head: hash of the last event seen.
        events: how many were seen.
    """

    url: str
    branch: str
    position: int = 0
    head: bytes = GENESIS
    events: int = field(default=0, init=False)

    def feed(self, event: StoredEvent) -> list[ChainBreak]:
        """Check the next event against the one before; empty when it holds.

        After a break it continues from the stored hash, so that one changed event is reported once and not for every
        event behind it.
        """
        # The detailed checks run only if the quick one fails: a replay checks a million events that all hold.
        breaks = [] if self._holds(event) else [*self._place(event), *self._link(event), *self._content(event)]
        self.position = event.position
        self.head = event.hash
        self.events += 1
        return breaks

    def passed(self, events: int, position: int, head: bytes) -> None:
        """Continue after events that the caller has verified with all checks of :meth:`feed`."""
        self.position, self.head = position, head
        self.events += events

    def _holds(self, event: StoredEvent) -> bool:
        try:
            return (
                event.position == self.position + 1
                and event.prev_hash == self.head
                and event.url == self.url
                and event.branch == self.branch
                and event_hash(event) == event.hash
            )
        except ValueError:
            return False

    def _place(self, event: StoredEvent) -> list[ChainBreak]:
        breaks = []
        if (event.url, event.branch) != (self.url, self.branch):
            breaks.append(
                ChainBreak(
                    event.position,
                    BreakKind.BINDING,
                    f"{self.url} [{self.branch}]",
                    f"{event.url} [{event.branch}]",
                )
            )
        if event.position != self.position + 1:
            kind = BreakKind.GAP if event.position > self.position else BreakKind.ORDER
            breaks.append(
                ChainBreak(event.position, kind, f"position {self.position + 1}", f"position {event.position}")
            )
        return breaks

    def _link(self, event: StoredEvent) -> list[ChainBreak]:
        if event.prev_hash == self.head:
            return []
        return [ChainBreak(event.position, BreakKind.LINK, self.head.hex(), event.prev_hash.hex())]

    def _content(self, event: StoredEvent) -> list[ChainBreak]:
        try:
            computed = event_hash(event)
        except ValueError as exc:
            return [ChainBreak(event.position, BreakKind.HASH, "fields that can be hashed", str(exc))]
        if computed == event.hash:
            return []
        return [ChainBreak(event.position, BreakKind.HASH, computed.hex(), event.hash.hex())]
