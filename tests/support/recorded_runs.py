"""Whole runs recorded in a real database through the store's own functions, without a destination."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from ledger.binding import DestinationBinding
from ledger.commit import PlanCommit, Policy, commit_id, utc_text
from ledger.errors import Finding
from ledger.events import (
    TERMINAL_KINDS,
    WRITER_DIED,
    Body,
    NewEvent,
    OperationApplied,
    OperationFailed,
    OperationSkipped,
    OperationUnknown,
    Overlap,
    PlanRefused,
    RunEnded,
    RunResumed,
    RunStarted,
    RunStopped,
    new_event,
)
from ledger.plan.canonical import canonical_json_bytes, object_key, operation_id
from ledger.plan.checksum import artifact_digest, checksummed_body, plan_checksum
from ledger.plan.model import PlannedOperation
from ledger.store.ledger import Ledger
from ledger.store.records import Appended, Lease, OrderState
from ledger.store.writer import WriterStore
from tests.support.events import BRANCH, RUN, URL

BINDING = DestinationBinding(url=URL, branch=BRANCH)


@dataclass(frozen=True)
class RecordedPlan:
    """A small plan: creates, then deletes."""

    run_id: str
    source: str
    operations: tuple[PlannedOperation, ...]
    manifest: bytes
    body: bytes
    checksum: str
    coverage: tuple[bytes, ...]

    @property
    def lines(self) -> list[bytes]:
        """The exact lines."""
        return [operation.line() for operation in self.operations]

    @property
    def digest(self) -> str:
        """Of the raw artifact."""
        return artifact_digest(self.manifest, b"".join(self.lines))


def make_plan(run_id: str = RUN, *, creates: int = 3, deletes: int = 1, source: str = "netbox") -> RecordedPlan:
    """A plan of tags; the same numbers give the same checksum for every run."""
    operations = []
    for tier, action, count in ((0, "create", creates), (1, "delete", deletes)):
        for number in range(count):
            identity = {"name": f"{action}-{number}"}
            record = {
                "operation_id": operation_id(action, "BuiltinTag", identity),
                "action": action,
                "kind": "BuiltinTag",
                "identity": identity,
                "tier": tier,
            }
            operations.append(PlannedOperation(**record, **({"payload": identity} if action == "create" else {})))
    operations.sort(key=lambda operation: (operation.tier, operation.operation_id))
    lines = b"".join(operation.line() for operation in operations)
    coverage = tuple(
        canonical_json_bytes({"action": operation.action, "operation_id": operation.operation_id}) + b"\n"
        for operation in operations
    )
    document = {
        "format_version": 3,
        "run_id": run_id,
        "created_at": "2026-11-29T12:00:00.000000+00:00",
        "config_version": "v1",
        "source": source,
        "source_snapshot": [],
        "operations_count": len(operations),
        "delete_operations_computed": True,
        "destination_binding": {"url": URL, "branch": BRANCH},
        "coverage": {"digest": hashlib.sha256(b"".join(coverage)).hexdigest(), "counts": {}},
    }
    checksum = plan_checksum(document, lines)
    manifest = canonical_json_bytes({**document, "plan_checksum": checksum})
    return RecordedPlan(run_id, source, tuple(operations), manifest, checksummed_body(document), checksum, coverage)


def make_commit(plan: RecordedPlan) -> PlanCommit:
    """The commit of a plan."""
    return PlanCommit(
        commit_id=commit_id(plan.run_id, plan.checksum),
        run_id=plan.run_id,
        binding=BINDING,
        plan_checksum=plan.checksum,
        artifact_digest=plan.digest,
        format_version=3,
        operations_count=len(plan.operations),
        config_version="v1",
        source=plan.source,
        artifact=f"{plan.source}/{plan.run_id}",
        actor="somebody",
        committed_at=utc_text(datetime(2026, 11, 29, 12, 0, tzinfo=UTC)),
    )


@dataclass
class Recorder:
    """Records runs as the writer does."""

    ledger: Ledger
    writer: WriterStore
    binding_id: int
    lease: Lease

    async def commit(self, plan: RecordedPlan, *, store: bool = True, policy: Policy | None = None) -> None:
        """Commit a plan, and store it as the writer does once it is verified."""
        commit = make_commit(plan)
        await self.ledger.submit_commit(
            self.binding_id, commit if policy is None else commit.model_copy(update={"policy": policy})
        )
        if store:
            await self.store(plan)

    async def store(self, plan: RecordedPlan) -> None:
        """Store the plan and the run's manifest."""
        await self.ledger.store_plan(
            checksum=plan.checksum,
            body=plan.body,
            lines=plan.lines,
            object_keys=[object_key(operation.kind, operation.identity) for operation in plan.operations],
            coverage=plan.coverage,
        )
        await self.ledger.store_artifact(
            binding_id=self.binding_id,
            run_id=plan.run_id,
            checksum=plan.checksum,
            source=plan.source,
            manifest=plan.manifest,
            digest=plan.digest,
        )

    async def started(
        self,
        plan: RecordedPlan,
        *,
        by: str | None = None,
        reason: str | None = None,
        overlaps: Sequence[Overlap] = (),
    ) -> Appended:
        """``run.started``; ``by`` and ``reason`` are those of the order to resume a refused run."""
        body = RunStarted(
            plan_checksum=plan.checksum,
            operations_count=len(plan.operations),
            policy=Policy(),
            source=plan.source,
            overlaps=list(overlaps),
            by=by,
            reason=reason,
        )
        return await self.event("run.started", body, plan.run_id, n=0)

    async def ordered_to_resume(self, plan: RecordedPlan, *, by: str, reason: str) -> None:
        """As an operator orders it, under the usual policy."""
        await self.ledger.submit_resume(self.binding_id, run_id=plan.run_id, by=by, reason=reason, policy=Policy())

    async def refused(self, plan: RecordedPlan) -> Appended:
        """``plan.refused``, as stale."""
        finding = Finding(name="StalePlanError", checked="c", expected="e", found="f", next_action="n")
        return await self.event("plan.refused", PlanRefused(findings=[finding]), plan.run_id, n=0)

    async def resumed(self, plan: RecordedPlan, ordinal: int) -> Appended:
        """Ordered, and ``run.resumed``."""
        await self.ordered_to_resume(plan, by="somebody", reason="again")
        body = RunResumed(by="somebody", reason="again", from_ordinal=ordinal, policy=Policy())
        return await self.event("run.resumed", body, plan.run_id, n=f"resume-{ordinal}")

    async def outcome(self, plan: RecordedPlan, ordinal: int, outcome: str, *, attempt: int = 1) -> Appended:
        """One outcome."""
        bodies: Mapping[str, Body] = {
            "applied": OperationApplied(node_id=f"node-{ordinal}", sent_ms=1, duration_ms=2),
            "skipped": OperationSkipped(why="recorded delete"),
            "failed": OperationFailed(error="PeerNotFoundError", message="no such peer", next_action="plan again"),
            "unknown": OperationUnknown(error="ReadTimeout", message="no answer", sent=True, next_action="resume"),
        }
        event = _outcome(plan, ordinal, f"operation.{outcome}", bodies[outcome], attempt)
        return await self.writer.append(self.lease, [event])

    async def crashed(self, plan: RecordedPlan, ordinal: int, *, n: str | int, keeps_order: bool) -> Appended:
        """What a successor records of the operation in flight and its run; the order stays open to be carried on."""
        unknown = OperationUnknown(error=WRITER_DIED, message="gone", sent=True, next_action="resume")
        events = [
            _outcome(plan, ordinal, "operation.unknown", unknown, 1),
            new_event("run.interrupted", _ENDED, url=URL, branch=BRANCH, n=n, run_id=plan.run_id),
        ]
        closed = [] if keeps_order else await self._ended_orders("run.interrupted", plan.run_id)
        return await self.writer.append(self.lease, events, close_orders=closed)

    async def ended(self, plan: RecordedPlan, kind: str, *, n: str | int = 0) -> Appended:
        """A terminal event."""
        if kind == "run.stopped":
            return await self.event(
                kind, RunStopped(by="somebody", reason="lunch", last_ordinal=None), plan.run_id, n=n
            )
        return await self.event(kind, _ENDED, plan.run_id, n=n)

    async def event(self, kind: str, body: Body, run_id: str, *, n: str | int) -> Appended:
        """Any event of a run; one that ends it closes what was ordered for it."""
        event = new_event(kind, body, url=URL, branch=BRANCH, n=n, run_id=run_id)
        return await self.writer.append(self.lease, [event], close_orders=await self._ended_orders(kind, run_id))

    async def _ended_orders(self, kind: str, run_id: str) -> list[tuple[int, OrderState]]:
        if kind not in TERMINAL_KINDS:
            return []
        orders = [order for order in await self.ledger.open_orders(self.binding_id) if order.run_id == run_id]
        refused = kind == "plan.refused"
        return [(order.inbox_id, "refused" if refused and order.kind != "stop" else "done") for order in orders]

    async def whole_run(self, plan: RecordedPlan) -> None:
        """Commit, store, start, apply creates, skip deletes, end."""
        await self.commit(plan)
        await self.started(plan)
        for ordinal, operation in enumerate(plan.operations):
            await self.outcome(plan, ordinal, "skipped" if operation.action == "delete" else "applied")
        await self.ended(plan, "run.applied")


_ENDED = RunEnded(
    applied=0, skipped=0, not_attempted=0, failed_operation=None, failed_operation_wrote=None, last_ordinal=None
)


def _outcome(plan: RecordedPlan, ordinal: int, kind: str, body: Body, attempt: int) -> NewEvent:
    return new_event(
        kind,
        body,
        url=URL,
        branch=BRANCH,
        n=attempt,
        run_id=plan.run_id,
        operation_id=plan.operations[ordinal].operation_id,
        ordinal=ordinal,
        attempt=attempt,
    )


@asynccontextmanager
async def recorder(dsns: Mapping[str, str]) -> AsyncIterator[Recorder]:
    """A claimed binding to record on."""
    async with (
        await Ledger.open(dsns["writer"], allow_unsafe_fsync=True) as ledger,
        await WriterStore.open(dsns["writer"], allow_unsafe_fsync=True) as writer,
    ):
        binding_id = await ledger.register_binding(BINDING)
        lease = await writer.claim(
            binding_id, owner="tests", ttl=86_400, settle=0, body_host="host", body_process_id="process"
        )
        yield Recorder(ledger, writer, binding_id, lease)
