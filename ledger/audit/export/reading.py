"""An export as an audit reads it: the same questions as to a ledger, answered from files (``AuditSource``)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq

from ledger.audit.bodies import parsed_object
from ledger.audit.export import layout
from ledger.audit.export.columns import EVENTS, OPERATIONS, RUNS
from ledger.audit.export.layout import read_manifest, unreadable_export
from ledger.binding import DestinationBinding
from ledger.errors import ApplyLedgerError
from ledger.events import StoredEvent
from ledger.plan.canonical import object_key
from ledger.plan.plan_table import file_lines
from ledger.store.checkpoints import CheckpointMark
from ledger.store.records import BindingRow, CommittedOrder, PlanRows, StoredArtifact, StoredOperation, StoredPlan

_BINDING_ID = 1
_MARKS = frozenset({"plan.sealed", "checkpoint.published"})


class ExportedLedger:
    """One exported binding. Files are read as they are asked for; nothing grows with the export but an index of runs.

    Args:
        root: the folder.

    Raises:
        ExportUnreadableError: a file is missing, or is no such table.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.manifest = read_manifest(root)
        self._events = _open(root, layout.EVENTS_TABLE, EVENTS)
        self._runs = {row["run_id"]: row for row in _rows(_open(root, layout.RUNS_TABLE, RUNS), root)}
        self.operations = _open(root, layout.OPERATIONS_TABLE, OPERATIONS)
        self._groups_of_run: dict[str, list[int]] = {}
        self._ends: list[int] = []
        self._index()

    @property
    def runs(self) -> list[dict[str, Any]]:
        """The rows of the table of runs."""
        return list(self._runs.values())

    def close(self) -> None:
        """Close the files."""
        self._events.close()
        self.operations.close()

    async def binding(self, binding: DestinationBinding) -> BindingRow | None:
        """The binding of this export, whatever spelling asks for it; None for another one."""
        normalised = binding.normalised()
        same = (normalised.url, normalised.branch) == (self.manifest.url, self.manifest.branch)
        return (await self.bindings())[0] if same else None

    async def bindings(self) -> list[BindingRow]:
        """The one binding."""
        return [
            BindingRow(
                id=_BINDING_ID,
                url=self.manifest.url,
                branch=self.manifest.branch,
                head_position=self.manifest.head_position,
                head_hash=bytes.fromhex(self.manifest.head_hash),
                writer_epoch=0,
                lease_owner=None,
                lease_host=None,
                lease_taken_at=None,
                lease_expires_in=None,
                in_flight=None,
                quiet_for=0.0,
            )
        ]

    async def events(
        self,
        binding_id: int,  # noqa: ARG002 - an export has one binding
        *,
        after: int = 0,
        until: int | None = None,
        run_id: str | None = None,
        page_size: int = 5000,
    ) -> AsyncIterator[StoredEvent]:
        """Events in the order in which they stand."""
        groups: Sequence[int] = range(len(self._ends)) if run_id is None else self._groups_of_run.get(run_id, ())
        for group in groups:
            if self._ends[group] <= after:
                continue
            for event in self._group(group, page_size):
                if event.position <= after or run_id not in (None, event.run_id):
                    continue
                if until is not None and event.position > until:
                    return
                yield event

    async def count_events(
        self,
        binding_id: int,  # noqa: ARG002 - an export has one binding
        *,
        after: int,  # noqa: ARG002 - its tables are compared with the events row by row
        until: int,  # noqa: ARG002
    ) -> int | None:
        """Rows of a file are read one behind the other, whatever their positions say."""
        return None

    async def checkpoint_marks(self, binding_id: int, *, after: int = 0, until: int) -> AsyncIterator[CheckpointMark]:
        """Seals and checkpoints in order."""
        async for event in self.events(binding_id, after=after, until=until):
            if event.kind in _MARKS:
                yield CheckpointMark(event.position, event.event_id, event.kind, event.recorded_at, event.body)

    async def stored_artifact(
        self,
        binding_id: int,  # noqa: ARG002 - an export has one binding
        run_id: str,
    ) -> StoredArtifact | None:
        """The manifest of a run; the time at which it was stored is not exported."""
        row = self._runs.get(run_id)
        if row is None or row["stored_checksum"] is None:
            return None
        return StoredArtifact(
            run_id=run_id,
            checksum=row["stored_checksum"],
            source=str(row["stored_source"]),
            manifest=row["manifest"] or b"",
            digest=str(row["stored_digest"]),
            stored_at=datetime.fromtimestamp(0, UTC),
        )

    async def plan(self, checksum: str) -> StoredPlan | None:
        """The head of a plan; the counts are those of its files."""
        folder = self._plan(checksum)
        try:
            body = (folder / layout.PLAN_BODY).read_bytes()
        except OSError:
            return None
        coverage = folder / layout.PLAN_COVERAGE
        count = sum(1 for _ in file_lines(coverage)) if coverage.exists() else None
        document = parsed_object(body) or {}
        operations = document.get("operations_count")
        return StoredPlan(checksum, body, operations if isinstance(operations, int) else -1, count)

    async def stored_operations(self, checksum: str) -> AsyncIterator[StoredOperation]:
        """The lines of a plan. What stands beside a line is looked up nowhere here, so it is what the line says."""
        for line in file_lines(self._plan(checksum) / layout.PLAN_OPERATIONS):
            record = parsed_object(line) or {}
            yield StoredOperation(line, str(record.get("operation_id")), _key(record))

    async def stored_coverage(self, checksum: str) -> AsyncIterator[bytes]:
        """The coverage lines of a plan."""
        for line in file_lines(self._plan(checksum) / layout.PLAN_COVERAGE):
            yield line

    async def plan_rows(self, checksum: str) -> PlanRows | None:  # noqa: ARG002 - the same of every plan
        """Lines of a file have no ordinals beside them."""
        return None

    async def committed_order(
        self,
        binding_id: int,  # noqa: ARG002 - an export has one binding
        run_id: str,
    ) -> CommittedOrder | None:
        """The inbox's row of a run's commit."""
        row = self._runs.get(run_id)
        if row is None or row["commit"] is None:
            return None
        return CommittedOrder(
            body=row["commit"].encode(),
            commit_id=str(row["commit_id"]),
            plan_checksum=str(row["plan_checksum"]),
            artifact_digest=str(row["artifact_digest"]),
            source=str(row["source"]),
            position=row["committed_position"] or 0,
        )

    async def detail(self, sha256: str) -> bytes | None:
        """A list that stands apart."""
        path = self.root / layout.DETAILS / _safe(sha256)
        return path.read_bytes() if path.is_file() else None

    async def live_cursor(
        self,
        projection: str,  # noqa: ARG002 - an export has no projections: they are made of events at any time
        version: int,  # noqa: ARG002
        binding_id: int,  # noqa: ARG002
    ) -> tuple[int, bytes] | None:
        """There is none."""
        return None

    async def count_live_documents(
        self,
        projection: str,  # noqa: ARG002 - as above
        version: int,  # noqa: ARG002
        binding_id: int,  # noqa: ARG002
    ) -> int:
        """There are none."""
        return 0

    async def live_documents(
        self,
        projection: str,  # noqa: ARG002 - as above
        version: int,  # noqa: ARG002
        binding_id: int,  # noqa: ARG002
    ) -> AsyncIterator[tuple[str, str, str]]:
        """There are none."""
        nothing: tuple[tuple[str, str, str], ...] = ()
        for document in nothing:
            yield document

    async def unguarded_tables(self) -> list[str] | None:
        """There is no database whose triggers could be looked at."""
        return None

    async def missing_keys(self) -> list[tuple[str, str]] | None:
        """There is no database whose keys could be looked at."""
        return None

    def event_groups(self) -> Iterator[list[StoredEvent]]:
        """All events, a row group at a time."""
        for group in range(len(self._ends)):
            yield list(self._group(group, self.manifest.events_in_a_row_group))

    def _plan(self, checksum: str) -> Path:
        return self.root / layout.PLANS / _safe(checksum)

    def _index(self) -> None:
        """Which row groups hold events of which run, and where each group ends."""
        for group in range(self._events.num_row_groups):
            table = self._read(group, ["run_id", "position"])
            self._ends.append(max(table["position"].to_pylist(), default=0))
            for run_id in table["run_id"].unique().to_pylist():
                if run_id is not None:
                    self._groups_of_run.setdefault(run_id, []).append(group)

    def _group(self, group: int, size: int) -> Iterator[StoredEvent]:
        for batch in self._read(group, EVENTS.names).to_batches(max_chunksize=size):
            yield from _events(batch)

    def _read(self, group: int, columns: list[str]) -> pa.Table:
        try:
            return self._events.read_row_group(group, columns=columns)
        except (pa.ArrowException, OSError) as exc:
            raise unreadable_export(self.root, f"row group {group} of {layout.EVENTS_TABLE}", str(exc)) from exc


def _safe(digest: str) -> str:
    """A digest out of a file becomes a path here, so it must be one."""
    return digest if len(digest) == 64 and digest.isascii() and digest.isalnum() else "none"


def _open(root: Path, name: str, columns: pa.Schema) -> pq.ParquetFile:
    try:
        file = pq.ParquetFile(root / name)
    except (pa.ArrowException, OSError) as exc:
        raise unreadable_export(root, f"a table in {name}", str(exc)) from exc
    if not file.schema_arrow.equals(columns):
        file.close()
        raise unreadable_export(root, f"the columns of {name}", "other columns")
    return file


def _rows(file: pq.ParquetFile, root: Path) -> list[dict[str, Any]]:
    try:
        with file:
            rows: list[dict[str, Any]] = file.read().to_pylist()
    except (pa.ArrowException, OSError) as exc:
        raise unreadable_export(root, layout.RUNS_TABLE, str(exc)) from exc
    return rows


def _events(batch: pa.RecordBatch) -> Iterator[StoredEvent]:
    columns = [batch.column(name).to_pylist() for name in StoredEvent._fields]
    places = {name: place for place, name in enumerate(StoredEvent._fields)}
    columns[places["event_id"]] = [_uuid(text) for text in columns[places["event_id"]]]
    columns[places["body"]] = [text.encode() for text in columns[places["body"]]]
    columns[places["recorded_at"]] = [moment.astimezone(UTC) for moment in columns[places["recorded_at"]]]
    return (StoredEvent._make(values) for values in zip(*columns, strict=True))


def _uuid(text: str) -> UUID:
    """What is no id hashes to nothing that was signed; the chain says so."""
    try:
        return UUID(text)
    except ValueError:
        return UUID(int=0)


def _key(record: dict[str, Any]) -> bytes:
    kind, identity = record.get("kind"), record.get("identity")
    try:
        return object_key(kind, identity) if isinstance(kind, str) and isinstance(identity, dict) else b""
    except ApplyLedgerError:
        return b""
