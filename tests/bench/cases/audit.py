"""Audits of a long log: all that ``verify`` does, and the state that ``replay --state`` folds, beside reading alone.

Python looks for cycles as seldom as in the program itself, on both sides: a million rows hold none.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ledger.audit.heads import trusted_checkpoint
from ledger.audit.publish import publish_checkpoint
from ledger.audit.signed_note import SigningKey
from ledger.audit.state import asserted_states
from ledger.audit.verify import verify_binding
from ledger.cli.main import CYCLE_SEARCH
from ledger.projections.registry import PROJECTIONS
from ledger.store.ledger import Ledger
from ledger.store.projections import ProjectionStore
from ledger.store.sql_files import query
from tests.bench.apart import run_apart
from tests.bench.frame import Case, Figure, Series, Setting, Target, interleaved_async, ratio
from tests.bench.recorded import BINDING, record_runs
from tests.bench.server import connection_to, ledger_server

_PAGE = 5000
_KEY = SigningKey("bench", Ed25519PrivateKey.from_private_bytes(bytes(range(32))))


def measure(setting: Setting) -> Sequence[Figure]:
    """Events in a second of each, their ratios to reading, and the memory of both audits."""
    before = gc.get_threshold()
    gc.set_threshold(*CYCLE_SEARCH)
    try:
        return asyncio.run(_measure(setting))
    finally:
        gc.set_threshold(*before)


async def _measure(setting: Setting) -> Sequence[Figure]:
    async with ledger_server(setting.scratch) as dsns:
        await record_runs(dsns, runs=setting.sized(100, 1), operations=setting.sized(10_000, 200))
        note = await _signed(dsns.writer)
        async with await ProjectionStore.open(dsns.projector) as projections:
            await projections.catch_up()
        work: dict[str, Callable[[str], Awaitable[int]]] = {
            "verify": partial(_verified, note=note),
            "state": _folded,
            "rows": _read,
            "read side": _read_more,
        }
        rates = await interleaved_async(
            setting.rounds, {name: partial(_rate, dsns.reader, read) for name, read in work.items()}
        )
        peaks = [run_apart(apart, dsns.reader, name, note)[1] for name in ("verify", "state")]
    rows = Series("the same events and plan lines as rows of asyncpg", "events/s", rates["rows"])
    more = Series("events, plan lines and documents as rows of asyncpg", "events/s", rates["read side"])
    at_least, at_most = Target("at least", 0.5), Target("at most", 300)
    return [
        ratio("verify ÷ reading the rows", Series("verify", "events/s", rates["verify"]), more, at_least),
        ratio(
            "replay --state ÷ reading the rows", Series("replay --state", "events/s", rates["state"]), rows, at_least
        ),
        Figure("peak memory of verify", Series("peak", "MiB", (peaks[0],)), at_most),
        Figure("peak memory of replay --state", Series("peak", "MiB", (peaks[1],)), at_most),
    ]


async def _rate(dsn: str, read: Callable[[str], Awaitable[int]]) -> float:
    started = time.perf_counter()
    events = await read(dsn)
    return events / (time.perf_counter() - started)


async def _signed(dsn: str) -> str:
    """A signed head, as of every ledger that is audited: with it, every event and every line is a leaf of a tree."""
    async with await Ledger.open(dsn) as ledger:
        (row,) = await ledger.bindings()
        return (await publish_checkpoint(ledger, row, [_KEY])).note


async def _verified(dsn: str, *, note: str) -> int:
    kept = trusted_checkpoint(note.encode(), "kept.note", [_KEY.public])
    async with await Ledger.open(dsn) as ledger:
        report = await verify_binding(ledger, BINDING, checkpoints=[kept], keys=[_KEY.public])
    report.require_intact()
    return report.events


async def _folded(dsn: str) -> int:
    async with await Ledger.open(dsn) as ledger:
        (row,) = await ledger.bindings()
        async for state in asserted_states(ledger, row, until=row.head_position):
            if not state.is_asserted:
                raise RuntimeError("a state of nothing")
        return row.head_position


async def _read(dsn: str) -> int:
    """Every event, and every line of every plan, page by page."""
    seen = after = 0
    async with connection_to(dsn) as connection:
        while rows := await connection.fetch(query("events"), 1, after, None, _PAGE):
            seen, after = seen + len(rows), rows[-1]["position"]
        for plan in await connection.fetch("select checksum from ledger.plan"):
            ordinal = 0
            while rows := await connection.fetch(query("plan_operations"), plan["checksum"], ordinal, _PAGE):
                ordinal += len(rows)
    return seen


async def _read_more(dsn: str) -> int:
    """The same, and every document of the projections, which ``verify`` compares with the log."""
    seen = await _read(dsn)
    async with connection_to(dsn) as connection:
        for projection in PROJECTIONS:
            key: tuple[str | None, str | None] = (None, None)
            place = (projection.name, projection.version, 1)
            while rows := await connection.fetch(query("live_documents_page"), *place, *key, _PAGE):
                key = rows[-1]["subject"], rows[-1]["item"]
    return seen


def apart(dsn: str, name: str, note: str) -> int:
    """One audit in a process of its own."""
    gc.set_threshold(*CYCLE_SEARCH)
    return asyncio.run(_verified(dsn, note=note) if name == "verify" else _folded(dsn))


CASE = Case("audit", "verify, and replay --state, over 1,000,000 events ÷ reading their rows; peak memory", measure)
