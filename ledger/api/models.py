"""What the API answers with. Times are UTC by the database's clock, durations seconds, positions count from 1."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from ledger.commit import Policy
from ledger.events import Overlap
from ledger.projections.binding_status import RunMark
from ledger.projections.runs import Attempt

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$", examples=["c0ffee" * 10 + "c0ff"])]
Position = Annotated[int, Field(ge=0, description="A place in the log of one binding.", examples=[42])]
RunStateName = Literal["open", "applied", "stopped", "failed", "interrupted", "refused"]
OutcomeName = Literal["applied", "skipped", "failed", "unknown", "not_attempted"]

T = TypeVar("T")


class View(BaseModel):
    """Base of all answers."""

    model_config = ConfigDict(frozen=True)


class Page(View, Generic[T]):
    """Some of a list. Only ``next: null`` is its end: where filters leave much out, a page may be short."""

    items: list[T]
    next: str | None = Field(description="Pass it as `cursor` with the same filters; null at the end.")


class InFlightView(View):
    """The operation whose request may be under way."""

    run_id: str
    ordinal: int
    attempt: int


class WriterView(View):
    """Who writes to a binding."""

    epoch: int = Field(description="How often the binding was claimed.")
    host: str | None = Field(description="Where the holder of the lease runs; null where the lease is free.")
    taken_at: datetime | None
    lease_expires_in: float | None = Field(description="Seconds; negative once it has run out, null where it is free.")
    live: bool = Field(description="Whether a process holds the lease now.")


class BindingView(View):
    """One destination."""

    id: int
    url: str
    branch: str
    head_position: Position
    head_hash: Sha256
    projected_position: Position = Field(description="Up to which event lists and counts have come.")
    writer: WriterView
    in_flight: InFlightView | None
    quiet_for: float = Field(description="Seconds for which nothing is sent, after an answer was lost.")
    open_orders: int = Field(description="How many orders wait for the writer or are being carried out.")
    oldest_open_order_at: datetime | None = Field(description="When the oldest of them came; null where none waits.")
    last_commit: RunMark | None
    last_start: RunMark | None
    last_end: RunMark | None
    last_applied: RunMark | None


class RunView(View):
    """One run in a list. The five counts add up to ``planned``."""

    binding_id: int
    run_id: str
    source: str
    actor: str | None = Field(description="Who committed it, as claimed.")
    reason: str | None = Field(description="The beginning of why, as claimed: at most 300 characters.")
    state: RunStateName = Field(description="Its last end, also while it goes on again; open before the first.")
    running: bool
    order_state: Literal["open", "done", "refused"] = Field(description="What became of the order to carry it out.")
    plan_checksum: Sha256 | None
    planned: int | None
    applied: int
    skipped: int
    failed: int
    unknown: int
    not_attempted: int | None
    failed_operation: str | None = Field(description="The operation that stopped it and was not applied since.")
    failed_operation_wrote: Literal[False] | None = Field(
        description="false: proven to have written nothing; null: not known, or nothing failed."
    )
    may_have_partially_written: bool
    committed_at: str | None = Field(description="By the committer's clock.")
    received_at: datetime
    committed_position: Position | None
    started_at: str | None
    started_position: Position | None
    ended_at: str | None
    ended_position: Position | None


class CommitView(View):
    """What was ordered, as received."""

    commit_id: str
    artifact: str
    artifact_digest: Sha256
    config_version: str
    format_version: int
    reason: str
    policy: Policy
    traceparent: str | None


class EndView(View):
    """The event that ended a run last, with its body."""

    position: Position
    kind: str
    recorded_at: datetime
    body: dict[str, Any]


class PlanRefusalView(View):
    """One refusal of a plan as its event says it, and its run as it is now; a resumption may have come behind it.

    ``run`` is None where the inbox has no commit of it, which is for a verification to tell.
    """

    binding_id: int
    run_id: str
    position: Position
    recorded_at: datetime
    body: dict[str, Any]
    run: RunView | None


class UnsettledView(View):
    """An operation that was attempted and never succeeded."""

    ordinal: int
    operation_id: str
    outcome: Literal["failed", "unknown"]
    error: str
    position: Position


class RunDetail(RunView):
    """One run: what was ordered, what others had written, how it ended, and what did not succeed."""

    commit: CommitView
    ending: EndView | None
    overlaps: list[Overlap]
    overlaps_total: int
    unsettled: list[UnsettledView] = Field(description="The last one is what stopped the run.")
    plan_stored: bool = Field(description="Whether a writer has verified the plan, so that its operations are known.")


class SummaryView(View):
    """The six keys of a run's summary, whole, whatever happened."""

    applied_operations: list[str] = Field(description="In the order in which they were applied.")
    skipped_delete_operations: list[str]
    skipped_delete_count: int
    failed_operation: str | None
    failed_operation_wrote: Literal[False] | None
    may_have_partially_written: bool


class OperationView(View):
    """One operation of a plan, and what became of it over all its attempts."""

    ordinal: int
    operation_id: str
    tier: int | None
    action: str | None
    kind: str | None
    identity: dict[str, Any]
    outcome: OutcomeName
    attempts: list[Attempt]


class OperationDetail(OperationView):
    """One operation with what it sends and what stood there before, as the plan observed it."""

    destination_id: str | None
    payload: dict[str, Any] | None
    observed: dict[str, Any] = Field(
        description="The fields that differed, as they were; empty where nothing is known."
    )
    line: str = Field(description="The plan's own line, exactly as stored, with its newline.")


class EventView(View):
    """One event as stored. ``body`` is the recorded text itself, byte for byte."""

    position: Position
    event_id: str
    kind: str
    schema_version: int
    run_id: str | None
    operation_id: str | None
    ordinal: int | None
    attempt: int | None
    writer_epoch: int | None
    recorded_at: str = Field(examples=["2026-11-29T19:00:00.123456+00:00"])
    prev_hash: Sha256
    hash: Sha256
    body: dict[str, Any]


class OrderView(View):
    """One order for the writer of a binding."""

    inbox_id: int
    order_id: str
    kind: Literal["commit", "resume", "stop"]
    run_id: str
    state: Literal["open", "done", "refused"]
    position: Position = Field(description="The head when it came; for a commit its own event.")
    received_at: datetime
    closed_at: datetime | None
    body: dict[str, Any]


class RefusedMessageView(View):
    """A message that could not become an order. Its bytes are not kept."""

    topic: str
    partition: int
    offset: int
    digest: Sha256
    reason: str
    recorded_at: datetime


class WorkerView(View):
    """A process that serves bindings, as it said last."""

    worker_id: str
    host: str
    serves: list[str]
    held: int = Field(description="How many bindings it writes to.")
    expires_in: float = Field(description="Seconds after which it is forgotten unless it says so again.")


class Receipt(View):
    """An order that is durable, or on its way to be."""

    run_id: str
    binding_id: int | None
    order_id: str | None = Field(description="null where it was published to Kafka and no intake has taken it yet.")
    first: bool | None = Field(description="false where it had come before; nothing changed then.")
    position: int | None
    message: str | None = Field(description="topic/partition/offset, where it was published.")
