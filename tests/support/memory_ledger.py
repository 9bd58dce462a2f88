"""The writer's two ports in memory, with the rules of the SQL functions that the writer relies on.

Fence, mark, quiet period, unique facts, atomic closing of orders. Time is a number that a test moves.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import uuid
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal

from consumers.ports import StorePorts
from ledger.binding import DestinationBinding
from ledger.commit import PlanCommit, Policy
from ledger.events import OUTCOME_KINDS, NewEvent, StoredEvent, WriterOpened, new_event
from ledger.store.errors import (
    DuplicateFactError,
    EventConflictError,
    FencedWriterError,
    LeaseHeldError,
    QuietPeriodError,
    StoreError,
)
from ledger.store.records import Appended, BindingRow, ForeignWrite, InFlight, Lease, Order, OrderKind, OrderState

_EPOCH = datetime(2026, 11, 29, tzinfo=UTC)


def _refusal(kind: type[StoreError], found: str, **facts: Any) -> StoreError:
    return kind(checked="the memory ledger", expected="its rules", found=found, next_action="none", facts=facts)


class ManualClock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class MemoryLedger:
    """One binding's ledger and inbox. It is both ports, and its own connector."""

    clock: ManualClock = field(default_factory=ManualClock)
    url: str = "http://infrahub.example:8000"
    branch: str = "main"
    log: list[StoredEvent] = field(default_factory=list)
    orders: list[Order] = field(default_factory=list)
    other_bindings: list[DestinationBinding] = field(default_factory=list)
    epoch: int = 0
    owner: str | None = None
    expires: float = 0.0
    in_flight: InFlight | None = None
    quiet_until: float = 0.0
    plans: dict[str, list[bytes]] = field(default_factory=dict)
    coverage: dict[str, list[bytes] | None] = field(default_factory=dict)
    artifacts: dict[str, bytes] = field(default_factory=dict)
    details: dict[str, bytes] = field(default_factory=dict)
    foreign: list[ForeignWrite] = field(default_factory=list)
    newer: int | None = None
    last_manifest: bytes | None = None
    last_manifest_of: tuple[int, str] = (1, "from-netbox")
    appends: list[tuple[list[str], InFlight | Literal["keep"] | None]] = field(default_factory=list)
    fail_next_append: list[BaseException | None] = field(default_factory=list)
    """What the next appends raise; None is an append that works."""
    renewals: int = 0
    fail_renewals: Exception | None = None
    renewal_takes: float = 0.0

    @asynccontextmanager
    async def __call__(self, dsn: str) -> AsyncIterator[StorePorts]:
        yield StorePorts(ledger=self, writer=self)

    # --- the inbox

    def commit(self, commit: PlanCommit) -> Order:
        """As submit_commit: the commit's row, once."""
        for order in self.orders:
            if order.kind == "commit" and order.run_id == commit.run_id:
                return order
        return self._order("commit", commit.run_id, commit.model_dump(mode="json"))

    def resume(self, run_id: str, policy: Policy | None = None, by: str = "ada", reason: str = "fixed") -> Order:
        """As submit_resume, without its refusals: a stop that came too late does not end what is ordered now."""
        for order in self.orders:
            if (order.run_id, order.kind, order.state) == (run_id, "stop", "open"):
                self._close(order.inbox_id, "done")
        body = {"by": by, "reason": reason, "policy": (policy or Policy()).model_dump()}
        return self._order("resume", run_id, body)

    def stop(self, run_id: str, by: str = "ada", reason: str = "wrong day") -> Order:
        """As submit_stop, without its refusals."""
        return self._order("stop", run_id, {"by": by, "reason": reason})

    def _order(self, kind: OrderKind, run_id: str, body: dict[str, Any]) -> Order:
        order = Order(
            inbox_id=len(self.orders) + 1,
            order_id=uuid.uuid4(),
            kind=kind,
            run_id=run_id,
            state="open",
            body=body,
            position=len(self.log),
            received_at=_EPOCH,
        )
        self.orders.append(order)
        return order

    def state_of(self, order: Order) -> str:
        """The order's state now."""
        return self.orders[order.inbox_id - 1].state

    async def open_orders(self, binding_id: int) -> list[Order]:
        return [order for order in self.orders if order.state == "open"]

    async def pending_stop(self, binding_id: int, run_id: str) -> Order | None:
        return next((o for o in await self.open_orders(binding_id) if o.kind == "stop" and o.run_id == run_id), None)

    async def run_commit(self, binding_id: int, run_id: str) -> PlanCommit | None:
        found = (o for o in self.orders if o.kind == "commit" and o.run_id == run_id)
        order = next(found, None)
        return None if order is None else PlanCommit.model_validate(dict(order.body))

    # --- reading

    async def register_binding(self, binding: DestinationBinding) -> int:
        return 1

    async def binding(self, binding: DestinationBinding) -> BindingRow | None:
        if binding not in self.other_bindings:
            return None
        return BindingRow(2, binding.url, binding.branch, 0, bytes(32), 0, None, None, None, None, None, 0.0)

    async def events(
        self, binding_id: int, *, after: int = 0, until: int | None = None, run_id: str | None = None
    ) -> AsyncIterator[StoredEvent]:
        for event in list(self.log):
            if event.position > after and (run_id is None or event.run_id == run_id):
                yield event

    def of_run(self, run_id: str) -> list[StoredEvent]:
        """The events of one run."""
        return [event for event in self.log if event.run_id == run_id]

    def kinds(self, run_id: str) -> list[str]:
        """Their kinds."""
        return [event.kind for event in self.of_run(run_id)]

    def body(self, kind: str, index: int = -1) -> dict[str, Any]:
        """The body of the last event of a kind, or of another one of them."""
        found: dict[str, Any] = json.loads([event.body for event in self.log if event.kind == kind][index])
        return found

    async def stored_plan(self, checksum: str) -> AsyncIterator[bytes]:
        for line in self.plans[checksum]:
            yield line

    async def foreign_writes(
        self, binding_id: int, *, source: str, after_position: int, object_keys: Sequence[bytes]
    ) -> list[ForeignWrite]:
        return [
            write
            for write in self.foreign
            if write.source != source and write.position > after_position and write.object_key in object_keys
        ]

    async def newer_apply(self, binding_id: int, *, source: str, run_id: str, after_position: int) -> int | None:
        return self.newer if self.newer is not None and self.newer > after_position else None

    async def last_applied_manifest(self, binding_id: int, source: str) -> bytes | None:
        return self.last_manifest if (binding_id, source) == self.last_manifest_of else None

    # --- storing beside the events

    async def store_plan(
        self,
        *,
        checksum: str,
        body: bytes,
        lines: Collection[bytes],
        object_keys: Collection[bytes],
        coverage: Collection[bytes] | None,
    ) -> None:
        self.plans[checksum] = list(lines)
        self.coverage[checksum] = None if coverage is None else list(coverage)

    async def store_artifact(
        self, *, binding_id: int, run_id: str, checksum: str, source: str, manifest: bytes, digest: str
    ) -> None:
        if checksum not in self.plans:
            raise AssertionError("an artifact is stored after its plan")
        self.artifacts[run_id] = manifest

    async def store_detail(self, data: bytes) -> str:
        digest = hashlib.sha256(data).hexdigest()
        self.details[digest] = data
        return digest

    # --- with the lease

    async def claim(
        self, binding_id: int, *, owner: str, ttl: float, settle: float, body_host: str, body_process_id: str
    ) -> Lease:
        if self.owner is not None and self.expires > self.clock.now:
            left = self.expires - self.clock.now
            raise _refusal(LeaseHeldError, f"held by {self.owner} for {left} s", owner=self.owner, seconds=left)
        self.epoch += 1
        self.owner, self.expires = owner, self.clock.now + ttl
        if self.in_flight is not None:
            self.quiet_until = max(self.quiet_until, self.clock.now + settle)
        opened = WriterOpened(epoch=self.epoch, process_id=body_process_id, host=body_host, role="ledger_writer")
        self._store(new_event("writer.opened", opened, url=self.url, branch=self.branch, n=self.epoch))
        return Lease(
            binding_id=binding_id,
            url=self.url,
            branch=self.branch,
            epoch=self.epoch,
            owner=owner,
            ttl=ttl,
            in_flight=self.in_flight,
            quiet_for=max(self.quiet_until - self.clock.now, 0.0),
        )

    async def renew(self, lease: Lease) -> None:
        self.renewals += 1
        self.clock.now += self.renewal_takes
        if self.fail_renewals is not None:
            raise self.fail_renewals
        self._require(lease)
        self.expires = self.clock.now + lease.ttl

    async def release(self, lease: Lease) -> None:
        self._require(lease)
        self.owner = None

    async def append(
        self,
        lease: Lease,
        events: Sequence[NewEvent],
        *,
        in_flight: InFlight | Literal["keep"] | None = "keep",
        settle: float | None = None,
        close_orders: Sequence[tuple[int, OrderState]] = (),
        meanwhile: Callable[[], None] | None = None,
    ) -> Appended:
        if meanwhile is not None:
            meanwhile()
            await asyncio.sleep(0)
        failure = self.fail_next_append.pop(0) if self.fail_next_append else None
        if failure is not None:
            raise failure
        self._require(lease)
        if len(events) > 500:
            raise AssertionError("more than 500 events in one append")
        if isinstance(in_flight, InFlight) and self.quiet_until > self.clock.now:
            raise _refusal(QuietPeriodError, "too early", seconds=self.quiet_until - self.clock.now)
        self._require_new(events)
        self.appends.append(([event.kind for event in events], in_flight))
        first = len(self.log) + 1
        for event in events:
            self._store(event)
        if in_flight != "keep":
            self.in_flight = in_flight
        if settle is not None:
            self.quiet_until = max(self.quiet_until, self.clock.now + settle)
        for inbox_id, state in close_orders:
            self._close(inbox_id, state)
        return Appended(first_position=first, last_position=len(self.log), head_hash=b"")

    async def close_order(self, lease: Lease, inbox_id: int, state: OrderState) -> None:
        self._require(lease)
        self._close(inbox_id, state)

    def expire(self) -> None:
        """The lease runs out."""
        self.clock.now = max(self.clock.now, self.expires) + 0.001

    def _close(self, inbox_id: int, state: OrderState) -> None:
        self.orders[inbox_id - 1] = replace(self.orders[inbox_id - 1], state=state)

    def _require(self, lease: Lease) -> None:
        if lease.epoch != self.epoch or lease.owner != self.owner:
            raise _refusal(FencedWriterError, f"epoch {self.epoch}")

    def _require_new(self, events: Sequence[NewEvent]) -> None:
        known = {event.event_id for event in self.log}
        outcomes = {(e.run_id, e.operation_id, e.attempt) for e in self.log if e.kind in OUTCOME_KINDS}
        successes = {
            (e.run_id, e.operation_id) for e in self.log if e.kind in ("operation.applied", "operation.skipped")
        }
        for event in events:
            if event.event_id in known:
                raise _refusal(EventConflictError, f"{event.kind} is known")
            if event.kind in OUTCOME_KINDS and (event.run_id, event.operation_id, event.attempt) in outcomes:
                raise _refusal(DuplicateFactError, "two outcomes of one attempt")
            if (event.run_id, event.operation_id) in successes and event.kind in (
                "operation.applied",
                "operation.skipped",
            ):
                raise _refusal(DuplicateFactError, "two successes of one operation")

    def _store(self, event: NewEvent) -> None:
        self.log.append(
            StoredEvent(
                url=self.url,
                branch=self.branch,
                position=len(self.log) + 1,
                event_id=event.event_id,
                kind=event.kind,
                schema_version=event.schema_version,
                run_id=event.run_id,
                operation_id=event.operation_id,
                ordinal=event.ordinal,
                attempt=event.attempt,
                writer_epoch=self.epoch,
                recorded_at=_EPOCH,
                body=event.body,
                prev_hash=b"",
                hash=b"",
            )
        )
