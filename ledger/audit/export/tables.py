"""Rows of the tables of an export, made from what they are derived of: when they are written, and when checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC
from pathlib import Path
from typing import Any

from ledger.audit.export import layout
from ledger.audit.export.columns import EVENTS, OPERATIONS
from ledger.errors import ApplyLedgerError
from ledger.events import StoredEvent
from ledger.plan.asserted import old_and_new, with_coverage
from ledger.plan.canonical import canonical_json_text, object_key
from ledger.plan.plan_table import file_lines, write_table

OPERATIONS_IN_A_GROUP = 50_000


def event_columns(events: Sequence[StoredEvent]) -> dict[str, list[Any]]:
    """Events as the columns of their table."""
    columns: dict[str, list[Any]] = {name: [] for name in EVENTS.names}
    for name, values in zip(StoredEvent._fields, zip(*events, strict=True), strict=True):
        columns[name] = list(values)
    columns["event_id"] = [str(value) for value in columns["event_id"]]
    columns["recorded_at"] = [value.astimezone(UTC) for value in columns["recorded_at"]]
    columns["body"] = [value.decode("utf-8", errors="backslashreplace") for value in columns["body"]]
    return columns


def write_operations_table(root: Path, plans: Sequence[str], *, tell: Callable[[], None] | None = None) -> int:
    """Write the table of all operations, as :func:`~ledger.plan.plan_table.write_table` does."""
    path = root / layout.OPERATIONS_TABLE
    return write_table(path, operation_rows(root, plans), OPERATIONS, group=OPERATIONS_IN_A_GROUP, tell=tell)


def operation_rows(root: Path, plans: Sequence[str]) -> Iterator[dict[str, Any]]:
    """A row for each operation of each plan, from the plan's own files."""
    for checksum in plans:
        lines, coverage = (plan_lines(root, checksum, name) for name in (layout.PLAN_OPERATIONS, layout.PLAN_COVERAGE))
        for ordinal, (record, account) in enumerate(with_coverage(lines, coverage)):
            yield _operation_row(checksum, ordinal, record, account)


def plan_file(root: Path, checksum: str, name: str) -> Path | None:
    """A file of a plan; None where there is none that could be read as one."""
    return layout.regular_file(root, layout.PLANS, layout.digest_name(checksum), name)


def plan_lines(root: Path, checksum: str, name: str) -> Iterator[bytes]:
    """The lines of a file of a plan; none where there is no such file."""
    path = plan_file(root, checksum, name)
    return iter(()) if path is None else file_lines(path)


def _operation_row(
    checksum: str, ordinal: int, record: Mapping[str, Any], account: Mapping[str, Any] | None
) -> dict[str, Any]:
    old, new = old_and_new(record, account)
    identity, tier = record.get("identity"), record.get("tier")
    return {
        "plan_checksum": checksum,
        "ordinal": ordinal,
        **{name: _text(record.get(name)) for name in ("operation_id", "action", "kind", "destination_id")},
        "identity": canonical_json_text(identity) if isinstance(identity, Mapping) else None,
        "tier": tier if type(tier) is int else None,
        "object_key": _object_key(record),
        "old_value": old or None,
        "new_value": new or None,
    }


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _object_key(record: Mapping[str, Any]) -> str | None:
    kind, identity = record.get("kind"), record.get("identity")
    if not isinstance(kind, str) or not isinstance(identity, Mapping):
        return None
    try:
        return object_key(kind, identity).hex()
    except ApplyLedgerError:
        return None
