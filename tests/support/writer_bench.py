"""A whole writer over the ledger in memory and a scripted destination: no service, no waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from consumers.pauses import PausePoint
from consumers.progress import WriterProgress
from consumers.runs import RunOutcome
from consumers.settings import WriterSettings
from consumers.writer import BindingWriter
from ledger.binding import DestinationBinding
from ledger.commit import PlanCommit, Policy
from ledger.events import NewEvent
from ledger.plan.model import PlannedOperation
from tests.support.committed_plans import BINDING, commit_of, in_order, save
from tests.support.memory_ledger import MemoryLedger
from tests.support.scripted_destination import ScriptedDestination


@dataclass
class Pauses:
    """A hook that does, at a named point, what a test wants, and remembers all points."""

    actions: dict[PausePoint, Callable[[], Awaitable[None]]] = field(default_factory=dict)
    at_guard: Callable[[], None] | None = None
    seen: list[PausePoint] = field(default_factory=list)

    async def reached(self, point: PausePoint) -> None:
        self.seen.append(point)
        action = self.actions.get(point)
        if action is not None:
            await action()

    def reached_guard(self) -> None:
        if self.at_guard is not None:
            self.at_guard()


@dataclass
class Bench:
    """Commit plans and work them off; then look at the ledger and at what the destination received."""

    root: Path
    ledger: MemoryLedger = field(default_factory=MemoryLedger)
    destination: ScriptedDestination = field(default_factory=ScriptedDestination)
    pauses: Pauses = field(default_factory=Pauses)
    changes: dict[str, Any] = field(default_factory=dict)
    aliases: list[DestinationBinding] = field(default_factory=list)
    shown: list[WriterProgress] = field(default_factory=list)
    recorded: list[NewEvent] = field(default_factory=list)

    def commit(
        self,
        operations: Sequence[PlannedOperation],
        *,
        run_id: str = "run-1",
        policy: Policy | None = None,
        commit: dict[str, Any] | None = None,
        **manifest: Any,
    ) -> list[PlannedOperation]:
        """Save and commit a plan; returns its operations in stored order."""
        ordered = in_order(operations)
        run_dir = save(self.root, run_id, ordered, **manifest)
        self.ledger.commit(commit_of(self.root, run_dir, policy=policy, **(commit or {})))
        return ordered

    def commit_of(self, run_id: str = "run-1") -> PlanCommit:
        """The commit of a run as taken."""
        body = next(o.body for o in self.ledger.orders if o.kind == "commit" and o.run_id == run_id)
        return PlanCommit.model_validate(dict(body))

    @property
    def settings(self) -> WriterSettings:
        """Ordinary times; the clock is a number, so they cost nothing."""
        values: dict[str, Any] = {
            "artifact_root": self.root,
            "lease_ttl": 60.0,
            "request_timeout": 20.0,
            "margin": 5.0,
            "settle_seconds": 30.0,
            "poll_interval": 0.001,
            "stop_poll_interval": 0.0,
            "open_attempts": 1,
        }
        return WriterSettings(**(values | self.changes))

    def writer(self) -> BindingWriter:
        """A new process."""
        return BindingWriter(
            "memory",
            BINDING,
            self.destination,
            self.settings,
            aliases=self.aliases,
            connect=self.ledger,
            pause=self.pauses,
            observe=self._observe,
            recorded=self.recorded.extend,
            clock=self.ledger.clock,
        )

    async def drain(self, run_id: str = "run-1", **signals: asyncio.Event) -> RunOutcome:
        """Work the inbox until that run has ended."""
        return await self.writer().drain(run_id, by="ada", **signals)

    def _observe(self, progress: WriterProgress) -> None:
        self.shown.append(progress)
        if progress.phase == "settling":
            self.ledger.clock.now += progress.seconds
