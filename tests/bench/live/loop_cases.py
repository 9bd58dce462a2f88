"""Cases whose objects are written one after the other by loops in this process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial

from ledger.store.ledger import Ledger
from tests.bench.frame import Case, Figure, Series, Setting, Target, interleaved_async, ratio
from tests.bench.live.loops import Loops
from tests.bench.live.place import Place
from tests.bench.live.timing import Parts, timed_run
from tests.bench.server import ledger_server

Variants = dict[str, Callable[[], Awaitable[float]]]


def write_loop(place: Place, runner: str) -> Case:
    """What people use today, beside ours."""
    what = "infrahub-sdk create() + save(allow_upsert=True) ÷ our loop with the ledger, the same objects in order"
    return Case("write-loop", what, _case(place, measure_write_loop), runner)


def bare_server(place: Place, runner: str) -> Case:
    """The limit."""
    what = "our whole apply ÷ the same mutations, encoded ahead, over one connection with nothing around them"
    return Case("bare-server", what, _case(place, measure_bare_server), runner)


def ledger_share(place: Place, runner: str) -> Case:
    """Where the time goes."""
    what = "what the ledger adds to our loop, what of its time passes in appends, and the milliseconds of an operation"
    return Case("ledger-share", what, _case(place, measure_ledger_share), runner)


def _case(
    place: Place, measure: Callable[[Loops, int], Awaitable[Sequence[Figure]]]
) -> Callable[[Setting], Sequence[Figure]]:
    async def measured(setting: Setting) -> Sequence[Figure]:
        async with _loops(place, setting) as loops:
            return await measure(loops, setting.rounds)

    return lambda setting: asyncio.run(measured(setting))


@asynccontextmanager
async def _loops(place: Place, setting: Setting) -> AsyncIterator[Loops]:
    async with ledger_server(setting.scratch) as dsns, await Ledger.open(dsns.writer) as ledger:
        yield Loops(place, dsns, ledger, setting.scratch / "plans")


async def measure_write_loop(loops: Loops, rounds: int) -> Sequence[Figure]:
    recording = await loops.record()
    variants: Variants = {"sdk": loops.saved, "ours": loops.written, "bare": partial(loops.sent, recording)}
    await interleaved_async(1, variants)
    seconds = await interleaved_async(rounds, variants)
    sdk = Series("infrahub-sdk, its client as it comes", "s", seconds["sdk"])
    return [
        ratio(
            "create() + save(allow_upsert=True) ÷ our write loop",
            sdk,
            Series("our writer, from run.started to run.applied", "s", seconds["ours"]),
            Target("at least", 1.25),
        ),
        ratio(
            "the same ÷ the bare mutations: what any client could reach here",
            sdk,
            Series("the bare mutations", "s", seconds["bare"]),
        ),
    ]


async def measure_bare_server(loops: Loops, rounds: int) -> Sequence[Figure]:
    recording = await loops.record()
    variants: Variants = {"apply": loops.applied, "loop": loops.written, "bare": partial(loops.sent, recording)}
    await interleaved_async(1, variants)
    seconds = await interleaved_async(rounds, variants)
    bare = Series("the bare mutations", "s", seconds["bare"])
    return [
        ratio(
            "our whole apply ÷ the bare mutations",
            Series("from the claim to the release", "s", seconds["apply"]),
            bare,
            Target("at most", 1.05),
        ),
        ratio("our loop alone ÷ the bare mutations", Series("run.started to run.applied", "s", seconds["loop"]), bare),
    ]


async def measure_ledger_share(loops: Loops, rounds: int) -> Sequence[Figure]:
    variants: Variants = {"with": loops.written, "without": loops.unrecorded}
    await interleaved_async(1, variants)
    seconds = await interleaved_async(rounds, variants)
    runs = [await timed_run(loops) for _ in range(rounds)]

    def series(label: str, unit: str, value: Callable[[Parts], float]) -> Series:
        return Series(label, unit, tuple(value(parts) for parts in runs))

    each = 1000 / loops.count
    return [
        ratio(
            "our loop ÷ the same loop without a ledger",
            Series("run.started to run.applied", "s", seconds["with"]),
            Series("the write surface alone", "s", seconds["without"]),
            Target("at most", 1.02),
        ),
        Figure(
            "the ledger's share of an apply: time in appends ÷ wall time",
            series("share", "×", lambda parts: parts.appends / parts.wall),
            Target("at most", 0.02),
        ),
        Figure(
            "one operation",
            series("wall", "ms", lambda parts: parts.wall * each),
            beside=(
                series("the server and the wire", "ms", lambda parts: parts.server * each),
                series(
                    "in appends (the next operation is prepared meanwhile)", "ms", lambda parts: parts.appends * each
                ),
                series("the rest, ours", "ms", lambda parts: (parts.wall - parts.server - parts.appends) * each),
                series("processor time of our process, all in all", "ms", lambda parts: parts.cpu * each),
            ),
        ),
    ]
