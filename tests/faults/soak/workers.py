"""The worker processes of a soak: ``apply-ledger work``, killed, frozen and stopped from outside, and started again."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from tests.faults.facts import Freeze
from tests.faults.soak.script import Strike

_PROGRAM = (sys.executable, "-m", "ledger.cli.main")
_STOPS_WITHIN = 60.0
_ROOT = Path(__file__).resolve().parents[3]


class WorkerProcess:
    """One place for a worker: there is a process in it, or soon will be again."""

    def __init__(self, name: str, environment: Mapping[str, str], folder: Path) -> None:
        self.name = name
        self.freezes: list[Freeze] = []
        self.wrong: list[str] = []
        self.counts: Counter[str] = Counter()
        self.log = folder / f"{name}.log"
        self._environment = dict(environment)
        self._process: subprocess.Popen[bytes] | None = None
        self._busy = asyncio.Lock()
        self._began_at = 0

    def start(self) -> None:
        """Start the program; what it says goes to the end of its log."""
        with self.log.open("ab") as log:
            self._began_at = log.tell()
            self._process = subprocess.Popen(
                [*_PROGRAM, "work"],
                cwd=_ROOT,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.counts["workers started"] += 1

    async def strike(self, strike: Strike, rng: random.Random) -> None:
        """Carry a strike out; two that meet come one after the other."""
        async with self._busy:
            self.look()
            match strike.what:
                case "worker freeze":
                    await self._freeze(strike.lasts)
                case "worker stop":
                    await self.stop()
                    self.start()
                case _:
                    await self._kill()
                    await asyncio.sleep(rng.uniform(0.0, strike.lasts))
                    self.start()
            self.counts[strike.what] += 1

    def look(self) -> None:
        """Start it again where it ended by itself, as a supervisor would."""
        process = self._process
        if process is not None and process.poll() is not None:
            self.counts["workers that ended by themselves"] += 1
            self.start()

    async def watch(self) -> None:
        """Look now and then, until this is cancelled."""
        while True:
            if not self._busy.locked():
                self.look()
            await asyncio.sleep(1.0)

    async def stop(self) -> None:
        """SIGTERM; it must end by itself, in a bounded time, with 0."""
        process = self._running()
        process.terminate()
        try:
            status = await asyncio.to_thread(process.wait, _STOPS_WITHIN)
        except subprocess.TimeoutExpired:
            self.wrong.append(f"{self.name} did not end within {_STOPS_WITHIN:g} s of its SIGTERM")
            await self._kill()
            return
        # a process that was only starting has nothing to hand over, and may die of the signal
        if status != 0 and not (status == -signal.SIGTERM and not self._serves()):
            self.wrong.append(f"{self.name} ended with {status} after its SIGTERM")

    def clean_up(self) -> None:
        """Leave no process behind, and no defect in the log unseen."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        if self.log.exists() and "Traceback" in self.log.read_text(encoding="utf-8", errors="replace"):
            self.wrong.append(f"{self.name}: a defect, see {self.log}")

    async def _freeze(self, seconds: float) -> None:
        process = self._running()
        os.kill(process.pid, signal.SIGSTOP)
        since = time.time()
        try:
            await asyncio.sleep(seconds)
        finally:
            until = time.time()
            os.kill(process.pid, signal.SIGCONT)
        self.freezes.append(Freeze(self.name, since, until))

    async def _kill(self) -> None:
        process = self._running()
        process.kill()
        await asyncio.to_thread(process.wait)

    def _serves(self) -> bool:
        """Whether the process that was started last has said that it serves."""
        with self.log.open("rb") as log:
            log.seek(self._began_at)
            return b"serving " in log.read()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError(f"{self.name} was not started")
        return self._process
