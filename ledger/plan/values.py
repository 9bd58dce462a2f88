"""Checks whether a destination would accept an operation: fields, values, mandatory fields, relationships (design 4.6).

One function, :func:`check_operation_values`, used when the plan is made, by the gate and by the write surface. It
finds every fault and raises none of them, so that one attempt names everything that is wrong (G11).

A null cardinality-one relationship can stand in a payload of a plan made elsewhere. Mandatory, it is refused with a
class of its own (P92); optional, it is no fault: the write surface leaves the field out and says so (P88 to P90).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ledger.errors import ApplyLedgerError
from ledger.plan.attribute_values import value_faults
from ledger.plan.describe import SecretFields, is_reference, object_text, quoted_name, value_text
from ledger.plan.errors import (
    NullRelationshipValueError,
    SchemaMismatchError,
    SecretValueRefusedError,
    WriteNeverTakenError,
)
from ledger.plan.model import PlannedOperation, RelationshipReference
from ledger.plan.unfit_names import why_never_taken
from ledger.schema import Attribute, DestinationSchema, Kind, Relationship

_CORRECT_MAPPING = "correct the mapping entry or the source and make a new plan"


def check_operation_values(
    operation: PlannedOperation, kind: Kind, *, schema: DestinationSchema | None = None
) -> list[ApplyLedgerError]:
    """Every fault of one operation's fields and values; a delete writes nothing and has at most secret faults.

    Args:
        operation: the operation.
        kind: its kind in the destination's schema.
        schema: the whole schema, to check peers' kinds and identities as well; without it they go unchecked.
    """
    subject = _Subject(operation, kind, schema)
    secrets = list(_secret_faults(subject))
    if operation.action == "delete":
        return secrets
    faults: list[ApplyLedgerError] = list(secrets)
    for name, value in sorted((operation.payload or {}).items()):
        faults += _payload_faults(subject, name, value)
    for reference in operation.relationships or ():
        faults += _reference_faults(subject, reference)
    if operation.action == "create":
        faults += _missing_faults(subject)
    return faults + _never_taken(subject)


def _never_taken(subject: _Subject) -> list[ApplyLedgerError]:
    action = subject.operation.action
    return [
        WriteNeverTakenError(
            checked=str(subject),
            expected=f"a kind of which the destination takes {action}s",
            found=f"{why}, because of which it answers each of them with an error",
            next_action="change that name in the destination's schema, or leave the kind out",
        )
        for why in why_never_taken(subject.kind, action)
    ]


@dataclass(frozen=True, slots=True)
class _Subject:
    """One operation under check, with what names it in an error."""

    operation: PlannedOperation
    kind: Kind
    schema: DestinationSchema | None

    def __str__(self) -> str:
        secrets = SecretFields.of(self.kind, self.schema)
        shown = object_text(self.operation.kind, self.operation.identity, secrets=secrets)
        return f"{self.operation.action} {shown} ({self.operation.operation_id})"

    def where(self, field: str) -> str:
        """The field, as the ``checked`` of an error."""
        return f"field {value_text(field)} of {self}"

    def mismatch(self, field: str, expected: str, found: str) -> SchemaMismatchError:
        """A fault of one field."""
        return SchemaMismatchError(
            checked=self.where(field), expected=expected, found=found, next_action=_CORRECT_MAPPING
        )


def require_known_kind(operation: PlannedOperation, schema: DestinationSchema) -> Kind:
    """The writable kind of an operation.

    Raises:
        SchemaMismatchError: the destination has no such kind, or it is a generic.
    """
    found = schema.node(operation.kind)
    if found is not None:
        return found
    raise SchemaMismatchError(
        checked=f"the kind of {operation.action} {operation.operation_id}",
        expected="a kind that the destination's schema has and that can be written",
        found=quoted_name(operation.kind)
        + (", a generic" if operation.kind in schema.kinds else ", which the schema does not have"),
        next_action="load the schema that this plan was made for, or make a new plan",
    )


def _payload_faults(subject: _Subject, name: str, value: Any) -> list[ApplyLedgerError]:
    attribute = subject.kind.attributes.get(name)
    if attribute is None:
        return _not_an_attribute(subject, name, value)
    if attribute.is_secret:
        return []
    if attribute.read_only:
        return [subject.mismatch(name, "a field that can be written", "a read-only attribute")]
    return [subject.mismatch(name, fault.expected, fault.found) for fault in value_faults(attribute, value)]


def _not_an_attribute(subject: _Subject, name: str, value: Any) -> list[ApplyLedgerError]:
    relationship = subject.kind.relationships.get(name)
    if relationship is None:
        return [
            subject.mismatch(
                name, f"a field of {subject.kind.kind}", f"{quoted_name(name)}, which the schema does not have"
            )
        ]
    if value is not None or relationship.cardinality == "many":
        return [subject.mismatch(name, "peers of a relationship, under relationships", "a plain value")]
    if relationship.optional:
        return []
    return [
        NullRelationshipValueError(
            checked=subject.where(name),
            expected="exactly one peer: the relationship is mandatory",
            found="null",
            next_action="add this peer to the source object, or exclude it with a filter, and make a new plan",
        )
    ]


def _reference_faults(subject: _Subject, reference: RelationshipReference) -> list[ApplyLedgerError]:
    name = reference.field
    relationship = subject.kind.relationships.get(name)
    if relationship is None:
        found = (
            "an attribute"
            if name in subject.kind.attributes
            else f"{quoted_name(name)}, which the schema does not have"
        )
        return [subject.mismatch(name, f"a relationship of {subject.kind.kind}", found)]
    faults: list[ApplyLedgerError] = []
    if relationship.read_only:
        faults.append(subject.mismatch(name, "a field that can be written", "a read-only relationship"))
    if reference.cardinality != relationship.cardinality:
        faults.append(subject.mismatch(name, f"cardinality {relationship.cardinality}", reference.cardinality))
    faults += _count_faults(subject, reference, relationship)
    if subject.schema is not None:
        faults += _peer_kind_faults(subject, reference, relationship, subject.schema)
    return faults


def _count_faults(
    subject: _Subject, reference: RelationshipReference, relationship: Relationship
) -> list[ApplyLedgerError]:
    faults: list[ApplyLedgerError] = []
    found, least, most = len(reference.peers), relationship.min_count, relationship.max_count
    if found < max(least, 0 if relationship.optional else 1):
        faults.append(subject.mismatch(reference.field, f"at least {max(least, 1)} peers", str(found)))
    if most and found > most:
        faults.append(subject.mismatch(reference.field, f"at most {most} peers", str(found)))
    return faults


def _peer_kind_faults(
    subject: _Subject, reference: RelationshipReference, relationship: Relationship, schema: DestinationSchema
) -> list[ApplyLedgerError]:
    peer = schema.node(reference.peer_kind)
    if peer is None:
        found = f"{quoted_name(reference.peer_kind)}, which is not one in the schema"
        return [subject.mismatch(reference.field, "a concrete kind of peer", found)]
    # A stored schema document may leave out the generics of the core; then any known kind may stand there.
    if relationship.peer not in schema.kinds or reference.peer_kind in schema.concrete_kinds(relationship.peer):
        return []
    return [subject.mismatch(reference.field, f"peers of kind {relationship.peer}", quoted_name(reference.peer_kind))]


def _missing_faults(subject: _Subject) -> Iterator[ApplyLedgerError]:
    operation, kind = subject.operation, subject.kind
    payload = operation.payload or {}
    given = {reference.field for reference in operation.relationships or ()} | set(payload)
    for attribute in kind.attributes.values():
        if _mandatory(attribute) and attribute.name not in given:
            yield subject.mismatch(attribute.name, "a value: the attribute is mandatory", "none")
    for relationship in kind.relationships.values():
        if not relationship.optional and not relationship.read_only and relationship.name not in given:
            yield subject.mismatch(relationship.name, "a peer: the relationship is mandatory", "none")


def _mandatory(attribute: Attribute) -> bool:
    return not attribute.optional and not attribute.read_only and attribute.default is None


def _secret_faults(subject: _Subject) -> Iterator[ApplyLedgerError]:
    """Fields of Password kinds, wherever a plan line could hold their value: payload, identity, peers (G12)."""
    operation, kind, schema = subject.operation, subject.kind, subject.schema
    named = sorted({*(operation.payload or {}), *operation.identity})
    places = {f"{kind.kind}.{name}" for name in named if _is_secret(kind, name)}
    if schema is not None:
        for value in operation.identity.values():
            places |= _secret_peer_fields(value, schema)
        for reference in operation.relationships or ():
            for peer in reference.peers:
                places |= _secret_peer_fields({"identity": peer, "peer_kind": reference.peer_kind}, schema)
    for place in sorted(places):
        yield SecretValueRefusedError(
            checked=str(subject),
            expected="no value of a Password kind: plans are stored and shown",
            found=f"a value for {place} (not shown)",
            next_action="take the field out of the mapping; set passwords at the destination",
        )


def _is_secret(kind: Kind, name: str) -> bool:
    attribute = kind.attributes.get(name)
    return attribute is not None and attribute.is_secret


def _secret_peer_fields(value: Any, schema: DestinationSchema) -> set[str]:
    if isinstance(value, list):
        return {place for item in value for place in _secret_peer_fields(item, schema)}
    if not is_reference(value):
        return set()
    found = schema.kinds.get(value["peer_kind"])
    own = {f"{found.kind}.{name}" for name in value["identity"] if _is_secret(found, name)} if found else set()
    return own | {place for item in value["identity"].values() for place in _secret_peer_fields(item, schema)}
