"""Draft operations: the result of comparing a source record with its match at the destination."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ledger.plan.canonical import canonical_json_bytes, canonical_operation_id
from ledger.plan.model import DECODED, PlannedOperation, RelationshipReference
from producers.destination_side import DestinationSide
from producers.diffsync_plan import compared_text
from producers.mapping import FieldPlan, MappingPlan
from producers.records import ObservedRecord, Peer, SourceRecord


@dataclass(slots=True)
class Draft:
    """A create or an update of one source record."""

    record: SourceRecord
    operation: PlannedOperation
    observed: ObservedRecord | None
    differing: tuple[str, ...] = ()
    cut: set[str] = field(default_factory=set)


def draft_operation(
    record: SourceRecord,
    mapping: MappingPlan,
    *,
    observed: ObservedRecord | None,
    left_out: frozenset[str] = frozenset(),
) -> PlannedOperation:
    """The create of a record, or the update of ``observed``, with tier 0 for the time being.

    The payload is every field that the record has, identity included, minus what crosses a reference (A37 to A39,
    A45). A field without a value is in neither; a null attribute is in the payload.

    Args:
        record: a record with an identity.
        mapping: the compiled mapping.
        observed: the matching object, or None for a create.
        left_out: references that are cut from a create.
    """
    identity = record.identity or {}
    action = "create" if observed is None else "update"
    fields = {item.name: item for item in record.entry.fields}
    references = [
        _reference(fields[name], peers, mapping) for name, peers in sorted(record.peers.items()) if name not in left_out
    ]
    values: dict[str, Any] = {
        "operation_id": canonical_operation_id(action, record.kind, identity),
        "action": action,
        "kind": record.kind,
        "identity": identity,
        "tier": 0,
        "payload": dict(sorted(record.values.items())),
    }
    if references:
        values["relationships"] = references
    if observed is not None:
        values["destination_id"] = observed.id
    # A record's values are canonical since they were read. Checked: every identity part is carried exactly once (A46).
    return PlannedOperation.model_validate(values, context=DECODED)


def delete_operation(record: ObservedRecord) -> PlannedOperation:
    """The recorded delete of an object that only the destination has; it carries its identity alone (A28)."""
    identity = record.identity or {}
    return PlannedOperation(
        operation_id=canonical_operation_id("delete", record.kind, identity),
        action="delete",
        kind=record.kind,
        identity=identity,
        tier=0,
    )


def _reference(plan: FieldPlan, peers: tuple[Peer, ...], mapping: MappingPlan) -> RelationshipReference:
    reference = plan.reference or ""
    # an emptied set has no peer to tell its kind: the entry's own reference does, or the first kind it may mean
    declared = next(iter(mapping.schema.concrete_kinds(reference)), reference)
    cardinality = plan.relationship.cardinality if plan.relationship is not None else "one"
    values = {
        "field": plan.name,
        "peer_kind": peers[0].kind if peers else declared,
        "cardinality": cardinality,
        "peers": [peer.identity for peer in peers],
    }
    # Of many peers the order is still to be made; one peer's identity is canonical already.
    return RelationshipReference.model_validate(values, context=DECODED if cardinality == "one" else None)


def wanted_fields(record: SourceRecord) -> dict[str, str]:
    """What a source record is compared by: all fields that it has, without its identity."""
    identity = record.identity or {}
    texts = {name: compared_text(value) for name, value in record.values.items() if name not in identity}
    for plan in record.entry.fields:
        if plan.name in record.peers and plan.name not in identity:
            texts[plan.name] = compared_text(_peers_value(plan, record.peers[plan.name]))
    return texts


def wanted_value(record: SourceRecord, name: str) -> Any:
    """The wanted value of one field in the form that coverage records (H16)."""
    if name in record.values:
        return record.values[name]
    plan = next(item for item in record.entry.fields if item.name == name)
    return _peers_value(plan, record.peers[name])


def _peers_value(plan: FieldPlan, peers: tuple[Peer, ...]) -> Any:
    pairs = [peer.pair() for peer in peers]
    many = plan.relationship is not None and plan.relationship.cardinality == "many"
    return pairs if many else pairs[0]


def observed_values(record: ObservedRecord, names: tuple[str, ...], side: DestinationSide) -> dict[str, Any]:
    """The observed values of these fields, as far as they were read; peers by kind and identity."""
    values: dict[str, Any] = {}
    for name in names:
        if name in record.values:
            values[name] = record.values[name]
        elif name in record.one:
            pointer = record.one[name]
            values[name] = None if pointer is None else _pointed(pointer.kind, pointer.id, side)
        elif name in record.many:
            pairs = (_pointed(pointer.kind, pointer.id, side) for pointer in record.many[name])
            values[name] = sorted(pairs, key=_pair_key)
    return values


def _pointed(kind: str, node_id: str, side: DestinationSide) -> dict[str, Any]:
    """A peer as a pair; one without an identity stands by its id, so that it equals nothing that the source wants."""
    peer = side.by_id[kind][node_id]
    if peer.identity is None:
        return {"destination_id": node_id, "peer_kind": kind}
    return Peer(kind, peer.identity, peer.identity_text).pair()


def _pair_key(pair: Mapping[str, Any]) -> tuple[str, bytes]:
    return pair["peer_kind"], canonical_json_bytes(pair.get("identity", pair.get("destination_id")))
