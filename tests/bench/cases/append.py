"""Append: one outcome with the mark of the next operation, beside the plain INSERT of the same row."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from ledger.events import NewEvent, OperationApplied, new_event
from ledger.store.records import InFlight, Lease
from ledger.store.writer import WriterStore
from tests.bench.frame import Case, Figure, Series, Setting, Target, interleaved_async, ratio
from tests.bench.recorded import BINDING, record_runs
from tests.bench.server import connection_to, ledger_server

_TABLE = "bench.event"
_PLAIN = f"""
insert into {_TABLE} (binding_id, position, event_id, kind, schema_version, run_id, operation_id, ordinal, attempt,
                      writer_epoch, recorded_at, body, prev_hash, hash)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
"""


def measure(setting: Setting) -> Sequence[Figure]:
    """Events in a second of both, and their ratio."""
    return asyncio.run(_measure(setting))


async def _measure(setting: Setting) -> Sequence[Figure]:
    count = setting.sized(2000, 20)
    async with ledger_server(setting.scratch) as dsns:
        binding_id = await record_runs(dsns, runs=1, operations=setting.sized(1000, 10))
        async with await WriterStore.open(dsns.writer) as writer, connection_to(dsns.admin) as plain:
            await plain.execute("create schema bench")
            await plain.execute(f"create table {_TABLE} (like ledger.event including all)")
            await plain.execute(f"insert into {_TABLE} select * from ledger.event")
            lease = await writer.claim(
                binding_id, owner="bench", ttl=3600, settle=0, body_host="host", body_process_id="process"
            )
            sides = _Sides(writer, plain, lease, count)
            rates = await interleaved_async(setting.rounds, {"append": sides.append, "insert": sides.insert})
    return [
        ratio(
            "append ÷ plain INSERT and COMMIT of the same row",
            Series("WriterStore.append: one outcome and the next mark", "events/s", rates["append"]),
            Series("INSERT by asyncpg, prepared, a commit each", "events/s", rates["insert"]),
            Target("at least", 0.8),
        )
    ]


class _Sides:
    """Both variants; each round writes a run of its own."""

    def __init__(self, writer: WriterStore, plain: Any, lease: Lease, count: int) -> None:
        self._writer = writer
        self._plain = plain
        self._lease = lease
        self._count = count
        self._rounds = 0

    async def append(self) -> float:
        """Events in a second through the append function."""
        events = self._events()
        started = time.perf_counter()
        for ordinal, event in enumerate(events, start=1):
            mark = InFlight(event.run_id or "", ordinal, 1) if ordinal < self._count else None
            await self._writer.append(self._lease, [event], in_flight=mark)
        return self._count / (time.perf_counter() - started)

    async def insert(self) -> float:
        """Events in a second as rows into a table with the same columns, checks and indexes."""
        events = self._events()
        statement = await self._plain.prepare(_PLAIN)
        position = await self._plain.fetchval(f"select max(position) from {_TABLE}")
        started = time.perf_counter()
        for event in events:
            position += 1
            await statement.fetchval(
                self._lease.binding_id, position, event.event_id, event.kind, event.schema_version, event.run_id,
                event.operation_id, event.ordinal, event.attempt, self._lease.epoch, datetime.now(UTC),
                event.body.decode(), bytes(32), bytes(32),
            )  # fmt: skip
        return self._count / (time.perf_counter() - started)

    def _events(self) -> list[NewEvent]:
        self._rounds += 1
        return [
            new_event(
                "operation.applied",
                OperationApplied(
                    node_id=f"18c1f3a0-{ordinal:04x}-4c5e-b3a1-0123456789ab", sent_ms=ordinal, duration_ms=2
                ),
                url=BINDING.url,
                branch=BINDING.branch,
                run_id=f"20261130T120000-{self._rounds:08x}",
                operation_id=f"op_{ordinal * 2654435761 % 2**64:016x}",
                ordinal=ordinal,
                attempt=1,
                n=1,
            )
            for ordinal in range(self._count)
        ]


CASE = Case(
    "append", "one event a commit, fsync on: the append function ÷ a plain INSERT with the same indexes", measure
)
