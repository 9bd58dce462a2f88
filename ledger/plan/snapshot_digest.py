"""The digest of a snapshot over its logical rows (A74, A75).

``sha256`` over each row's canonical bytes, rows in file order, joined by one line feed; ``_extract_ts`` is left out,
because it differs in each run. Files of other programs may hold any types and claims: the snapshots of a plan are read
in a process whose memory and time are limited (:mod:`ledger.plan.snapshot_process`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Final

import pyarrow.parquet as pq

from ledger.plan.canonical import canonical_json_bytes, canonical_value
from ledger.plan.errors import SnapshotCorruptError, UnserializablePayloadValueError
from ledger.plan.files import open_regular, unreadable
from ledger.plan.layout import REPLAN

EXTRACT_COLUMN: Final = "_extract_ts"
READ_ROWS: Final = 1_000
"""Rows in memory at once."""

MAX_ROWS: Final = 20_000_000
"""Rows of one snapshot. More are a claim: a few bytes can say that there are a quintillion."""

_BUFFER: Final = 1024 * 1024


def snapshot_digest(path: Path) -> tuple[str, int]:
    """Digest and number of the logical rows of a snapshot.

    Read in batches, so that memory does not grow with the file. A time is digested as its ISO text.

    Raises:
        PlanArtifactUnreadableError: there is no such file, or it must not be read.
        SnapshotCorruptError: the file is not a Parquet table, or a value has no canonical form.
        MemoryError: the table takes more memory than this process has.
    """
    digest = hashlib.sha256()
    count = 0
    for row in snapshot_rows(path):
        digest.update(b"\n" if count else b"")
        digest.update(_row_bytes(row, path))
        count += 1
    return digest.hexdigest(), count


def snapshot_rows(path: Path) -> Iterator[dict[str, Any]]:
    """The logical rows of a snapshot, a batch in memory at a time, without the time of reading.

    Raises:
        PlanArtifactUnreadableError, SnapshotCorruptError, MemoryError: see :func:`snapshot_digest`.
    """
    file = open_regular(path)
    if file is None:
        raise unreadable(path, "nothing")
    with file:
        yield from _rows(_opened(file, path), path)


def _opened(file: IO[bytes], path: Path) -> pq.ParquetFile:
    try:
        table = pq.ParquetFile(file, buffer_size=_BUFFER)
        rows, names = table.metadata.num_rows, table.schema_arrow.names
    except MemoryError:  # Arrow's own is one: what this process lacks is no fault of the file
        raise
    except Exception as exc:
        raise _corrupt(path, f"bytes that are not a Parquet table ({type(exc).__name__})") from exc
    if rows > MAX_ROWS:
        raise _corrupt(path, f"the claim of {rows:,} rows, and {MAX_ROWS:,} are the most")
    if len(set(names)) != len(names):
        raise _corrupt(path, "several columns of one name")
    return table


def _rows(table: pq.ParquetFile, path: Path) -> Iterator[dict[str, Any]]:
    try:
        for batch in table.iter_batches(batch_size=READ_ROWS, use_threads=False):
            kept = [index for index, name in enumerate(batch.schema.names) if name != EXTRACT_COLUMN]
            yield from batch.select(kept).to_pylist()
    except MemoryError:
        raise
    except Exception as exc:
        raise _corrupt(path, f"columns that cannot be read ({type(exc).__name__})") from exc


def _row_bytes(row: dict[str, Any], path: Path) -> bytes:
    try:
        return canonical_json_bytes(row)
    except (TypeError, ValueError):
        pass  # A time, a decimal or a value without canonical form: the slow way converts or names it.
    try:
        canonical = {name: canonical_value(value, kind=path.stem, field=name) for name, value in row.items()}
    except UnserializablePayloadValueError as exc:
        raise _corrupt(path, f"{exc.found} in {exc.checked}") from exc
    return canonical_json_bytes(canonical)


def _corrupt(path: Path, found: str) -> SnapshotCorruptError:
    return SnapshotCorruptError(
        checked=f"the snapshot {path.parent.name}/{path.name}",
        expected="a readable Parquet table",
        found=found,
        next_action=REPLAN,
    )
