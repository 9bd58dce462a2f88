"""Whether the destination can match a create: two questions that stay two mechanisms (P21, P22, P30).

*Coverage* (4a) is about the plan: does the identity name every part of the key? *Values* (4b) is about the data: does
every part arrive with a value that keys something? Only the second can say which part is missing, and only the first
can be answered before a value is looked at. Both are for creates alone; an update is keyed by its recorded id (P31).

The plan maker, the gate and the write surface all call these two functions, so a create that one of them refuses is
refused by the others for the same reason (P63).

``schema``, where it is given, only serves to recognise secret fields of peers in the error's text (G12).

A key is the kind's human-friendly id; for a kind without one, a uniqueness constraint that the identity covers (P45).
The configuration's identifiers play no part (P40).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ledger.plan.describe import SecretFields, object_text
from ledger.plan.errors import UnaccountedIdentityComponentError, UnkeyedCreateRefusedError
from ledger.plan.model import PlannedOperation, RelationshipReference
from ledger.schema import DestinationSchema, KeyPath, Kind

Key = tuple[KeyPath, ...]


def check_key_coverage(operation: PlannedOperation, kind: Kind, *, schema: DestinationSchema | None = None) -> None:
    """4a: the identity of a create names every part of a key of its kind (P44, P45, P57, P60).

    A part that no create can supply (read-only, filled from a pool) is no cover either: the destination makes another
    value each time, so the key never matches and every write adds an object (FF08).

    Raises:
        UnkeyedCreateRefusedError: names the kind, the object and every part that is missing.
    """
    if operation.action != "create":
        return
    if not candidate_keys(kind):
        raise _unkeyed(
            _object(operation, kind, schema),
            expected="a kind with a human-friendly id or a uniqueness constraint",
            found="neither: every write would make one more object",
            next_action=f"leave {kind.kind} out of the mapping, or declare a key for it in the destination's schema",
        )
    if covered_keys(operation, kind):
        return
    wanted = " or ".join(_key_text(key) for key in candidate_keys(kind))
    raise _unkeyed(
        _object(operation, kind, schema),
        expected=f"an identity that covers {wanted}",
        found="; or ".join(_uncovered_text(operation, kind, key) for key in candidate_keys(kind)),
        next_action="name these fields among the identifiers of the mapping entry and make a new plan",
    )


def check_key_values(operation: PlannedOperation, kind: Kind, *, schema: DestinationSchema | None = None) -> None:
    """4b: every part of the key arrives with a usable value (P46 to P50, P58).

    A direct part is read from the payload. A part across a relationship is read from the identity of the peer that
    the plan names there, because what is sent is the peer's id (P49). Usable is everything but an absent value, null,
    empty or whitespace-only text, and an empty list or mapping; ``0`` and ``false`` are usable (P47). A zero-width
    character (U+200B) is no whitespace and is accepted: the destination keeps it as sent and matches on it.

    Raises:
        UnaccountedIdentityComponentError: names the kind, the object and every part without a usable value.
    """
    if operation.action != "create":
        return
    keys = covered_keys(operation, kind) or candidate_keys(kind)
    problems = [_value_problems(operation, key) for key in keys]
    if not problems or not all(problems):
        return
    raise UnaccountedIdentityComponentError(
        checked=f"the key values of create {_object(operation, kind, schema)}",
        expected=f"a usable value for each part of {' or '.join(_key_text(key) for key in keys)}",
        found="; or ".join(", ".join(group) for group in problems),
        next_action="add these values to the source object, or exclude it with a filter, and make a new plan",
    )


def prove_create_key(operation: PlannedOperation, kind: Kind, *, schema: DestinationSchema | None = None) -> None:
    """Both checks as planning asks them: a create whose key is not proven is refused, whatever the reason (P56).

    Raises:
        UnkeyedCreateRefusedError: the key is not covered, or a covered part has no usable value.
    """
    check_key_coverage(operation, kind, schema=schema)
    try:
        check_key_values(operation, kind, schema=schema)
    except UnaccountedIdentityComponentError as exc:
        raise UnkeyedCreateRefusedError(
            checked=exc.checked, expected=exc.expected, found=exc.found, next_action=exc.next_action
        ) from exc


def candidate_keys(kind: Kind) -> tuple[Key, ...]:
    """What a create of this kind may be matched by: the human-friendly id alone, else each uniqueness constraint."""
    return (kind.human_friendly_id,) if kind.human_friendly_id else kind.uniqueness_constraints


def covered_keys(operation: PlannedOperation, kind: Kind) -> tuple[Key, ...]:
    """The candidate keys of which the operation's identity names every part, and that a create can supply."""
    return tuple(key for key in candidate_keys(kind) if not _uncovered(operation, kind, key))


def usable(value: Any) -> bool:
    """Whether a value keys anything (P47)."""
    if isinstance(value, str):
        return bool(value.strip())
    if isinstance(value, (list, dict)):
        return bool(value) and not is_pool_request(value)
    return value is not None


def is_pool_request(value: Any) -> bool:
    """Whether a value asks the destination to allocate from a pool: a new value each time, so no plan may hold it."""
    return isinstance(value, dict) and "from_pool" in value


def cannot_be_supplied(kind: Kind, path: KeyPath) -> str | None:
    """Why no create can supply this part of a key; None where it can."""
    if path.relationship is not None:
        relationship = kind.relationships.get(path.relationship)
        if relationship is None:
            return "is not in the schema"
        if relationship.read_only:
            return "is read-only"
        return "has many peers" if relationship.cardinality == "many" else None
    attribute = kind.attributes.get(path.field)
    if attribute is None:
        return "is not in the schema"
    if attribute.read_only:
        return "is read-only"
    return "comes from a pool" if attribute.kind == "NumberPool" else None


def _uncovered(operation: PlannedOperation, kind: Kind, key: Key) -> list[tuple[KeyPath, str]]:
    problems = []
    for path in key:
        reason = cannot_be_supplied(kind, path)
        if reason is None and path.field not in operation.identity:
            reason = "is not in the identity"
        if reason is not None:
            problems.append((path, reason))
    return problems


def _uncovered_text(operation: PlannedOperation, kind: Kind, key: Key) -> str:
    return ", ".join(f"{path.raw} {reason}" for path, reason in _uncovered(operation, kind, key))


def _value_problems(operation: PlannedOperation, key: Key) -> list[str]:
    return [f"{path.raw} {reason}" for path in key if (reason := _value_problem(operation, path)) is not None]


def _value_problem(operation: PlannedOperation, path: KeyPath) -> str | None:
    if path.relationship is None:
        payload = operation.payload or {}
        return "is absent from the payload" if path.field not in payload else _unusable(payload[path.field])
    reference = _reference(operation, path.relationship)
    if reference is None:
        return f"has no peer: relationship {path.relationship} is not in the operation"
    if reference.cardinality != "one":
        return f"has no single peer: relationship {path.relationship} is given as many"
    peer = reference.peers[0]
    if path.attribute is None:
        return None if any(usable(value) for value in peer.values()) else "has a peer without any usable value"
    if path.attribute not in peer:
        return f"is not supplied: the identity of the peer {reference.peer_kind} has no {path.attribute}"
    return _unusable(peer[path.attribute])


def _unusable(value: Any) -> str | None:
    if is_pool_request(value):
        return "comes from a pool"
    if usable(value):
        return None
    if value is None:
        return "is null"
    return "is blank" if isinstance(value, str) and value else "is empty"


def _reference(operation: PlannedOperation, field: str) -> RelationshipReference | None:
    return next((reference for reference in operation.relationships or () if reference.field == field), None)


def _key_text(key: Sequence[KeyPath]) -> str:
    return "(" + ", ".join(path.raw for path in key) + ")"


def _object(operation: PlannedOperation, kind: Kind, schema: DestinationSchema | None) -> str:
    shown = object_text(operation.kind, operation.identity, secrets=SecretFields.of(kind, schema))
    return f"{shown} ({operation.operation_id})"


def _unkeyed(create: str, *, expected: str, found: str, next_action: str) -> UnkeyedCreateRefusedError:
    return UnkeyedCreateRefusedError(
        checked=f"the key of create {create}", expected=expected, found=found, next_action=next_action
    )
