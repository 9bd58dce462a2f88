"""Writing an export: the events, the runs, and every plan with its account, in bounded memory."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ledger.audit.bodies import parsed_object
from ledger.audit.errors import ExportExistsError
from ledger.audit.export import layout
from ledger.audit.export.columns import EVENTS, RUNS
from ledger.audit.export.layout import (
    EVENTS_IN_A_GROUP,
    ExportedFile,
    ExportManifest,
    file_record,
    files_below,
    write_manifest,
)
from ledger.audit.export.runs_table import RUNS_IN_A_GROUP
from ledger.audit.export.tables import event_columns, write_operations_table
from ledger.audit.replay import replay_record
from ledger.commit import utc_text
from ledger.events import Cut, PlanRefused, RunStarted, StoredEvent
from ledger.plan.files import DurableFile, write_durably, write_failures_of
from ledger.plan.plan_table import write_plan_table, write_table
from ledger.store.ledger import Ledger
from ledger.store.records import BindingRow

Progress = Callable[[int, int], None]


@dataclass(slots=True)
class _Seen:
    """What the events name that stands elsewhere."""

    runs: list[str]
    details: list[str]


async def export_binding(
    ledger: Ledger,
    row: BindingRow,
    root: Path,
    *,
    program: str | None = None,
    group: int = EVENTS_IN_A_GROUP,
    lines: bool = True,
    progress: Progress | None = None,
) -> ExportManifest:
    """Export one binding up to its head as it was in ``row``.

    Args:
        ledger: open, with any role that may read.
        row: the binding.
        root: a folder that is not there yet, or is empty.
        program: name and version of what exports; this program's own unless told.
        group: events in a row group of the Parquet file.
        lines: whether the events are written as NDJSON as well.
        progress: called now and then with events done and events in all, also behind the last event; what it raises
            ends the export.

    Raises:
        ExportExistsError: something is in the folder.
        PlanWriteFailedError: the operating system refused.
        StoreError: the database cannot be read.
    """
    _make_folder(root)
    tell = partial(progress or _told_nobody, row.head_position, row.head_position)
    seen = await _events(ledger, row, root, group, lines=lines, progress=progress)
    plans = await _runs(ledger, row, root, seen.runs)
    for checksum in plans:
        await _plan(ledger, root, checksum, tell)
    write_operations_table(root, plans, tell=tell)
    for sha256 in seen.details:
        await _detail(ledger, root, sha256)
    await _checkpoint(ledger, row, root)
    manifest = ExportManifest(
        program=program or f"apply-ledger {version('apply-ledger')}",
        url=row.url,
        branch=row.branch,
        exported_at=utc_text(datetime.now(UTC)),
        events=row.head_position,
        head_position=row.head_position,
        head_hash=row.head_hash.hex(),
        events_in_a_row_group=group,
        plans=list(plans),
        files=[_file(root, path, tell) for path in files_below(root)],
    )
    write_manifest(root, manifest)
    return manifest


def _told_nobody(_done: int, _total: int) -> None:
    """Where nobody wants to know."""


def _file(root: Path, path: Path, tell: Callable[[], None]) -> ExportedFile:
    tell()
    return file_record(root, path)


def _make_folder(root: Path) -> None:
    with write_failures_of(root):
        root.mkdir(parents=True, exist_ok=True)
        if any(root.iterdir()):
            raise ExportExistsError(
                checked=f"the folder {root}",
                expected="an empty one, or none",
                found="files in it",
                next_action="name another folder; an export is never written over another one",
            )


async def _events(
    ledger: Ledger, row: BindingRow, root: Path, group: int, *, lines: bool, progress: Progress | None
) -> _Seen:
    seen = _Seen([], [])
    known: set[str] = set()
    with DurableFile(root / layout.EVENTS_TABLE) as table, DurableFile(root / layout.EVENTS_LINES) as text:
        with pq.ParquetWriter(table.file, EVENTS, compression="zstd") as writer:
            async for events in _groups(ledger.events(row.id, until=row.head_position), group):
                writer.write_table(pa.Table.from_pydict(event_columns(events), schema=EVENTS), row_group_size=group)
                for event in events:
                    _look(event, seen, known)
                    if lines:
                        text.file.write(event_line(event))
                if progress:
                    progress(events[-1].position, row.head_position)
        table.commit()
        if lines:
            text.commit()
    return seen


def event_line(event: StoredEvent) -> bytes:
    """The line of an event in the NDJSON file: the record that ``replay`` shows."""
    return json.dumps(replay_record(event), ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


async def _groups(events: AsyncIterator[StoredEvent], size: int) -> AsyncIterator[list[StoredEvent]]:
    some: list[StoredEvent] = []
    async for event in events:
        some.append(event)
        if len(some) == size:
            yield some
            some = []
    if some:
        yield some


def _look(event: StoredEvent, seen: _Seen, known: set[str]) -> None:
    if event.kind == "plan.committed" and event.run_id is not None and event.run_id not in known:
        known.add(event.run_id)
        seen.runs.append(event.run_id)
    if event.kind in ("plan.refused", "run.started"):
        model = PlanRefused if event.kind == "plan.refused" else RunStarted
        try:
            cut: Cut | None = model.model_validate_json(event.body).cut
        except ValueError:
            return  # an export carries whatever is there; verifying it says so
        if cut is not None and cut.sha256 not in seen.details:
            seen.details.append(cut.sha256)


async def _runs(ledger: Ledger, row: BindingRow, root: Path, runs: Sequence[str]) -> list[str]:
    """Write the table of runs; returns the checksums of their plans, each once, in order."""
    records, plans = [], set()
    for run_id in runs:
        record = await _run(ledger, row, run_id)
        records.append(record)
        if record["stored_checksum"] is not None:
            plans.add(record["stored_checksum"])
    write_table(root / layout.RUNS_TABLE, records, RUNS, group=RUNS_IN_A_GROUP)
    return sorted(plans)


async def _run(ledger: Ledger, row: BindingRow, run_id: str) -> dict[str, Any]:
    order = await ledger.committed_order(row.id, run_id)
    artifact = await ledger.stored_artifact(row.id, run_id)
    commit = {} if order is None else (parsed_object(order.body) or {})
    return {
        "run_id": run_id,
        **{name: commit.get(name) for name in ("actor", "reason", "committed_at", "operations_count")},
        "source": None if order is None else order.source,
        "committed_position": None if order is None else order.position,
        "commit_id": None if order is None else order.commit_id,
        "plan_checksum": None if order is None else order.plan_checksum,
        "artifact_digest": None if order is None else order.artifact_digest,
        "commit": None if order is None else order.body.decode(),
        "stored_checksum": None if artifact is None else artifact.checksum,
        "stored_source": None if artifact is None else artifact.source,
        "stored_digest": None if artifact is None else artifact.digest,
        "manifest": None if artifact is None else artifact.manifest,
    }


async def _plan(ledger: Ledger, root: Path, checksum: str, tell: Callable[[], None]) -> None:
    folder = root / layout.PLANS / checksum
    with write_failures_of(folder):
        folder.mkdir(parents=True)
    plan = await ledger.plan(checksum)
    if plan is None:
        return  # verifying the export says so
    write_durably(folder / layout.PLAN_BODY, plan.body)
    await _lines(folder / layout.PLAN_OPERATIONS, ledger.stored_plan(checksum))
    if plan.coverage_count is not None:
        await _lines(folder / layout.PLAN_COVERAGE, ledger.stored_coverage(checksum))
    tell()
    write_plan_table(folder, folder / layout.PLAN_OPERATIONS, folder / layout.PLAN_COVERAGE, tell=tell)


async def _lines(path: Path, lines: AsyncIterator[bytes]) -> None:
    with DurableFile(path) as durable:
        async for line in lines:
            with write_failures_of(path):
                durable.file.write(line)
        durable.commit()


async def _detail(ledger: Ledger, root: Path, sha256: str) -> None:
    data = await ledger.detail(sha256)
    if data is not None:
        folder = root / layout.DETAILS
        with write_failures_of(folder):
            folder.mkdir(exist_ok=True)
        write_durably(folder / sha256, data)


async def _checkpoint(ledger: Ledger, row: BindingRow, root: Path) -> None:
    """The newest note that this export extends."""
    last = await ledger.last_checkpoint(row.id)
    note = None if last is None else (parsed_object(last.body) or {}).get("note")
    if last is not None and last.position <= row.head_position and isinstance(note, str):
        write_durably(root / layout.CHECKPOINT, note.encode())
