"""An export as an audit reads it: the same questions as to a ledger, answered from files (``AuditSource``)."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

from ledger.audit.bodies import parsed_object
from ledger.audit.export import layout
from ledger.audit.export.columns import EVENTS, OPERATIONS
from ledger.audit.export.layout import digest_name, read_manifest, regular_file
from ledger.audit.export.parquet import Table
from ledger.audit.export.runs_table import RunsTable
from ledger.audit.export.tables import OPERATIONS_IN_A_GROUP, plan_file, plan_lines
from ledger.binding import DestinationBinding
from ledger.errors import ApplyLedgerError
from ledger.events import StoredEvent
from ledger.plan.canonical import object_key
from ledger.plan.files import read_regular
from ledger.plan.plan_table import file_lines
from ledger.store.audited_orders import AuditedOrder, UnorderedMark
from ledger.store.checkpoints import CheckpointMark
from ledger.store.records import BindingRow, CommittedOrder, PlanRows, StoredArtifact, StoredOperation, StoredPlan

_BINDING_ID = 1
MAX_PLAN_BODY = 256 * 1024 * 1024
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
        self._groups_of_run: dict[str, list[int]] = {}
        self._ends: list[int] = []
        self._last_epoch = 0
        with ExitStack() as opened:
            group = self.manifest.events_in_a_row_group
            self._events = opened.enter_context(closing(Table(root, layout.EVENTS_TABLE, EVENTS, group=group)))
            self.runs = opened.enter_context(closing(RunsTable(root)))
            self.operations = opened.enter_context(
                closing(Table(root, layout.OPERATIONS_TABLE, OPERATIONS, group=OPERATIONS_IN_A_GROUP))
            )
            self._index()
            self._opened = opened.pop_all()

    def close(self) -> None:
        """Close the files."""
        self._opened.close()

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
                writer_epoch=self._last_epoch,
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
        after: int,
        until: int,
    ) -> int | None:
        """How many rows stand at these positions, and how many in front of the first, which no append has made."""
        count = 0
        for batch in self._events.batches(columns=["position"]):
            positions = batch.column(0).to_pylist()
            count += sum(1 for position in positions if after < position <= until or position <= 0)
        return count

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
        row = self.runs.row(run_id)
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
        path = plan_file(self.root, checksum, layout.PLAN_BODY)
        body = None if path is None else read_regular(path, at_most=MAX_PLAN_BODY)
        if body is None:
            return None
        coverage = plan_file(self.root, checksum, layout.PLAN_COVERAGE)
        count = None if coverage is None else sum(1 for _ in file_lines(coverage))
        document = parsed_object(body) or {}
        operations = document.get("operations_count")
        # A digest beside the plan and a seal stand in the database alone; here they are what follows from the files.
        digest = None if coverage is None else _digest(coverage)
        return StoredPlan(checksum, body, operations if isinstance(operations, int) else -1, count, digest)

    async def stored_operations(self, checksum: str) -> AsyncIterator[StoredOperation]:
        """The lines of a plan. What stands beside a line is looked up nowhere here, so it is what the line says."""
        for line in plan_lines(self.root, checksum, layout.PLAN_OPERATIONS):
            record = parsed_object(line) or {}
            yield StoredOperation(line, str(record.get("operation_id")), _key(record))

    async def stored_coverage(self, checksum: str) -> AsyncIterator[bytes]:
        """The coverage lines of a plan."""
        for line in plan_lines(self.root, checksum, layout.PLAN_COVERAGE):
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
        row = self.runs.row(run_id)
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
        path = regular_file(self.root, layout.DETAILS, digest_name(sha256))
        return None if path is None else path.read_bytes()

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

    def audited_orders(self, binding_id: int) -> AsyncIterator[AuditedOrder] | None:  # noqa: ARG002 - as above
        """There is no inbox in an export; the commits in it stand with its runs."""
        return None

    async def unordered_marks(self, binding_id: int) -> list[UnorderedMark]:  # noqa: ARG002 - as above
        """There is no inbox."""
        return []

    async def unguarded_tables(self) -> list[str] | None:
        """There is no database whose triggers could be looked at."""
        return None

    async def rows_of_no_binding(self) -> list[tuple[str, int]] | None:
        """There is no database that could have others."""
        return None

    async def changed_functions(self) -> list[str] | None:
        """There is no database whose functions could be looked at."""
        return None

    async def missing_keys(self) -> list[tuple[str, str]] | None:
        """There is no database whose keys could be looked at."""
        return None

    def every_event(self, *, kinds: Collection[str] | None = None) -> Iterator[StoredEvent]:
        """All rows in the order in which they stand; of some kinds alone, where they are named."""
        for batch in self._events.batches():
            wanted = batch if kinds is None else batch.filter(pc.is_in(batch.column("kind"), pa.array(sorted(kinds))))
            yield from _events(wanted)

    def _index(self) -> None:
        """Which row groups hold events of which run, where each group ends, and the last epoch of a writer."""
        for group in range(self._events.groups):
            runs: set[str | None] = set()
            end = 0
            for batch in self._events.batches([group], columns=["run_id", "position", "writer_epoch"]):
                runs.update(batch.column("run_id").unique().to_pylist())
                end = max(end, *batch.column("position").to_pylist())
                epochs = [epoch or 0 for epoch in batch.column("writer_epoch").unique().to_pylist()]
                self._last_epoch = max(self._last_epoch, *epochs)
            self._ends.append(end)
            for run_id in runs - {None}:
                self._groups_of_run.setdefault(str(run_id), []).append(group)

    def _group(self, group: int, size: int) -> Iterator[StoredEvent]:
        for batch in self._events.batches([group], size=size):
            yield from _events(batch)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


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
