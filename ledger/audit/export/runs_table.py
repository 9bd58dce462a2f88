"""The table of runs of an export: a row for each committed run, looked up by run and compared with the log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ledger.audit.export import layout
from ledger.audit.export.columns import RUNS
from ledger.audit.export.parquet import Table

MOST_IN_A_GROUP = 10_000
RUNS_IN_A_GROUP = 500
"""Each row holds a whole manifest."""


class RunsTable:
    """Rows by run id. In memory are the names, and the rows of one row group as they stand in the file.

    Of two rows of one run the first counts; that there are two, a verification says.

    Raises:
        ExportUnreadableError: there is no such table.
    """

    def __init__(self, root: Path) -> None:
        self._table = Table(root, layout.RUNS_TABLE, RUNS, group=MOST_IN_A_GROUP)
        self._places: dict[str, tuple[int, int]] = {}
        self._group: tuple[int, list[Any]] = (-1, [])
        try:
            for group in range(self._table.groups):
                names = [name for batch in self._table.batches([group], columns=["run_id"]) for name in _texts(batch)]
                for place, name in enumerate(names):
                    self._places.setdefault(name, (group, place))
        except BaseException:
            self.close()
            raise

    def row(self, run_id: str) -> Mapping[str, Any] | None:
        """The row of a run."""
        place = self._places.get(run_id)
        if place is None:
            return None
        group, number = place
        if self._group[0] != group:
            self._group = (group, list(self._table.batches([group], size=MOST_IN_A_GROUP)))
        for batch in self._group[1]:
            if number < batch.num_rows:
                row: Mapping[str, Any] = batch.slice(number, 1).to_pylist()[0]
                return row
            number -= batch.num_rows
        return None

    def rows(self) -> Iterator[Mapping[str, Any]]:
        """Every row but its manifest, in the order in which they stand."""
        for batch in self._table.batches(columns=[name for name in RUNS.names if name != "manifest"]):
            yield from batch.to_pylist()

    def close(self) -> None:
        """Close the file."""
        self._table.close()


def _texts(batch: Any) -> list[str]:
    names: list[str] = batch.column(0).to_pylist()
    return names
