"""Writes one planned operation to Infrahub (P17 to P28, adapted by design 8).

In this order: refuse what must not be sent, resolve the peers, send one mutation, believe only a full confirmation,
remember the id. Everything before the send is proven unwritten; everything after it is what the classification says.

Creates and updates go through one convergent upsert. The exception is a create of a kind that the server cannot match
on an upsert, because it is keyed by a constraint alone: it goes through ``<Kind>Create`` under an id of ours that
follows from destination, run and operation. If an earlier attempt did write, the server says that this id is in use,
and reading it back on this branch tells whether the object is there, and is there once. Two attempts must never
overlap, or the server makes two nodes of one id: that is why the writer settles before it repeats, and why nothing here
sends twice.
"""

from __future__ import annotations

import json

import structlog

from consumers.infrahub.classification import Verdict, classify
from consumers.infrahub.exchange import FailedExchange
from consumers.infrahub.gateway import InfrahubGateway
from consumers.infrahub.mutations import Mutation, Peers, create_with_id, replaces_unbounded, upsert
from consumers.infrahub.observation import observe
from consumers.infrahub.operation_checks import checked_kind, refuse_faults
from consumers.infrahub.own_ids import count_of, own_id_text, own_node_id
from consumers.infrahub.peers import InfrahubPeerResolver
from consumers.infrahub.refusals import refusal
from consumers.infrahub.unconfirmed import Attempted, UnconfirmedWrites
from ledger.binding import DestinationBinding
from ledger.destination import PeerResolver, PlannedWriteDestination
from ledger.plan.errors import UnserializablePayloadValueError
from ledger.plan.model import PlannedOperation
from ledger.schema import DestinationSchema, Kind

_log = structlog.get_logger(__name__)


class InfrahubWriteSurface(PlannedWriteDestination):
    """One Infrahub branch as a destination of one run.

    Args:
        gateway: the client; every request of it passes the dispatch guard.
        schema: of the branch, fetched once per apply.
        binding: goes into ids of ours.
        run_id: the run whose operations are written.
    """

    def __init__(
        self, gateway: InfrahubGateway, schema: DestinationSchema, *, binding: DestinationBinding, run_id: str
    ) -> None:
        self._gateway = gateway
        self._schema = schema
        self._binding = binding
        self._run_id = run_id
        self._unconfirmed = UnconfirmedWrites(gateway, schema)

    def new_peer_resolver(self) -> InfrahubPeerResolver:
        """A resolver for one apply, knowing nothing yet (P69)."""
        return InfrahubPeerResolver(self._gateway, self._schema)

    async def apply_planned_operation(self, *, operation: PlannedOperation, peers: PeerResolver) -> str:
        """Write one operation; returns the node id that the destination confirmed.

        Raises:
            ProvenUnwrittenError: refused before the send, a peer is missing or ambiguous, or the recorded id is stale.
            OutcomeUnknownError: anything else that is no confirmation.
        """
        kind = checked_kind(operation, self._schema)
        refuse_faults(operation, kind, self._schema)
        resolved = await self._resolve_peers(operation, peers)
        self._warn_of_nulls(operation, kind)
        node_id = await self._dispatch(operation, kind, self._mutation(operation, kind, resolved))
        peers.remember(operation.kind, operation.identity, node_id)
        return node_id

    async def _resolve_peers(self, operation: PlannedOperation, peers: PeerResolver) -> dict[str, Peers]:
        """Ids for every reference: one id, or the complete list in the plan's order (P20)."""
        resolved: dict[str, Peers] = {}
        for reference in operation.relationships or ():
            try:
                ids = [
                    await peers.resolve(
                        peer_kind=reference.peer_kind,
                        identity=identity,
                        referring_operation_id=operation.operation_id,
                    )
                    for identity in reference.peers
                ]
            except UnserializablePayloadValueError as exc:
                raise refusal([exc], operation_id=operation.operation_id) from exc
            resolved[reference.field] = ids[0] if reference.cardinality == "one" else ids
        return resolved

    def _warn_of_nulls(self, operation: PlannedOperation, kind: Kind) -> None:
        """A null peer of an update is left out, and nobody may believe that it was cleared (P90)."""
        if operation.action != "update":
            return
        for name, value in (operation.payload or {}).items():
            if value is None and name in kind.relationships:
                _log.warning(
                    "null relationship left out, nothing is cleared",
                    operation_id=operation.operation_id,
                    kind=operation.kind,
                    field=name,
                )

    def _mutation(self, operation: PlannedOperation, kind: Kind, resolved: dict[str, Peers]) -> Mutation:
        payload = operation.payload or {}
        if operation.action == "create" and kind.keyed_by_constraint_alone:
            own_id = own_node_id(self._binding, run_id=self._run_id, operation_id=operation.operation_id)
            return create_with_id(kind, payload, resolved, own_id=own_id)
        return upsert(kind, payload, resolved, destination_id=operation.destination_id)

    async def _dispatch(self, operation: PlannedOperation, kind: Kind, mutation: Mutation) -> str:
        """The one write of an operation."""
        reply = await self._gateway.write(mutation.query, mutation.variables)
        if operation.action == "update" and replaces_unbounded(kind, operation.payload or {}):
            await self._gateway.leave_connections()
        row = classify(observe(reply.exchange, reply.answer, mutation.expected))
        if row.verdict is Verdict.APPLIED:
            return str(reply.answer.data[mutation.expected.field]["object"]["id"])
        attempted = Attempted(operation, row, reply)
        if row.verdict is Verdict.UNWRITTEN:
            raise self._unconfirmed.stale(attempted)
        if row.verdict is Verdict.READ_BACK and mutation.expected.node_id is not None:
            return await self._read_back(kind, mutation.expected.node_id, attempted)
        raise self._unconfirmed.unknown(attempted)

    async def _read_back(self, kind: Kind, own_id: str, attempted: Attempted) -> str:
        """Our id is in use: an earlier attempt made the object where exactly one of that kind has it on this branch."""
        try:
            data = await self._gateway.read(own_id_text(kind.kind), {"ids": [own_id]})
        except FailedExchange as failed:
            found = self._gateway.describe(failed.exchange)
            raise self._unconfirmed.own_id_unread(attempted, found) from None  # foreign text is not masked
        count = count_of(own_id, data, kind.kind)
        if count is None:
            raise self._unconfirmed.own_id_unread(attempted, self._gateway.shown(json.dumps(data)))
        if count > 1:
            raise self._unconfirmed.own_id_doubled(attempted, count)
        if count == 0:
            raise self._unconfirmed.unknown(attempted)
        return own_id
