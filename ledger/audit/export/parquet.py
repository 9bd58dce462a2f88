"""Tables of an export, read as files of somebody else: by batches, whatever their own words say of their size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ledger.audit.errors import ExportUnreadableError
from ledger.audit.export.layout import regular_file, unreadable_export

BATCH = 5_000
_ARROW_ERRORS = (pa.ArrowException, OSError)


class Table:
    """An open table.

    Args:
        root: the folder of the export.
        name: of the file.
        columns: that it must have.
        group: rows that a row group has at most.

    Raises:
        ExportUnreadableError: it is missing, no such table, or has a larger row group than an export is written in.
    """

    def __init__(self, root: Path, name: str, columns: pa.Schema, *, group: int) -> None:
        self._root, self._name, self._columns = root, name, columns
        path = regular_file(root, *name.split("/"))
        if path is None:
            raise self._unreadable("a table in", "no such file")
        try:
            self._file = pq.ParquetFile(path)
        except _ARROW_ERRORS as exc:
            raise self._unreadable("a table in", str(exc)) from exc
        try:
            self._require_shape(group)
        except BaseException:
            self.close()
            raise

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return int(self._file.metadata.num_rows)

    @property
    def groups(self) -> int:
        """How many row groups it has."""
        return int(self._file.num_row_groups)

    def batches(
        self, groups: Sequence[int] | None = None, *, columns: Sequence[str] | None = None, size: int = BATCH
    ) -> Iterator[pa.RecordBatch]:
        """Rows in the order in which they stand, some at a time.

        Args:
            groups: only these row groups.
            columns: only these columns.
            size: rows at a time, at most.

        Raises:
            ExportUnreadableError: they cannot be read.
        """
        names = None if columns is None else list(columns)
        try:
            yield from self._file.iter_batches(size, row_groups=groups, columns=names)
        except _ARROW_ERRORS as exc:
            raise self._unreadable("rows of", str(exc)) from exc

    def records(self) -> Iterator[Mapping[str, Any]]:
        """Every row; raises as :meth:`batches`."""
        for batch in self.batches():
            yield from batch.to_pylist()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _require_shape(self, group: int) -> None:
        if not self._file.schema_arrow.equals(self._columns):
            raise self._unreadable("the columns of", "other columns")
        largest = max((self._file.metadata.row_group(at).num_rows for at in range(self.groups)), default=0)
        if largest > group:
            raise self._unreadable(f"at most {group:,} rows in a row group of", f"{largest:,}")

    def _unreadable(self, expected: str, found: str) -> ExportUnreadableError:
        return unreadable_export(self._root, f"{expected} {self._name}", found)
