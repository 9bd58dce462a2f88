"""Verifying an export: from its files alone, without a database and without this service.

Everything that is verified of a ledger is verified of an export. Besides: that the files are those of the manifest, and
that the tables which are only there to be queried say what the events and the plans say. Whoever made the export could
have made all of it anew; against that stands a checkpoint whose key the auditor has from elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ledger.audit.bodies import parsed_object
from ledger.audit.export import layout
from ledger.audit.export.layout import file_record, files_below
from ledger.audit.export.reading import ExportedLedger
from ledger.audit.export.tables import operation_rows
from ledger.audit.export.writing import event_line
from ledger.audit.heads import TrustedCheckpoint, trusted_checkpoint
from ledger.audit.report import Level, LevelReport, VerifyReport
from ledger.audit.signed_note import VerifyingKey
from ledger.audit.verify import verify_binding
from ledger.binding import DestinationBinding
from ledger.plan.plan_table import PLAN_COLUMNS, PLAN_TABLE, file_lines, plan_rows

Progress = Callable[[int, int], None]

_BATCH = 5_000


async def verify_export(
    root: Path,
    keys: Sequence[VerifyingKey],
    *,
    checkpoints: Sequence[TrustedCheckpoint] = (),
    progress: Progress | None = None,
) -> VerifyReport:
    """Verify an export.

    Args:
        root: its folder.
        keys: public keys that are trusted; without any, the note inside the export is not looked at.
        checkpoints: signed heads that were kept elsewhere.
        progress: called now and then with events done and events in all.

    Raises:
        ExportUnreadableError: it cannot be read at all.
    """
    files = _files(root)
    exported = ExportedLedger(root)
    try:
        manifest = exported.manifest
        own, note = _own_checkpoint(root, keys)
        report = await verify_binding(
            exported,
            DestinationBinding(url=manifest.url, branch=manifest.branch),
            checkpoints=[*own, *checkpoints],
            progress=progress,
        )
        if note:
            report.level(Level.CHECKPOINTS).unchecked.append(note)
        return replace(report, levels=(*report.levels, files, _tables(exported)))
    finally:
        exported.close()


def _own_checkpoint(root: Path, keys: Sequence[VerifyingKey]) -> tuple[list[TrustedCheckpoint], str]:
    path = root / layout.CHECKPOINT
    if not path.is_file():
        return [], "the export holds no checkpoint"
    if not keys:
        return [], f"the signature of {layout.CHECKPOINT}: no public key was given (--key)"
    return [trusted_checkpoint(path.read_bytes(), layout.CHECKPOINT, keys)], ""


def _files(root: Path) -> LevelReport:
    report = LevelReport(Level.FILES)
    listed = {file.path: file for file in layout.read_manifest(root).files}
    there = {path.relative_to(root).as_posix(): path for path in files_below(root)}
    for name in sorted(listed.keys() | there.keys()):
        report.checked += 1
        if name not in there or name not in listed:
            expected, found = ("a file that the manifest lists", "another one")
            if name in listed:
                expected, found = f"a file with sha256 {listed[name].sha256}", "none"
            report.add("ExportFileMismatch", checked=f"the file {name}", expected=expected, found=found)
            continue
        found_file = file_record(root, there[name])
        if found_file != listed[name]:
            report.add(
                "ExportFileMismatch",
                checked=f"the file {name}",
                expected=f"{listed[name].bytes:,} bytes with sha256 {listed[name].sha256}",
                found=f"{found_file.bytes:,} bytes with sha256 {found_file.sha256}",
            )
    return report


def _tables(exported: ExportedLedger) -> LevelReport:
    """Make every derived row anew and compare; the first difference of each table is told."""
    report, root = LevelReport(Level.TABLES), exported.root
    plans = sorted({row["stored_checksum"] for row in exported.runs if row["stored_checksum"] is not None})
    _compare(report, layout.OPERATIONS_TABLE, _stored(exported.operations), operation_rows(root, plans))
    for checksum in plans:
        folder = root / layout.PLANS / checksum
        name = f"{layout.PLANS}/{checksum}/{PLAN_TABLE}"
        rows = plan_rows(file_lines(folder / layout.PLAN_OPERATIONS), file_lines(folder / layout.PLAN_COVERAGE))
        _compare(report, name, _plan_table(folder / PLAN_TABLE), rows)
    _compare(report, layout.RUNS_TABLE, (_said(row) for row in exported.runs), map(_committed, exported.runs))
    if (root / layout.EVENTS_LINES).is_file():
        events = (event_line(event) for group in exported.event_groups() for event in group)
        _compare(report, layout.EVENTS_LINES, file_lines(root / layout.EVENTS_LINES), events)
    return report


def _compare(report: LevelReport, name: str, found: Iterable[Any], expected: Iterable[Any]) -> None:
    for number, (one, other) in enumerate(zip_longest(found, expected)):
        report.checked += 1
        if one != other:
            report.add(
                "ExportTableMismatch",
                checked=f"row {number + 1:,} of {name}",
                expected="what the events and the plans say" if other is not None else "no more rows",
                found="another row" if one is not None else "no row",
            )
            return


def _stored(file: pq.ParquetFile) -> Iterator[Mapping[str, Any]]:
    try:
        for batch in file.iter_batches(batch_size=_BATCH):
            yield from batch.to_pylist()
    except (pa.ArrowException, OSError):
        yield {}


def _plan_table(path: Path) -> Iterator[Mapping[str, Any]]:
    try:
        with pq.ParquetFile(path) as file:
            if file.schema_arrow.equals(PLAN_COLUMNS):
                yield from _stored(file)
    except (pa.ArrowException, OSError):
        yield {}


_OF_COMMIT = ("source", "actor", "reason", "committed_at", "commit_id", "operations_count", "plan_checksum")


def _said(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in (*_OF_COMMIT, "artifact_digest")}


def _committed(row: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of a run that its commit says as well; that the commit is that of the log is verified before."""
    commit = parsed_object((row["commit"] or "{}").encode()) or {}
    return {name: commit.get(name) for name in (*_OF_COMMIT, "artifact_digest")}
