"""Ledgers that hold many finished runs already. A commit for each operation would take half an hour, so the outcomes
are written past the append function, chained by the audit's own hash; everything else goes the ordinary way.

An audit finds nothing wrong with what stands there afterwards.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from ledger.binding import DestinationBinding
from ledger.chain import event_hash
from ledger.commit import PlanCommit, Policy, commit_id
from ledger.events import OperationApplied, RunEnded, RunStarted, StoredEvent, new_event
from ledger.plan.canonical import canonical_json_bytes, object_key, operation_id
from ledger.plan.checksum import artifact_digest, checksummed_body, plan_checksum
from ledger.plan.model import PlannedOperation
from ledger.store.embedded import Dsns
from ledger.store.ledger import Ledger
from ledger.store.records import Appended, Lease
from ledger.store.writer import WriterStore
from tests.bench.server import connection_to

BINDING = DestinationBinding(url="http://infrahub.example:8000", branch="main")
SOURCE = "nightly"
_TIME = "2026-11-29T12:00:00.000000+00:00"
_COLUMNS = (
    "binding_id", "position", "event_id", "kind", "schema_version", "run_id", "operation_id", "ordinal", "attempt",
    "writer_epoch", "recorded_at", "body", "prev_hash", "hash",
)  # fmt: skip


async def record_runs(dsns: Dsns, *, runs: int, operations: int, binding: DestinationBinding = BINDING) -> int:
    """Fill a new binding with ``runs`` applied runs of ``operations`` operations each; returns its id.

    All runs are of one source and write the same objects, as a nightly sync does; each has a plan of its own.
    """
    lines = _lines(operations)
    async with (
        await Ledger.open(dsns.writer) as ledger,
        await WriterStore.open(dsns.writer) as writer,
        connection_to(dsns.admin) as admin,
    ):
        binding_id = await ledger.register_binding(binding)
        lease = await writer.claim(
            binding_id, owner="bench", ttl=3600, settle=0, body_host="host", body_process_id="process"
        )
        for number in range(runs):
            await _record_run(ledger, writer, admin, lease, _Plan.of(number, binding, lines))
        await writer.release(lease)
        await admin.execute("vacuum (analyze) ledger.event, ledger.plan_operation, ledger.inbox")
        await admin.execute("checkpoint")
    return binding_id


@dataclass(frozen=True)
class _Plan:
    """One run's plan as it is committed and stored."""

    commit: PlanCommit
    manifest: bytes
    body: bytes
    lines: Sequence[tuple[str, bytes, bytes]]

    @classmethod
    def of(cls, number: int, binding: DestinationBinding, lines: Sequence[tuple[str, bytes, bytes]]) -> _Plan:
        """The plan of the ``number``-th run; the config version makes its checksum another one."""
        run_id, config = f"20261129T120000-{number:08x}", f"v{number}"
        operations = b"".join(line for _, line, _ in lines)
        document = {
            "format_version": 3,
            "run_id": run_id,
            "created_at": _TIME,
            "config_version": config,
            "source": SOURCE,
            "source_snapshot": [],
            "operations_count": len(lines),
            "delete_operations_computed": True,
            "destination_binding": {"url": binding.url, "branch": binding.branch},
        }
        checksum = plan_checksum(document, operations)
        manifest = canonical_json_bytes({**document, "plan_checksum": checksum})
        commit = PlanCommit(
            commit_id=commit_id(run_id, checksum),
            run_id=run_id,
            binding=binding,
            plan_checksum=checksum,
            artifact_digest=artifact_digest(manifest, operations),
            format_version=3,
            operations_count=len(lines),
            config_version=config,
            source=SOURCE,
            artifact=f"{SOURCE}/{run_id}",
            actor="somebody",
            committed_at=_TIME,
        )
        return cls(commit, manifest, checksummed_body(document), lines)


def _lines(count: int) -> list[tuple[str, bytes, bytes]]:
    """Operation id, line and object key of creates of that many tags, in the plan's order."""
    found = []
    for number in range(count):
        identity = {"name": f"tag-{number}"}
        operation = PlannedOperation(
            operation_id=operation_id("create", "BuiltinTag", identity),
            action="create",
            kind="BuiltinTag",
            identity=identity,
            payload=identity,
            tier=0,
        )
        found.append((operation.operation_id, operation.line(), object_key("BuiltinTag", identity)))
    return sorted(found)


async def _record_run(ledger: Ledger, writer: WriterStore, admin: Any, lease: Lease, plan: _Plan) -> None:
    commit = plan.commit
    order = await ledger.submit_commit(lease.binding_id, commit)
    await ledger.store_plan(
        checksum=commit.plan_checksum,
        body=plan.body,
        lines=[line for _, line, _ in plan.lines],
        object_keys=[key for _, _, key in plan.lines],
        coverage=None,
    )
    await ledger.store_artifact(
        binding_id=lease.binding_id,
        run_id=commit.run_id,
        checksum=commit.plan_checksum,
        source=commit.source,
        manifest=plan.manifest,
        digest=commit.artifact_digest,
    )
    run_event = partial(new_event, url=lease.url, branch=lease.branch, run_id=commit.run_id, n=0)
    count = len(plan.lines)
    started = RunStarted(
        plan_checksum=commit.plan_checksum, operations_count=count, policy=Policy(), source=SOURCE, overlaps=[]
    )
    head = await writer.append(lease, [run_event("run.started", started)])
    await _copy_outcomes(admin, lease, plan, head)
    ended = RunEnded(
        applied=count,
        skipped=0,
        not_attempted=0,
        failed_operation=None,
        failed_operation_wrote=None,
        last_ordinal=count - 1,
    )
    await writer.append(
        lease, [run_event("run.applied", ended)], in_flight=None, close_orders=[(order.inbox_id, "done")]
    )


async def _copy_outcomes(admin: Any, lease: Lease, plan: _Plan, head: Appended) -> None:
    last = [head.last_position, head.head_hash]

    def rows() -> Iterator[tuple[Any, ...]]:
        for event in _outcomes(lease, plan, head):
            last[:] = event.position, event.hash
            yield (
                lease.binding_id, event.position, event.event_id, event.kind, event.schema_version, event.run_id,
                event.operation_id, event.ordinal, event.attempt, event.writer_epoch, event.recorded_at,
                event.body.decode(), event.prev_hash, event.hash,
            )  # fmt: skip

    async with admin.transaction():
        await admin.copy_records_to_table("event", schema_name="ledger", columns=_COLUMNS, records=rows())
        await admin.execute(
            "update ledger.binding set head_position = $2, head_hash = $3 where id = $1", lease.binding_id, *last
        )


def _outcomes(lease: Lease, plan: _Plan, head: Appended) -> Iterator[StoredEvent]:
    previous = head.head_hash
    for ordinal, (operation, _, _) in enumerate(plan.lines):
        node = hashlib.sha256(operation.encode()).hexdigest()[:32]
        new = new_event(
            "operation.applied",
            OperationApplied(node_id=f"{node[:8]}-{node[8:12]}-{node[12:]}", sent_ms=ordinal * 2, duration_ms=2),
            url=lease.url,
            branch=lease.branch,
            run_id=plan.commit.run_id,
            operation_id=operation,
            ordinal=ordinal,
            attempt=1,
            n=1,
        )
        unsealed = StoredEvent(
            url=lease.url,
            branch=lease.branch,
            position=head.last_position + 1 + ordinal,
            event_id=new.event_id,
            kind=new.kind,
            schema_version=new.schema_version,
            run_id=new.run_id,
            operation_id=operation,
            ordinal=ordinal,
            attempt=1,
            writer_epoch=lease.epoch,
            recorded_at=datetime.now(UTC),
            body=new.body,
            prev_hash=previous,
            hash=b"",
        )
        previous = event_hash(unsealed)
        yield unsealed._replace(hash=previous)
