"""What an audit reads: a ledger, or an export of one. Whatever has these methods can be verified."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import Protocol, runtime_checkable

from ledger.binding import DestinationBinding
from ledger.events import StoredEvent
from ledger.store.audited_orders import AuditedOrder, UnorderedMark
from ledger.store.checkpoints import CheckpointMark
from ledger.store.records import BindingRow, CommittedOrder, PlanRows, StoredArtifact, StoredOperation, StoredPlan


class AuditSource(Protocol):
    """The reading methods of :class:`ledger.store.ledger.Ledger` that an audit needs, with the same meaning."""

    async def binding(self, binding: DestinationBinding) -> BindingRow | None:
        """A binding as it stands."""
        ...

    async def bindings(self) -> list[BindingRow]:
        """All bindings."""
        ...

    def events(
        self,
        binding_id: int,
        *,
        after: int = 0,
        until: int | None = None,
        run_id: str | None = None,
        page_size: int = 5000,
    ) -> AsyncIterator[StoredEvent]:
        """Events by position."""
        ...

    async def count_events(self, binding_id: int, *, after: int, until: int) -> int | None:
        """How many rows the log has; None where every row is read, whatever its position."""
        ...

    def checkpoint_marks(self, binding_id: int, *, after: int = 0, until: int) -> AsyncIterator[CheckpointMark]:
        """Seals and checkpoints in order of position."""
        ...

    async def stored_artifact(self, binding_id: int, run_id: str) -> StoredArtifact | None:
        """The manifest of a run."""
        ...

    async def plan(self, checksum: str) -> StoredPlan | None:
        """The head of a plan."""
        ...

    def stored_operations(self, checksum: str) -> AsyncIterator[StoredOperation]:
        """The lines of a plan with the columns beside them."""
        ...

    def stored_coverage(self, checksum: str) -> AsyncIterator[bytes]:
        """The coverage lines of a plan."""
        ...

    async def plan_rows(self, checksum: str) -> PlanRows | None:
        """How many rows a plan has; None where lines have no places but those in which they are read."""
        ...

    async def committed_order(self, binding_id: int, run_id: str) -> CommittedOrder | None:
        """The inbox's row of a run's commit."""
        ...

    def audited_orders(self, binding_id: int) -> AsyncIterator[AuditedOrder] | None:
        """The inbox's rows by number, each with what the log says of it; None where there is no inbox."""
        ...

    async def detail(self, sha256: str) -> bytes | None:
        """A list that stands apart."""
        ...

    async def unordered_marks(self, binding_id: int) -> list[UnorderedMark]:
        """What the log has of orders that the inbox does not have; nothing where there is no inbox."""
        ...

    async def unguarded_tables(self) -> list[str] | None:
        """Tables whose triggers do not refuse changes; None where there is no database."""
        ...

    async def rows_of_no_binding(self) -> list[tuple[str, int]] | None:
        """Table and id of each binding that has rows and is not registered; None where there is no database."""
        ...

    async def changed_functions(self) -> list[str] | None:
        """Functions that are not what the migrations made them; None where there is no database."""
        ...

    async def missing_keys(self) -> list[tuple[str, str]] | None:
        """Table and columns of each key that nothing keeps; None where there is no database."""
        ...

    async def live_cursor(self, projection: str, version: int, binding_id: int) -> tuple[int, bytes] | None:
        """The last event that a projection has taken, and its hash."""
        ...

    async def count_live_documents(self, projection: str, version: int, binding_id: int) -> int:
        """How many documents a projection has."""
        ...

    def live_documents(self, projection: str, version: int, binding_id: int) -> AsyncIterator[tuple[str, str, str]]:
        """Subject, item and text of each document of a projection."""
        ...


@runtime_checkable
class HashedSource(AuditSource, Protocol):
    """A source that also gives events, and the lines of plans, as bytes, many at a time."""

    def hashed_pages(
        self, binding_id: int, *, after: int = 0, until: int
    ) -> AsyncGenerator[tuple[Sequence[bytes], Sequence[bytes]], None]:
        """Pages of events by position: the hashed bytes of each, and the hashes that are stored."""
        ...

    def planned_pages(
        self, checksum: str
    ) -> AsyncGenerator[tuple[Sequence[bytes], Sequence[bytes], Sequence[bytes]], None]:
        """Pages of a plan in three columns: lines, and the operation ids and object keys beside them."""
        ...

    def hashed_documents(self, projection: str, version: int, binding_id: int) -> AsyncGenerator[Sequence[bytes], None]:
        """Documents of a projection as the bytes that their hashes are taken over (:mod:`ledger.audit.projections`)."""
        ...
