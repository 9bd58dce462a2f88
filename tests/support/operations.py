"""Planned operations, built so that their ids are right."""

from __future__ import annotations

from typing import Any

from ledger.plan.canonical import operation_id
from ledger.plan.model import PlannedOperation, RelationshipReference


def one(field: str, peer_kind: str, **identity: Any) -> RelationshipReference:
    """A reference to one peer."""
    return RelationshipReference(field=field, peer_kind=peer_kind, cardinality="one", peers=[identity])


def many(field: str, peer_kind: str, *identities: dict[str, Any]) -> RelationshipReference:
    """A reference to a set of peers."""
    return RelationshipReference(field=field, peer_kind=peer_kind, cardinality="many", peers=list(identities))


def create(
    kind: str, identity: dict[str, Any], payload: dict[str, Any], *references: RelationshipReference
) -> PlannedOperation:
    """A create."""
    return PlannedOperation(
        operation_id=operation_id("create", kind, identity),
        action="create",
        kind=kind,
        identity=identity,
        tier=0,
        payload=payload,
        relationships=list(references) or None,
    )


def update(
    kind: str,
    identity: dict[str, Any],
    payload: dict[str, Any],
    *references: RelationshipReference,
    destination_id: str | None,
) -> PlannedOperation:
    """An update keyed by a recorded id."""
    return PlannedOperation(
        operation_id=operation_id("update", kind, identity),
        action="update",
        kind=kind,
        identity=identity,
        tier=0,
        payload=payload,
        relationships=list(references) or None,
        destination_id=destination_id,
    )


def delete(kind: str, identity: dict[str, Any]) -> PlannedOperation:
    """A recorded delete."""
    return PlannedOperation(
        operation_id=operation_id("delete", kind, identity), action="delete", kind=kind, identity=identity, tier=0
    )
