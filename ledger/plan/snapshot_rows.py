"""Reads the rows of a snapshot back in their original form.

A column says only how its cells are stored; what a cell *is* follows from the field of the model: canonical JSON text
and ordinary text are both text in Parquet. One function tells both sides, so that what is written is what is read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ledger.plan.errors import SnapshotCorruptError
from ledger.plan.layout import REPLAN
from ledger.plan.snapshot import SOURCE_ID_COLUMN, TOMBSTONE_COLUMN, ColumnType
from ledger.plan.snapshot_digest import snapshot_rows
from ledger.plan.snapshot_process import read_apart
from ledger.schema import Attribute, Kind

_COLUMN_TYPES: Final[Mapping[str, ColumnType]] = {
    **dict.fromkeys(("Number", "NumberPool", "Bandwidth", "Integer"), ColumnType.INTEGER),
    **dict.fromkeys(("Boolean", "Checkbox"), ColumnType.BOOLEAN),
    **dict.fromkeys(("ID", "Text", "TextArea", "String", "Dropdown", "Color", "DateTime"), ColumnType.TEXT),
    **dict.fromkeys(("Email", "URL", "File", "MacAddress", "IPHost", "IPNetwork", "IPAddress"), ColumnType.TEXT),
}
"""Column type by attribute kind; every other kind (lists, JSON, unknown ones) is canonical JSON text."""


def column_type(attribute: Attribute | None) -> ColumnType:
    """How a field's values are kept; None is a field that is no attribute, a relationship."""
    return ColumnType.JSON if attribute is None else _COLUMN_TYPES.get(attribute.kind, ColumnType.JSON)


@dataclass(frozen=True, slots=True)
class SnapshotRow:
    """One row: the id of the object at its side, and its fields. Absent and null are both null here."""

    source_id: str
    fields: Mapping[str, Any]


def read_rows(path: Path, kind: Kind) -> Iterator[SnapshotRow]:
    """The rows of one kind's snapshot, in file order, without those that say that an object is gone.

    A file may be anybody's: it is read once in a process of limited memory and time before it is read here.

    Raises:
        PlanArtifactUnreadableError: it must not be read.
        SnapshotCorruptError: it is no snapshot, or a cell is not what its field holds.
        MachineShortageError: this machine could not start the reading process.
    """
    (reading,) = read_apart([path])
    if reading.problem:
        raise _corrupt(path, reading.problem)
    for row in snapshot_rows(path):
        source_id = row.pop(SOURCE_ID_COLUMN, None)
        if not isinstance(source_id, str):
            raise _corrupt(path, f"a row without {SOURCE_ID_COLUMN}")
        if not row.pop(TOMBSTONE_COLUMN, False):
            yield SnapshotRow(source_id, {name: _cell(path, kind, name, value) for name, value in row.items()})


def _cell(path: Path, kind: Kind, name: str, value: Any) -> Any:
    if value is None or column_type(kind.attributes.get(name)) is not ColumnType.JSON:
        return value
    try:
        return json.loads(value)
    except (TypeError, ValueError, RecursionError) as exc:
        raise _corrupt(path, f"a cell of {name} that is no JSON text") from exc


def _corrupt(path: Path, found: str) -> SnapshotCorruptError:
    return SnapshotCorruptError(
        checked=f"the snapshot {path.parent.name}/{path.name}",
        expected="the rows of one kind, as they were written",
        found=found,
        next_action=REPLAN,
    )
