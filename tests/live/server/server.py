"""One Infrahub server: database, workflow server and API, started, killed, started again and stopped.

It lives in a folder and outlives the command that started it; whoever opens the folder later can go on with it.
"""

from __future__ import annotations

import contextlib
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import httpx
import yaml

from tests.live.server.bolt import is_ready
from tests.live.server.commands import TOKEN, Commands, Ports
from tests.live.server.errors import LiveServerError
from tests.live.server.managed import ManagedProcesses
from tests.support.kafka_broker import free_ports

PROCESSES = ("api", "prefect", "neo4j")
"""In the order in which they are stopped."""
START_LIMIT = 360.0
"""Seconds that a start may take, the schema included."""
_STEP = 0.2


class InfrahubServer:
    """The server of one folder; ``home`` holds what is installed, ``home/run`` data, logs and what runs."""

    def __init__(self, home: Path) -> None:
        self._home = home.resolve()
        self._run = self._home / "run"
        self._processes = ManagedProcesses(self._run)
        self._limit = time.monotonic() + START_LIMIT

    @property
    def is_running(self) -> bool:
        """Whether any of its processes lives."""
        return any(self._processes.pid(name) for name in PROCESSES)

    @property
    def is_complete(self) -> bool:
        """Whether all of them live and the start came to its end, the schema included."""
        return bool(self._processes.known.get("complete")) and all(self._processes.pid(name) for name in PROCESSES)

    @property
    def url(self) -> str:
        """The address of the API."""
        return self._commands.ports.url

    @property
    def token(self) -> str:
        """The administrator's."""
        return TOKEN

    @property
    def seconds(self) -> dict[str, float]:
        """How long each step of the start took."""
        found: dict[str, float] = self._processes.known.get("seconds", {})
        return found

    def start(self, schemas: tuple[Path, ...] = (), *, limit: float = START_LIMIT) -> None:
        """Start on an empty database and load schema files; returns when all of it answers.

        Raises:
            LiveServerError: it runs already, a process ended, or it took more than ``limit`` seconds.
        """
        if self.is_running:
            raise LiveServerError(f"a server of {self._home} runs already at {self.url}: stop it first")
        self._limit = time.monotonic() + limit
        shutil.rmtree(self._run, ignore_errors=True)
        self._run.mkdir(parents=True)
        self._processes = ManagedProcesses(self._run)
        bolt, prefect, api = free_ports(3)
        self._processes.known["ports"] = asdict(Ports(bolt, prefect, api))
        self._commands.write_settings()
        try:
            with self._timed("neo4j"):
                self._spawn_all()
                self._wait("neo4j", lambda: is_ready(self._commands.ports.bolt))
            with self._timed("api"):
                self._wait("prefect", lambda: _answers(f"http://127.0.0.1:{prefect}/api/health"))
                self._wait_for_api()
            if schemas:
                with self._timed("schema"):
                    self._load(schemas)
        except BaseException:
            self.stop()
            raise
        self._processes.known["complete"] = True
        self._processes.save()

    def stop(self) -> None:
        """End what runs; data and logs stay until the next start."""
        for name in PROCESSES:
            self._processes.end(name)
        if self._run.is_dir():
            self._processes.save()

    def peak_memory(self) -> dict[str, int]:
        """The highest resident memory of each process since the start, in MB."""
        return self._processes.peak_memory()

    def kill_api(self) -> None:
        """SIGKILL to the API alone."""
        self._processes.end("api", signal.SIGKILL)

    def start_api(self, *, limit: float = START_LIMIT) -> None:
        """Start the API again on the same database and port."""
        self._limit = time.monotonic() + limit
        self._processes.spawn("api", self._commands.api(), self._commands.environment())
        self._wait_for_api()

    def kill_database(self) -> None:
        """SIGKILL to the database alone."""
        self._processes.end("neo4j", signal.SIGKILL)

    def start_database(self, *, limit: float = START_LIMIT) -> None:
        """Start the database again on the same data and port, and wait until the API has found it."""
        self._limit = time.monotonic() + limit
        self._processes.spawn("neo4j", self._commands.neo4j(), self._commands.environment())
        self._wait("neo4j", lambda: is_ready(self._commands.ports.bolt))
        self._wait("api", self._database_answers)

    def revive(self) -> None:
        """Start again what was killed and not started since."""
        self._processes = ManagedProcesses(self._run)
        if self._processes.pid("neo4j") is None:
            self.start_database()
        if self._processes.pid("api") is None:
            self.start_api()

    @property
    def _commands(self) -> Commands:
        ports = self._processes.known.get("ports")
        if ports is None:
            raise LiveServerError(f"no server was started in {self._home}")
        return Commands(self._home, self._run, Ports(**ports))

    def _spawn_all(self) -> None:
        """All three at once: the API imports for some seconds, then waits for the database by itself."""
        commands, environment = self._commands, self._commands.environment()
        self._processes.spawn("neo4j", commands.neo4j(), environment)
        self._processes.spawn("prefect", commands.prefect(), environment)
        self._processes.spawn("api", commands.api(), environment)

    def _wait_for_api(self) -> None:
        self._wait("api", lambda: _answers(f"{self.url}/api/config"))

    def _database_answers(self) -> bool:
        query = {"query": "query { Branch { name } }"}
        try:
            answer = httpx.post(f"{self.url}/graphql", json=query, headers=self._headers, trust_env=False, timeout=10)
        except httpx.TransportError:
            return False
        return answer.status_code == 200 and "errors" not in answer.json()

    def _wait(self, name: str, ready: Callable[[], bool]) -> None:
        began = time.monotonic()
        while not ready():
            if self._processes.pid(name) is None:
                raise LiveServerError(f"{name} ended while it started\n{self._processes.log_tail(name)}")
            if time.monotonic() > self._limit:
                waited = time.monotonic() - began
                raise LiveServerError(f"{name} was not up after {waited:.0f} s\n{self._processes.log_tail(name)}")
            time.sleep(_STEP)

    def _load(self, schemas: tuple[Path, ...]) -> None:
        documents = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in schemas]
        left = max(1.0, self._limit - time.monotonic())
        try:
            answer = httpx.post(
                f"{self.url}/api/schema/load",
                params={"branch": "main"},
                json={"schemas": documents},
                headers=self._headers,
                trust_env=False,
                timeout=left,
            )
        except httpx.TransportError as exc:
            raise LiveServerError(f"the schema was not loaded: {type(exc).__name__} after {left:.0f} s") from exc
        if answer.status_code != 200:
            raise LiveServerError(f"the schema was not loaded: HTTP {answer.status_code} {answer.text[:2000]}")

    @property
    def _headers(self) -> dict[str, Any]:
        return {"X-INFRAHUB-KEY": self.token}

    @contextlib.contextmanager
    def _timed(self, step: str) -> Iterator[None]:
        began = time.monotonic()
        yield
        seconds = round(time.monotonic() - began, 1)
        self._processes.known.setdefault("seconds", {})[step] = seconds
        sys.stderr.write(f"live server: {step} up after {seconds:g} s\n")


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, trust_env=False, timeout=5).status_code == 200
    except httpx.TransportError:
        return False
