"""Chained events made without a database, for tests of the chain and of the folds."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from ledger.binding import DestinationBinding
from ledger.chain import GENESIS, event_hash
from ledger.commit import PlanCommit, Policy, commit_id, utc_text
from ledger.events import (
    Body,
    OperationApplied,
    OperationFailed,
    OperationSkipped,
    OperationUnknown,
    Overlap,
    PlanCommitted,
    RunEnded,
    RunResumed,
    RunStarted,
    RunStopped,
    StoredEvent,
)
from ledger.plan.canonical import canonical_json_bytes

URL = "http://infrahub.example:8000"
BRANCH = "main"
RUN = "20261129T1900-0a1b2c3d"
START = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)


def operation_id(ordinal: int) -> str:
    """An id in the shape of the plan's."""
    return f"op_{ordinal:016x}"


@dataclass
class EventLog:
    """Appends events as the store would: next position, chained to the one before."""

    url: str = URL
    branch: str = BRANCH
    events: list[StoredEvent] = field(default_factory=list)

    def append(
        self,
        kind: str,
        body: Body | dict[str, Any] | None = None,
        *,
        run_id: str | None = RUN,
        ordinal: int | None = None,
        attempt: int | None = None,
        schema_version: int = 1,
    ) -> StoredEvent:
        """Append one event; an ordinal makes it the outcome of that operation."""
        position = len(self.events) + 1
        event = StoredEvent(
            url=self.url,
            branch=self.branch,
            position=position,
            event_id=uuid.UUID(int=position, version=4),
            kind=kind,
            schema_version=schema_version,
            run_id=run_id,
            operation_id=None if ordinal is None else operation_id(ordinal),
            ordinal=ordinal,
            attempt=attempt if ordinal is None or attempt is not None else 1,
            writer_epoch=None if kind.startswith("plan.") else 1,
            recorded_at=START + timedelta(milliseconds=position),
            body=body.canonical_bytes() if isinstance(body, Body) else canonical_json_bytes(body or {}),
            prev_hash=self.events[-1].hash if self.events else GENESIS,
            hash=b"",
        )
        event = event._replace(hash=event_hash(event))
        self.events.append(event)
        return event

    def commit(self, planned: int, *, run_id: str = RUN, source: str = "netbox") -> StoredEvent:
        """``plan.committed`` of a plan with so many operations."""
        checksum = "c" * 64
        commit = PlanCommit(
            commit_id=commit_id(run_id, checksum),
            run_id=run_id,
            binding=DestinationBinding(url=self.url, branch=self.branch),
            plan_checksum=checksum,
            artifact_digest="d" * 64,
            format_version=3,
            operations_count=planned,
            config_version="v1",
            source=source,
            artifact=f"{source}/{run_id}",
            actor="somebody",
            committed_at=utc_text(START),
        )
        return self.append("plan.committed", PlanCommitted(commit=commit), run_id=run_id)

    def applied(self, ordinal: int, *, attempt: int = 1, run_id: str = RUN) -> StoredEvent:
        """``operation.applied``."""
        body = OperationApplied(node_id=f"node-{ordinal}", sent_ms=1, duration_ms=2)
        return self.append("operation.applied", body, ordinal=ordinal, attempt=attempt, run_id=run_id)

    def skipped(self, ordinal: int, *, attempt: int = 1, run_id: str = RUN) -> StoredEvent:
        """``operation.skipped``."""
        body = OperationSkipped(why="recorded delete")
        return self.append("operation.skipped", body, ordinal=ordinal, attempt=attempt, run_id=run_id)

    def failed(self, ordinal: int, *, attempt: int = 1, run_id: str = RUN) -> StoredEvent:
        """``operation.failed``: proven unwritten."""
        body = OperationFailed(error="PeerNotFoundError", message="no such peer", next_action="make a fresh plan")
        return self.append("operation.failed", body, ordinal=ordinal, attempt=attempt, run_id=run_id)

    def unknown(self, ordinal: int, *, attempt: int = 1, run_id: str = RUN) -> StoredEvent:
        """``operation.unknown``: may have written."""
        body = OperationUnknown(error="ReadTimeout", message="no answer", sent=True, next_action="resume")
        return self.append("operation.unknown", body, ordinal=ordinal, attempt=attempt, run_id=run_id)

    def started(self, planned: int, *, run_id: str = RUN, overlaps: Sequence[Overlap] = ()) -> StoredEvent:
        """``run.started``."""
        body = RunStarted(
            plan_checksum="c" * 64,
            operations_count=planned,
            policy=Policy(),
            source="netbox",
            overlaps=list(overlaps),
        )
        return self.append("run.started", body, run_id=run_id)

    def resumed(self, ordinal: int, *, run_id: str = RUN) -> StoredEvent:
        """``run.resumed``."""
        body = RunResumed(by="somebody", reason="again", from_ordinal=ordinal, policy=Policy())
        return self.append("run.resumed", body, run_id=run_id)

    def ended(self, kind: str, *, run_id: str = RUN) -> StoredEvent:
        """``run.applied``, ``run.failed`` or ``run.interrupted``, with a body that no fold may believe."""
        body = RunEnded(
            applied=999,
            skipped=999,
            not_attempted=999,
            failed_operation="op_9999999999999999",
            failed_operation_wrote=None,
            last_ordinal=999,
        )
        return self.append(kind, body, run_id=run_id)

    def stopped(self, *, run_id: str = RUN) -> StoredEvent:
        """``run.stopped``."""
        return self.append("run.stopped", RunStopped(by="somebody", reason="lunch", last_ordinal=0), run_id=run_id)


def rechained(events: Sequence[StoredEvent], *, start: int) -> list[StoredEvent]:
    """What somebody does who edits an event and recomputes every hash from ``start`` on."""
    result: list[StoredEvent] = []
    for index, event in enumerate(events):
        changed = event
        if index >= start:
            changed = event._replace(prev_hash=result[-1].hash if result else GENESIS)
            changed = changed._replace(hash=event_hash(changed))
        result.append(changed)
    return result
