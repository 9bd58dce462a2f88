"""Verifying an export: from its files alone, without a database and without this service.

Everything that is verified of a ledger is verified of an export. Besides: that the files are those of the manifest, and
that the tables which are only there to be queried say what the events and the plans say. Whoever made the export could
have made all of it anew; against that stands a checkpoint whose key the auditor has from elsewhere.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from ledger.audit.errors import ExportUnreadableError
from ledger.audit.export import layout
from ledger.audit.export.layout import digest_name, entries_below, file_record, files_below
from ledger.audit.export.logged_runs import ROW_OF_COMMIT, LoggedRuns
from ledger.audit.export.parquet import Table
from ledger.audit.export.reading import ExportedLedger
from ledger.audit.export.tables import operation_rows, plan_lines
from ledger.audit.export.writing import event_line
from ledger.audit.heads import TrustedCheckpoint, require_of_these, trusted_checkpoint
from ledger.audit.report import COMPARE, Level, LevelReport, VerifyReport
from ledger.audit.signed_note import MAX_NOTE_BYTES, VerifyingKey
from ledger.audit.verify import verify_binding
from ledger.binding import DestinationBinding
from ledger.errors import Finding
from ledger.plan.plan_table import PLAN_COLUMNS, PLAN_TABLE, ROWS_IN_A_GROUP, file_lines, plan_rows

Progress = Callable[[int, int], None]

_EXPORT_AGAIN = (
    "keep these files as they are; have the ledger exported again, and compare both:"
    " `apply-ledger verify --export AGAIN --against THESE`"
)


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
        CheckpointOfNoBindingError: a checkpoint is of another binding, and would be passed over in silence.
    """
    files = _files(root)
    exported = ExportedLedger(root)
    try:
        binding = DestinationBinding(url=exported.manifest.url, branch=exported.manifest.branch)
        row = await exported.binding(binding)
        own, note = _own_checkpoint(root, keys)
        require_of_these([*own, *checkpoints], [] if row is None else [row])
        report = await verify_binding(
            exported,
            binding,
            checkpoints=[*own, *checkpoints],
            progress=progress,
            keys=keys,
        )
        if note:
            report.level(Level.CHECKPOINTS).unchecked.append(note)
        logged, plans = LoggedRuns(exported), _plans_of(exported)
        tables = _tables(exported, logged, plans, report.events)
        _files_that_belong(exported, logged, plans, files)
        levels = (*report.levels, files, tables)
        for level in levels:
            level.findings = [_without_writers(finding) for finding in level.findings]
        return replace(report, levels=levels)
    finally:
        exported.close()


def _without_writers(finding: Finding) -> Finding:
    """Files have no writers that could be stopped; whoever made them can make them again."""
    return finding.model_copy(update={"next_action": _EXPORT_AGAIN}) if finding.next_action == COMPARE else finding


def _own_checkpoint(root: Path, keys: Sequence[VerifyingKey]) -> tuple[list[TrustedCheckpoint], str]:
    path = layout.regular_file(root, layout.CHECKPOINT)
    if path is None:
        return [], "the export holds no checkpoint"
    if not keys:
        return [], f"the signature of {layout.CHECKPOINT}: no public key was given (--key)"
    with path.open("rb") as file:
        return [trusted_checkpoint(file.read(MAX_NOTE_BYTES + 1), layout.CHECKPOINT, keys)], ""


def _files(root: Path) -> LevelReport:
    report = LevelReport(Level.FILES)
    listed = {file.path: file for file in layout.read_manifest(root).files}
    there = {path.relative_to(root).as_posix(): (path, regular) for path, regular in entries_below(root)}
    there.pop(layout.MANIFEST, None)
    for name in sorted(listed.keys() | there.keys()):
        report.checked += 1
        path, regular = there.get(name, (root, True))
        if not regular:
            _wrong_file(report, name, "a regular file, or a folder", "a link, or something else that is no file")
        elif name not in there:
            _wrong_file(report, name, f"a file with sha256 {listed[name].sha256}", "none")
        elif name not in listed:
            _wrong_file(report, name, "a file that the manifest lists", "another one")
        elif (found := file_record(root, path)) != listed[name]:
            expected = f"{listed[name].bytes:,} bytes with sha256 {listed[name].sha256}"
            _wrong_file(report, name, expected, f"{found.bytes:,} bytes with sha256 {found.sha256}")
    return report


def _wrong_file(report: LevelReport, name: str, expected: str, found: str) -> None:
    report.add("ExportFileMismatch", checked=f"the file {name}", expected=expected, found=found)


def _files_that_belong(exported: ExportedLedger, logged: LoggedRuns, plans: Sequence[str], report: LevelReport) -> None:
    """Whatever lies in an export is read by somebody, so nothing lies there that the log does not lead to."""
    belong = {
        layout.EVENTS_TABLE,
        layout.EVENTS_LINES,
        layout.RUNS_TABLE,
        layout.OPERATIONS_TABLE,
        layout.CHECKPOINT,
        *(f"{layout.PLANS}/{checksum}/{name}" for checksum in plans for name in layout.PLAN_FILES),
        *(f"{layout.DETAILS}/{sha256}" for sha256 in logged.details),
    }
    for path in files_below(exported.root):
        name = path.relative_to(exported.root).as_posix()
        if name not in belong:
            _wrong_file(report, name, "a file that an event, or the plan of a run, leads to", "another one")
    report.ended()


def _tables(exported: ExportedLedger, logged: LoggedRuns, plans: Sequence[str], events: int) -> LevelReport:
    """Make every derived row anew and compare; the first difference of each table is told."""
    report, root = LevelReport(Level.TABLES), exported.root
    rows = logged.rows()
    _compare(report, layout.RUNS_TABLE, map(_said, exported.runs.rows()), rows)
    deque(rows, maxlen=0)  # also behind a difference: which lists stand apart, all events together say
    _compare(report, layout.OPERATIONS_TABLE, exported.operations.records(), operation_rows(root, plans))
    for checksum in plans:
        name = f"{layout.PLANS}/{digest_name(checksum)}/{PLAN_TABLE}"
        lines, coverage = (plan_lines(root, checksum, part) for part in (layout.PLAN_OPERATIONS, layout.PLAN_COVERAGE))
        _compare(report, name, _plan_table(root, name), plan_rows(lines, coverage))
    if (path := layout.regular_file(root, layout.EVENTS_LINES)) is not None:
        _compare(report, layout.EVENTS_LINES, file_lines(path), map(event_line, exported.every_event()))
    manifest = exported.manifest
    _compare(report, f"the plans of {layout.MANIFEST}", manifest.plans, plans)
    _compare(report, f"the number of events in {layout.MANIFEST}", [manifest.events], [events])
    report.ended()
    return report


def _plans_of(exported: ExportedLedger) -> list[str]:
    """The checksums of the plans that runs were verified with; each is compared with its run when that is audited."""
    return sorted({row["stored_checksum"] for row in exported.runs.rows() if row["stored_checksum"] is not None})


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


def _plan_table(root: Path, name: str) -> Iterator[Mapping[str, Any]]:
    """The rows of a table that no other check needs, so that one that cannot be read is a table with another row."""
    try:
        table = Table(root, name, PLAN_COLUMNS, group=ROWS_IN_A_GROUP)
    except ExportUnreadableError:
        yield {}
        return
    with closing(table):
        try:
            yield from table.records()
        except ExportUnreadableError:
            yield {}


def _said(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in ROW_OF_COMMIT}
