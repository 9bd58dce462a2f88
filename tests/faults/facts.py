"""What is left after an episode, as raw facts: rows of the database, the sandbox's journal and objects, files, trails.

Nothing here is the service's own reading of them. The rows come over a plain connection; times are seconds since 1970,
by one clock for database, sandbox and processes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import asyncpg

Row = Mapping[str, Any]
Step = Mapping[str, Any]
Place = tuple[str, int]
"""An operation of a run: its run and its ordinal."""

_TABLES = {
    "event": "select *, extract(epoch from recorded_at)::float8 as at, "
    "(extract(epoch from recorded_at) * 1000000)::bigint as microseconds "
    "from ledger.event where binding_id = $1 order by position",
    "inbox": "select * from ledger.inbox where binding_id = $1 order by inbox_id",
    "artifact": "select * from ledger.artifact where binding_id = $1",
    "line": "select o.plan_checksum, o.ordinal, o.line from ledger.plan_operation o where o.plan_checksum in "
    "(select plan_checksum from ledger.artifact where binding_id = $1) order by o.plan_checksum, o.ordinal",
}


@dataclass(frozen=True)
class Request:
    """A mutation that reached the destination, and who sent it under which mark. ``end``: it wrote nothing later."""

    sent: Row
    kind: str
    form: str
    received_at: float
    decided_at: float | None
    written: bool
    node_id: str | None
    shed: bool
    writer: str
    epoch: int
    guarded_at: float
    place: Place
    attempt: int


@dataclass(frozen=True)
class Node:
    """An object of the destination: values by attribute, ids of peers by relationship."""

    kind: str
    values: Mapping[str, Any]
    peers: Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Freeze:
    """A writer that stood still, by SIGSTOP, between two moments."""

    writer: str
    since: float
    until: float


@dataclass(frozen=True)
class PlannedRun:
    """A run as its files have it. ``doomed`` is an operation that the destination must refuse, where there is one."""

    run_id: str
    manifest: bytes
    operations: bytes
    doomed: str | None = None

    @cached_property
    def lines(self) -> list[dict[str, Any]]:
        """The operations, by ordinal."""
        return [json.loads(line) for line in self.operations.split(b"\n")[:-1]]


@dataclass(frozen=True)
class Facts:
    """Everything about one binding.

    ``seen`` are (position, hash) pairs that somebody was told of, ``stops`` the moments at which the destination was
    stopped, ``request_limit`` the seconds within which a request that was allowed has to be on its way.
    """

    binding: Row
    events: Sequence[Row]
    inbox: Sequence[Row]
    artifacts: Sequence[Row]
    lines: Sequence[Row]
    runs: Mapping[str, PlannedRun]
    requests: Sequence[Request]
    before: Mapping[str, Node]
    after: Mapping[str, Node]
    seen: Sequence[tuple[int, str]] = ()
    freezes: Sequence[Freeze] = ()
    stops: Sequence[float] = ()
    receipts: Sequence[Row] = ()
    request_limit: float = 1.0
    bodies: dict[int, dict[str, Any]] = field(default_factory=dict, repr=False)

    def body(self, event: Row) -> dict[str, Any]:
        """The body of an event."""
        if id(event) not in self.bodies:
            self.bodies[id(event)] = json.loads(event["body"])
        return self.bodies[id(event)]

    def outcomes(self) -> list[Row]:
        """All outcomes of operations, in stored order."""
        return [event for event in self.events if event["kind"].startswith("operation.")]

    def operation(self, place: Place) -> dict[str, Any]:
        """An operation as the files have it; empty where they have none there."""
        lines = self.runs[place[0]].lines if place[0] in self.runs else []
        return lines[place[1]] if place[1] < len(lines) else {}


async def rows_of(dsn: str, url: str, branch: str) -> dict[str, Any]:
    """The rows of one binding, read at once in one snapshot."""
    connection = await asyncpg.connect(dsn)
    try:
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            binding = await connection.fetchrow(
                "select * from ledger.binding where url = $1 and branch = $2", url, branch
            )
            if binding is None:
                raise LookupError(f"the ledger has no binding {url} [{branch}]")
            rows = {name: await connection.fetch(text, binding["id"]) for name, text in _TABLES.items()}
    finally:
        await connection.close()
    return {"binding": dict(binding)} | {name: [dict(row) for row in found] for name, found in rows.items()}


def request_of(entry: Mapping[str, Any]) -> Request:
    """A mutation of the journal.

    Raises:
        ValueError: it does not say who sent it, or under which mark.
    """
    sender = json.loads(entry["sender"] or "null")
    if not sender or not sender["mark"] or sender["epoch"] is None:
        raise ValueError(f"mutation {entry['position']} ({entry['mutation']}) was sent without a mark: {sender}")
    run_id, ordinal, attempt = sender["mark"]
    return replace(
        unsigned_request_of(entry, (run_id, ordinal)),
        writer=sender["writer"],
        epoch=sender["epoch"],
        guarded_at=sender["guarded_at"],
        attempt=attempt,
    )


def unsigned_request_of(entry: Mapping[str, Any], place: tuple[str, int]) -> Request:
    """A mutation of the journal that does not say who sent it; attempt and epoch are found out from the log."""
    return Request(
        sent=entry["variables"]["data"],
        kind=entry["kind"],
        form=entry["action"],
        received_at=entry["received_at"],
        decided_at=entry["decided_at"],
        written=entry["written"],
        node_id=entry["object_id"],
        shed=entry["fault"] == "shed-429",
        writer="",
        epoch=0,
        guarded_at=entry["received_at"],
        place=place,
        attempt=0,
    )


def planned_run(run_dir: Path, *, doomed: str | None = None) -> PlannedRun:
    """A run from its files."""
    plan = run_dir / "plan"
    return PlannedRun(
        run_id=run_dir.name,
        manifest=(plan / "manifest.json").read_bytes(),
        operations=(plan / "operations.jsonl").read_bytes(),
        doomed=doomed,
    )
