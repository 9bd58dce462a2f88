"""Protocols of the ledger that the writer uses: the store of :mod:`ledger.store`, or one in memory for tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Literal, Protocol

from ledger.binding import DestinationBinding
from ledger.commit import PlanCommit
from ledger.events import NewEvent, StoredEvent
from ledger.store.records import Appended, BindingRow, ForeignWrite, InFlight, Lease, Order, OrderState


class StopOrderPort(Protocol):
    """Where orders to stop a run are looked for."""

    async def pending_stop(self, binding_id: int, run_id: str) -> Order | None: ...  # noqa: D102 - see LedgerPort


class LedgerPort(Protocol):
    """Reading, and storing what is next to the events. Contracts: :class:`ledger.store.ledger.Ledger`."""

    async def register_binding(self, binding: DestinationBinding) -> int: ...  # noqa: D102 - see the class

    async def binding(self, binding: DestinationBinding) -> BindingRow | None: ...  # noqa: D102

    async def open_orders(self, binding_id: int) -> list[Order]: ...  # noqa: D102

    async def pending_stop(self, binding_id: int, run_id: str) -> Order | None: ...  # noqa: D102

    def events(  # noqa: D102
        self, binding_id: int, *, after: int = 0, until: int | None = None, run_id: str | None = None
    ) -> AsyncIterator[StoredEvent]: ...

    async def run_commit(self, binding_id: int, run_id: str) -> PlanCommit | None: ...  # noqa: D102

    async def store_plan(  # noqa: D102
        self,
        *,
        checksum: str,
        body: bytes,
        lines: Collection[bytes],
        object_keys: Collection[bytes],
        coverage: Collection[bytes] | None,
    ) -> None: ...

    async def store_artifact(  # noqa: D102
        self, *, binding_id: int, run_id: str, checksum: str, source: str, manifest: bytes, digest: str
    ) -> None: ...

    def stored_plan(self, checksum: str) -> AsyncIterator[bytes]: ...  # noqa: D102

    async def foreign_writes(  # noqa: D102
        self, binding_id: int, *, source: str, after_position: int, object_keys: Sequence[bytes]
    ) -> list[ForeignWrite]: ...

    async def newer_apply(  # noqa: D102
        self, binding_id: int, *, source: str, run_id: str, after_position: int
    ) -> int | None: ...

    async def last_applied_manifest(self, binding_id: int, source: str) -> bytes | None: ...  # noqa: D102

    async def store_detail(self, data: bytes) -> str: ...  # noqa: D102


class WriterStorePort(Protocol):
    """Everything that needs the lease. Contracts: :class:`ledger.store.writer.WriterStore`."""

    async def claim(  # noqa: D102 - see the class
        self, binding_id: int, *, owner: str, ttl: float, settle: float, body_host: str, body_process_id: str
    ) -> Lease: ...

    async def renew(self, lease: Lease) -> None: ...  # noqa: D102

    async def release(self, lease: Lease) -> None: ...  # noqa: D102

    async def append(  # noqa: D102
        self,
        lease: Lease,
        events: Sequence[NewEvent],
        *,
        in_flight: InFlight | Literal["keep"] | None = "keep",
        settle: float | None = None,
        close_orders: Sequence[tuple[int, OrderState]] = (),
        meanwhile: Callable[[], None] | None = None,
    ) -> Appended: ...

    async def close_order(self, lease: Lease, inbox_id: int, state: OrderState) -> None: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class StorePorts:
    """The two ports of one connection to the ledger."""

    ledger: LedgerPort
    writer: WriterStorePort


class StoreConnector(Protocol):
    """Opens both ports for a DSN and closes them at the end of the block."""

    def __call__(self, dsn: str) -> AbstractAsyncContextManager[StorePorts]:
        """Connect.

        Raises:
            LedgerUnavailableError: the database cannot be reached.
        """
        ...
