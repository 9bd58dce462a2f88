"""What the store hands out. Times that are durations are float seconds, counted by the database's clock."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple

from ledger.binding import DestinationBinding

OrderKind = Literal["commit", "resume", "stop"]
OrderState = Literal["done", "refused"]
"""How an order was closed: worked to an end of its run, or refused before it."""


@dataclass(frozen=True, slots=True)
class InFlight:
    """The operation whose request may be under way. ``attempt`` counts from 1, ``ordinal`` from 0."""

    run_id: str
    ordinal: int
    attempt: int


@dataclass(frozen=True, slots=True)
class MessagePlace:
    """Where a message stands in a broker's log."""

    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.topic}/{self.partition}/{self.offset}"


@dataclass(frozen=True, slots=True)
class BindingRow:
    """A binding as it stands. ``lease_expires_in`` is negative once the lease has run out, None where it is free."""

    id: int
    url: str
    branch: str
    head_position: int
    head_hash: bytes
    writer_epoch: int
    lease_owner: str | None
    lease_host: str | None
    lease_taken_at: datetime | None
    lease_expires_in: float | None
    in_flight: InFlight | None
    quiet_for: float

    @property
    def binding(self) -> DestinationBinding:
        """The url and branch."""
        return DestinationBinding(url=self.url, branch=self.branch)

    @property
    def has_live_lease(self) -> bool:
        """Whether a process holds the lease now."""
        return self.lease_expires_in is not None and self.lease_expires_in > 0


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to write to one binding, under one epoch. ``ttl`` is the lifetime of a claim or renewal in seconds."""

    binding_id: int
    url: str
    branch: str
    epoch: int
    owner: str
    ttl: float
    in_flight: InFlight | None
    quiet_for: float


@dataclass(frozen=True, slots=True)
class Appended:
    """Where the events of an append stand. Without events ``first_position`` is one above ``last_position``."""

    first_position: int
    last_position: int
    head_hash: bytes


@dataclass(frozen=True, slots=True)
class Receipt:
    """An order that is durable. ``first`` is False where it had come before, ``position`` is the head when it came."""

    order_id: uuid.UUID
    inbox_id: int
    first: bool
    position: int


@dataclass(frozen=True, slots=True)
class Order:
    """One row of the inbox."""

    inbox_id: int
    order_id: uuid.UUID
    kind: OrderKind
    run_id: str
    state: Literal["open"] | OrderState
    body: Mapping[str, Any]
    position: int
    received_at: datetime


@dataclass(frozen=True, slots=True)
class OutcomeFact:
    """The last outcome of one operation of a run."""

    operation_id: str
    kind: str
    ordinal: int
    attempt: int
    position: int


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What the events say of a run.

    ``terminal`` is the kind of its last terminal event, also while it goes on again; ``is_open`` says whether it was
    started or resumed after that. ``starts`` counts starts and resumptions. ``outcomes`` is keyed by operation id.
    """

    run_id: str
    committed_position: int | None
    terminal: str | None
    terminal_position: int | None
    is_open: bool
    starts: int
    started: bool
    outcomes: Mapping[str, OutcomeFact]


@dataclass(frozen=True, slots=True)
class ForeignWrite:
    """An applied operation of another source on an object of ours; ``line`` is its plan line with the newline."""

    object_key: bytes
    source: str
    run_id: str
    position: int
    operation_id: str
    line: bytes


@dataclass(frozen=True, slots=True)
class LastWrite:
    """Who wrote an object last."""

    source: str
    run_id: str
    position: int


@dataclass(frozen=True, slots=True)
class StoredPlan:
    """The head of a stored plan. What is said of its coverage is None where the plan recorded none.

    ``seals`` is how many rows say that it is whole: one, or none of a plan that never was.
    """

    checksum: str
    body: bytes
    operations_count: int
    coverage_count: int | None
    coverage_digest: str | None = None
    seals: int = 1


@dataclass(frozen=True, slots=True)
class StoredOperation:
    """A plan line with its newline, and the columns beside it by which it is looked up."""

    line: bytes
    operation_id: str
    object_key: bytes


@dataclass(frozen=True, slots=True)
class PlanRows:
    """How many rows a plan has, and how many of them stand at another ordinal than their turn from 0 on."""

    operations: int
    operations_misplaced: int
    coverage: int
    coverage_misplaced: int


@dataclass(frozen=True, slots=True)
class CommittedOrder:
    """A commit as the inbox holds it, and the columns beside its body by which it is looked up."""

    body: bytes
    commit_id: str
    plan_checksum: str
    artifact_digest: str
    source: str
    position: int


@dataclass(frozen=True, slots=True)
class StoredArtifact:
    """The manifest that one run had, as it was verified."""

    run_id: str
    checksum: str
    source: str
    manifest: bytes
    digest: str
    stored_at: datetime


@dataclass(frozen=True, slots=True)
class ObjectOutcome:
    """One outcome of one operation on an object: the event, the plan's line with its newline, the run's commit."""

    position: int
    event_id: uuid.UUID
    kind: str
    recorded_at: datetime
    run_id: str
    operation_id: str
    ordinal: int
    attempt: int
    writer_epoch: int | None
    body: bytes
    plan_checksum: str
    line: bytes
    commit: bytes


@dataclass(frozen=True, slots=True)
class RecentOutcome:
    """An outcome of an operation in a list of the newest, with the plan's line."""

    position: int
    kind: str
    recorded_at: datetime
    run_id: str
    object_key: bytes
    line: bytes


@dataclass(frozen=True, slots=True)
class Resumption:
    """A ``run.resumed`` or ``run.started``; where an order to resume led to it, ``body`` says by whom and why."""

    position: int
    recorded_at: datetime
    body: bytes


class OutcomeRow(NamedTuple):
    """An event as far as a state is folded from it; a tuple, because there may be millions."""

    position: int
    kind: str
    run_id: str | None
    ordinal: int | None
    recorded_at: datetime
    body: str


class OutcomeHeads(NamedTuple):
    """Events in columns, as far as a state is folded from them.

    ``heads``: a letter for the kind (``a`` applied, ``u`` unknown, ``d`` a recorded delete), microseconds since 1970 in
    8 bytes, the run and the body with their lengths in 4 bytes before each.
    """

    positions: Sequence[int]
    run_ids: Sequence[str | None]
    ordinals: Sequence[int | None]
    heads: Sequence[bytes | None]
