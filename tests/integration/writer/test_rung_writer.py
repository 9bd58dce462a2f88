"""A writer that looks at its inbox once an hour begins at once where it is rung."""

from __future__ import annotations

import asyncio

import pytest

from ledger.store.doorbell import Doorbell
from tests.support.inventory_operations import manufacturer
from tests.support.real_writer import RealWriter
from tests.support.waiting import until, until_true

pytestmark = [pytest.mark.integration]


@pytest.mark.rules("G10")
async def test_g10_an_idle_writer_carries_out_what_it_is_rung_for(real: RealWriter) -> None:
    real.changes["poll_interval"] = 3600.0
    bell, stop = Doorbell(real.dsn), asyncio.Event()
    tasks = [
        asyncio.create_task(bell.run_until(stop)),
        asyncio.create_task(real.writer(bell=bell).run_until(stop)),
    ]

    async def is_served() -> bool:
        row = await real.ledger.binding(real.binding)
        return row is not None and row.has_live_lease

    await until(lambda: bell.is_heard)
    await until_true(is_served)
    for number in range(2):
        await real.commit(f"run-{number}", [manufacturer(f"Maker {number}")], position=await real.head())

        async def is_applied(run_id: str = f"run-{number}") -> bool:
            return "run.applied" in await real.kinds(run_id)

        await until_true(is_applied)
    stop.set()
    await asyncio.gather(*tasks)
