"""The writers of an episode seen from outside: started one after the other, killed, frozen, thawed, told to end."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from tests.faults.campaign.script import WriterScript
from tests.faults.campaign.trail import read_trail
from tests.faults.campaign.writer_process import WriterTask, run
from tests.faults.facts import Freeze
from tests.support.processes import RealProcess
from tests.support.waiting import until

_LOOK_EVERY = 0.01
_ENDS_WITHIN = 30.0


@dataclass
class Writer:
    """One writer process and what was done to it. ``phase`` is its last step when it died."""

    script: WriterScript
    task: WriterTask
    process: RealProcess | None = None
    freezes: list[Freeze] = field(default_factory=list)
    frozen_in: list[str] = field(default_factory=list)
    phase: str | None = None
    killed_at: float | None = None
    ended: str = ""

    @property
    def name(self) -> str:
        """As in its requests."""
        return self.task.name

    def last_step(self) -> str:
        """Where it stands."""
        steps = read_trail(self.task.trail)
        return str(steps[-1]["step"]) if steps else "starting"

    def send(self, number: signal.Signals) -> None:
        """Send a signal, where it still lives."""
        if self.process is not None and self.process.is_alive:
            self.process.send_signal(number)


class Writers:
    """Keeps ``together`` writers running until the list is at its end; a frozen one makes room for the next."""

    def __init__(self, writers: list[Writer], *, together: int) -> None:
        self.all = writers
        self._room = asyncio.Semaphore(together)
        self._group: list[asyncio.Task[None]] = []
        self._resting = asyncio.Event()

    def start(self) -> None:
        """Begin to start them, in the order of the list."""
        self._group.append(asyncio.create_task(self._start_all()))

    async def first_started(self) -> None:
        """Wait until the first of them runs."""
        first = self.all[0]
        await until(lambda: bool(read_trail(first.task.trail)) or bool(first.ended))

    @property
    def are_through(self) -> bool:
        """Whether every one has been started and has died, ended or been frozen: nothing more is to happen to any."""
        return all(writer.ended or writer.freezes for writer in self.all)

    async def rest(self) -> list[str]:
        """Thaw what is frozen, tell everybody to end, and wait for it; what did not end as it should is told."""
        self._resting.set()
        self._group[0].cancel()
        wrong = []
        for writer in self.all:
            if writer.process is not None and writer.process.is_alive:
                writer.send(signal.SIGTERM)
        try:
            async with asyncio.timeout(_ENDS_WITHIN):
                await asyncio.gather(*self._group[1:])
        except TimeoutError:
            for writer in self.all:
                if writer.process is not None and writer.process.is_alive:
                    wrong.append(f"writer {writer.name} did not end within {_ENDS_WITHIN:g} s of SIGTERM")
                    writer.send(signal.SIGKILL)
        for writer in self.all:
            if writer.process is not None:
                status, _ = await writer.process.ended()
                was_starting = status == -signal.SIGTERM and not read_trail(writer.task.trail)
                if status not in (0, -signal.SIGKILL) and not was_starting:
                    wrong.append(f"writer {writer.name} ended with status {status}")
                writer.process.clean_up()
        return wrong

    def clean_up(self) -> None:
        """Leave none behind, whatever happened."""
        for task in self._group:
            task.cancel()
        for writer in self.all:
            if writer.process is not None and not writer.ended:
                writer.process.clean_up()

    async def _start_all(self) -> None:
        for writer in self.all:
            await self._room.acquire()
            writer.process = RealProcess(run, writer.task)
            self._group.append(asyncio.create_task(self._look_after(writer)))

    async def _look_after(self, writer: Writer) -> None:
        process, made_room = _started(writer), False
        outside = writer.script.outside
        await until(lambda: bool(read_trail(writer.task.trail)) or not process.is_alive)
        due = None if outside is None else time.monotonic() + outside.at
        while process.is_alive:
            if due is not None and outside is not None and time.monotonic() >= due and not self._resting.is_set():
                due = None
                writer.send(_SIGNALS[outside.what])
            if process.is_frozen:
                if not made_room:
                    made_room = True
                    self._room.release()
                await self._thaw(writer)
            await asyncio.sleep(_LOOK_EVERY)
        status, _ = await process.ended()
        writer.ended = "killed" if status == -signal.SIGKILL else "ended"
        writer.killed_at = time.time()
        writer.phase = writer.last_step()
        if not made_room:
            self._room.release()

    async def _thaw(self, writer: Writer) -> None:
        """Let it stand still for its time; at the end of the episode no longer."""
        since = time.time()
        writer.frozen_in.append(writer.last_step())
        with suppress(TimeoutError):
            async with asyncio.timeout(writer.script.frozen_for):
                await self._resting.wait()
        writer.freezes.append(Freeze(writer.name, since, time.time()))
        writer.send(signal.SIGCONT)
        await until(lambda: not _started(writer).is_frozen)


_SIGNALS = {"kill": signal.SIGKILL, "freeze": signal.SIGSTOP, "term": signal.SIGTERM}


def _started(writer: Writer) -> RealProcess:
    if writer.process is None:
        raise RuntimeError("the writer was not started")
    return writer.process


def writers_of(scripts: tuple[WriterScript, ...], task: Callable[[str, WriterScript], WriterTask]) -> list[Writer]:
    """The writers of an episode, not started yet."""
    return [Writer(script, task(f"writer-{number}", script)) for number, script in enumerate(scripts)]
