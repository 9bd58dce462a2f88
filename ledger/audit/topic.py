"""Verifying the chain from the topic of events alone, without the database (G8).

The relay delivers at least once: what comes again under the same hash is a repeat. What comes under a known position
with another hash, what is missing and what does not chain is a break.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ledger.audit.errors import LedgerTamperedError
from ledger.chain import BreakKind, ChainVerifier, event_hash
from ledger.commit_message import Headers
from ledger.errors import Finding
from ledger.event_message import UnreadableEventMessageError, decode_event
from ledger.events import StoredEvent
from ledger.store.records import MessagePlace

MAX_BREAKS = 100
"""So many are kept in full for each binding; the rest is counted."""

_HASH = 32
_NEXT = "stop the relay, and verify the ledger that it reads; a gap can also mean that the topic removed messages"


@dataclass(frozen=True, slots=True)
class TopicBreak:
    """One place where the topic does not hold what a ledger would have put there."""

    position: int
    kind: str
    expected: str
    found: str
    place: MessagePlace

    @property
    def finding(self) -> Finding:
        """For people."""
        return Finding(
            name=f"Topic{self.kind.capitalize()}",
            checked=f"the {self.kind} of event {self.position}, message {self.place}",
            expected=self.expected,
            found=self.found,
            next_action=_NEXT,
        )


@dataclass(slots=True)
class BindingOnTopic:
    """The events of one binding as the topic has them."""

    verifier: ChainVerifier
    hashes: bytearray = field(default_factory=bytearray)
    apart: dict[int, bytes] = field(default_factory=dict)
    repeats: int = 0
    breaks: list[TopicBreak] = field(default_factory=list)
    total_breaks: int = 0

    def feed(self, event: StoredEvent, place: MessagePlace) -> None:
        """Take the next message of this binding."""
        if event.position <= self.verifier.position:
            self._again(event, place)
            return
        for found in self.verifier.feed(event):
            self._note(TopicBreak(found.position, str(found.kind), found.expected, found.found, place))
        if len(self.hashes) == (event.position - 1) * _HASH:
            self.hashes.extend(event.hash)
        else:
            self.apart[event.position] = event.hash

    def _again(self, event: StoredEvent, place: MessagePlace) -> None:
        end = event.position * _HASH
        known = self.apart.get(event.position) or bytes(self.hashes[end - _HASH : end])
        if not known:
            missing = "that it came before the events behind it"
            self._note(TopicBreak(event.position, str(BreakKind.ORDER), missing, "it came behind them", place))
        elif event.hash == known and _hashes_to(event, known):
            self.repeats += 1
        else:
            self._note(
                TopicBreak(event.position, "repetition", known.hex(), f"another event ({event.hash.hex()})", place)
            )

    def _note(self, found: TopicBreak) -> None:
        self.total_breaks += 1
        if len(self.breaks) < MAX_BREAKS:
            self.breaks.append(found)

    def document(self) -> dict[str, Any]:
        """For machines."""
        first = self.breaks[0] if self.breaks else None
        return {
            "url": self.verifier.url,
            "branch": self.verifier.branch,
            "holds": not self.breaks,
            "events": self.verifier.events,
            "repeats": self.repeats,
            "head_position": self.verifier.position,
            "head_hash": self.verifier.head.hex(),
            "breaks": self.total_breaks,
            "first_break_position": None if first is None else first.position,
            "first_break_kind": None if first is None else first.kind,
        }


def _hashes_to(event: StoredEvent, known: bytes) -> bool:
    try:
        return event_hash(event) == known
    except ValueError:
        return False  # a number that no field of an event holds


@dataclass(slots=True)
class TopicAudit:
    """Feed it every message of the topic, each partition in order.

    Attributes:
        bindings: by url and branch.
        unreadable: messages that are no events.
        messages: how many were read.
    """

    bindings: dict[tuple[str, str], BindingOnTopic] = field(default_factory=dict)
    unreadable: list[Finding] = field(default_factory=list)
    total_unreadable: int = 0
    messages: int = 0

    def feed(self, place: MessagePlace, key: bytes | None, value: bytes | None, headers: Headers) -> None:
        """Take the next message."""
        self.messages += 1
        try:
            event = decode_event(key, value, headers)
        except UnreadableEventMessageError as exc:
            self.total_unreadable += 1
            if len(self.unreadable) < MAX_BREAKS:
                self.unreadable += [
                    finding.model_copy(update={"checked": f"message {place}: {finding.checked}"})
                    for finding in exc.findings
                ]
            return
        names = (event.url, event.branch)
        if names not in self.bindings:
            self.bindings[names] = BindingOnTopic(ChainVerifier(*names))
        self.bindings[names].feed(event, place)

    @property
    def holds(self) -> bool:
        """Whether nothing is wrong with anything that was read."""
        return not self.unreadable and not any(binding.breaks for binding in self.bindings.values())

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Everything that is wrong."""
        broken = [found.finding for binding in self.bindings.values() for found in binding.breaks]
        return (*self.unreadable, *broken)

    def require_intact(self) -> None:
        """Raise where something is wrong.

        Raises:
            LedgerTamperedError: with every finding.
        """
        if not self.holds:
            raise LedgerTamperedError(checked="the topic of events", findings=self.findings, next_action=_NEXT)
