"""Chained events made without a database, for tests of the chain and of the folds."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from ledger.chain import GENESIS, event_hash
from ledger.events import StoredEvent

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
        body: dict[str, Any] | None = None,
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
            body=json.dumps(body or {}, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode(),
            prev_hash=self.events[-1].hash if self.events else GENESIS,
            hash=b"",
        )
        event = replace(event, hash=event_hash(event))
        self.events.append(event)
        return event

    def commit(self, planned: int, *, run_id: str = RUN, source: str = "netbox") -> StoredEvent:
        """``plan.committed`` of a plan with so many operations."""
        commit = {
            "run_id": run_id,
            "plan_checksum": "c" * 64,
            "operations_count": planned,
            "source": source,
            "actor": "somebody",
            "committed_at": "2026-11-29T12:00:00.000000+00:00",
        }
        return self.append("plan.committed", {"commit": commit}, run_id=run_id)


def rechained(events: Sequence[StoredEvent], *, start: int) -> list[StoredEvent]:
    """What somebody does who edits an event and recomputes every hash from ``start`` on."""
    result: list[StoredEvent] = []
    for index, event in enumerate(events):
        changed = event
        if index >= start:
            changed = replace(event, prev_hash=result[-1].hash if result else GENESIS)
            changed = replace(changed, hash=event_hash(changed))
        result.append(changed)
    return result
