"""Bindings, commits, events and plans for tests of the store; and ways to look behind its back."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import asyncpg

from ledger.binding import DestinationBinding
from ledger.chain import event_hash
from ledger.commit import PlanCommit, Policy, commit_id
from ledger.events import (
    NewEvent,
    OperationApplied,
    OperationUnknown,
    RunEnded,
    RunResumed,
    RunStarted,
    RunStopped,
    new_event,
)
from ledger.plan.canonical import canonical_json_bytes, object_key, operation_id
from ledger.store.ledger import Ledger
from ledger.store.writer import Lease, WriterStore

BINDING = DestinationBinding(url="http://infrahub.example:8000", branch="main")
RUN = "20261129T1900-0a1b2c3d"


def make_commit(run_id: str = RUN, checksum: str = "c" * 64, *, source: str = "netbox", **changes: Any) -> PlanCommit:
    """A commit of a plan with any checksum."""
    values: dict[str, Any] = {
        "commit_id": commit_id(run_id, checksum),
        "run_id": run_id,
        "binding": BINDING,
        "plan_checksum": checksum,
        "artifact_digest": "d" * 64,
        "format_version": 3,
        "operations_count": 3,
        "config_version": "config",
        "source": source,
        "artifact": f"{source}/{run_id}",
        "actor": "somebody",
        "policy": Policy(),
        "committed_at": "2026-11-29T19:00:00.000000+00:00",
    }
    return PlanCommit(**(values | changes))


def applied(lease: Lease, ordinal: int, *, run_id: str = RUN, attempt: int = 1, node_id: str = "node") -> NewEvent:
    """The success of one operation; its id follows from the ordinal."""
    return applied_operation(lease, op_id(ordinal), ordinal, run_id=run_id, attempt=attempt, node_id=node_id)


def applied_operation(
    lease: Lease, operation: str, ordinal: int, *, run_id: str = RUN, attempt: int = 1, node_id: str = "node"
) -> NewEvent:
    """The success of a named operation."""
    body = OperationApplied(node_id=node_id, sent_ms=1, duration_ms=2)
    return new_event(
        "operation.applied",
        body,
        url=lease.url,
        branch=lease.branch,
        run_id=run_id,
        operation_id=operation,
        ordinal=ordinal,
        attempt=attempt,
        n=attempt,
    )


def unknown(lease: Lease, ordinal: int, *, run_id: str = RUN, attempt: int = 1) -> NewEvent:
    """An outcome that may have written."""
    body = OperationUnknown(error="ReadTimeout", message="no answer", sent=True, next_action="look")
    return new_event(
        "operation.unknown",
        body,
        url=lease.url,
        branch=lease.branch,
        run_id=run_id,
        operation_id=op_id(ordinal),
        ordinal=ordinal,
        attempt=attempt,
        n=attempt,
    )


def run_started(lease: Lease, *, run_id: str = RUN, n: int = 0) -> NewEvent:
    """A run whose gate was passed."""
    body = RunStarted(plan_checksum="c" * 64, operations_count=3, policy=Policy(), source="netbox", overlaps=[])
    return new_event("run.started", body, url=lease.url, branch=lease.branch, run_id=run_id, n=n)


def run_resumed(lease: Lease, *, run_id: str = RUN, n: int) -> NewEvent:
    """A run that goes on."""
    body = RunResumed(by="somebody", reason="test", from_ordinal=1, policy=Policy())
    return new_event("run.resumed", body, url=lease.url, branch=lease.branch, run_id=run_id, n=n)


def run_stopped(lease: Lease, *, run_id: str = RUN, n: int = 0) -> NewEvent:
    """A run stopped between two operations."""
    body = RunStopped(by="somebody", reason="test", last_ordinal=None)
    return new_event("run.stopped", body, url=lease.url, branch=lease.branch, run_id=run_id, n=n)


def run_interrupted(lease: Lease, *, run_id: str = RUN, n: int = 0) -> NewEvent:
    """A run that ended in doubt about its first operation."""
    body = RunEnded(
        applied=0, skipped=0, not_attempted=2, failed_operation=op_id(0), failed_operation_wrote=None, last_ordinal=0
    )
    return new_event("run.interrupted", body, url=lease.url, branch=lease.branch, run_id=run_id, n=n)


def run_applied(lease: Lease, *, run_id: str = RUN, n: int = 0) -> NewEvent:
    """A run applied to its end."""
    body = RunEnded(
        applied=1, skipped=0, not_attempted=0, failed_operation=None, failed_operation_wrote=None, last_ordinal=0
    )
    return new_event("run.applied", body, url=lease.url, branch=lease.branch, run_id=run_id, n=n)


def op_id(ordinal: int) -> str:
    """An operation id."""
    return f"op_{ordinal:016x}"


@dataclass(frozen=True)
class TinyPlan:
    """A plan as the store takes it: any number of creates of one kind."""

    checksum: str
    body: bytes
    lines: tuple[bytes, ...]
    object_keys: tuple[bytes, ...]
    operation_ids: tuple[str, ...]

    @classmethod
    def of(cls, names: list[str], *, note: str = "") -> TinyPlan:
        """Creates for these names; another ``note`` makes another plan of the same objects."""
        identities = [{"name": name} for name in names]
        ids = [operation_id("create", "BuiltinTag", identity) for identity in identities]
        lines = tuple(
            canonical_json_bytes({"action": "create", "identity": identity, "kind": "BuiltinTag", "operation_id": id_})
            + b"\n"
            for identity, id_ in zip(identities, ids, strict=True)
        )
        body = canonical_json_bytes({"format_version": 3, "note": note})
        return cls(
            checksum=hashlib.sha256(body + b"".join(lines)).hexdigest(),
            body=body,
            lines=lines,
            object_keys=tuple(object_key("BuiltinTag", identity) for identity in identities),
            operation_ids=tuple(ids),
        )

    async def store(self, ledger: Ledger, coverage: list[bytes] | None = None) -> None:
        """Store it."""
        await ledger.store_plan(
            checksum=self.checksum,
            body=self.body,
            lines=self.lines,
            object_keys=self.object_keys,
            coverage=coverage,
        )


@asynccontextmanager
async def open_writer(dsn: str, **options: Any) -> AsyncIterator[WriterStore]:
    """A writer's store on a test cluster."""
    async with await WriterStore.open(dsn, allow_unsafe_fsync=True, **options) as store:
        yield store


@asynccontextmanager
async def connection_to(dsn: str) -> AsyncIterator[Any]:
    """A bare connection, to do what the store would not."""
    connection = await asyncpg.connect(dsn)
    try:
        yield connection
    finally:
        await connection.close()


async def claim(store: WriterStore, binding_id: int, owner: str = "writer-1", *, ttl: float = 86400.0) -> Lease:
    """Claim with times that do not run out by themselves."""
    return await store.claim(
        binding_id, owner=owner, ttl=ttl, settle=30.0, body_host="host", body_process_id=f"process of {owner}"
    )


async def let_lease_run_out(admin: Any, binding_id: int) -> None:
    """Move the end of the lease into the past, instead of waiting for it."""
    await admin.execute(
        "update ledger.binding set lease_expires_at = clock_timestamp() - interval '1 ms' where id = $1", binding_id
    )


async def let_it_settle(admin: Any, binding_id: int) -> None:
    """Move the end of the quiet period into the past."""
    await admin.execute(
        "update ledger.binding set quiet_until = clock_timestamp() - interval '1 ms' where id = $1", binding_id
    )


async def until(condition: Callable[[], Any], *, within: float = 20.0) -> None:
    """Wait until an awaited condition is true; fails after ``within`` seconds."""
    async with asyncio.timeout(within):
        while not await condition():  # noqa: ASYNC110 - the other side is a database, which sets no event of ours
            await asyncio.sleep(0.01)


async def chain_is_whole(ledger: Ledger, binding_id: int) -> int:
    """Recompute a binding's chain without its SQL; returns the number of events."""
    position, previous = 0, bytes(32)
    async for event in ledger.events(binding_id):
        position += 1
        assert event.position == position
        assert event.prev_hash == previous
        assert event.hash == event_hash(event)
        previous = event.hash
    row = next(row for row in await ledger.bindings() if row.id == binding_id)
    assert (row.head_position, row.head_hash) == (position, previous)
    return position
