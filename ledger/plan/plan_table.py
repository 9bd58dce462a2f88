"""``plan.parquet``: one row for each change of a plan, for ad-hoc queries (C40 to C47).

It is derived from the operations and the account beside them and is read by nothing that applies a plan. Names, order
and types of the columns are those of infrahub-sync; what is reserved there is empty here. Old values are what the plan
observed of the fields that differ, new values what it asserts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ledger.plan.asserted import old_and_new, with_coverage
from ledger.plan.canonical import canonical_json_text
from ledger.plan.files import DurableFile

PLAN_TABLE = "plan.parquet"
PLAN_COLUMNS = pa.schema(
    [
        pa.field("action", pa.string(), nullable=False),
        pa.field("resource", pa.string(), nullable=False),
        pa.field("source_id", pa.string(), nullable=False),
        pa.field("dest_id", pa.string()),
        pa.field("attribute", pa.string()),
        pa.field("old_value", pa.string()),
        pa.field("new_value", pa.string()),
        pa.field("owner", pa.string()),
        pa.field("skip_reason", pa.string()),
        pa.field("conflict_class", pa.string()),
    ]
)
ROWS_IN_A_GROUP = 50_000
_KEY_SEPARATOR = "__"


def plan_rows(lines: Iterable[bytes], coverage: Iterable[bytes]) -> Iterator[dict[str, str]]:
    """The rows of the table, in the plan's order."""
    for record, account in with_coverage(lines, coverage):
        old, new = old_and_new(record, account)
        row = dict.fromkeys(PLAN_COLUMNS.names, "")
        identity = record.get("identity")
        row |= {
            "action": str(record.get("action")),
            "resource": str(record.get("kind")),
            "source_id": _unique_id(identity) if isinstance(identity, Mapping) else "",
            "old_value": old,
            "new_value": new,
        }
        yield row


def write_table(
    path: Path,
    rows: Iterable[Mapping[str, Any]],
    columns: pa.Schema,
    *,
    group: int,
    tell: Callable[[], None] | None = None,
) -> int:
    """Write a table in row groups of bounded size, durably; returns how many rows it has.

    Args:
        path: of the table.
        rows: one mapping a row.
        columns: of the table.
        group: rows in a row group.
        tell: called behind each row group; what it raises ends the writing, and no table is left.

    Raises:
        PlanWriteFailedError: the operating system refused.
    """
    left, count = iter(rows), 0
    with DurableFile(path) as durable:
        with pq.ParquetWriter(durable.file, columns, compression="zstd") as writer:
            while some := list(islice(left, group)):
                writer.write_table(pa.Table.from_pylist(some, schema=columns), row_group_size=group)
                count += len(some)
                if tell is not None:
                    tell()
        durable.commit()
    return count


def write_plan_table(run_dir: Path, operations: Path, coverage: Path, *, tell: Callable[[], None] | None = None) -> int:
    """Write ``plan.parquet`` into a folder from the files of a plan, as :func:`write_table` does."""
    rows = plan_rows(file_lines(operations), file_lines(coverage))
    return write_table(run_dir / PLAN_TABLE, rows, PLAN_COLUMNS, group=ROWS_IN_A_GROUP, tell=tell)


def file_lines(path: Path) -> Iterator[bytes]:
    """The lines of a file with their ends; one that is not there has none, because a plan may have no account."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return
    with file:
        yield from file


def _unique_id(identity: Mapping[str, Any]) -> str:
    """The key parts joined as DiffSync joins them; a part that is a reference by the key of its peer."""
    return _KEY_SEPARATOR.join(_key_part(value) for value in identity.values())


def _key_part(value: Any) -> str:
    if isinstance(value, Mapping) and isinstance(value.get("identity"), Mapping):
        return _unique_id(value["identity"])
    return value if isinstance(value, str) else canonical_json_text(value)
