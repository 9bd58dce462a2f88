"""Work that is waited for to its end, whoever is cancelled meanwhile (G4)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ledger.store.outlasting import Outlasted, outlasting

pytestmark = pytest.mark.rules("G4")


class _Work:
    """Ends when it is let go; remembers that it did."""

    def __init__(self, error: Exception | None = None) -> None:
        self.go = asyncio.Event()
        self.began = asyncio.Event()
        self.ended = False
        self._error = error

    async def run(self) -> str:
        self.began.set()
        await self.go.wait()
        self.ended = True
        if self._error is not None:
            raise self._error
        return "done"


async def _turns(number: int) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


async def test_g04_work_that_nobody_disturbs_gives_its_result_or_its_error() -> None:
    work = _Work()
    work.go.set()
    assert (await outlasting(work.run())).result() == "done"
    failing = _Work(ValueError("no"))
    failing.go.set()
    outcome = await outlasting(failing.run())
    with pytest.raises(ValueError, match="no"):
        outcome.result()
    assert outcome.cancelled is None


@pytest.mark.parametrize("times", [1, 2, 3])
async def test_g04_the_waiter_may_be_cancelled_often_and_the_work_ends_all_the_same(times: int) -> None:
    work = _Work()
    waiter: asyncio.Task[Outlasted[str]] = asyncio.create_task(outlasting(work.run()))
    await work.began.wait()
    for _ in range(times):
        waiter.cancel()
        await _turns(3)
        assert not waiter.done()
    work.go.set()
    outcome = await waiter
    assert work.ended
    assert outcome.result() == "done"
    assert isinstance(outcome.cancelled, asyncio.CancelledError)


@pytest.mark.parametrize("turns", range(5))
async def test_g04_a_cancellation_in_the_turn_in_which_the_work_ends_loses_neither(turns: int) -> None:
    work = _Work()
    waiter = asyncio.create_task(outlasting(work.run()))
    await work.began.wait()
    work.go.set()
    await _turns(turns)
    was_done = waiter.done()
    waiter.cancel()
    outcome = await waiter
    assert outcome.result() == "done"
    assert (outcome.cancelled is None) == was_done


async def test_g04_a_cancellation_and_an_error_of_the_work_are_both_told() -> None:
    work = _Work(ValueError("no"))
    waiter = asyncio.create_task(outlasting(work.run()))
    await work.began.wait()
    waiter.cancel()
    work.go.set()
    outcome = await waiter
    assert isinstance(outcome.error, ValueError)
    assert outcome.cancelled is not None


def test_g04_an_event_loop_that_ends_takes_its_work_with_it() -> None:
    seen: list[Any] = []

    async def waiting() -> None:
        seen.append(await outlasting(asyncio.sleep(3600)))

    async def leave(turns: int) -> None:
        task = asyncio.create_task(waiting())
        await _turns(turns)
        assert not task.done()

    for turns in range(4):
        asyncio.run(leave(turns))
    assert all(isinstance(outcome.error, asyncio.CancelledError) for outcome in seen)
    assert len(seen) >= 2
