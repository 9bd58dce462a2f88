"""What stood at the destination before an operation, as the plan observed it (H16).

A coverage line has no index of its own, and needs none: coverage is ordered as operations are, by tier and identifier
(H24), so that a line is found in a few look-ups by its place, however long the account is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ledger.audit.bodies import parsed_object
from ledger.errors import ApplyLedgerError
from ledger.plan.canonical import operation_id
from ledger.store.ledger import Ledger

_Order = tuple[int, str]


async def coverage_of(ledger: Ledger, checksum: str, operation: Mapping[str, Any]) -> dict[str, Any] | None:
    """The coverage record of an operation of a stored plan.

    Returns:
        The record; None where the plan recorded no coverage, or none that is ordered and says what this one asks for.
    """
    plan = await ledger.plan(checksum)
    wanted = _order_of(operation)
    if plan is None or not plan.coverage_count or wanted is None:
        return None
    low, high = 0, plan.coverage_count
    while low < high:
        middle = (low + high) // 2
        record = await _record(ledger, checksum, middle)
        order = None if record is None else _order_of(record)
        if record is None or order is None:
            return None
        if order == wanted and record.get("operation_id") == wanted[1]:
            return record
        low, high = (middle + 1, high) if order < wanted else (low, middle)
    return None


def observed_values(coverage: Mapping[str, Any] | None) -> dict[str, Any]:
    """The values that were observed, of the fields that differed; empty where nothing is known of them."""
    differences = (coverage or {}).get("differences")
    if not isinstance(differences, Mapping):
        return {}
    return {
        name: difference["observed"]
        for name, difference in differences.items()
        if isinstance(difference, Mapping) and "observed" in difference
    }


async def _record(ledger: Ledger, checksum: str, ordinal: int) -> dict[str, Any] | None:
    line = await ledger.coverage_line(checksum, ordinal)
    return None if line is None else parsed_object(line)


def _order_of(record: Mapping[str, Any]) -> _Order | None:
    """Tier and identifier; what has no operation stands where the operation would."""
    tier, own = record.get("tier"), record.get("operation_id")
    action, kind, identity = record.get("action"), record.get("kind"), record.get("identity")
    if own is None and isinstance(action, str) and isinstance(kind, str) and isinstance(identity, Mapping):
        try:
            own = operation_id(action, kind, identity)
        except ApplyLedgerError:
            return None
    return (tier, own) if type(tier) is int and isinstance(own, str) else None
