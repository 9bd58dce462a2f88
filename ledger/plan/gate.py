"""The checks of all operations at once: keys, schema, values, secrets, collisions (P52, C52, design 7.4).

The plan maker asks when a plan is made, the writer asks again before its first write (the schema may have changed, and
a plan may have been made elsewhere). The write surface asks :func:`operation_faults` for each operation. One set of
functions, so that the three never disagree (P63).
"""

from __future__ import annotations

from collections.abc import Iterable

from ledger.errors import ApplyLedgerError, Finding
from ledger.plan.collision import CollisionIndex
from ledger.plan.keying import check_key_coverage, check_key_values, prove_create_key
from ledger.plan.model import PlannedOperation
from ledger.plan.values import check_operation_values, require_known_kind
from ledger.schema import DestinationSchema, Kind


def operation_findings(
    operations: Iterable[PlannedOperation], schema: DestinationSchema, *, planning: bool = False
) -> list[Finding]:
    """Everything that is wrong with these operations, in their order, collisions last; empty = may be applied.

    Args:
        operations: all operations of one plan; read once.
        schema: the destination's schema now.
        planning: True when the plan is being made, see :func:`operation_faults`.
    """
    index = CollisionIndex(schema)
    faults: list[ApplyLedgerError] = []
    for operation in operations:
        faults += operation_faults(operation, schema, planning=planning)
        index.add_operation(operation)
    faults += index.collisions()
    return [finding for fault in faults for finding in fault.findings]


def operation_faults(
    operation: PlannedOperation, schema: DestinationSchema, *, planning: bool = False
) -> list[ApplyLedgerError]:
    """Everything that is wrong with one operation by itself; nothing is raised.

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
