"""A rehearsal: the writer's own loop with a temporary destination and a ledger that stores nothing.

The loop stops at the first operation that fails, as it does in earnest. A rehearsal then continues after it, because a
person wants to know everything that is wrong at once (G11); what the real run would not have reached is marked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, overload

from consumers.apply import RunApplication
from consumers.control import RunControl
from consumers.history import RunHistory
from consumers.lease import LeaseGuard, LeaseKeeper, suspend_clock
from consumers.recorder import RunRecorder
from consumers.settings import WriterSettings
from ledger.binding import DestinationBinding
from ledger.commit import Policy
from ledger.destination import PlannedWriteDestination
from ledger.errors import Finding
from ledger.events import NewEvent
from ledger.plan.model import PlannedOperation
from ledger.store.records import Appended, InFlight, Lease, Order, OrderState

Outcome = Literal["created", "updated", "unchanged", "refused", "skipped"]
OUTCOMES: tuple[Outcome, ...] = ("created", "updated", "unchanged", "refused", "skipped")

_LEASE_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class FieldEffect:
    """What a write does to one field. ``before`` is missing where the object is new or the field was not observed."""

    field: str
    after: Any
    before: Any = None
    has_before: bool = False

    def record(self) -> dict[str, Any]:
        """As it is in a document."""
        before = {"before": self.before} if self.has_before else {}
        return {"field": self.field, **before, "after": self.after}


@dataclass(frozen=True, slots=True)
class Effect:
    """What would become of one operation.

    Attributes:
        operation: what is rehearsed.
        outcome: in a word.
        node_id: of the object that is written; None where nothing is.
        fields: what changes, by name; empty where nothing does.
        refusal: why it would be refused.
        recorded_as: the event that a real run would append.
        follows: the identifier of the refused operation without which this one cannot succeed either.
        after_stop: whether a real run would have stopped before.
    """

    operation: PlannedOperation
    outcome: Outcome
    node_id: str | None = None
    fields: tuple[FieldEffect, ...] = ()
    refusal: Finding | None = None
    recorded_as: str = "operation.applied"
    follows: str | None = None
    after_stop: bool = False


EffectSink = Callable[[Effect], None]


@dataclass(slots=True)
class RehearsalSummary:
    """How a rehearsal went.

    Attributes:
        counts: operations by outcome, all five always there.
        reached: operations that a real run would give an outcome; the first refusal is the last of them.
        stopped_at: the identifier of the operation at which a real run would stop.
    """

    operations: int = 0
    counts: dict[Outcome, int] = field(default_factory=lambda: dict.fromkeys(OUTCOMES, 0))
    reached: int = 0
    stopped_at: str | None = None

    def take(self, effect: Effect) -> None:
        """Count one operation."""
        self.operations += 1
        self.counts[effect.outcome] += 1
        if self.stopped_at is None:
            self.reached += 1
            if effect.outcome == "refused":
                self.stopped_at = effect.operation.operation_id


class Rehearsal:
    """Runs the loop over a plan. One object, one call of :meth:`run`."""

    def __init__(
        self,
        operations: Sequence[PlannedOperation],
        destination: PlannedWriteDestination,
        *,
        binding: DestinationBinding,
        run_id: str,
        skipped: Callable[[PlannedOperation], None],
    ) -> None:
        """``skipped`` is told of each operation that the loop passes by, in its place in the order."""
        self._operations = operations
        self._destination = destination
        self._run_id = run_id
        self._lease = Lease(0, binding.url, binding.branch, 0, "rehearsal", _LEASE_SECONDS, None, 0.0)
        # nothing has to settle: what a rehearsal writes to has answered, or is gone
        self._settings = WriterSettings(
            artifact_root=Path(), lease_ttl=_LEASE_SECONDS, settle_seconds=0.0, stop_poll_interval=_LEASE_SECONDS
        )
        self._ledger = _ForgetfulLedger(operations, skipped)

    async def run(self) -> None:
        """Attempt every operation once, in order.

        Raises:
            Exception: a defect; a refusal is an outcome and is not raised.
        """
        guard = None
        while self._ledger.next_ordinal < len(self._operations):
            self._ledger.begin(self._ledger.next_ordinal)
            keeper = LeaseKeeper(self._ledger, self._lease, self._settings, claim_sent_at=suspend_clock())
            guard = LeaseGuard(keeper)
            await self._from(self._ledger.first, keeper, guard)

    async def _from(self, ordinal: int, keeper: LeaseKeeper, guard: LeaseGuard) -> None:
        rest = self._operations if ordinal == 0 else _Rest(self._operations, ordinal)
        history = RunHistory(run_id=self._run_id)
        application = RunApplication(
            operations=rest,
            destination=self._destination,
            recorder=RunRecorder(keeper, history, operations_count=len(rest)),
            guard=guard,
            control=RunControl(self._ledger, 0, self._run_id, leave=asyncio.Event(), poll_interval=_LEASE_SECONDS),
            policy=Policy(on_unknown="stop"),
            settings=self._settings,
        )
        await application.run()


class _Rest(Sequence[PlannedOperation]):
    """The operations behind those that were rehearsed; nothing is copied."""

    def __init__(self, operations: Sequence[PlannedOperation], start: int) -> None:
        self._operations = operations
        self._start = start

    def __len__(self) -> int:
        return len(self._operations) - self._start

    @overload
    def __getitem__(self, place: int) -> PlannedOperation: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[PlannedOperation]: ...

    def __getitem__(self, place: int | slice) -> PlannedOperation | Sequence[PlannedOperation]:
        places = range(self._start, len(self._operations))[place]
        return self._operations[places] if isinstance(places, int) else [self._operations[one] for one in places]


class _ForgetfulLedger:
    """What the loop asks of a ledger, without one: it notes how far the loop came, and keeps no event."""

    def __init__(self, operations: Sequence[PlannedOperation], skipped: Callable[[PlannedOperation], None]) -> None:
        self._operations = operations
        self._skipped = skipped
        self.first = 0
        self.next_ordinal = 0

    def begin(self, first: int) -> None:
        """The loop starts again at an operation of the plan; its ordinals count from there."""
        self.first = first

    async def append(
        self,
        lease: Lease,  # noqa: ARG002 - part of the port
        events: Sequence[NewEvent],
        *,
        in_flight: InFlight | Literal["keep"] | None = "keep",  # noqa: ARG002
        settle: float | None = None,  # noqa: ARG002
        close_orders: Sequence[tuple[int, OrderState]] = (),  # noqa: ARG002
        meanwhile: Callable[[], None] | None = None,
    ) -> Appended:
        if meanwhile is not None:
            meanwhile()
        for event in events:
            if event.ordinal is not None:
                self.next_ordinal = self.first + event.ordinal + 1
                if event.kind == "operation.skipped":
                    self._skipped(self._operations[self.first + event.ordinal])
        return Appended(first_position=1, last_position=0, head_hash=b"")

    async def pending_stop(self, binding_id: int, run_id: str) -> Order | None:  # noqa: ARG002
        return None

    async def claim(
        self, binding_id: int, *, owner: str, ttl: float, settle: float, body_host: str, body_process_id: str
    ) -> Lease:
        raise NotImplementedError("a rehearsal claims nothing")

    async def renew(self, lease: Lease) -> None:
        """Nobody else can hold what nobody else knows of."""

    async def release(self, lease: Lease) -> None:
        """Likewise."""

    async def close_order(self, lease: Lease, inbox_id: int, state: OrderState) -> None:
        """There are no orders."""
