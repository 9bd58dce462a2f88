"""From what the store hands out to what the API answers with; pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC
from typing import Any, cast

from ledger.api import models
from ledger.audit.bodies import parsed_object
from ledger.commit import utc_text
from ledger.events import StoredEvent
from ledger.projections.binding_status import BindingStatus
from ledger.projections.run_lines import RunLine
from ledger.store.pages import (
    ClosedOrder,
    CommittedRun,
    LiveWorker,
    OperationRow,
    RefusedMessage,
    RunMark,
    RunRow,
    WaitingOrders,
)
from ledger.store.records import BindingRow
from ledger.store.story_pages import RefusalMark


def binding_view(
    row: BindingRow, status: BindingStatus | None, projected: int, waiting: WaitingOrders | None
) -> models.BindingView:
    """A binding. The owner of its lease stays inside: with the epoch it would be the right to write."""
    mark = row.in_flight
    return models.BindingView(
        id=row.id,
        url=row.url,
        branch=row.branch,
        head_position=row.head_position,
        head_hash=row.head_hash.hex(),
        projected_position=projected,
        writer=models.WriterView(
            epoch=row.writer_epoch,
            host=row.lease_host,
            taken_at=row.lease_taken_at,
            lease_expires_in=row.lease_expires_in,
            live=row.has_live_lease,
        ),
        in_flight=mark and models.InFlightView(run_id=mark.run_id, ordinal=mark.ordinal, attempt=mark.attempt),
        quiet_for=row.quiet_for,
        open_orders=waiting.orders if waiting else 0,
        oldest_open_order_at=waiting and waiting.since,
        last_commit=status and status.last_commit,
        last_start=status and status.last_start,
        last_end=status and status.last_end,
        last_applied=status and status.last_applied,
    )


def run_view(row: RunRow) -> models.RunView:
    """One run of a list."""
    return models.RunView(**_run_fields(row))


def _run_fields(row: RunRow) -> dict[str, Any]:
    line = row.line or RunLine(run_id=row.run_id, position=0)
    commitment, first, end = line.commitment, line.first_start, line.last_end
    return {
        "binding_id": row.binding_id,
        "run_id": row.run_id,
        "source": row.source,
        "actor": commitment and commitment.actor,
        "reason": row.reason,
        "state": line.state,
        "running": line.is_running,
        "order_state": row.order_state,
        "plan_checksum": commitment and commitment.plan_checksum,
        "planned": line.planned,
        "applied": line.applied,
        "skipped": line.skipped,
        "failed": line.count("failed"),
        "unknown": line.count("unknown"),
        "not_attempted": line.not_attempted,
        "failed_operation": line.failed_operation,
        "failed_operation_wrote": line.failed_operation_wrote,
        "may_have_partially_written": line.may_have_partially_written,
        "committed_at": commitment and commitment.committed_at,
        "received_at": row.received_at,
        "committed_position": commitment and commitment.position,
        "started_at": first and first.at,
        "started_position": first and first.position,
        "ended_at": end and end.at,
        "ended_position": end and end.position,
    }


def run_detail(
    run: CommittedRun, end: RunMark | None, overlaps: tuple[Any, ...], overlaps_total: int, *, plan_stored: bool
) -> models.RunDetail:
    """One run, whole but for its operations."""
    line, commit = run.row.line, run.commit
    return models.RunDetail(
        **_run_fields(run.row),
        commit=models.CommitView(
            commit_id=commit.commit_id,
            artifact=commit.artifact,
            artifact_digest=commit.artifact_digest,
            config_version=commit.config_version,
            format_version=commit.format_version,
            reason=commit.reason,
            policy=commit.policy,
            traceparent=commit.traceparent,
        ),
        ending=end
        and models.EndView(
            position=end.position,
            kind=end.kind,
            recorded_at=end.recorded_at,
            body=parsed_object(end.body) or {},
        ),
        overlaps=list(overlaps),
        overlaps_total=overlaps_total,
        unsettled=[models.UnsettledView(**item.model_dump()) for item in (line.unsettled if line else ())],
        plan_stored=plan_stored,
    )


def plan_refusal_view(mark: RefusalMark, run: RunRow | None) -> models.PlanRefusalView:
    """A refusal with its run."""
    return models.PlanRefusalView(
        binding_id=mark.binding_id,
        run_id=mark.run_id,
        position=mark.position,
        recorded_at=mark.recorded_at,
        body=parsed_object(mark.body) or {},
        run=None if run is None else run_view(run),
    )


def outcome_of(row: OperationRow) -> models.OutcomeName:
    """The one thing that is true of an operation."""
    return "not_attempted" if row.state is None else row.state.outcome


def operation_view(row: OperationRow) -> models.OperationView:
    """An operation in a list."""
    return models.OperationView(**_operation_fields(row, parsed_object(row.line) or {}))


def operation_detail(row: OperationRow, observed: Mapping[str, Any]) -> models.OperationDetail:
    """An operation, whole."""
    record = parsed_object(row.line) or {}
    return models.OperationDetail(
        **_operation_fields(row, record),
        destination_id=record.get("destination_id"),
        payload=record.get("payload"),
        observed=dict(observed),
        line=row.line.decode(),
    )


def _operation_fields(row: OperationRow, record: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "ordinal": row.ordinal,
        "operation_id": row.operation_id,
        "tier": record.get("tier"),
        "action": record.get("action"),
        "kind": record.get("kind"),
        "identity": record.get("identity") or {},
        "outcome": outcome_of(row),
        "attempts": list(row.state.attempts) if row.state else [],
    }


def event_json(event: StoredEvent) -> str:
    """An event as one line of JSON, of the shape of :class:`ledger.api.models.EventView`.

    The body goes in as the very text that was recorded: parsed and written again, numbers could look otherwise.
    """
    head = {
        "position": event.position,
        "event_id": str(event.event_id),
        "kind": event.kind,
        "schema_version": event.schema_version,
        "run_id": event.run_id,
        "operation_id": event.operation_id,
        "ordinal": event.ordinal,
        "attempt": event.attempt,
        "writer_epoch": event.writer_epoch,
        "recorded_at": utc_text(event.recorded_at.astimezone(UTC)),
        "prev_hash": event.prev_hash.hex(),
        "hash": event.hash.hex(),
    }
    text = json.dumps(head, ensure_ascii=False, separators=(",", ":"))
    return f'{text[:-1]},"body":{_one_line(event.body.decode())}}}'


def _one_line(body: str) -> str:
    """A body that our program recorded has no line ends outside of its strings; one of a forger may."""
    return body if "\n" not in body and "\r" not in body else json.dumps(json.loads(body), separators=(",", ":"))


def order_view(row: ClosedOrder) -> models.OrderView:
    """An order."""
    order = row.order
    return models.OrderView(
        inbox_id=order.inbox_id,
        order_id=str(order.order_id),
        kind=order.kind,
        run_id=order.run_id,
        state=order.state,
        position=order.position,
        received_at=order.received_at,
        closed_at=row.closed_at,
        body=cast("dict[str, Any]", order.body),
    )


def refused_message_view(row: RefusedMessage) -> models.RefusedMessageView:
    """A refused message."""
    return models.RefusedMessageView(
        topic=row.topic,
        partition=row.partition,
        offset=row.offset,
        digest=row.digest.hex(),
        reason=row.reason,
        recorded_at=row.recorded_at,
    )


def worker_view(row: LiveWorker) -> models.WorkerView:
    """A worker."""
    return models.WorkerView(
        worker_id=row.worker_id, host=row.host, serves=list(row.serves), held=row.held, expires_in=row.expires_in
    )
