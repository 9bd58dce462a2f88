"""Writes one planned operation to Infrahub (P17 to P28, adapted by design 8).

In this order: refuse what must not be sent, resolve the peers, send one mutation, believe only a full confirmation,
remember the id. Everything before the send is proven unwritten; everything after it is what the classification says.

Creates and updates go through one convergent upsert. The exception is a create of a kind that the server cannot match
on an upsert, because it is keyed by a constraint alone: it goes through ``<Kind>Create`` under an id of ours that
follows from destination, run and operation. If an earlier attempt did write, the server says that this id is in use,
and reading it back on this branch tells whether the object is there. Two attempts must never overlap, or the server
makes two nodes of one id: that is why the writer settles before it repeats, and why nothing here sends twice.
"""

from __future__ import annotations

import json

import structlog

from consumers.infrahub.answers import Answer, Shape, read_answer
from consumers.infrahub.classification import Row, Verdict, classify
from consumers.infrahub.errors import StaleDestinationIdError
from consumers.infrahub.exchange import Event, Exchange, FailedExchange
from consumers.infrahub.gateway import InfrahubGateway
from consumers.infrahub.mutations import Mutation, Peers, create_with_id, upsert
from consumers.infrahub.observation import observe
from consumers.infrahub.operation_checks import checked_kind, refuse_faults
from consumers.infrahub.own_ids import own_node_id
from consumers.infrahub.peers import InfrahubPeerResolver
from consumers.infrahub.refusals import refusal
from ledger.binding import DestinationBinding
from ledger.destination import OutcomeUnknownError, PeerResolver, PlannedWriteDestination
from ledger.plan.describe import SecretFields, object_text
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
        try:
            data = await self._gateway.execute(mutation.query, mutation.variables)
            exchange, answer = Exchange(Event.ANSWERED, status=200), Answer(Shape.DATA, data=data)
        except FailedExchange as failed:
            exchange, answer = failed.exchange, read_answer(failed.exchange)
        row = classify(observe(exchange, answer, mutation.expected))
        if row.verdict is Verdict.APPLIED:
            return str(answer.data[mutation.expected.field]["object"]["id"])
        failure = _Failure(
            operation, self._schema, row, exchange, self._gateway.code_of(answer), self._found(row, exchange, answer)
        )
        if row.verdict is Verdict.UNWRITTEN:
            raise failure.stale()
        own_id = mutation.expected.node_id
        if row.verdict is Verdict.READ_BACK and own_id is not None and await self._is_there(kind, own_id, failure):
            return own_id
        raise failure.unknown()

    def _found(self, row: Row, exchange: Exchange, answer: Answer) -> str:
        if answer.shape is Shape.DATA and exchange.status == 200:
            return f"{row.name}: {self._gateway.shown(json.dumps(answer.data))}"
        return self._gateway.describe(exchange)

    async def _is_there(self, kind: Kind, own_id: str, failure: _Failure) -> bool:
        """Whether the object of our id is on this branch and of that kind: then an earlier attempt of ours made it."""
        query = f"query OwnId($ids: [ID!]!) {{ {kind.kind}(ids: $ids) {{ edges {{ node {{ id }} }} }} }}"
        try:
            data = await self._gateway.execute(query, {"ids": [own_id]})
        except FailedExchange:
            raise failure.unknown() from None  # foreign text is not masked
        found = data.get(kind.kind)
        edges = found.get("edges") if isinstance(found, dict) else None
        return isinstance(edges, list) and edges == [{"node": {"id": own_id}}]


class _Failure:
    """What is known of a write that was not confirmed, in the words of an error."""

    def __init__(
        self,
        operation: PlannedOperation,
        schema: DestinationSchema,
        row: Row,
        exchange: Exchange,
        code: str | None,
        found: str,
    ) -> None:
        self._row = row
        self._exchange = exchange
        self._code = code
        self._found = found
        described = object_text(operation.kind, operation.identity, secrets=SecretFields(schema))
        self._checked = f"{operation.action} {described} ({operation.operation_id})"
        self._destination_id = operation.destination_id

    def stale(self) -> StaleDestinationIdError:
        """The destination's own not-found: nothing was written."""
        return StaleDestinationIdError(
            checked=self._checked,
            expected=f"the object of the recorded id {self._destination_id}",
            found=self._found,
            next_action=self._row.next_action,
        )

    def unknown(self) -> OutcomeUnknownError:
        """Everything else."""
        if self._row.error is None:
            raise RuntimeError(f"row {self._row.name!r} of the classification has nothing to raise")
        return self._row.error(
            checked=self._checked,
            expected="ok: true and the node id",
            found=self._found,
            next_action=self._row.next_action,
            sent=self._exchange.sent,
            http_status=self._exchange.status,
            code=self._code,
        )
