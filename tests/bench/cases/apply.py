"""Apply: the writer's loop with the ledger, beside the same loop without one.

Without a ledger means: the same write surface, client and checks, the same operations in the same order, one after the
other, a guard that lets every request go; and no PostgreSQL, no lease, no record. Both are timed from the first
operation to the last; opening, the gate and the schema are outside.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from consumers.settings import WriterSettings
from consumers.writer import BindingWriter
from ledger.binding import DestinationBinding
from ledger.destination import PlannedWriteDestination
from ledger.store.ledger import Ledger
from tests.bench.destination import BRANCH, REQUEST_TIMEOUT, inventory, opener, sandbox_apart
from tests.bench.frame import Case, Figure, Series, Setting, Target, interleaved_async, ratio
from tests.bench.server import ledger_server
from tests.support.committed_plans import commit_of, save


def measure_at_once(setting: Setting) -> Sequence[Figure]:
    """Against a sandbox that answers as fast as it can."""
    return asyncio.run(_measure(setting, seconds=0.0, count=setting.sized(500, 30), bound=0.7))


def measure_slow(setting: Setting) -> Sequence[Figure]:
    """Against one that takes 20 ms for each write."""
    return asyncio.run(_measure(setting, seconds=0.02, count=setting.sized(250, 10), bound=0.98))


async def _measure(setting: Setting, *, seconds: float, count: int, bound: float) -> Sequence[Figure]:
    with sandbox_apart(seconds=seconds) as url:
        async with ledger_server(setting.scratch) as dsns, await Ledger.open(dsns.writer) as ledger:
            sides = _Sides(url, dsns.writer, ledger, setting.scratch / "plans", count)
            rates = await interleaved_async(setting.rounds, {"with": sides.with_ledger, "without": sides.without})
    return [
        ratio(
            "apply with the ledger ÷ the same loop without it",
            Series("the writer, from run.started to run.applied", "operations/s", rates["with"]),
            Series("the write surface alone", "operations/s", rates["without"]),
            Target("at least", bound),
        )
    ]


class _Guard:
    """Lets every request go."""

    def before_send(self) -> None:
        """Go."""


class _Sides:
    """Both variants; each round writes objects of its own."""

    def __init__(self, url: str, dsn: str, ledger: Ledger, root: Path, count: int) -> None:
        self._url = url
        self._dsn = dsn
        self._ledger = ledger
        self._root = root
        self._count = count
        self._rounds = 0
        self._binding = DestinationBinding(url=url, branch=BRANCH)

    async def with_ledger(self) -> float:
        """Operations in a second of one run, by the times of its events."""
        run_id = self._next()
        run_dir = save(self._root, run_id, inventory(run_id, self._count), binding=self._binding)
        binding_id = await self._ledger.register_binding(self._binding)
        row = await self._ledger.binding(self._binding)
        commit = commit_of(
            self._root, run_dir, binding=self._binding, ledger_position=0 if row is None else row.head_position
        )
        await self._ledger.submit_commit(binding_id, commit)
        settings = WriterSettings(artifact_root=self._root, request_timeout=REQUEST_TIMEOUT)
        await BindingWriter(self._dsn, self._binding, opener(self._url), settings).drain(run_id, by="bench")
        at = {event.kind: event.recorded_at async for event in self._ledger.events(binding_id, run_id=run_id)}
        return self._count / (at["run.applied"] - at["run.started"]).total_seconds()

    async def without(self) -> float:
        """Operations in a second of the bare loop."""
        run_id = self._next()
        operations = inventory(run_id, self._count)
        async with opener(self._url)(self._binding, run_id=run_id, guard=_Guard()) as opened:
            writes = cast("PlannedWriteDestination", opened.writes)  # the gate looks; there is none here
            peers = writes.new_peer_resolver()
            started = time.perf_counter()
            for operation in operations:
                await writes.apply_planned_operation(operation=operation, peers=peers)
            return self._count / (time.perf_counter() - started)

    def _next(self) -> str:
        self._rounds += 1
        return f"run-{self._rounds}"


AT_ONCE = Case(
    "apply-sandbox", "an apply with the ledger ÷ the same loop without it, against the sandbox", measure_at_once
)
SLOW = Case(
    "apply-20ms", "an apply with the ledger ÷ the same loop without it, where a write takes 20 ms", measure_slow
)
