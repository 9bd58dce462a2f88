"""Pages of lists, each found by a key and never by a number of rows; for readers that show some at a time."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ledger.commit import PlanCommit
from ledger.events import StoredEvent
from ledger.projections.fold import Key
from ledger.projections.registry import PROJECTIONS
from ledger.projections.run_lines import RUN_LINES, RunLine
from ledger.projections.runs import RUNS, OperationState, RunState
from ledger.store.bindings import stored_event
from ledger.store.orders import stored_commit
from ledger.store.records import Order
from ledger.store.session import Session

LAST = 2**63 - 1
"""Behind every position and every id."""

END_OF_TIME = datetime(9999, 12, 31, tzinfo=UTC)

TimePlace = tuple[datetime, int, int]
"""Where a run stands in the list of all: when its commit came, its binding, its row of the inbox."""

MessageTimePlace = tuple[datetime, str, int, int]
"""Where a refused message stands in the list of all: when it was recorded, topic, partition, offset."""


@dataclass(frozen=True, slots=True)
class RunRow:
    """A committed run. ``line`` is None until the projection has come to its commit.

    ``reason`` is the beginning of the one that its commit gives, at most 300 characters.
    """

    binding_id: int
    inbox_id: int
    run_id: str
    source: str
    received_at: datetime
    order_state: str
    line: RunLine | None
    reason: str | None = None

    @property
    def place(self) -> TimePlace:
        """Where it stands in the list of all runs."""
        return (self.received_at, self.binding_id, self.inbox_id)


@dataclass(frozen=True, slots=True)
class CommittedRun:
    """One run with its commit as the inbox has it."""

    row: RunRow
    commit: PlanCommit


@dataclass(frozen=True, slots=True)
class OperationRow:
    """An operation of a stored plan; ``line`` with its newline, ``state`` None where it was never attempted."""

    ordinal: int
    operation_id: str
    line: bytes
    state: OperationState | None


@dataclass(frozen=True, slots=True)
class ClosedOrder:
    """An order with the time at which it was closed."""

    order: Order
    closed_at: datetime | None


@dataclass(frozen=True, slots=True)
class WaitingOrders:
    """How many orders of a binding are open, and when the oldest of them came."""

    orders: int
    since: datetime


@dataclass(frozen=True, slots=True)
class RefusedMessage:
    """A message that could not become an order; ``digest`` is sha256 of its body, ``reason`` a line a finding."""

    topic: str
    partition: int
    offset: int
    digest: bytes
    reason: str
    recorded_at: datetime

    @property
    def place(self) -> MessageTimePlace:
        """Where it stands in the list."""
        return (self.recorded_at, self.topic, self.partition, self.offset)


@dataclass(frozen=True, slots=True)
class LiveWorker:
    """A process that serves bindings. ``expires_in``: seconds after which it is forgotten unless it says so again."""

    worker_id: str
    host: str
    serves: tuple[str, ...]
    held: int
    expires_in: float


@dataclass(frozen=True, slots=True)
class RunMark:
    """An event that says something of a run as a whole, such as its commit, a resumption or its end.

    ``writer_epoch`` is that of the writer that recorded it; None where another process did, as a commit.
    """

    position: int
    kind: str
    recorded_at: datetime
    body: bytes
    writer_epoch: int | None = None


class PageQueries:
    """Part of :class:`ledger.store.served.ServedLedger`."""

    _session: Session

    async def runs_page(self, *, behind: TimePlace | None, limit: int) -> list[RunRow]:
        """Committed runs of all bindings, newest first."""
        place = behind or (END_OF_TIME, LAST, LAST)
        rows = await self._session.rows("runs_page", *place, limit, RUN_LINES.name, RUN_LINES.version)
        return [_run(row) for row in rows]

    async def runs_page_of_binding(self, binding_id: int, *, behind: int | None, limit: int) -> list[RunRow]:
        """Committed runs of one binding, newest first; ``behind`` is a row of the inbox."""
        rows = await self._session.rows(
            "runs_page_of_binding",
            binding_id,
            LAST if behind is None else behind,
            limit,
            RUN_LINES.name,
            RUN_LINES.version,
        )
        return [_run(row) for row in rows]

    async def committed_run(self, binding_id: int, run_id: str) -> CommittedRun | None:
        """One run, or None where it was never committed here.

        Raises:
            UnreadableCommitError: its commit was edited.
        """
        row = await self._session.row("run_row", binding_id, run_id, RUN_LINES.name, RUN_LINES.version)
        return None if row is None else CommittedRun(_run(row), stored_commit(row["body"], run_id))

    async def run_document(self, binding_id: int, run_id: str) -> RunState | None:
        """What the projection of runs holds of one run, without its operations."""
        document = await self._session.value("run_document", RUNS.name, RUNS.version, binding_id, run_id)
        return None if document is None else RunState.read(document, binding_id, Key(run_id, ""))

    async def run_end(self, binding_id: int, run_id: str) -> RunMark | None:
        """The event that ended a run last, whether or not it was resumed since."""
        row = await self._session.row("run_end", binding_id, run_id)
        return None if row is None else RunMark(row["position"], row["kind"], row["recorded_at"], row["body"].encode())

    async def run_marks(self, binding_id: int, run_id: str, *, limit: int) -> list[RunMark]:
        """What was recorded of a run as a whole, newest first."""
        rows = await self._session.rows("newest_run_marks", binding_id, run_id, limit)
        return [
            RunMark(row["position"], row["kind"], row["recorded_at"], row["body"].encode(), row["writer_epoch"])
            for row in rows
        ]

    async def succeeded_operations(self, binding_id: int, run_id: str) -> tuple[list[str], list[str]]:
        """Ids of the applied and of the skipped operations of a run, in the order in which they were."""
        rows = await self._session.rows("succeeded_operations", binding_id, run_id)
        applied = [row["operation_id"] for row in rows if row["kind"] == "operation.applied"]
        return applied, [row["operation_id"] for row in rows if row["kind"] == "operation.skipped"]

    async def operations_page(
        self, binding_id: int, run_id: str, checksum: str, *, behind: int, limit: int
    ) -> list[OperationRow]:
        """Operations of a run's plan behind an ordinal (-1 for the start), in stored order."""
        rows = await self._session.rows(
            "operations_page", bytes.fromhex(checksum), behind, limit, RUNS.name, RUNS.version, binding_id, run_id
        )
        return [_operation(row, binding_id, run_id) for row in rows]

    async def operations_at(
        self, binding_id: int, run_id: str, checksum: str, ordinals: Sequence[int]
    ) -> list[OperationRow]:
        """The operations at these places of a run's plan, in stored order."""
        rows = await self._session.rows(
            "operations_at", bytes.fromhex(checksum), list(ordinals), RUNS.name, RUNS.version, binding_id, run_id
        )
        return [_operation(row, binding_id, run_id) for row in rows]

    async def events_page(
        self,
        binding_id: int,
        *,
        after: int,
        until: int | None,
        limit: int,
        run_id: str | None = None,
        operation_id: str | None = None,
    ) -> list[StoredEvent]:
        """At most ``limit`` events behind a position, in order; of one run, or the outcomes of an operation of it."""
        names = ("events", "events_of_run", "events_of_operation")
        of = [given for given in (run_id, operation_id) if given is not None]
        rows = await self._session.rows(names[len(of)], binding_id, after, until, limit, *of)
        return [stored_event(row) for row in rows]

    async def heads(self, binding_ids: Sequence[int]) -> dict[int, int]:
        """The position of the last event of each of these bindings."""
        return {row["id"]: row["head_position"] for row in await self._session.rows("binding_heads", list(binding_ids))}

    async def waiting_orders(self) -> dict[int, WaitingOrders]:
        """The open orders of each binding that has some."""
        rows = await self._session.rows("waiting_orders")
        return {row["binding_id"]: WaitingOrders(row["orders"], row["since"]) for row in rows}

    async def orders_page(self, binding_id: int, *, behind: int | None, limit: int) -> list[ClosedOrder]:
        """Orders for the writer of a binding, open and closed, newest first; ``behind`` is a row of the inbox."""
        rows = await self._session.rows("orders_page", binding_id, LAST if behind is None else behind, limit)
        return [closed_order(row) for row in rows]

    async def refused_messages_page(self, *, behind: MessageTimePlace | None, limit: int) -> list[RefusedMessage]:
        """Messages that could not become an order, newest first."""
        place = behind or (END_OF_TIME, "", 0, 0)
        rows = await self._session.rows("refused_messages_page", *place, limit)
        return [RefusedMessage(**dict(row)) for row in rows]

    async def live_workers(self) -> list[LiveWorker]:
        """Processes that said lately that they serve bindings."""
        rows = await self._session.rows("live_workers")
        return [LiveWorker(**(dict(row) | {"serves": tuple(row["serves"])})) for row in rows]

    async def projections_are_behind(self) -> bool:
        """Whether any projection of any binding has events to take."""
        names = [projection.name for projection in PROJECTIONS]
        versions = [projection.version for projection in PROJECTIONS]
        return bool(await self._session.value("projections_behind", names, versions))

    async def projected_positions(self) -> dict[int, int]:
        """How far the lines of runs have come on each binding."""
        rows = await self._session.rows("projection_positions", RUN_LINES.name, RUN_LINES.version)
        return {row["binding_id"]: row["position"] for row in rows}


def _run(row: Any) -> RunRow:
    key = Key(row["run_id"], "")
    return RunRow(
        binding_id=row["binding_id"],
        inbox_id=row["inbox_id"],
        run_id=row["run_id"],
        source=row["source"],
        received_at=row["received_at"],
        order_state=row["state"],
        line=None if row["document"] is None else RunLine.read(row["document"], row["binding_id"], key),
        reason=row["reason"],
    )


def _operation(row: Any, binding_id: int, run_id: str) -> OperationRow:
    document = row["document"]
    return OperationRow(
        ordinal=row["ordinal"],
        operation_id=row["operation_id"],
        line=row["line"].encode(),
        state=None if document is None else OperationState.read(document, binding_id, Key(run_id, row["operation_id"])),
    )


def closed_order(row: Any) -> ClosedOrder:
    """An order from its row."""
    order = Order(
        inbox_id=row["inbox_id"],
        order_id=uuid.UUID(str(row["order_id"])),
        kind=row["kind"],
        run_id=row["run_id"],
        state=row["state"],
        body=json.loads(row["body"]),
        position=row["position"],
        received_at=row["received_at"],
    )
    return ClosedOrder(order, row["closed_at"])
