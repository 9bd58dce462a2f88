"""From a commit to the first request of its run, with the writer in a process of its own: ``apply-ledger work``.

The clock starts before the commit is handed over, to the ledger or to the broker, and ends when the request arrives at
the destination. The writer holds its lease and is idle, as it is nearly always; each run is a small plan of its own,
made and saved before. In between lie the inbox, the gate with its look at the destination, and the plan's way into the
ledger.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from consumers.infrahub.sandbox import RunningSandbox
from ledger.binding import DestinationBinding
from ledger.commit import PlanCommit, Policy
from ledger.store.embedded import Dsns
from ledger.store.ledger import Ledger
from producers.publish import CommitPublisher, PublishSettings
from tests.bench.destination import BRANCH
from tests.bench.frame import Case, Figure, Series, Setting, Target
from tests.bench.server import ledger_server
from tests.support.broker_topics import new_topics
from tests.support.committed_plans import commit_of, in_order, save
from tests.support.inventory_operations import manufacturer
from tests.support.kafka_broker import KafkaCluster, broker_jars
from tests.support.real_writer import REAL_SCHEMA, TOKEN
from tests.support.waiting import until

_PROGRAM = (sys.executable, "-m", "ledger.cli.main", "work")
_OPERATIONS = 3
_WARM = 5
"""Runs before the first that counts: the schema is known then, and statements are prepared."""

Commit = Callable[[PlanCommit], Awaitable[object]]


def measure(setting: Setting) -> Sequence[Figure]:
    """Milliseconds of each way in."""
    with (
        RunningSandbox(REAL_SCHEMA, token=TOKEN, seed="bench") as sandbox,
        KafkaCluster(broker_jars(), setting.scratch / "kafka") as kafka,
    ):
        return asyncio.run(_measure(setting, sandbox, kafka.bootstrap()))


async def _measure(setting: Setting, sandbox: RunningSandbox, brokers: str) -> Sequence[Figure]:
    count = setting.sized(60, 3)
    async with ledger_server(setting.scratch) as dsns, await Ledger.open(dsns.writer) as ledger:
        runs = _Runs(sandbox, setting.scratch / "runs")
        topics = await new_topics(brokers)
        settings = PublishSettings(brokers=brokers, topic=topics.commits_topic)
        binding_id = await ledger.register_binding(runs.binding)

        async def directly(commit: PlanCommit) -> object:
            return await ledger.submit_commit(binding_id, commit)

        async with CommitPublisher(settings) as publisher:
            variables = {
                "APPLY_LEDGER_KAFKA__BROKERS": brokers,
                "APPLY_LEDGER_KAFKA__COMMITS_TOPIC": topics.commits_topic,
                "APPLY_LEDGER_KAFKA__EVENTS_TOPIC": topics.events_topic,
            }
            with _worker(dsns, sandbox, setting.scratch, variables):
                ways: dict[str, Commit] = {"embedded": directly, "kafka": publisher.publish}
                for way in ways.values():
                    await runs.times(way, _WARM)
                found = await _rounds(runs, ways, setting.rounds, count)
    return [
        *_figures("embedded", "into the ledger itself", found["embedded"], bound=50),
        *_figures("kafka", "through the broker", found["kafka"], bound=150),
    ]


async def _rounds(runs: _Runs, ways: Mapping[str, Commit], rounds: int, count: int) -> dict[str, list[list[float]]]:
    found: dict[str, list[list[float]]] = {name: [] for name in ways}
    for number in range(rounds):
        for name in ways if number % 2 == 0 else list(ways)[::-1]:
            found[name].append(await runs.times(ways[name], count))
    return found


def _figures(name: str, how: str, rounds: Sequence[Sequence[float]], *, bound: float) -> list[Figure]:
    middle = Series("p50", "ms", tuple(statistics.median(times) for times in rounds))
    slow = Series("p99", "ms", tuple(sorted(times)[round(0.99 * (len(times) - 1))] for times in rounds))
    title = f"commit {how} to first request ({name})"
    return [Figure(f"{title}, p50", middle, Target("at most", bound)), Figure(f"{title}, p99", slow)]


@dataclass
class _Runs:
    """Plans that each make objects of their own, and the moments at which their first requests arrived."""

    sandbox: RunningSandbox
    root: Path
    _made: int = 0
    _seen: int = field(default=0)

    @property
    def binding(self) -> DestinationBinding:
        """The destination."""
        return DestinationBinding(url=self.sandbox.url, branch=BRANCH)

    async def times(self, commit: Commit, count: int) -> list[float]:
        """Milliseconds of so many runs, one after the other, each begun when the one before had ended."""
        return [await self._time(commit) for _ in range(count)]

    async def _time(self, commit: Commit) -> float:
        self._made += 1
        name = f"run-{self._made}"
        operations = in_order([manufacturer(f"{name} {number}") for number in range(_OPERATIONS)])
        run_dir = save(self.root, name, operations, binding=self.binding)
        order = commit_of(self.root, run_dir, binding=self.binding, policy=Policy(allow_stale=True))
        began = time.time()
        await commit(order)
        await until(lambda: len(self.sandbox.journal) >= self._seen + _OPERATIONS)
        (first, *_) = self.sandbox.journal.entries(after=self._seen)
        self._seen += _OPERATIONS
        await asyncio.sleep(0.05)  # the end of the run is recorded, and the writer is idle again
        return (first.received_at - began) * 1000


@contextmanager
def _worker(dsns: Dsns, sandbox: RunningSandbox, scratch: Path, variables: Mapping[str, str]) -> Iterator[None]:
    """The service, as it is started anywhere; ready when it has taken its first run."""
    (scratch / "apply-ledger.toml").write_text("", encoding="utf-8")
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("INFRAHUB", "APPLY_LEDGER"))},
        "INFRAHUB_ADDRESS": sandbox.url,
        "INFRAHUB_DEFAULT_BRANCH": BRANCH,
        "INFRAHUB_API_TOKEN": TOKEN,
        "INFRAHUB_SYNC_CACHE_DIR": str(scratch / "runs"),
        "APPLY_LEDGER_CONFIG": str(scratch / "apply-ledger.toml"),
        "APPLY_LEDGER_DSN": dsns.writer,
        **variables,
    }
    with (scratch / "work.log").open("wb") as log:
        process = subprocess.Popen(_PROGRAM, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            yield
        finally:
            process.terminate()
            process.wait()


CASE = Case(
    "dispatch", "from a commit to the first request of its run, without and with a broker between them", measure
)
