"""A cancellation that the driver drops on its way to a connection ends the call all the same (FF33)."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from ledger.store.connect import Limits
from ledger.store.session import Session


class _DeafPool:
    """Gives a connection to who was cancelled while waiting for it, as ``asyncio.wait_for`` of Python 3.11 may."""

    def __init__(self) -> None:
        self.waits = asyncio.Event()
        self.given = 0

    async def acquire(self, *, timeout: float) -> str:
        self.waits.set()
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(timeout)
        self.given += 1
        return "a connection"

    async def release(self, connection: str, *, timeout: float) -> None:
        self.given -= 1


@pytest.mark.rules("G4")
async def test_ff33_a_cancellation_that_comes_with_the_connection_is_not_lost() -> None:
    pool = _DeafPool()
    session = Session(pool, Limits(), 1.0)
    worked = []

    async def work(connection: str) -> None:
        worked.append(connection)

    call = asyncio.create_task(session.run(work, doing="a test"))
    await pool.waits.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert worked == []
    assert pool.given == 0, "the connection was not given back"


async def test_who_works_on_after_a_cancellation_may_use_the_ledger() -> None:
    """As a writer does that records what it was interrupted at."""
    pool = _DeafPool()
    session = Session(pool, Limits(acquire=0.01), 1.0)

    async def record() -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return await session.run(_shout, doing="a test")
        return "nobody came"

    call = asyncio.create_task(record())
    await asyncio.sleep(0)
    call.cancel()
    assert await call == "A CONNECTION"


async def _shout(connection: str) -> str:
    return connection.upper()
