"""Workers of the demo: started, looked at through their metrics, and one of them killed."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import httpx

from tests.demo.workplace import DemoFailed, Workplace, console
from tests.support.kafka_broker import free_ports

WITHIN = 300.0
"""Seconds until a worker has done what is waited for; a busy machine is slow."""


@dataclass(frozen=True)
class Worker:
    """One process of ``work``."""

    name: str
    url: str
    port: int
    process: subprocess.Popen[bytes]

    def metrics(self) -> str:
        """What it tells Prometheus; empty where it does not answer."""
        try:
            return httpx.get(f"http://127.0.0.1:{self.port}/metrics", trust_env=False).text
        except httpx.TransportError:
            return ""

    def is_ready(self) -> bool:
        """Whether all its parts do their work."""
        try:
            return httpx.get(f"http://127.0.0.1:{self.port}/readyz", trust_env=False).status_code == 200
        except httpx.TransportError:
            return False

    def writes(self, branch: str) -> bool:
        """Whether it is the writer of the branch."""
        return f'apply_ledger_lease_held{{branch="{branch}",url="{self.url}"}} 1.0' in self.metrics()

    def until_relayed(self, heads: Mapping[str, int]) -> None:
        """Wait until the topic holds these positions.

        Raises:
            DemoFailed: it takes too long.
        """
        wanted = [
            f'apply_ledger_relay_position{{branch="{branch}",url="{self.url}"}} {float(position)}'
            for branch, position in heads.items()
        ]
        deadline = time.monotonic() + WITHIN
        while not all(line in (told := self.metrics()) for line in wanted):
            if time.monotonic() > deadline:
                raise DemoFailed(f"the topic does not get to {dict(heads)}; {self.name} tells {told[-500:]}")
            time.sleep(0.2)


@contextmanager
def working(place: Workplace, name: str) -> Iterator[Worker]:
    """One worker, ready; at the end it is asked to stop, and must."""
    (port,) = free_ports(1)
    log = place.state / f"{name}.log"
    process = place.start("work", "--metrics-port", str(port), log=log)
    worker = Worker(name, place.url, port, process)
    try:
        deadline = time.monotonic() + WITHIN
        while not worker.is_ready():
            if process.poll() is not None or time.monotonic() > deadline:
                raise DemoFailed(f"{name} did not become ready; see {log}")
            time.sleep(0.2)
        console.print(f"  {name} is process {process.pid} and ready")
        yield worker
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)


def kill_the_writer_of(place: Workplace, branch: str, workers: Sequence[Worker], *, after: int) -> Worker:
    """SIGKILL for whoever writes the branch, once it has sent so many writes.

    Raises:
        DemoFailed: nobody writes, or there is nothing left to be in the middle of.
    """
    deadline = time.monotonic() + WITHIN
    while sum(entry["branch"] == branch for entry in place.journal()) < after:
        if time.monotonic() > deadline:
            raise DemoFailed(f"nobody writes [{branch}]")
        time.sleep(0.2)
    for worker in workers:
        if worker.writes(branch):
            worker.process.kill()
            worker.process.wait()
            return worker
    raise DemoFailed(f"no worker says that it is the writer of [{branch}]")
