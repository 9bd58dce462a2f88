"""The checks of all operations at once: keys, schema, values, secrets, collisions (P52, C52, design 7.4).

The plan maker asks when a plan is made, the writer asks again before its first write (the schema may have changed, and
a plan may have been made elsewhere). The write surface asks :func:`operation_faults` for each operation. One set of
functions, so that the three never disagree (P63).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from ledger.errors import ApplyLedgerError, Finding
from ledger.plan.collision_search import CollisionSearch
from ledger.plan.errors import FurtherFaultsError
from ledger.plan.keying import check_key_coverage, check_key_values, prove_create_key
from ledger.plan.model import PlannedOperation
from ledger.plan.values import check_operation_values, require_known_kind
from ledger.schema import DestinationSchema, Kind

MAX_FINDINGS: Final = 10_000
"""Faults of one plan that are named one by one; the number of further ones is reported."""


def operation_findings(
    operations: Collection[PlannedOperation], schema: DestinationSchema, *, planning: bool = False
) -> list[Finding]:
    """What is wrong with these operations, in their order, collisions last; empty = may be applied.

    Of each of the two at most :data:`MAX_FINDINGS` are named; then the last finding says how many more there are.

    Args:
        operations: all operations of one plan; gone through once more where objects may collide.
        schema: the destination's schema now.
        planning: True when the plan is being made, see :func:`operation_faults`.
    """
    search = CollisionSearch(schema)
    findings: list[Finding] = []
    more = 0
    for operation in operations:
        for fault in operation_faults(operation, schema, planning=planning):
            if len(findings) < MAX_FINDINGS:
                findings += fault.findings
            else:
                more += 1
        search.look_at(operation)
    collisions, colliding = search.refusals(operations)
    findings += [finding for refusal in collisions for finding in refusal.findings]
    return findings + _further(more, colliding)


def _further(faults: int, colliding: int) -> list[Finding]:
    if not faults and not colliding:
        return []
    refusal = FurtherFaultsError(
        checked="all operations of the plan",
        expected="no fault in any of them",
        found=f"besides those that are named, {faults:,} faults of single operations, and {colliding:,} operations "
        "that share a key with another one",
        next_action="fix the first faults: many faults usually have few causes; then make a new plan",
    )
    return list(refusal.findings)


def operation_faults(
    operation: PlannedOperation, schema: DestinationSchema, *, planning: bool = False
) -> list[ApplyLedgerError]:
    """Return all faults of a single operation; nothing is raised.

    A recorded delete is never dispatched: its kind may be gone, and only secrets in its identity are faults.

    Args:
        operation: the operation.
        schema: the destination's schema.
        planning: a create whose key has an unusable value is then an ``UnkeyedCreateRefusedError`` (the plan is not
            proven, P56); otherwise the diagnostic ``UnaccountedIdentityComponentError`` stands by itself (P50).
    """
    if operation.action == "delete":
        known = schema.kinds.get(operation.kind, Kind(kind=operation.kind))
        return check_operation_values(operation, known, schema=schema)
    faults: list[ApplyLedgerError] = []
    try:
        kind = require_known_kind(operation, schema)
    except ApplyLedgerError as exc:
        return [exc]
    checks = (prove_create_key,) if planning else (check_key_coverage, check_key_values)
    for check in checks:
        try:
            check(operation, kind, schema=schema)
        except ApplyLedgerError as exc:
            faults.append(exc)
    return faults + check_operation_values(operation, kind, schema=schema)


def unsent_nulls(operation: PlannedOperation, kind: Kind) -> tuple[str, ...]:
    """Null optional cardinality-one relationships in the payload: left out of the write, with a warning (P88 to P90).

    The plan format cannot say "clear this peer", so a field named here must not be claimed as cleared (P91).
    """
    payload = operation.payload or {}
    return tuple(sorted(name for name in payload if payload[name] is None and name in kind.relationships))
