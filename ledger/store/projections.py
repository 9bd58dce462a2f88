"""Projections in the database: followed page by page behind compare-and-set cursors, read, and rebuilt (G9).

Documents and cursor move in one transaction. A process that dies in between leaves both where they were; two that
follow at once collide on the cursor, and the one that lost reads again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from ledger.errors import ApplyLedgerError
from ledger.events import StoredEvent
from ledger.projections.binding_status import BINDINGS, BindingStatus
from ledger.projections.errors import ProjectionCollisionError, ProjectionDriftedError, ProjectionError
from ledger.projections.fold import Fold, Key, Projection, State
from ledger.projections.registry import PROJECTIONS
from ledger.projections.run_summary import RunOverview, RunSummary, summarise
from ledger.projections.runs import RUNS, OperationState, RunState
from ledger.store.bindings import stored_event
from ledger.store.connect import Limits
from ledger.store.errors import UnreadableValueError
from ledger.store.session import Session, transaction
from ledger.store.sql_files import query

LIVE = "live"
PAGE = 2000


@dataclass(frozen=True, slots=True)
class Place:
    """One set of documents: which projection, which slot, which binding."""

    projection: Projection
    binding_id: int
    slot: str = LIVE

    @property
    def arguments(self) -> tuple[str, int, str, int]:
        """The first arguments of the queries."""
        return (self.projection.name, self.projection.version, self.slot, self.binding_id)


@dataclass(frozen=True, slots=True)
class Cursor:
    """The last event taken, 0 before the first, and its hash."""

    position: int
    hash: bytes


class ProjectionStore:
    """The projections of one database. To follow and rebuild it needs the projector's DSN, to read any role's."""

    def __init__(self, session: Session) -> None:
        self.session = session

    @classmethod
    async def open(
        cls,
        dsn: str,
        *,
        application_name: str = "apply-ledger projections",
        limits: Limits | None = None,
        allow_unsafe_fsync: bool = False,
    ) -> Self:
        """Connect.

        Args:
            dsn: of the projector, or of a reader.
            application_name: as shown by the server.
            limits: time limits.
            allow_unsafe_fsync: for tests only: accept a server that runs without fsync.

        Raises:
            StoreError: as :meth:`ledger.store.ledger.Ledger.open`.
        """
        session = await Session.open(
            dsn,
            application_name=application_name,
            limits=limits or Limits(),
            connections=2,
            ask_again_for=15.0,
            allow_unsafe_fsync=allow_unsafe_fsync,
        )
        return cls(session)

    async def close(self) -> None:
        """Give the connections back."""
        await self.session.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def catch_up(self, *, page_size: int = PAGE) -> int:
        """Bring every projection of every binding to the head; returns how many events were taken.

        What is wrong with one binding does not keep the others from being followed; then it is raised.

        Raises:
            ProjectionDriftedError: the log does not go on where a projection stopped.
            ProjectionCollisionError: another projector kept moving the same cursor.
            UnreadableBodyError, UnreadableDocumentError, UnreadableValueError: something stored was edited.
            StoreError: the database.
        """
        taken = 0
        first: ApplyLedgerError | None = None
        for row in await self.session.rows("bindings", None, None, None):
            try:
                taken += await self._catch_up_binding(row, page_size)
            except (ProjectionError, UnreadableValueError) as exc:
                first = first or exc
        if first is not None:
            raise first
        return taken

    async def _catch_up_binding(self, row: Any, page_size: int) -> int:
        taken = 0
        for projection in PROJECTIONS:
            place = Place(projection, row["id"])
            reached, count = await self.follow(place, page_size=page_size)
            taken += count
            _require_same_log(place, reached, row["head_position"], row["head_hash"])
        return taken

    async def follow(self, place: Place, *, until: int | None = None, page_size: int = PAGE) -> tuple[Cursor, int]:
        """Take the events behind the cursor, up to ``until`` or the head, each page in one transaction.

        Returns:
            Where the cursor stands, and how many events were taken.
        """
        await self.session.run(
            lambda connection: connection.execute(query("ensure_projection_cursor"), *place.arguments),
            doing="the start of a projection",
        )
        taken = 0
        while True:
            cursor, count = await _while_others_collide(self._page, place, until, page_size)
            taken += count
            if count == 0:
                return cursor, taken

    async def run_summary(self, binding_id: int, run_id: str) -> RunSummary | None:
        """The summary of one run, as far as the projection has come; None for a run without events."""
        rows = await self.session.rows("documents_of_subject", RUNS.name, RUNS.version, binding_id, run_id)
        documents = {row["item"]: row["document"] for row in rows}
        run = documents.pop("", None)
        if run is None and not documents:
            return None
        state = RunState.read(run, binding_id, Key(run_id, "")) if run else RunState(run_id=run_id, position=0)
        return summarise(
            state,
            [OperationState.read(text, binding_id, Key(run_id, item)) for item, text in documents.items()],
        )

    async def runs(self, binding_id: int) -> list[RunOverview]:
        """All runs of a binding with their counts, in the order of their commits."""
        counts = {
            row["subject"]: row
            for row in await self.session.rows("outcome_counts", RUNS.name, RUNS.version, binding_id)
        }
        rows = await self.session.rows("documents_without_item", RUNS.name, RUNS.version, binding_id)
        found = [
            _overview(RunState.read(row["document"], binding_id, Key(row["subject"], "")), counts.get(row["subject"]))
            for row in rows
        ]
        return sorted(found, key=lambda overview: overview.run.first_position)

    async def binding_statuses(self, binding_ids: Sequence[int]) -> dict[int, BindingStatus]:
        """What the logs of bindings say about them, read at once; one without events is left out."""
        rows = await self.session.rows("documents_of_bindings", BINDINGS.name, BINDINGS.version, list(binding_ids))
        return {row["binding_id"]: BindingStatus.read(row["document"], row["binding_id"], Key("", "")) for row in rows}

    async def cursor(self, place: Place) -> Cursor | None:
        """Where a projection stands."""
        row = await self.session.row("projection_cursor", *place.arguments)
        return Cursor(row["position"], row["hash"]) if row else None

    async def events_behind(self) -> int:
        """How many events the projection that is furthest behind has not taken."""
        behind = 0
        for row in await self.session.rows("bindings", None, None, None):
            for projection in PROJECTIONS:
                reached = await self.cursor(Place(projection, row["id"]))
                behind = max(behind, row["head_position"] - (reached.position if reached else 0))
        return behind

    async def _page(self, place: Place, until: int | None, page_size: int) -> tuple[Cursor, int]:
        cursor = await self.cursor(place)
        if cursor is None:
            raise _collision(place)
        rows = await self.session.rows("events", place.binding_id, cursor.position, until, page_size)
        events = [stored_event(row) for row in rows]
        if not events:
            return cursor, 0
        _require_linked(place, cursor, events)
        reached = Cursor(events[-1].position, events[-1].hash)
        await self.session.run(
            lambda connection: _take(connection, place, cursor, reached, events), doing="the step of a projection"
        )
        return reached, len(events)


async def _while_others_collide(step: Any, *arguments: Any) -> Any:
    """Run a step again after a collision: the cursor is read anew then, so nothing is taken twice."""
    again = AsyncRetrying(
        retry=retry_if_exception_type(ProjectionCollisionError),
        stop=stop_after_attempt(10),
        wait=wait_random_exponential(multiplier=0.01, max=1.0),
        reraise=True,
    )
    return await again(step, *arguments)


async def _take(connection: Any, place: Place, cursor: Cursor, reached: Cursor, events: Sequence[StoredEvent]) -> None:
    """Move the cursor, then fold: whoever comes second waits at the cursor's row and finds it moved."""
    async with transaction(connection):
        moved = await connection.fetchval(
            query("move_projection_cursor"),
            *place.arguments,
            reached.position,
            reached.hash,
            cursor.position,
            cursor.hash,
        )
        if moved is None:
            raise _collision(place)
        steps = list(_steps(place.projection, events))
        keys = sorted({key for key, _, _ in steps})
        columns = [[key.subject for key in keys], [key.item for key in keys]]
        stored = await connection.fetch(query("projection_documents"), *place.arguments, *columns)
        documents = {Key(row["subject"], row["item"]): row["document"] for row in stored}
        states = _fold(steps, documents, place.binding_id)
        texts = [states[key].canonical_bytes().decode() for key in keys]
        await connection.execute(query("put_projection_documents"), *place.arguments, *columns, texts)


def _steps(projection: Projection, events: Iterable[StoredEvent]) -> Iterable[tuple[Key, Fold[Any], StoredEvent]]:
    for event in events:
        for fold in projection.folds:
            if key := fold.key(event):
                yield key, fold, event


def _fold(
    steps: Iterable[tuple[Key, Fold[Any], StoredEvent]], documents: dict[Key, str], binding_id: int
) -> dict[Key, State]:
    states: dict[Key, State] = {}
    for key, fold, event in steps:
        before = states.get(key)
        if before is None and key in documents:
            before = fold.model.read(documents[key], binding_id, key)
        states[key] = fold.take(before, event)
    return states


def _overview(run: RunState, row: Any) -> RunOverview:
    names = ("applied", "skipped", "failed", "unknown")
    return RunOverview(run=run, **{name: row[name] if row else 0 for name in names})


def _require_linked(place: Place, cursor: Cursor, events: Sequence[StoredEvent]) -> None:
    """The events must go on exactly where the cursor stands, one by one."""
    position, head = cursor.position, cursor.hash
    for event in events:
        if event.position != position + 1 or event.prev_hash != head:
            raise _drifted(place, f"event {position + 1} after {head.hex()[:16]}", f"event {event.position}")
        position, head = event.position, event.hash


def _require_same_log(place: Place, reached: Cursor, head_position: int, head_hash: bytes) -> None:
    """The cursor has come at least to the head that was read before; at that head it must have its hash."""
    if reached.position < head_position or (reached.position == head_position and reached.hash != head_hash):
        raise _drifted(place, f"the head {head_position} {head_hash.hex()[:16]}", f"position {reached.position}")


def _collision(place: Place) -> ProjectionCollisionError:
    return ProjectionCollisionError(
        checked=f"the cursor of the projection {place.projection.name} of binding {place.binding_id}",
        expected="that it stands where it was read",
        found="that another process moved it",
        next_action="let one process follow the log, or try again",
    )


def _drifted(place: Place, expected: str, found: str) -> ProjectionDriftedError:
    return ProjectionDriftedError(
        checked=f"the log behind the projection {place.projection.name} of binding {place.binding_id}",
        expected=expected,
        found=found,
        next_action="run 'apply-ledger verify'; if the log holds (a restored backup), run 'apply-ledger rebuild'",
    )
