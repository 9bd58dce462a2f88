"""Loops of commands: they end without another thread, after what runs on threads; threads are started where there is
room for one (CPython issue 140746: where there is none, whoever starts it may wait for ever)."""

from __future__ import annotations

import asyncio
import mmap
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import wait

import pytest

from ledger import event_loop
from ledger.shortage import MachineShortageError, shortage_of
from tests.support.waiting import until


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the threads that are started."""
    names: list[str] = []
    start = threading.Thread.start

    def started(thread: threading.Thread) -> None:
        names.append(thread.name)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", started)
    return names


@pytest.fixture
def no_room(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def refused(*_: object) -> None:
        raise OSError(12, "Cannot allocate memory")

    with monkeypatch.context() as patched:
        patched.setattr(mmap, "mmap", refused)
        yield


@pytest.mark.rules("G10")
def test_g10_the_end_of_a_loop_starts_no_thread(begun: list[str]) -> None:
    async def work() -> str:
        return await asyncio.to_thread(str.upper, "done")

    assert event_loop.run(work()) == "DONE"
    assert begun == ["asyncio_0"]


def test_a_loop_ends_after_what_still_runs_on_a_thread() -> None:
    said = []
    release, running = threading.Event(), threading.Event()

    def last() -> None:
        running.set()
        release.wait(60)
        said.append("last words")

    async def work() -> None:
        task = asyncio.create_task(asyncio.to_thread(last))
        await until(running.is_set)
        task.cancel()
        asyncio.get_running_loop().call_later(0.05, release.set)

    event_loop.run(work())
    assert said == ["last words"]


def test_an_interrupted_loop_cancels_its_work_and_ends() -> None:
    seen = []

    async def work() -> None:
        try:
            await asyncio.to_thread(_interrupt)
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    with pytest.raises(KeyboardInterrupt):
        event_loop.run(work())
    assert seen == ["cancelled"]


def _interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.usefixtures("no_room")
@pytest.mark.rules("G10")
def test_g10_without_room_no_thread_is_started_and_the_shortage_has_its_name(begun: list[str]) -> None:
    pool = event_loop.ThreadPool()
    with pytest.raises(RuntimeError) as found:
        pool.submit(str.upper, "a")
    assert isinstance(shortage_of(found.value), MachineShortageError)
    with pytest.raises(RuntimeError):
        event_loop.start_thread(threading.Thread(target=print))
    assert begun == []
    pool.shutdown()


def test_a_thread_that_is_there_needs_no_room(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    pool = event_loop.ThreadPool(2)
    wait([pool.submit(str.upper, "a")])
    request.getfixturevalue("no_room")
    assert pool.submit(str.upper, "b").result(60) == "B"
    pool.shutdown()
