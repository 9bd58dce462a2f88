"""Finds the destination's id of a peer that a plan names by kind and identity (P67 to P84).

Built for one apply and gone with it. It knows what this apply wrote, and asks the destination for the rest; a hit is
kept, a miss never (P73). Identities are brought into normal form first, so that a plan made elsewhere finds
``10.0.0.1/32`` by ``10.0.0.1`` (design 4.8); what cannot be normalised ends in a loud refusal, not in a second object.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from consumers.infrahub.answers import read_answer
from consumers.infrahub.classification import classify
from consumers.infrahub.errors import PeerAmbiguousError, PeerLookupFailedError, PeerNotFoundError
from consumers.infrahub.exchange import FailedExchange
from consumers.infrahub.gateway import InfrahubGateway
from consumers.infrahub.observation import observe
from consumers.infrahub.peer_query import Component, Hits, lookup_text, lookup_variables, read_hits
from ledger.plan.attribute_values import type_fault
from ledger.plan.canonical import Identity, canonical_json_bytes
from ledger.plan.describe import SecretFields, is_reference, object_text, quoted_name
from ledger.plan.keying import usable
from ledger.plan.normal_form import normalise_peer_identity
from ledger.schema import Attribute, DestinationSchema, KeyPath, Kind

Condition = tuple[Component, Any]

_FILL = "make a plan whose reference names every part of the peer's key; nothing has to be created for that"
_RETYPE = "make a plan whose reference has values of the types that the destination's schema says"
_CREATE = "create the peer at the destination or in an earlier operation of the plan, then resume the run"


class InfrahubPeerResolver:
    """One apply's map from (kind, identity) to node id."""

    def __init__(self, gateway: InfrahubGateway, schema: DestinationSchema) -> None:
        self._gateway = gateway
        self._schema = schema
        self._known: dict[bytes, str] = {}

    def remember(self, kind: str, identity: Mapping[str, Any], node_id: str) -> None:
        """Keep the id of an object that this apply wrote (P71)."""
        self._known[self._key(kind, normalise_peer_identity(self._schema, kind, identity))] = node_id

    async def resolve(self, *, peer_kind: str, identity: Mapping[str, Any], referring_operation_id: str) -> str:
        """The id of the one object of that kind and identity.

        A generic kind stands for each of its node kinds; together they must have exactly one such object.

        Raises:
            PeerNotFoundError: no object, an identity that names none, or an answer without the values asked for.
            PeerAmbiguousError: more than one object.
            PeerLookupFailedError: the destination could not be asked; the write was not sent.
        """
        wanted = normalise_peer_identity(self._schema, peer_kind, identity)
        peer = _Peer(peer_kind, wanted, referring_operation_id, self._schema)
        ids: list[str] = []
        for kind in self._candidates(peer_kind, peer):
            ids += await self._ids_of(kind, peer)
        if len(ids) > 1:
            raise peer.ambiguous(len(ids), self._gateway.shown(", ".join(ids)))
        if not ids:
            raise peer.not_found("no such object", _CREATE)
        return ids[0]

    def _candidates(self, peer_kind: str, peer: _Peer) -> list[str]:
        """The node kinds to look among; of a generic, those whose key the identity can name at all."""
        kinds = self._schema.concrete_kinds(peer_kind)
        if not kinds:
            raise peer.not_found(
                f"the destination's schema has no kind {quoted_name(peer_kind)}",
                "load the schema that this plan was made for",
            )
        if kinds == (peer_kind,):
            return [peer_kind]
        possible = [kind for kind in kinds if _names_key(self._schema.kinds[kind], peer.identity)]
        if not possible:
            raise peer.not_found(f"no kind of {peer_kind} has a key that this identity names", _FILL)
        return possible

    async def _ids_of(self, kind: str, peer: _Peer) -> list[str]:
        same = kind == peer.kind  # of a node kind the identity is in normal form already, of a generic's it is not yet
        key = self._key(kind, peer.identity if same else normalise_peer_identity(self._schema, kind, peer.identity))
        if key in self._known:
            return [self._known[key]]
        hits = await self._ask(kind, peer)
        if hits.foreign:
            raise peer.not_found(
                f"the destination answered with a {kind} that does not carry the values asked for", _CREATE
            )
        if len(hits.ids) == 1:
            self._known[key] = hits.ids[0]
        return list(hits.ids)

    async def _ask(self, kind: str, peer: _Peer) -> Hits:
        conditions = await self._conditions(self._schema.kinds[kind], peer)
        query = lookup_text(kind, tuple(component for component, _ in conditions))
        try:
            data = await self._gateway.read(query, lookup_variables(conditions))
        except FailedExchange as failed:
            raise self._lookup_failed(peer, failed) from None  # foreign text is not masked
        hits = read_hits(data, kind, conditions)
        if hits is None:
            raise peer.not_found("the destination answered without a list of objects", _CREATE)
        return hits

    async def _conditions(self, kind: Kind, peer: _Peer) -> list[Condition]:
        """One condition for each part of the key, then for each part of the identity that the key leaves open.

        Without the second half a key that says less than the identity would bind another object (P84).
        """
        conditions: dict[Component, Any] = {}
        covered: set[str] = set()
        for path in kind.human_friendly_id:
            component, value = await self._key_condition(kind, path, peer)
            conditions[component] = value
            covered.add(path.field)
        for name in peer.identity:
            if name not in covered:
                component, value = await self._identity_condition(kind, name, peer)
                conditions[component] = value
        if not conditions:
            raise peer.not_found("an identity without any part", _FILL)
        return list(conditions.items())

    async def _key_condition(self, kind: Kind, path: KeyPath, peer: _Peer) -> Condition:
        if path.relationship is None:
            return self._attribute_condition(kind, path.field, peer)
        nested = peer.reference(path.relationship)
        inner = self._schema.kinds.get(kind.relationships[path.relationship].peer)
        attribute = inner.attributes.get(path.attribute) if inner is not None and path.attribute is not None else None
        if attribute is not None and set(nested["identity"]) == {attribute.name}:
            value = peer.held_by(attribute, f"{path.relationship}.{attribute.name}", nested["identity"][attribute.name])
            return Component.value(attribute, across=path.relationship), value
        return await self._peer_condition(path.relationship, nested, peer)

    async def _identity_condition(self, kind: Kind, name: str, peer: _Peer) -> Condition:
        if name in kind.attributes:
            return self._attribute_condition(kind, name, peer)
        relationship = kind.relationships.get(name)
        if relationship is None:
            raise peer.not_found(f"{kind.kind} has no field {name!r}", _FILL)
        return await self._peer_condition(name, peer.reference(name), peer)

    def _attribute_condition(self, kind: Kind, name: str, peer: _Peer) -> Condition:
        attribute = kind.attributes.get(name)
        if attribute is None or attribute.is_secret:
            raise peer.not_found(f"{kind.kind} has no attribute {name!r} that could be looked up", _FILL)
        return Component.value(attribute), peer.held_by(attribute, name, peer.identity.get(name))

    async def _peer_condition(self, relationship: str, nested: Mapping[str, Any], peer: _Peer) -> Condition:
        node_id = await self.resolve(
            peer_kind=nested["peer_kind"], identity=nested["identity"], referring_operation_id=peer.operation_id
        )
        return Component.peer_id(relationship), node_id

    def _lookup_failed(self, peer: _Peer, failed: FailedExchange) -> PeerLookupFailedError:
        exchange = failed.exchange
        answer = read_answer(exchange)
        row = classify(observe(exchange, answer, None))
        return PeerLookupFailedError(
            checked=f"the look-up of peer {peer.text} for {peer.operation_id}",
            expected="an answer; the write itself was not sent",
            found=self._gateway.describe(exchange, answer),
            next_action=row.next_action,
            sent=False,
            http_status=exchange.status,
            code=self._gateway.code_of(answer),
            final=row.is_final,
        )

    @staticmethod
    def _key(kind: str, normalised: Identity) -> bytes:
        return canonical_json_bytes([kind, normalised])


class _Peer:
    """What is looked for, and the refusals that name it (P82)."""

    def __init__(self, kind: str, identity: Identity, operation_id: str, schema: DestinationSchema) -> None:
        """``identity`` is in the normal form of ``kind``."""
        self.kind = kind
        self.identity = identity
        self.operation_id = operation_id
        self._schema = schema

    @property
    def text(self) -> str:
        """The peer in words, fit to be stored."""
        return object_text(self.kind, self.identity, secrets=SecretFields(self._schema))

    def held_by(self, attribute: Attribute, name: str, value: Any) -> Any:
        """The value, refused where it keys nothing (``0`` and ``false`` do, P47) or no object can have it (FF16)."""
        if not usable(value) or isinstance(value, (list, dict)):
            raise self.not_found(f"no usable value for {name} in the reference", _FILL)
        fault = type_fault(attribute, value)
        if fault is not None:
            raise self.not_found(f"{fault.found} for {name}, which holds {fault.expected}", _RETYPE)
        return value

    def reference(self, name: str) -> Mapping[str, Any]:
        """The nested ``{peer_kind, identity}`` under a relationship's name."""
        nested = self.identity.get(name)
        if not is_reference(nested):
            raise self.not_found(f"no reference under {name} in the reference", _FILL)
        return nested

    def not_found(self, found: str, next_action: str) -> PeerNotFoundError:
        return PeerNotFoundError(
            checked=f"peer {self.text} of {self.operation_id}",
            expected="exactly one object",
            found=found,
            next_action=next_action,
        )

    def ambiguous(self, count: int, ids: str) -> PeerAmbiguousError:
        return PeerAmbiguousError(
            checked=f"peer {self.text} of {self.operation_id}",
            expected="exactly one object",
            found=f"at least {count}: {ids}",
            next_action="delete or rename all but one of them at the destination, or name the peer by its whole key",
        )


def _names_key(kind: Kind, identity: Mapping[str, Any]) -> bool:
    fields = kind.attributes.keys() | kind.relationships.keys()
    return identity.keys() <= fields and {path.field for path in kind.human_friendly_id} <= identity.keys()
