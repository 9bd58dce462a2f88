"""What a projection is: pure folds over the events of one binding, with a name and a version.

A fold sees events in stored order and keeps one small document per key. It remembers the position of the last event
that it took, so an event that comes a second time changes nothing (G9, G3). A change of a fold or of its documents is
a new version: its documents stand beside the old ones until these are removed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC
from typing import Any, Generic, NamedTuple, Self, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from ledger.commit import utc_text
from ledger.events import BODIES, SCHEMA_VERSION, Body, StoredEvent
from ledger.plan.canonical import canonical_json_bytes
from ledger.projections.errors import UnreadableBodyError, UnreadableDocumentError

Upcast = Callable[[Mapping[str, Any]], Mapping[str, Any]]

UPCASTS: Mapping[tuple[str, int], Upcast] = {}
"""(kind, version) to the pure function that turns such a body into one of the next version. Stored bytes never change;
there is one version of every body so far."""


class Key(NamedTuple):
    """Where a document stands: its subject (a run, or nothing) and an item of it (an operation, or nothing)."""

    subject: str
    item: str

    def on(self, binding_id: int) -> str:
        """The place in words, for a refusal."""
        run = f"run {self.subject} of " if self.subject else ""
        return (f"operation {self.item} of " if self.item else "") + run + f"binding {binding_id}"


class State(BaseModel):
    """Base of all documents. ``position`` is that of the last event taken."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    position: int

    def canonical_bytes(self) -> bytes:
        """The document as stored and compared."""
        return canonical_json_bytes(self.model_dump(mode="json"))

    @classmethod
    def read(cls, document: str, binding_id: int, key: Key) -> Self:
        """The document stored for a binding under a key.

        Raises:
            UnreadableDocumentError: it is not of this shape.
        """
        try:
            return cls.model_validate_json(document)
        except ValidationError as exc:
            places = sorted({".".join(map(str, fault["loc"])) or "the whole" for fault in exc.errors()})
            raise UnreadableDocumentError(
                checked=f"the document of {key.on(binding_id)} in the projections ({cls.__name__})",
                expected="one that this program writes",
                found=f"another shape at {', '.join(places)}",
                next_action="run 'apply-ledger verify', find out who changed it, then run 'apply-ledger rebuild'",
            ) from None  # the values stay out of the message


S = TypeVar("S", bound=State)


@dataclass(frozen=True, slots=True)
class Fold(Generic[S]):
    """One family of documents.

    Attributes:
        model: of its documents.
        key: the document that an event belongs to, or nothing when the event does not matter here.
        step: the document after an event, from the one before; called at most once per event and key.
    """

    model: type[S]
    key: Callable[[StoredEvent], Key | None]
    step: Callable[[S | None, StoredEvent], S]

    def take(self, state: S | None, event: StoredEvent) -> S:
        """The document after ``event``; the same one where it has seen that event."""
        if state is not None and event.position <= state.position:
            return state
        return self.step(state, event)


@dataclass(frozen=True, slots=True)
class Projection:
    """Folds that move together behind one cursor per binding. The folds' keys never overlap."""

    name: str
    version: int
    folds: tuple[Fold[Any], ...]


def is_recognised(event: StoredEvent) -> bool:
    """Whether this program knows what the event says: its kind, and a version not newer than its own."""
    return event.kind in BODIES and event.schema_version <= SCHEMA_VERSION


def body_of(event: StoredEvent) -> Body:
    """The body of a recognised event, in its newest version.

    Raises:
        UnreadableBodyError: it is not what its kind and version say.
    """
    try:
        if event.schema_version == SCHEMA_VERSION:
            return BODIES[event.kind].model_validate_json(event.body)
        body: Mapping[str, Any] = json.loads(event.body)
        for version in range(event.schema_version, SCHEMA_VERSION):
            body = UPCASTS[event.kind, version](body)
        return BODIES[event.kind].model_validate_json(canonical_json_bytes(body))
    except ValueError as exc:
        raise UnreadableBodyError(
            checked=f"the body of event {event.position} of {event.url} [{event.branch}]",
            expected=f"a body of {event.kind}, version {event.schema_version}",
            found="other bytes",
            next_action="run 'apply-ledger verify'",
        ) from exc


def moment_of(event: StoredEvent) -> str:
    """When it was recorded: UTC with microseconds, by the database's clock."""
    return utc_text(event.recorded_at.astimezone(UTC))
