"""Operation lines: each decoded strictly, validated once, and compared with the one before it (design 4.2)."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator

from pydantic import ValidationError

from ledger.plan.decode import decode_canonical_line
from ledger.plan.errors import (
    DuplicateOperationIdError,
    OperationOrderError,
    PlanArtifactError,
    PlanOperationInvalidError,
    TornPlanArtifactError,
    UnsupportedOperationActionError,
)
from ledger.plan.layout import OPERATIONS_FILE, REPLAN, shown
from ledger.plan.lines import FaultList, iter_lines, line_body
from ledger.plan.manifest import field_problems
from ledger.plan.model import ACTIONS, DECODED, PlannedOperation


def parse_operations(
    operations_bytes: bytes, *, format_version: int
) -> tuple[tuple[PlannedOperation, ...], tuple[bytes, ...]]:
    """All operations in stored order, and their exact lines.

    Raises:
        UnsupportedOperationActionError: an action outside the vocabulary; it takes precedence over other faults.
        TornPlanArtifactError: any other fault of a line, all of them named.
    """
    operations: list[PlannedOperation] = []
    lines = tuple(iter_lines(operations_bytes))
    faults = FaultList()
    unsupported = False
    order = _Order()
    with _no_cycle_search():
        for number, line in enumerate(lines, start=1):
            try:
                operation = _parse_line(line, number, format_version)
                operations.append(operation)
                order.check(operation, number)
            except PlanArtifactError as exc:
                unsupported = unsupported or isinstance(exc, UnsupportedOperationActionError)
                faults.add(exc)
    if faults.total:
        verdict = UnsupportedOperationActionError if unsupported else TornPlanArtifactError
        raise verdict(
            checked=f"the {len(lines)} lines of {OPERATIONS_FILE}",
            expected="canonical, valid, ordered operations",
            found=faults.summary(),
            next_action=REPLAN,
            faults=faults.findings,
        )
    return tuple(operations), lines


@contextlib.contextmanager
def _no_cycle_search() -> Iterator[None]:
    """Records of JSON have no cycles, and searching a growing heap for some takes half of the time of a big plan."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _what(number: int) -> str:
    return f"line {number} of {OPERATIONS_FILE}"


def _parse_line(line: bytes, number: int, format_version: int) -> PlannedOperation:
    # The name is only needed for a message, but a lazy one would cost more than it saves.
    what = _what(number)
    record = decode_canonical_line(line_body(line, what=what), what=what)
    try:
        operation = PlannedOperation.model_validate(record, context=DECODED)
    except ValidationError as exc:
        raise _invalid(record, exc, what) from None
    if operation.action == "update" and (operation.destination_id is None) != (format_version < 3):
        found = "none" if operation.destination_id is None else "one, which only format 3 has"
        raise PlanOperationInvalidError(
            checked=f"the destination_id of the update in {what}",
            expected="the id recorded for it" if format_version >= 3 else "none",
            found=found,
            next_action=REPLAN,
        )
    return operation


def _invalid(record: object, exc: ValidationError, what: str) -> PlanArtifactError:
    action = record.get("action") if isinstance(record, dict) else None
    if isinstance(action, str) and action not in ACTIONS:
        return UnsupportedOperationActionError(
            checked=f"the action of {what}",
            expected=f"one of {', '.join(ACTIONS)}",
            found=shown(action),
            next_action="apply the plan with a version that knows this action, or make a fresh plan",
        )
    return PlanOperationInvalidError(
        checked=what,
        expected="a record that keeps the rules of the format",
        found=field_problems(exc),
        next_action=REPLAN,
    )


class _Order:
    """Stored order is (tier, operation_id), each id once; it is checked, never made (A30, C14, C15)."""

    def __init__(self) -> None:
        self._last = (-1, "")
        self._seen: set[str] = set()

    def check(self, operation: PlannedOperation, number: int) -> None:
        """Compare an operation with those before it.

        Raises:
            DuplicateOperationIdError: the identifier occurred before.
            OperationOrderError: it belongs before the preceding line.
        """
        key = (operation.tier, operation.operation_id)
        last, self._last = self._last, key
        if operation.operation_id in self._seen:
            raise DuplicateOperationIdError(
                checked=_what(number),
                expected="each operation once",
                found=f"{operation.operation_id} a second time",
                next_action=REPLAN,
            )
        self._seen.add(operation.operation_id)
        if key < last:
            raise OperationOrderError(
                checked=_what(number),
                expected="operations ordered by tier and identifier",
                found=f"tier {operation.tier}, {operation.operation_id} after tier {last[0]}, {last[1]}",
                next_action=REPLAN,
            )
