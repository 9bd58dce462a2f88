"""Append: one outcome with the mark of the next operation, beside the plain INSERT of the same row and its COMMIT.

The plain side is asyncpg with a prepared statement and a table that has the columns, checks and indexes of the log. It
comes in two forms: a transaction as a program writes it (BEGIN, INSERT, COMMIT), and a lone INSERT that the server
commits by itself, which is the least that any row can cost. The append locks, fences, looks for a repeat, chains, moves
the head and marks the next operation as well.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from ledger.events import NewEvent
from ledger.store.writer import WriterStore
from tests.bench.appends import Appends
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
    """Events in a second of all three, and their ratios."""
    return asyncio.run(_measure(setting))


async def _measure(setting: Setting) -> Sequence[Figure]:
    async with ledger_server(setting.scratch) as dsns:
        await record_runs(dsns, runs=1, operations=setting.sized(1000, 10))
        async with await WriterStore.open(dsns.writer) as writer, connection_to(dsns.admin) as connection:
            await connection.execute("create schema bench")
            await connection.execute(f"create table {_TABLE} (like ledger.event including all)")
            await connection.execute(f"insert into {_TABLE} select * from ledger.event")
            appends = await Appends.on(writer, dsns, BINDING, setting.sized(2000, 20))
            plain = _Plain(connection, appends)
            rates = await interleaved_async(
                setting.rounds,
                {"append": appends.append, "transaction": plain.in_transactions, "lone": plain.alone},
            )
    append = Series("WriterStore.append: one outcome and the next mark", "events/s", rates["append"])
    return [
        ratio(
            "append ÷ INSERT and COMMIT",
            append,
            Series("a transaction of asyncpg with one INSERT", "events/s", rates["transaction"]),
            Target("at least", 0.8),
        ),
        ratio(
            "append ÷ an INSERT that commits by itself",
            append,
            Series("one statement, one round trip", "events/s", rates["lone"]),
            Target("at least", 0.8),
        ),
    ]


class _Plain:
    """Rows into a table with the same columns, checks and indexes."""

    def __init__(self, connection: Any, appends: Appends) -> None:
        self._connection = connection
        self._appends = appends

    async def in_transactions(self) -> float:
        """Events in a second, with BEGIN and COMMIT as statements."""
        return await self._insert(in_transaction=True)

    async def alone(self) -> float:
        """Events in a second, each INSERT a transaction by itself."""
        return await self._insert(in_transaction=False)

    async def _insert(self, *, in_transaction: bool) -> float:
        events = self._appends.events()
        statement = await self._connection.prepare(_PLAIN)
        position = await self._connection.fetchval(f"select max(position) from {_TABLE}")
        started = time.perf_counter()
        for event in events:
            position += 1
            if in_transaction:
                async with self._connection.transaction():
                    await statement.fetchval(*self._row(event, position))
            else:
                await statement.fetchval(*self._row(event, position))
        return len(events) / (time.perf_counter() - started)

    def _row(self, event: NewEvent, position: int) -> tuple[Any, ...]:
        lease = self._appends.lease
        return (
            lease.binding_id, position, event.event_id, event.kind, event.schema_version, event.run_id,
            event.operation_id, event.ordinal, event.attempt, lease.epoch, datetime.now(UTC), event.body.decode(),
            bytes(32), bytes(32),
        )  # fmt: skip


CASE = Case(
    "append", "one event a commit, fsync on: the append function ÷ a plain INSERT with the same indexes", measure
)
