"""The catalogue of events: one model per kind of body, one table of kinds (design 6).

Bodies are encoded with the plan's canonical encoding (A14) and hashed as stored. Nothing in a body depends on the
moment of appending, so that a repeated append has the same bytes. A new version of a body gets a new model here and
an upcast in :mod:`ledger.projections`; stored bytes never change.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict

from ledger.commit import NAMESPACE, PlanCommit, Policy
from ledger.errors import Finding
from ledger.plan.canonical import canonical_json_bytes

SCHEMA_VERSION = 1
MAX_BODY_BYTES = 256 * 1024
MAX_DETAIL_BYTES = 64 * 1024 * 1024
"""The longest list that stands in ``ledger.detail``; the table refuses more."""
MAX_EVENTS_PER_APPEND = 500


class Body(BaseModel):
    """Base of all event bodies."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    def canonical_bytes(self) -> bytes:
        """The bytes that are stored and hashed."""
        return canonical_json_bytes(self.model_dump(mode="json"))


class Cut(BaseModel):
    """A list that did not fit: how long it is and the sha256 under which it stands whole in ``ledger.detail``."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    total: int
    sha256: str


class WriterOpened(Body):
    """A process claimed the binding."""

    epoch: int
    process_id: str
    host: str
    role: str


class PlanCommitted(Body):
    """A commit was taken into the inbox, as received."""

    commit: PlanCommit


class PlanRefused(Body):
    """A commit was refused before its first write; every failure is named.

    ``by`` and ``reason`` are those of the order to resume that was refused, and None where the commit itself was.
    """

    findings: list[Finding]
    cut: Cut | None = None
    by: str | None = None
    reason: str | None = None


class Overlap(BaseModel):
    """One object that another source wrote since this plan was made, and the fields to which both give other values."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    kind: str
    identity: dict[str, Any]
    operation_id: str
    fields: list[str]
    source: str
    run_id: str
    position: int


class RunStarted(Body):
    """The gate was passed; the first dispatch follows.

    ``by`` and ``reason`` are those of the order to resume on which a run begins that had been refused before, and None
    where it begins on its commit.
    """

    plan_checksum: str
    operations_count: int
    policy: Policy
    source: str
    overlaps: list[Overlap]
    cut: Cut | None = None
    by: str | None = None
    reason: str | None = None


class RunResumed(Body):
    """A stopped or interrupted run goes on."""

    by: str
    reason: str
    from_ordinal: int
    policy: Policy


class OperationApplied(Body):
    """The destination said ok and named the node. ``sent_ms`` counts from the start or resumption of the run."""

    node_id: str
    sent_ms: int
    duration_ms: int
    note: str | None = None


class OperationSkipped(Body):
    """Recorded, never dispatched."""

    why: str


class OperationFailed(Body):
    """Proven to have written nothing."""

    error: str
    message: str
    wrote: Literal[False] = False
    next_action: str


class OperationUnknown(Body):
    """May have written. ``sent`` is False where the request provably never left."""

    error: str
    message: str
    wrote: None = None
    sent: bool
    http_status: int | None = None
    code: str | None = None
    next_action: str


class RunStopped(Body):
    """Stopped between two operations; nothing is in doubt."""

    by: str
    reason: str
    last_ordinal: int | None


class RunEnded(Body):
    """The end of a run (``run.applied``, ``run.failed``, ``run.interrupted``). Counts are of this run, all attempts."""

    applied: int
    skipped: int
    not_attempted: int
    failed_operation: str | None
    failed_operation_wrote: Literal[False] | None
    last_ordinal: int | None


class PlanSealed(Body):
    """Commits to each line of a stored plan: the root of the Merkle tree (RFC 6962) whose leaves are its lines.

    The plan checksum commits to all lines together; with this one of them can be shown without the others.
    """

    plan_checksum: str
    operations_count: int
    lines_root: str


class CheckpointPublished(Body):
    """A head was signed and published; ``note`` is the signed text, of a position in front of this event.

    ``frontier`` holds the roots of the whole subtrees that make up the tree of that size, from the left, so that the
    next checkpoint and a verification that begins here need not read everything before.
    """

    position: int
    head_hash: str
    tree_root: str
    frontier: list[str]
    signed_at: str
    keys: list[str]
    note: str


BODIES: Mapping[str, type[Body]] = {
    "writer.opened": WriterOpened,
    "plan.committed": PlanCommitted,
    "plan.refused": PlanRefused,
    "run.started": RunStarted,
    "run.resumed": RunResumed,
    "operation.applied": OperationApplied,
    "operation.skipped": OperationSkipped,
    "operation.failed": OperationFailed,
    "operation.unknown": OperationUnknown,
    "run.stopped": RunStopped,
    "run.applied": RunEnded,
    "run.failed": RunEnded,
    "run.interrupted": RunEnded,
    "plan.sealed": PlanSealed,
    "checkpoint.published": CheckpointPublished,
}

OUTCOME_KINDS = frozenset({"operation.applied", "operation.skipped", "operation.failed", "operation.unknown"})
TERMINAL_KINDS = frozenset({"run.stopped", "run.applied", "run.failed", "run.interrupted", "plan.refused"})
CONTROL_KINDS = frozenset({"plan.committed", "plan.refused", "plan.sealed", "checkpoint.published"})

BY_WRITER = "writer"
"""Who a stop or a resumption is by that nobody ordered: the writer itself."""

WRITER_DIED = "WriterDiedError"
"""Error name of the unknown outcome that a successor records for the operation it found in flight."""

WRITER_CANCELLED = "WriterCancelledError"
"""Error name of the unknown outcome of an operation whose writer was cancelled while it was under way."""

CRASH_ERRORS = frozenset({WRITER_DIED, WRITER_CANCELLED})
"""Behind one of them the order stays open where its policy says so (``on_crash``), to be carried on."""


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event to append. ``body`` holds the canonical bytes."""

    event_id: uuid.UUID
    kind: str
    body: bytes
    run_id: str | None = None
    operation_id: str | None = None
    ordinal: int | None = None
    attempt: int | None = None
    schema_version: int = SCHEMA_VERSION


class StoredEvent(NamedTuple):
    """An event as stored, with its place in the chain. ``recorded_at`` is UTC, by the database's clock.

    A tuple, because a replay makes a million of them; the fields are those of the queries, in their order.
    """

    url: str
    branch: str
    position: int
    event_id: uuid.UUID
    kind: str
    schema_version: int
    run_id: str | None
    operation_id: str | None
    ordinal: int | None
    attempt: int | None
    writer_epoch: int | None
    recorded_at: datetime
    body: bytes
    prev_hash: bytes
    hash: bytes


def event_id(
    kind: str, *, url: str, branch: str, run_id: str | None, operation_id: str | None, n: str | int
) -> uuid.UUID:
    """Deterministic event id. ``n`` is, by kind, the epoch, attempt, commit id or number of the start."""
    name = canonical_json_bytes([kind, url, branch, run_id, operation_id, n]).decode()
    return uuid.uuid5(NAMESPACE, name)


def new_event(
    kind: str,
    body: Body,
    *,
    url: str,
    branch: str,
    n: str | int,
    run_id: str | None = None,
    operation_id: str | None = None,
    ordinal: int | None = None,
    attempt: int | None = None,
) -> NewEvent:
    """Build an event whose id follows from what it is about.

    Raises:
        TypeError: the body is not the model of that kind.
    """
    if type(body) is not BODIES[kind]:
        raise TypeError(f"{kind} takes a body of {BODIES[kind].__name__}, not {type(body).__name__}")
    return NewEvent(
        event_id=event_id(kind, url=url, branch=branch, run_id=run_id, operation_id=operation_id, n=n),
        kind=kind,
        body=body.canonical_bytes(),
        run_id=run_id,
        operation_id=operation_id,
        ordinal=ordinal,
        attempt=attempt,
    )
