"""A destination in memory that answers as it is told to, and keeps a journal of what reached it."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from ledger.binding import DestinationBinding
from ledger.destination import (
    DispatchGuard,
    OpenDestination,
    OutcomeUnknownError,
    PeerResolver,
    PlannedWriteDestination,
    ProvenUnwrittenError,
)
from ledger.plan.canonical import identity_bytes
from ledger.plan.model import PlannedOperation
from ledger.schema import Attribute, DestinationSchema, Kind, parse_key_path

Answer = Callable[[PlannedOperation], Awaitable[str]]

TAG = Kind(
    kind="BuiltinTag",
    human_friendly_id=(parse_key_path("name__value", {}),),
    attributes={
        "name": Attribute(name="name", kind="Text", optional=False, unique=True),
        "description": Attribute(name="description", kind="Text"),
    },
)
PORT = Kind(
    kind="LabPortTemplate",
    uniqueness_constraints=((parse_key_path("name__value", {}),),),
    attributes={
        "name": Attribute(name="name", kind="Text", optional=False),
        "description": Attribute(name="description", kind="Text"),
    },
)
SCHEMA = DestinationSchema(kinds={kind.kind: kind for kind in (TAG, PORT)})


def unknown(*, sent: bool = True, found: str = "HTTP 500", **more: Any) -> OutcomeUnknownError:
    """A failure after which nobody knows."""
    return OutcomeUnknownError(
        checked="the write", expected="ok: true", found=found, next_action="look", sent=sent, **more
    )


def refused() -> ProvenUnwrittenError:
    """A failure that proves that nothing was written."""
    return ProvenUnwrittenError(checked="the peer", expected="one object", found="none", next_action="create it")


class RememberingResolver:
    """A resolver that knows what this apply wrote."""

    def __init__(self) -> None:
        self.known: dict[bytes, str] = {}

    async def resolve(self, *, peer_kind: str, identity: Mapping[str, Any], referring_operation_id: str) -> str:
        return self.known[identity_bytes(peer_kind, identity)]

    def remember(self, kind: str, identity: Mapping[str, Any], node_id: str) -> None:
        self.known[identity_bytes(kind, identity)] = node_id


@dataclass
class ScriptedDestination(PlannedWriteDestination):
    """Writes into a dictionary. ``answers`` holds, per operation id, what happens at its next attempts."""

    guard: DispatchGuard | None = None
    schema: DestinationSchema = SCHEMA
    store: dict[bytes, dict[str, Any]] = field(default_factory=dict)
    answers: dict[str, list[Answer | Exception | str]] = field(default_factory=dict)
    received: list[str] = field(default_factory=list)
    opened: int = 0
    resolvers: int = 0
    before_open: Callable[[], None] | None = None
    surface: object | None = None
    waits_for_guard: bool = True
    longest_request: float = 0.0
    reads_first: bool = False
    """Whether the first request of an attempt is a look-up; an answer then asks the guard for the write itself."""
    begun: list[str] = field(default_factory=list)

    def new_peer_resolver(self) -> RememberingResolver:
        self.resolvers += 1
        return RememberingResolver()

    async def apply_planned_operation(self, *, operation: PlannedOperation, peers: PeerResolver) -> str:
        self.begun.append(operation.operation_id)
        if self.guard is not None:
            await self.guard.ready()
            self.guard.before_send(write=not self.reads_first)
        self.received.append(operation.operation_id)
        script = self.answers.get(operation.operation_id)
        if script:
            answer = script.pop(0)
            if isinstance(answer, Exception):
                raise answer
            if isinstance(answer, str):
                return answer
            return await answer(operation)
        return self.write(operation)

    def write(self, operation: PlannedOperation) -> str:
        """What an undisturbed destination does: one object for one identity."""
        key = identity_bytes(operation.kind, operation.identity)
        stored = self.store.setdefault(
            key, {"id": operation.destination_id or str(uuid.uuid5(uuid.NAMESPACE_OID, key.hex()))}
        )
        stored.update(operation.payload or {})
        return str(stored["id"])

    @asynccontextmanager
    async def __call__(
        self, binding: DestinationBinding, *, run_id: str, guard: DispatchGuard
    ) -> AsyncIterator[OpenDestination]:
        """As a :class:`~ledger.destination.DestinationOpener`."""
        if self.before_open is not None:
            self.before_open()
        self.opened += 1
        self.guard = guard
        yield OpenDestination(
            writes=self if self.surface is None else self.surface,
            schema=self.schema,
            longest_request=self.longest_request,
            waits_for_guard=self.waits_for_guard,
        )
