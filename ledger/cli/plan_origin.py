"""What a saved plan was made from, as the run record beside it says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ledger.plan.review import PlanOrigin


def origin_of(run_dir: Path) -> PlanOrigin:
    """The configuration, overrides and rows of a run; empty where there is no usable ``run.json``."""
    from ledger.plan.review import EndpointCount, PlanOrigin
    from producers.errors import RunDirectoryError
    from producers.run_directory import read_run_record

    try:
        record = read_run_record(run_dir)
    except RunDirectoryError:
        return PlanOrigin()
    return PlanOrigin(
        configuration=record.configuration,
        location=record.source_location,
        overrides=record.source_settings,
        warnings=tuple(record.warnings),
        rows={name: EndpointCount(rows.read, rows.left_out) for name, rows in record.source_rows.items()},
    )
