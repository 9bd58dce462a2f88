"""What a long log costs: an operation with a million outcomes recorded beside one with a thousand, and the audit of it.

Two servers, because indexes are shared by all bindings of a database. The million stands there as a hundred runs that
one source applied to the same ten thousand objects, with the plan of each.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from ledger.audit.verify import verify_binding
from ledger.binding import DestinationBinding
from ledger.store.embedded import Dsns
from ledger.store.ledger import Ledger
from ledger.store.writer import WriterStore
from tests.bench.apart import run_apart
from tests.bench.appends import Appends
from tests.bench.destination import BRANCH, sandbox_apart
from tests.bench.frame import Case, Figure, Series, Setting, Target, interleaved_async, ratio
from tests.bench.recorded import record_runs
from tests.bench.server import ledger_server
from tests.bench.writer_runs import WriterRuns

_AT_MOST = Target("at most", 1.1)
_SMALL = 1_000
_LEDGERS = {"few": "1,000 recorded", "many": "1,000,000 recorded"}


def measure(setting: Setting) -> Sequence[Figure]:
    """Time of an append and of a whole run on both, then time and memory of the audit."""
    return asyncio.run(_measure(setting))


async def _measure(setting: Setting) -> Sequence[Figure]:
    small, large = setting.scratch / "small", setting.scratch / "large"
    with sandbox_apart() as url:
        binding = DestinationBinding(url=url, branch=BRANCH)
        async with ledger_server(small) as few, ledger_server(large) as many:
            await record_runs(few, runs=1, operations=setting.sized(_SMALL, 20), binding=binding)
            await record_runs(many, runs=setting.sized(100, 3), operations=setting.sized(10_000, 40), binding=binding)
            audited = _audit(many, binding)
            appended = await _appends(setting, few, many, binding)
            applied = await _runs(setting, few, many, url)
    return [
        ratio("an append at 1,000,000 outcomes ÷ at 1,000", appended[1], appended[0], _AT_MOST),
        ratio("an operation of a whole run, gate and all", applied[1], applied[0], _AT_MOST),
        *audited,
    ]


async def _appends(setting: Setting, few: Dsns, many: Dsns, binding: DestinationBinding) -> list[Series]:
    """Microseconds of one append."""
    count = setting.sized(1000, 10)
    async with await WriterStore.open(few.writer) as one, await WriterStore.open(many.writer) as other:
        on_few, on_many = await Appends.on(one, few, binding, count), await Appends.on(other, many, binding, count)
        costs = await interleaved_async(setting.rounds, {"few": on_few.append, "many": on_many.append})
        await on_few.release()
        await on_many.release()
    return [
        Series(f"WriterStore.append, {text}", "µs", tuple(1e6 / rate for rate in costs[name]))
        for name, text in _LEDGERS.items()
    ]


async def _runs(setting: Setting, few: Dsns, many: Dsns, url: str) -> list[Series]:
    """Milliseconds of one operation of a run, from its commit to its last event."""
    count, root = setting.sized(300, 10), setting.scratch / "plans"
    async with await Ledger.open(few.writer) as one, await Ledger.open(many.writer) as other:
        on_few = WriterRuns(url, few.writer, one, root / "few", count, prefix="few")
        on_many = WriterRuns(url, many.writer, other, root / "many", count, prefix="many")
        costs = await interleaved_async(setting.rounds, {"few": on_few.whole, "many": on_many.whole})
    return [
        Series(f"a run against the sandbox, {text}", "ms", tuple(seconds / count * 1e3 for seconds in costs[name]))
        for name, text in _LEDGERS.items()
    ]


def _audit(many: Dsns, binding: DestinationBinding) -> list[Figure]:
    """The audit in a process of its own, once."""
    (events, seconds), peak = run_apart(audit_apart, many.reader, binding.url, binding.branch)
    return [
        Figure(f"verify of {events:,} events with their plans", Series("time", "s", (seconds,))),
        Figure("its peak memory, interpreter and libraries included", Series("peak", "MiB", (peak,))),
    ]


def audit_apart(dsn: str, url: str, branch: str) -> tuple[int, float]:
    """How many events were audited, and the seconds that it took."""
    return asyncio.run(_audited(dsn, DestinationBinding(url=url, branch=branch)))


async def _audited(dsn: str, binding: DestinationBinding) -> tuple[int, float]:
    async with await Ledger.open(dsn) as ledger:
        started = time.perf_counter()
        report = await verify_binding(ledger, binding)
        seconds = time.perf_counter() - started
    report.require_intact()
    return report.events, seconds


CASE = Case(
    "million", "cost of an operation with 1,000,000 outcomes recorded ÷ with 1,000; and verify of the million", measure
)
