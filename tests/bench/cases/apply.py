"""Apply: the writer's loop with the ledger, beside the same loop without one.

Both are timed from the first operation to the last; opening, the gate and the schema are outside.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from ledger.binding import DestinationBinding
from ledger.store.ledger import Ledger
from tests.bench.destination import BRANCH, inventory, opener, sandbox_apart
from tests.bench.frame import Case, Figure, Series, Setting, Target, interleaved_async, ratio
from tests.bench.server import ledger_server
from tests.bench.unrecorded import unrecorded_seconds
from tests.bench.writer_runs import WriterRuns


def measure_at_once(setting: Setting) -> Sequence[Figure]:
    """Against a sandbox that answers as fast as it can."""
    return asyncio.run(_measure(setting, seconds=0.0, count=setting.sized(500, 30), bound=0.7))


def measure_slow(setting: Setting) -> Sequence[Figure]:
    """Against one that takes 20 ms for each write."""
    return asyncio.run(_measure(setting, seconds=0.02, count=setting.sized(250, 10), bound=0.98))


async def _measure(setting: Setting, *, seconds: float, count: int, bound: float) -> Sequence[Figure]:
    with sandbox_apart(seconds=seconds) as url:
        async with ledger_server(setting.scratch) as dsns, await Ledger.open(dsns.writer) as ledger:
            runs, bare = WriterRuns(url, dsns.writer, ledger, setting.scratch / "plans", count), _BareLoop(url, count)
            rates = await interleaved_async(setting.rounds, {"with": runs.loop, "without": bare.loop})
    return [
        ratio(
            "apply with the ledger ÷ the same loop without it",
            Series("the writer, from run.started to run.applied", "operations/s", rates["with"]),
            Series("the write surface alone", "operations/s", rates["without"]),
            Target("at least", bound),
        )
    ]


class _BareLoop:
    """The loop without a ledger; each round writes objects of its own."""

    def __init__(self, url: str, count: int) -> None:
        self._url = url
        self._count = count
        self._rounds = 0

    async def loop(self) -> float:
        """Operations in a second."""
        self._rounds += 1
        run_id = f"bare-{self._rounds}"
        binding = DestinationBinding(url=self._url, branch=BRANCH)
        operations = inventory(run_id, self._count)
        return self._count / await unrecorded_seconds(opener(self._url), binding, operations, run_id=run_id)


AT_ONCE = Case(
    "apply-sandbox", "an apply with the ledger ÷ the same loop without it, against the sandbox", measure_at_once
)
SLOW = Case(
    "apply-20ms", "an apply with the ledger ÷ the same loop without it, where a write takes 20 ms", measure_slow
)
