"""Snapshots of a side in Parquet: columns from the model, a digest over logical rows, a read-back (A74 to A76, FF04).

The digest is the sha256 over each row's canonical bytes, rows in file order, joined by one line feed; ``_extract_ts``
is left out, because it differs in each run (A75). A column has one type for all rows. Anything that the type would
change is refused; a field whose values have several types is kept as canonical JSON text. Absent and null are both
null in a column: a snapshot binds a plan to what was read, the plan itself keeps the two apart.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Any, Final, Self

import pyarrow as pa
import pyarrow.parquet as pq

from ledger.plan.canonical import canonical_json_bytes, canonical_json_text, canonical_value, is_plain
from ledger.plan.errors import (
    SnapshotCorruptError,
    SnapshotReadBackError,
    SnapshotValueError,
)
from ledger.plan.files import DurableFile, write_failures_of
from ledger.plan.layout import shown
from ledger.plan.model import SourceSnapshotRecord
from ledger.plan.snapshot_digest import EXTRACT_COLUMN, snapshot_digest

SOURCE_ID_COLUMN: Final = "_source_id"
TOMBSTONE_COLUMN: Final = "_tombstone"
BATCH_ROWS: Final = 10_000
"""Rows that are written at once; no part of the format."""


class ColumnType(Enum):
    """What one column holds. ``JSON`` is canonical JSON text, for nested values and for fields of several types."""

    TEXT = "text"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    JSON = "json"


_ARROW: Final = {
    ColumnType.TEXT: pa.string(),
    ColumnType.INTEGER: pa.int64(),
    ColumnType.NUMBER: pa.float64(),
    ColumnType.BOOLEAN: pa.bool_(),
    ColumnType.JSON: pa.string(),
}
_PYTHON: Final[Mapping[ColumnType, type]] = {
    ColumnType.TEXT: str,
    ColumnType.INTEGER: int,
    ColumnType.NUMBER: float,
    ColumnType.BOOLEAN: bool,
}
_INT64: Final = range(-(2**63), 2**63)


class EncodedCell(str):
    """Canonical JSON text for a column of type ``JSON``, encoded by the caller: one value may stand in many rows."""

    __slots__ = ()

    @classmethod
    def of(cls, value: Any, *, kind: str, field: str) -> EncodedCell:
        """The cell of a value.

        Raises:
            UnserializablePayloadValueError: a value without a canonical form.
        """
        return cls(canonical_json_text(canonical_value(value, kind=kind, field=field)))


class SnapshotWriter:
    """Writes one kind's rows to a snapshot, a batch at a time.

    A ``with`` block that ends without :meth:`close` leaves no file behind.

    Args:
        path: ``<run directory>/A/<kind>.parquet``; the directory must exist.
        kind: the kind, for messages.
        columns: the fields of the model and their types; a row may have no other field.
        extracted_at: when the side was read; the same for all rows, by default now.
    """

    def __init__(
        self,
        path: Path,
        *,
        kind: str,
        columns: Mapping[str, ColumnType],
        extracted_at: datetime | None = None,
    ) -> None:
        reserved = {SOURCE_ID_COLUMN, TOMBSTONE_COLUMN, EXTRACT_COLUMN} & columns.keys()
        if reserved:
            raise _value_error(kind, ", ".join(sorted(reserved)), "fields of other names", "a name of our own columns")
        self._path = path
        self._kind = kind
        self._columns = dict(columns)
        # In the order of the digest, which sorts each row again: what is sorted already is sorted fast.
        self._cells = [(name, type_, type_ is ColumnType.TEXT) for name, type_ in sorted(columns.items())]
        self._extracted_at = extracted_at if extracted_at is not None else datetime.now(UTC)
        self._schema = _schema(columns)
        self._rows: list[dict[str, Any]] = []
        self._count = 0
        self._digest = hashlib.sha256()
        self._durable = DurableFile(path)
        self._parquet = pq.ParquetWriter(self._durable.file, self._schema)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.discard()

    def discard(self) -> None:
        """Give up; a file that :meth:`close` finished stays."""
        # The footer goes to a file that is about to vanish; a full disk must not hide why it does.
        with contextlib.suppress(OSError, ValueError):
            self._parquet.close()
        self._durable.discard()

    def write(self, source_id: str, row: Mapping[str, Any], *, tombstone: bool = False) -> None:
        """Add one row.

        Args:
            source_id: the row's key at its side.
            row: field to value; a column that the row lacks is null.
            tombstone: whether the row says that the object is gone.

        Raises:
            SnapshotValueError: a field without a column, or a value that its column would change; names both.
            UnserializablePayloadValueError: a value without a canonical form.
        """
        if not row.keys() <= self._columns.keys():
            names = ", ".join(sorted(shown(name) for name in row.keys() - self._columns.keys()))
            raise _value_error(self._kind, names, "a field of the model", "a field without a column")
        stored = {
            # Most cells are empty or plain text; asking the column for each costs more than all else that is done here.
            name: value
            if (value := row.get(name)) is None or (is_text and type(value) is str and is_plain(value))
            else self._cell(name, type_, value)
            for name, type_, is_text in self._cells
        }
        stored[SOURCE_ID_COLUMN] = (
            source_id
            if type(source_id) is str and is_plain(source_id)
            else self._cell(SOURCE_ID_COLUMN, ColumnType.TEXT, source_id)
        )
        stored[TOMBSTONE_COLUMN] = tombstone
        if self._count:
            self._digest.update(b"\n")
        self._digest.update(canonical_json_bytes(stored))
        self._count += 1
        self._rows.append(stored)
        if len(self._rows) >= BATCH_ROWS:
            self._flush()

    def _cell(self, name: str, type_: ColumnType, value: Any) -> Any:
        if value is None:
            return None
        if type(value) is EncodedCell and type_ is ColumnType.JSON:
            return str(value)
        canonical = canonical_value(value, kind=self._kind, field=name)
        if type_ is ColumnType.JSON:
            return canonical_json_text(canonical)
        if type(canonical) is not _PYTHON[type_]:
            raise _value_error(self._kind, name, f"a value of type {type_.value}", type(value).__name__)
        if type_ is ColumnType.INTEGER and canonical not in _INT64:
            raise _value_error(self._kind, name, "an integer of 64 bits", "a longer one")
        return canonical

    def _flush(self) -> None:
        """Write a batch, after proving column by column that Arrow holds the very same values."""
        columns = []
        for column in self._schema:
            name = column.name  # asking Arrow for it costs more than the cell itself
            if name == EXTRACT_COLUMN:
                columns.append(pa.repeat(pa.scalar(self._extracted_at, type=column.type), len(self._rows)))
                continue
            values = [row[name] for row in self._rows]
            array = pa.array(values, type=column.type)
            if array.to_pylist() != values:
                raise self._read_back_error(name, "other values")
            columns.append(array)
        with write_failures_of(self._path):
            self._parquet.write_batch(pa.record_batch(columns, schema=self._schema))
        self._rows.clear()

    def close(self) -> SourceSnapshotRecord:
        """Finish the file, read it back, and say what a manifest records of it.

        Raises:
            SnapshotReadBackError: the file on disk has other rows than were written; it is removed.
            PlanWriteFailedError: the file could not be written.
        """
        if self._rows:
            self._flush()
        with write_failures_of(self._path):
            self._parquet.close()
        self._durable.commit()
        self._durable.discard()
        try:
            digest, count = snapshot_digest(self._path)
        except SnapshotCorruptError as exc:
            self._path.unlink(missing_ok=True)
            raise self._read_back_error("any field", exc.found) from exc
        if (digest, count) != (self._digest.hexdigest(), self._count):
            lost = self._lost_columns()
            self._path.unlink(missing_ok=True)
            found = "a file without that column" if lost else f"{count} rows with another digest"
            raise self._read_back_error(lost or "any field", found)
        relative = f"{self._path.parent.name}/{self._path.name}"
        return SourceSnapshotRecord(path=relative, digest=digest, row_count=count)

    def _lost_columns(self) -> str:
        """The columns that the file on disk has not, or with another type."""
        stored = {(column.name, column.type) for column in pq.read_schema(self._path)}
        return ", ".join(column.name for column in self._schema if (column.name, column.type) not in stored)

    def _read_back_error(self, field: str, found: str) -> SnapshotReadBackError:
        return SnapshotReadBackError(
            checked=f"the snapshot of {self._kind}, {field}",
            expected=f"the {self._count} rows that were written",
            found=found,
            next_action="check the disk, and run the command again",
        )


def _schema(columns: Mapping[str, ColumnType]) -> pa.Schema:
    fields = [pa.field(name, _ARROW[type_]) for name, type_ in columns.items()]
    fields += [
        pa.field(SOURCE_ID_COLUMN, pa.string()),
        pa.field(TOMBSTONE_COLUMN, pa.bool_()),
        pa.field(EXTRACT_COLUMN, pa.timestamp("us", tz="UTC")),
    ]
    return pa.schema(fields)


def _value_error(kind: str, field: str, expected: str, found: str) -> SnapshotValueError:
    return SnapshotValueError(
        checked=f"the value of {kind}.{field}",
        expected=expected,
        found=found,
        next_action="correct the source or the mapping, or give the field a column of type json",
    )
