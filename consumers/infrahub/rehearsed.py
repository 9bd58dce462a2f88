"""A destination for rehearsals: the real write surface over a sandbox in this process instead of a network.

The sandbox is made from the real destination's schema and from what was observed there. Around each operation its store
is watched, so that what the operation does can be told exactly. Nothing here knows the real address, so nothing can be
sent to it.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
from pydantic import SecretStr

from consumers.infrahub.connection import InfrahubOpener
from consumers.infrahub.sandbox.app import create_app
from consumers.infrahub.sandbox.branch import BranchStore
from consumers.infrahub.sandbox.records import Node
from consumers.infrahub.sandbox.seeding import Seeded, seed
from consumers.infrahub.sandbox.store import DEFAULT_BRANCH, SandboxStore
from consumers.infrahub.settings import InfrahubSettings
from consumers.rehearsal import Effect, EffectSink, FieldEffect
from ledger.binding import DestinationBinding
from ledger.destination import (
    ObservedObject,
    OutcomeUnknownError,
    PeerResolver,
    PlannedWriteDestination,
    ProvenUnwrittenError,
)
from ledger.plan.canonical import canonical_json_bytes, same_bytes
from ledger.plan.describe import SENSITIVE
from ledger.plan.model import PlannedOperation
from ledger.schema import DestinationSchema

_NOWHERE = "http://rehearsal.invalid"
"""A name that no resolver has: a request that left this process all the same would find nobody."""


@dataclass(frozen=True, slots=True)
class OpenRehearsal:
    """A sandbox that stands where the real destination stood, and the destination that writes to it."""

    destination: RehearsedDestination
    schema: DestinationSchema
    seeded: Seeded


@asynccontextmanager
async def open_rehearsal(
    document: Mapping[str, Any],
    observed: Iterable[ObservedObject],
    *,
    run_id: str,
    told: EffectSink,
) -> AsyncIterator[OpenRehearsal]:
    """Make the sandbox and open it as the writer opens a destination.

    Args:
        document: the destination's schema, in the shape of ``GET /api/schema``.
        observed: what is there.
        run_id: the run that is rehearsed.
        told: is called with the effect of each operation that is attempted.

    Raises:
        ConfigurationError: the document has not that shape.
    """
    token = secrets.token_urlsafe(24)
    sandbox = create_app(document, token=token)
    seeded = seed(sandbox.store, observed)
    settings = InfrahubSettings(url=_NOWHERE, branch=DEFAULT_BRANCH, token=SecretStr(token))
    opener = InfrahubOpener(lambda _: settings, factory=lambda: httpx.ASGITransport(app=sandbox))
    binding = DestinationBinding(url=_NOWHERE, branch=DEFAULT_BRANCH)
    async with opener(binding, run_id=run_id, guard=_NothingToHoldBack()) as opened:
        writes = opened.writes
        if not isinstance(writes, PlannedWriteDestination):
            raise TypeError("the write surface is no destination")
        watched = RehearsedDestination(writes, sandbox.store, opened.schema, seeded.observed, told)
        yield OpenRehearsal(watched, opened.schema, seeded)


class _NothingToHoldBack:
    """The guard of requests that leave nobody's process."""

    async def ready(self) -> None:
        """Nothing has to be durable first."""

    def before_send(self, *, write: bool = True) -> None:
        """Let every request go."""


class RehearsedDestination(PlannedWriteDestination):
    """The write surface, watched: tells what each operation did before it answers."""

    def __init__(
        self,
        surface: PlannedWriteDestination,
        store: SandboxStore,
        schema: DestinationSchema,
        observed: Mapping[str, frozenset[str]],
        told: EffectSink,
    ) -> None:
        """``observed`` names the fields of each kind whose values before the rehearsal are known."""
        self._surface = surface
        self._store = store
        self._schema = schema
        self._observed = observed
        self._told = told
        self._peers = surface.new_peer_resolver()
        self._refused: dict[bytes, str] = {}
        self._made: set[str] = set()
        self._stopped = False

    def new_peer_resolver(self) -> PeerResolver:
        """One for the whole rehearsal, in however many pieces the loop runs."""
        return self._peers

    async def apply_planned_operation(self, *, operation: PlannedOperation, peers: PeerResolver) -> str:
        """Write to the sandbox and tell the effect.

        Raises:
            ProvenUnwrittenError, OutcomeUnknownError: the operation is refused.
        """
        branch, newest = self._store.default_branch, self._store.sequence
        before: dict[str, Node] = {}

        def watch(node: Node) -> None:
            if node.id not in before:
                before[node.id] = node.copy()

        branch.watch = watch
        try:
            node_id = await self._surface.apply_planned_operation(operation=operation, peers=peers)
        except ProvenUnwrittenError as refusal:
            self._told(self._refusal(operation, refusal, "operation.failed"))
            raise
        except OutcomeUnknownError as refusal:
            self._told(self._refusal(operation, refusal, "operation.unknown"))
            raise
        finally:
            branch.watch = None
        self._told(self._effect(operation, branch, node_id, before.get(node_id), newest))
        return node_id

    def skipped(self, operation: PlannedOperation) -> None:
        """Tell of an operation that the loop passes by: a recorded delete."""
        self._told(Effect(operation, "skipped", recorded_as="operation.skipped", after_stop=self._stopped))

    def _refusal(
        self, operation: PlannedOperation, refusal: ProvenUnwrittenError | OutcomeUnknownError, recorded_as: str
    ) -> Effect:
        follows = next((name for key in _peers_of(operation) if (name := self._refused.get(key)) is not None), None)
        self._refused[canonical_json_bytes([operation.kind, operation.identity])] = operation.operation_id
        effect = Effect(
            operation,
            "refused",
            refusal=refusal.findings[0],
            recorded_as=recorded_as,
            follows=follows,
            after_stop=self._stopped,
        )
        self._stopped = True
        return effect

    def _effect(
        self, operation: PlannedOperation, branch: BranchStore, node_id: str, before: Node | None, newest: int
    ) -> Effect:
        node = branch.nodes[node_id]
        if node.sequence > newest:
            self._made.add(node_id)
            fields = self._fields(operation, branch, node, None)
            return Effect(operation, "created", node_id, fields, after_stop=self._stopped)
        fields = () if before is None else self._fields(operation, branch, node, before)
        return Effect(operation, "updated" if fields else "unchanged", node_id, fields, after_stop=self._stopped)

    def _fields(
        self, operation: PlannedOperation, branch: BranchStore, node: Node, before: Node | None
    ) -> tuple[FieldEffect, ...]:
        """The fields that the operation names and that are another thing now than before."""
        known = self._observed.get(node.kind.name, frozenset())
        effects = []
        for name in sorted({*(operation.payload or {}), *(item.field for item in operation.relationships or ())}):
            after = self._shown(branch, node, name)
            if before is None:
                effects.append(FieldEffect(name, after))
                continue
            was = self._shown(branch, before, name)
            if node.id in self._made or name in known:
                if not same_bytes(was, after):
                    effects.append(FieldEffect(name, after, was, has_before=True))
            else:
                effects.append(FieldEffect(name, after))
        return tuple(effects)

    def _shown(self, branch: BranchStore, node: Node, name: str) -> Any:
        """A field as a person reads it: a value, or peers by kind and human-friendly id."""
        end = node.kind.ends.get(name)
        if end is None:
            return SENSITIVE if node.kind.attributes[name].is_secret else node.read(name)
        peers = [self._named(branch, peer_id) for peer_id in sorted(node.peer_ids(end.slot))]
        if end.many:
            return peers
        return peers[0] if peers else None

    def _named(self, branch: BranchStore, node_id: str) -> dict[str, Any]:
        """A peer. The id of an object that the rehearsal made is the sandbox's own and means nothing elsewhere."""
        node = branch.nodes[node_id]
        named = {"kind": node.kind.name, "hfid": branch.human_friendly_id(node)}
        return named if node_id in self._made and named["hfid"] else {**named, "id": node_id}


def _peers_of(operation: PlannedOperation) -> list[bytes]:
    return [
        canonical_json_bytes([reference.peer_kind, identity])
        for reference in operation.relationships or ()
        for identity in reference.peers
    ]
