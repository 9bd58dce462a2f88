"""Writers that race for two bindings at once, each doing what a writer does, while leases run out under them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ledger.binding import DestinationBinding
from ledger.events import OUTCOME_KINDS, NewEvent
from ledger.store.errors import EpochMovedError, FencedWriterError, LeaseHeldError, QuietPeriodError
from ledger.store.ledger import Ledger
from ledger.store.records import Appended, InFlight, Lease
from ledger.store.writer import WriterStore
from tests.state_machine import facts
from tests.state_machine.database import LONG
from tests.state_machine.model import SUCCESSES, Mark

FENCED = (FencedWriterError, LeaseHeldError, EpochMovedError)


@dataclass
class Track:
    """One binding, and what its contestants were answered."""

    id: int
    binding: DestinationBinding
    leases: list[Lease] = field(default_factory=list)
    appended: list[tuple[Lease, Sequence[NewEvent], Appended]] = field(default_factory=list)
    marked: set[InFlight] = field(default_factory=set)
    fenced: int = 0


@dataclass
class Contestant:
    """A writer that claims, takes over, resumes, dispatches a little, and releases or dies."""

    name: str
    track: Track
    store: WriterStore
    ledger: Ledger
    chance: random.Random

    async def race(self, rounds: int) -> None:
        """So many claims, refused or not."""
        for _ in range(rounds):
            try:
                lease = await self.store.claim(
                    self.track.id,
                    owner=self.name,
                    ttl=LONG,
                    settle=LONG,
                    body_host=facts.HOST,
                    body_process_id=f"process of {self.name}",
                )
                self.track.leases.append(lease)
                await self._write(lease)
            except FENCED:
                self.track.fenced += 1
            await asyncio.sleep(0)

    async def _write(self, lease: Lease) -> None:
        binding, run_id = self.track.binding, self.chance.choice(facts.RUNS)
        if mark := lease.in_flight:
            told = facts.outcome("operation.unknown", binding, mark.run_id, mark.ordinal, mark.attempt)
            ended = facts.run_mark("run.interrupted", binding, mark.run_id, await self._starts(mark.run_id) - 1)
            await self._append(lease, [told, ended], None)
        starts = await self._starts(run_id)
        await self._append(lease, [facts.run_mark("run.resumed" if starts else "run.started", binding, run_id, starts)])
        events: list[NewEvent] = []
        while following := await self._next(run_id, events):
            if self.chance.random() < 0.2:
                return  # dies with the operation before in flight, or with nothing
            try:
                await self._append(lease, events, following)
            except QuietPeriodError:
                await self._append(lease, events, None)
                return
            kind = self.chance.choice(("operation.applied", "operation.applied", "operation.failed"))
            events = [facts.outcome(kind, binding, run_id, following.ordinal, following.attempt)]
        await self._append(lease, events, None)
        if self.chance.random() < 0.5:
            await self.store.release(lease)

    async def _append(self, lease: Lease, events: Sequence[NewEvent], mark: Mark = "keep") -> None:
        appended = await self.store.append(lease, events, in_flight=mark)
        self.track.appended.append((lease, events, appended))
        if isinstance(mark, InFlight):
            self.track.marked.add(mark)

    async def _starts(self, run_id: str) -> int:
        return (await self.ledger.run_state(self.track.id, run_id)).starts

    async def _next(self, run_id: str, pending: Sequence[NewEvent]) -> InFlight | None:
        told = [e async for e in self.ledger.events(self.track.id, run_id=run_id) if e.kind in OUTCOME_KINDS]
        for ordinal in range(facts.CREATES):
            mine = [e.kind for e in told if e.ordinal == ordinal] + [e.kind for e in pending if e.ordinal == ordinal]
            if not SUCCESSES & set(mine):
                return InFlight(run_id, ordinal, len(mine) + 1)
        return None


async def time_passes(admin: Any, track: Track, over: asyncio.Event, chance: random.Random) -> None:
    """Until it is over, leases run out and destinations settle at any moment."""
    while not over.is_set():
        column = chance.choice(("lease_expires_at", "lease_expires_at", "quiet_until"))
        await admin.execute(
            f"update ledger.binding set {column} = clock_timestamp() - interval '1 ms'"
            f" where id = $1 and {column} is not null",
            track.id,
        )
        await asyncio.sleep(0)


async def commit_both_runs(ledger: Ledger, track: Track) -> int:
    """Everybody commits the same two runs; returns how many were the first."""
    receipts = [await ledger.submit_commit(track.id, facts.commit(track.binding, run_id)) for run_id in facts.RUNS]
    return sum(receipt.first for receipt in receipts)
