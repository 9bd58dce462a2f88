"""Several workers on one ledger: every binding has one writer, none is left alone, and the load evens out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from consumers.settings import WriterSettings
from consumers.sharing import Share, SharingTimes
from consumers.stores import postgres_connector
from consumers.worker import Worker
from consumers.writer import BindingWriter
from ledger.binding import DestinationBinding
from ledger.store.ledger import Ledger
from tests.support.real_writer import TOKEN, opener_for, short_times
from tests.support.store import BINDING
from tests.support.waiting import until, until_true

pytestmark = [pytest.mark.integration, pytest.mark.rules("G2")]

BINDINGS = [BINDING.model_copy(update={"branch": f"b{number}"}) for number in range(4)]
TIMES = SharingTimes(beat_interval=0.05, beat_ttl=10.0, grace=10.0)  # nobody dies here: only a slow machine is silent


@pytest.fixture
async def ledger(postgres18_ledger_dsns: dict[str, str]) -> AsyncIterator[Ledger]:
    async with await Ledger.open(postgres18_ledger_dsns["writer"], allow_unsafe_fsync=True) as found:
        yield found


@asynccontextmanager
async def working(dsn: str, ledger: Ledger, root: Path) -> AsyncIterator[Share]:
    """One worker for all bindings; at the end of the block it stops and hands over."""
    settings = short_times(root, lease_ttl=60.0)  # no lease runs out here: what is taken over was given back
    share, stop = Share(BINDINGS, TIMES), asyncio.Event()
    writers = [_writer(dsn, binding, share, settings) for binding in BINDINGS]
    tasks = [
        asyncio.create_task(share.run_until(ledger, stop)),
        asyncio.create_task(Worker(writers).run_until(stop)),
    ]
    try:
        yield share
    finally:
        stop.set()
        await asyncio.gather(*tasks)


def _writer(dsn: str, binding: DestinationBinding, share: Share, settings: WriterSettings) -> BindingWriter:
    return BindingWriter(
        dsn,
        binding,
        opener_for("http://127.0.0.1:1", binding.branch, TOKEN, settings.request_timeout),
        settings,
        connect=postgres_connector(settings, allow_unsafe_fsync=True),
        turns=share,
    )


def held(*shares: Share) -> list[int]:
    return sorted(len(share.held) for share in shares)


async def leases(ledger: Ledger) -> Sequence[bool]:
    return [row.has_live_lease for row in await ledger.bindings()]


async def test_g02_load_evens_out_when_workers_come_and_a_worker_that_stops_hands_over_at_once(
    postgres18_ledger_dsns: dict[str, str], ledger: Ledger, tmp_path: Path
) -> None:
    dsn = postgres18_ledger_dsns["writer"]
    async with working(dsn, ledger, tmp_path) as first:
        await until(lambda: held(first) == [4])
        async with working(dsn, ledger, tmp_path) as second:
            await until(lambda: held(first, second) == [2, 2])
            assert first.held | second.held == set(BINDINGS)
            async with working(dsn, ledger, tmp_path) as third:
                await until(lambda: held(first, second, third) == [1, 1, 2])
            await until(lambda: held(first, second) == [2, 2])
        await until(lambda: held(first) == [4])

    async def is_free() -> bool:
        return not any(await leases(ledger))

    await until_true(is_free)
    claims = [sum([e.kind == "writer.opened" async for e in ledger.events(r.id)]) for r in await ledger.bindings()]
    assert sum(claims) <= 20, "each change of hands is an event; they must not be many"
