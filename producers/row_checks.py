"""Checks of rows and drafts beyond their references; every fault is stored with its record (G11)."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence

from ledger.errors import ApplyLedgerError
from ledger.plan.attribute_values import value_faults
from ledger.plan.canonical import identity_bytes
from ledger.plan.collision import CollisionIndex, Origin
from ledger.plan.describe import value_text
from ledger.plan.errors import DestinationIdentityCollisionError, SchemaMismatchError
from ledger.plan.gate import operation_faults
from ledger.schema import DestinationSchema
from producers.destination_side import DestinationSide
from producers.drafts import Draft
from producers.errors import AmbiguousDestinationObjectError, PeerLeftOutError
from producers.mapping import MappingPlan
from producers.peer_index import peer_left_out
from producers.records import ObservedRecord, SourceRecord, given_text

MAX_NAMED = 5
"""Other rows that one refusal names; the number of the rest is reported."""


def check_duplicates(records: Sequence[SourceRecord], mapping: MappingPlan) -> None:
    """Several rows with one canonical identity are all at fault; none of them is chosen (FF07, FF09, FF10).

    Where their identities are equal only because they cross peers that are equal, the peers are at fault and these
    rows depend on them.
    """
    groups: dict[tuple[str, str], list[SourceRecord]] = {}
    for record in records:
        if record.identity is not None:
            groups.setdefault((record.kind, record.identity_text), []).append(record)
    duplicates = {id(record) for group in groups.values() if len(group) > 1 for record in group}
    for group in groups.values():
        for record in group if len(group) > 1 else ():
            peer = _duplicate_peer(record, group, duplicates, mapping)
            record.faults.append(_duplicate(record, group) if peer is None else peer)


def _duplicate_peer(
    record: SourceRecord, group: Sequence[SourceRecord], duplicates: Container[int], mapping: MappingPlan
) -> PeerLeftOutError | None:
    identifiers = mapping.kinds[record.kind].identifiers
    for name, peer in record.referred:
        if name in identifiers and id(peer) in duplicates and peer not in group:
            return peer_left_out(record, name, peer)
    return None


def _duplicate(record: SourceRecord, group: Sequence[SourceRecord]) -> DestinationIdentityCollisionError:
    respelled = sorted({name for item in group for name in item.given} & set(record.identity or {}))
    others = [_as_given(other, respelled) for other in group if other is not record]
    more = f" and {len(others) - MAX_NAMED} more" if len(others) > MAX_NAMED else ""
    return DestinationIdentityCollisionError(
        checked=f"whether the destination can tell {_as_given(record, respelled)} from other rows",
        expected="an identity that no other row has",
        found=" and ".join(others[:MAX_NAMED]) + more,
        next_action="map a field that differs into the identity, or exclude all but one with a filter",
    )


def _as_given(record: SourceRecord, names: Sequence[str]) -> str:
    """The record, with what its row holds in fields that are equal in normal form alone (FF10, FF15)."""
    identity = record.identity or {}
    given = [f"{name} given as {record.given.get(name) or given_text(identity[name])}" for name in names]
    return f"{record.label} [{', '.join(given)}]" if given else record.label


def check_ambiguous(records: Iterable[SourceRecord], destination: DestinationSide) -> None:
    """An identity that several objects of the destination answer to can be neither created nor updated."""
    for record in records:
        found = destination.matches(record.kind, record.identity_text) if record.identity is not None else []
        if len(found) > 1:
            record.faults.append(
                AmbiguousDestinationObjectError(
                    checked=f"the object of the destination that {record.label} means",
                    expected="one",
                    found=f"{len(found)}, with ids {', '.join(item.id for item in found)}",
                    next_action="make them differ at the destination, or choose identifiers in which they differ",
                )
            )


def check_values_without_identity(records: Iterable[SourceRecord], schema: DestinationSchema) -> None:
    """The values of rows that never become an operation, so that one attempt names their other faults as well."""
    for record in records:
        kind = schema.kinds[record.kind]
        for name, value in record.values.items() if record.identity is None else ():
            if name in record.faulted:
                continue
            for fault in value_faults(kind.attributes[name], value):
                record.faults.append(
                    SchemaMismatchError(
                        checked=f"field {name} of {record.label}",
                        expected=fault.expected,
                        found=fault.found,
                        next_action="correct the mapping entry or the source and make a new plan",
                    )
                )


def check_drafts(drafts: Iterable[Draft], schema: DestinationSchema) -> None:
    """Key, fields, types, ranges, mandatory fields and secrets of every create and update."""
    for draft in drafts:
        for fault in operation_faults(draft.operation, schema, planning=True):
            if not _is_known(fault, draft.record):
                draft.record.faults.append(fault)


def _is_known(fault: ApplyLedgerError, record: SourceRecord) -> bool:
    """Whether the fault is about a field whose real fault is known: its absence is only the consequence."""
    return any(fault.checked.startswith(f"field {value_text(name)} of ") for name in record.faulted)


def check_collisions(
    drafts: Sequence[Draft],
    unchanged: Iterable[tuple[SourceRecord, ObservedRecord]],
    destination: DestinationSide,
    mapping: MappingPlan,
) -> list[str]:
    """Every create against every other object of either side in its final state (P61, design 4.3).

    Returns:
        Warnings about identities that read alike and stay apart.
    """
    index = CollisionIndex(mapping.schema)
    creates: dict[bytes, list[SourceRecord]] = {}
    for draft in drafts:
        if draft.observed is None:
            index.add_operation(draft.operation)
            creates.setdefault(identity_bytes(draft.record.kind, draft.operation.identity), []).append(draft.record)
    reached = [kind for kind in destination.by_id if index.reaches(kind)]
    seen: set[tuple[str, str]] = set()
    for draft in drafts:
        if draft.observed is not None and draft.observed.kind in reached:
            seen.add((draft.observed.kind, draft.observed.id))
            _add_observed(index, draft.observed, destination, draft)
    for _, observed in unchanged:
        if observed.kind in reached:
            seen.add((observed.kind, observed.id))
            _add_observed(index, observed, destination, None, unchanged=True)
    for kind in reached:
        for observed in destination.records(kind):
            if (observed.kind, observed.id) not in seen:
                _add_observed(index, observed, destination, None)
    for collision in index.collisions():
        for kind, identity in collision.objects:
            for record in creates.get(identity_bytes(kind, identity), ()):
                # rows of one identity have that fault already
                if all(not isinstance(fault, DestinationIdentityCollisionError) for fault in record.faults):
                    record.faults.append(collision)
    return index.near_misses()


def _add_observed(
    index: CollisionIndex,
    observed: ObservedRecord,
    destination: DestinationSide,
    draft: Draft | None,
    *,
    unchanged: bool = False,
) -> None:
    if observed.identity is None:
        identity: Mapping[str, object] = {"destination_id": observed.id}
    else:
        identity = observed.identity
    attributes = observed.values
    peers: dict[str, Mapping[str, object] | None] = {}
    for name, pointer in observed.one.items():
        peer = None if pointer is None else destination.peer(pointer)
        peers[name] = None if peer is None else peer.pair()
    if draft is not None:
        attributes = {**attributes, **(draft.operation.payload or {})}
        for reference in draft.operation.relationships or ():
            if reference.cardinality == "one":
                peers[reference.field] = {"identity": reference.peers[0], "peer_kind": reference.peer_kind}
    origin: Origin = "update" if draft is not None else "unchanged" if unchanged else "destination"
    index.add(observed.kind, identity, attributes, peers, origin)
