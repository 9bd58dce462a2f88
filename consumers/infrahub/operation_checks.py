"""Checks of the write surface before anything is sent: those of planning, against the live schema (P63).

They are the plan maker's own functions, so that a hand-made plan and a schema that changed since planning are refused
for the same reasons, and nothing is sent for such an operation (P29, P65).
"""

from __future__ import annotations

from collections.abc import Callable

from consumers.infrahub.refusals import ActionNeverDispatchedError, UnkeyedUpdateRefusedError, refusal
from ledger.errors import ApplyLedgerError
from ledger.plan.canonical import canonical_value
from ledger.plan.errors import PlanArtifactError
from ledger.plan.keying import check_key_coverage, check_key_values
from ledger.plan.model import PlannedOperation
from ledger.plan.values import check_operation_values, require_known_kind
from ledger.schema import DestinationSchema, Kind


def checked_kind(operation: PlannedOperation, schema: DestinationSchema) -> Kind:
    """The kind that an operation writes.

    Raises:
        ActionNeverDispatchedError: a delete (P145).
        UnkeyedUpdateRefusedError: an update without a recorded id (P34).
        SchemaMismatchError: the live schema has no such node kind.
    """
    if operation.action == "delete":
        raise ActionNeverDispatchedError(
            checked=f"delete {operation.operation_id} of {operation.kind}",
            expected="a create or an update: deletes are recorded, never executed",
            found="a delete handed to the write surface",
            next_action="record it as skipped; remove the object at the destination by hand where that is wanted",
        )
    if operation.action == "update" and operation.destination_id is None:
        raise UnkeyedUpdateRefusedError(
            checked=f"update {operation.operation_id} of {operation.kind}",
            expected="the destination id recorded when the plan was made",
            found="none",
            next_action="make a fresh plan",
        )
    try:
        return require_known_kind(operation, schema)
    except PlanArtifactError as exc:
        raise refusal([exc], operation_id=operation.operation_id) from exc


def refuse_faults(operation: PlannedOperation, kind: Kind, schema: DestinationSchema) -> None:
    """Refuse an operation with anything wrong in its key, fields or values; all faults are named (G11).

    Raises:
        OperationRefusedError: in the form of the first fault: values without a form on the wire, key coverage (4a), key
            values (4b), then the rest.
    """
    faults: list[ApplyLedgerError] = []
    for name, value in (operation.payload or {}).items():
        faults += _raised(canonical_value, value, kind=operation.kind, field=name)
    if not faults:
        faults += _raised(check_key_coverage, operation, kind)
        faults += _raised(check_key_values, operation, kind)
        faults += check_operation_values(operation, kind, schema=schema)
    if faults:
        raise refusal(faults, operation_id=operation.operation_id)


def _raised(check: Callable[..., object], *arguments: object, **named: object) -> list[PlanArtifactError]:
    try:
        check(*arguments, **named)
    except PlanArtifactError as exc:
        return [exc]
    return []
