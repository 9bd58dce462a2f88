"""Replay: every event of a binding read in order and its chain recomputed, beside reading the same rows alone."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from ledger.chain import ChainVerifier
from ledger.store.embedded import Dsns
from ledger.store.ledger import Ledger
from ledger.store.sql_files import query
from tests.bench.frame import Case, Figure, Series, Setting, Target, interleaved_async, ratio
from tests.bench.recorded import BINDING, record_runs
from tests.bench.server import connection_to, ledger_server

_PAGE = 5000


def measure(setting: Setting) -> Sequence[Figure]:
    """Events in a second of both, and their ratio."""
    return asyncio.run(_measure(setting))


async def _measure(setting: Setting) -> Sequence[Figure]:
    operations = setting.sized(10_000, 200)
    async with ledger_server(setting.scratch) as dsns:
        binding_id = await record_runs(dsns, runs=setting.sized(20, 1), operations=operations)
        rates = await interleaved_async(
            setting.rounds,
            {"replay": lambda: _replay(dsns, binding_id), "rows": lambda: _rows(dsns, binding_id)},
        )
    return [
        ratio(
            "replay with chain check ÷ reading the rows",
            Series("ledger.events() into ChainVerifier", "events/s", rates["replay"]),
            Series("the same pages as rows of asyncpg", "events/s", rates["rows"]),
            Target("at least", 0.5),
        )
    ]


async def _replay(dsns: Dsns, binding_id: int) -> float:
    async with await Ledger.open(dsns.reader) as ledger:
        verifier = ChainVerifier(BINDING.url, BINDING.branch)
        started = time.perf_counter()
        async for event in ledger.events(binding_id):
            if verifier.feed(event):
                raise RuntimeError(f"the chain of the bench's own ledger breaks at {event.position}")
        return verifier.events / (time.perf_counter() - started)


async def _rows(dsns: Dsns, binding_id: int) -> float:
    async with connection_to(dsns.reader) as connection:
        after = seen = 0
        started = time.perf_counter()
        while rows := await connection.fetch(query("events"), binding_id, after, None, _PAGE):
            seen += len(rows)
            after = rows[-1]["position"]
        return seen / (time.perf_counter() - started)


CASE = Case("replay", "200,000 events read and their chain recomputed ÷ the same rows read with asyncpg", measure)
