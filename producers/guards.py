"""The row-count guard: a short answer of a source must not look like mass removal (FF02, design 4.13)."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from pathlib import PurePosixPath

from ledger.errors import Finding
from ledger.plan.model import SourceSnapshotRecord
from producers.errors import PlanRefusedError, RowCountDropError

MINIMUM_SHARE = 0.5
"""A kind with less than this share of its last applied rows blocks the plan."""


_NEXT = (
    "find out whether the source answered completely; if it has really shrunk, plan with --allow-rowcount-drop-of KIND "
    "for each such kind, or with --allow-rowcount-drop for all"
)


def require_no_rowcount_drop(
    rows: Mapping[str, int], baseline: Mapping[str, int] | None, *, allowed: Container[str] = ()
) -> None:
    """Compare the selected rows with those of the last applied plan of this source.

    Args:
        rows: selected rows per mapped kind; a kind that is not mapped any more is no subject.
        baseline: rows per kind of the last applied plan, or None if there is none.
        allowed: kinds that may have lost rows.

    Raises:
        PlanRefusedError: names every kind below half of its baseline (``--allow-rowcount-drop`` and
            ``--allow-rowcount-drop-of`` override, C55).
    """
    findings = [
        _finding(kind, rows[kind], before)
        for kind, before in sorted((baseline or {}).items())
        if kind in rows and rows[kind] < before * MINIMUM_SHARE and kind not in allowed
    ]
    if findings:
        raise PlanRefusedError(
            checked="the row counts of the source against the last applied plan",
            findings=findings,
            next_action=_NEXT,
        )


def _finding(kind: str, now: int, before: int) -> Finding:
    return Finding(
        name=RowCountDropError.__name__,
        checked=f"the rows of {kind}",
        expected=f"at least half of {before:,}",
        found=f"{now:,}",
        next_action=_NEXT,
    )


def rowcounts_of_snapshots(snapshots: Iterable[SourceSnapshotRecord]) -> dict[str, int]:
    """Row counts per kind from a manifest's ``source_snapshot``: the baseline for the next plan."""
    return {PurePosixPath(record.path).stem: record.row_count for record in snapshots}
