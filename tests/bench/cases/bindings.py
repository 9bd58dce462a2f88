"""Eight bindings beside one: how much a process gains by working on several destinations at once.

Each run has as many operations, and each write takes 20 ms at the destination, as a real one does. One writer for each
binding, all in one process, as in ``apply-ledger work``; the time is from the first ``run.started`` to the last
``run.applied``. The sandbox is in a process of its own and takes requests of different branches side by side.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path

import httpx

from ledger.store.ledger import Ledger
from tests.bench.destination import opener, sandbox_apart
from tests.bench.frame import Case, Figure, Series, Setting, Target, interleaved_async, ratio
from tests.bench.server import ledger_server
from tests.bench.writer_runs import WriterRuns
from tests.demo.workplace import CREATE_BRANCH
from tests.support.real_writer import TOKEN

_BINDINGS = 8
_SECONDS = 0.02


def measure(setting: Setting) -> Sequence[Figure]:
    """Operations in a second over all bindings, and the ratio."""
    return asyncio.run(_measure(setting, setting.sized(150, 6)))


async def _measure(setting: Setting, count: int) -> Sequence[Figure]:
    with sandbox_apart(seconds=_SECONDS) as url:
        branches = [f"binding-{number}" for number in range(_BINDINGS)]
        for branch in branches:
            _create(url, branch)
        async with ledger_server(setting.scratch) as dsns, await Ledger.open(dsns.writer) as ledger:
            runs = [_runs(url, dsns.writer, ledger, setting.scratch, branch, count) for branch in branches]

            async def eight() -> float:
                return await _rate(runs, count)

            async def one() -> float:
                return await _rate(runs[:1], count)

            rates = await interleaved_async(setting.rounds, {"eight": eight, "one": one})
    return [
        ratio(
            "eight bindings ÷ one, a destination of 20 ms",
            Series("eight at once", "operations/s", rates["eight"]),
            Series("one", "operations/s", rates["one"]),
            Target("at least", 3),
        )
    ]


def _runs(url: str, dsn: str, ledger: Ledger, scratch: Path, branch: str, count: int) -> WriterRuns:
    opening = opener(url, branch=branch)
    return WriterRuns(url, dsn, ledger, scratch / branch, count, prefix=branch, branch=branch, opening=opening)


async def _rate(runs: Sequence[WriterRuns], count: int) -> float:
    """Operations in a second over all of them, claims and gates included."""
    started = time.perf_counter()
    await asyncio.gather(*(run.whole() for run in runs))
    return len(runs) * count / (time.perf_counter() - started)


def _create(url: str, branch: str) -> None:
    httpx.post(
        f"{url}/graphql",
        headers={"X-INFRAHUB-KEY": TOKEN},
        json={"query": CREATE_BRANCH, "variables": {"name": branch}},
        trust_env=False,
    ).raise_for_status()


CASE = Case("bindings", "eight bindings at once in one process ÷ one, where a write takes 20 ms", measure)
