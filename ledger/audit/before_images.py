"""What stood at the destination before an operation, as the plan observed it (H16).

A coverage line has no index of its own, and needs none: coverage is ordered as operations are, by tier and identifier
(H24), so that a line is found in a few look-ups by its place, however long the account is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ledger.audit.bodies import parsed_object
from ledger.plan.asserted import coverage_order
from ledger.store.ledger import Ledger


async def coverage_of(
    ledger: Ledger, checksum: str, operation: Mapping[str, Any], *, ordinal: int = 0
) -> dict[str, Any] | None:
    """The coverage record of an operation of a stored plan.

    Args:
        ledger: open, with any role that may read.
        checksum: of the plan.
        operation: its record, as parsed.
        ordinal: its place among the operations, where that is known. Only what has no operation can stand between, so
            its account stands no further behind that place than there are such lines.

    Returns:
        The record; None where the plan recorded no coverage, or none that is ordered and says what this one asks for.
    """
    plan = await ledger.plan(checksum)
    wanted = coverage_order(operation)
    if plan is None or not plan.coverage_count or wanted is None:
        return None
    low, high = 0, plan.coverage_count
    guess, furthest = min(ordinal, high - 1), ordinal + high - plan.operations_count
    while low < high:
        record = await _record(ledger, checksum, guess)
        order = None if record is None else coverage_order(record)
        if record is None or order is None:
            return None
        if order == wanted and record.get("operation_id") == wanted[1]:
            return record
        low, high = (guess + 1, high) if order < wanted else (low, guess)
        guess = (low + (min(high, furthest + 1) if low <= furthest else high)) // 2
    return None


async def _record(ledger: Ledger, checksum: str, ordinal: int) -> dict[str, Any] | None:
    line = await ledger.coverage_line(checksum, ordinal)
    return None if line is None else parsed_object(line)
