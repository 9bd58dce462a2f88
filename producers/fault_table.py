"""``errors.parquet``: every fault of a run as a row, written only when there are any (C5)."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ledger.errors import Finding
from ledger.plan.files import write_durably

ERRORS_FILE = "errors.parquet"
_SCHEMA = pa.schema([pa.field(name, pa.string()) for name in Finding.model_fields])


def write_fault_table(run_dir: Path, findings: Sequence[Finding]) -> Path | None:
    """Write the findings in their order; None, and no file, when there are none."""
    if not findings:
        return None
    columns = {name: [getattr(finding, name) for finding in findings] for name in Finding.model_fields}
    buffer = BytesIO()
    pq.write_table(pa.table(columns, schema=_SCHEMA), buffer)
    path = run_dir / ERRORS_FILE
    write_durably(path, buffer.getvalue())
    return path
