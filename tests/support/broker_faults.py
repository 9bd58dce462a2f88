"""Commits published while something breaks, and the accounts at the end: what went in against what is recorded."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from ledger.commit import PlanCommit
from ledger.store.ledger import Ledger
from producers.publish import BrokerNotReachedError, CommitPublisher, PublishSettings, PublishUnknownError
from tests.support.store import BINDING, connection_to, make_commit
from tests.support.waiting import until

AGAIN = (PublishUnknownError, BrokerNotReachedError)
"""What a committer answers with the same commit again."""


def commits(count: int) -> list[PlanCommit]:
    """Distinct commits, each of a run of its own."""
    return [make_commit(f"20261129T1900-{number:08x}", f"{number:064x}") for number in range(count)]


async def publish_until_all_are(settings: PublishSettings, wanted: Sequence[PlanCommit], *, at_once: int = 4) -> int:
    """Publish each commit, again where the answer is unknown; returns how often one had to be repeated."""
    repeated = await asyncio.gather(*(_publish(settings, wanted[lane::at_once]) for lane in range(at_once)))
    return sum(repeated)


async def _publish(settings: PublishSettings, wanted: Sequence[PlanCommit]) -> int:
    repeated = 0
    async with CommitPublisher(settings) as publisher:
        for commit in wanted:
            while True:
                try:
                    await publisher.publish(commit)
                    break
                except AGAIN:
                    repeated += 1
    return repeated


async def last(seconds: float) -> None:
    """Let a fault last so long: its length is what is tested, not a wait for something."""
    end = time.monotonic() + seconds
    await until(lambda: time.monotonic() >= end)


@dataclass(frozen=True)
class Accounts:
    """A ledger, looked at behind the back of the program."""

    ledger: Ledger
    admin_dsn: str

    async def inbox(self) -> tuple[int, int]:
        """Rows of the inbox, and distinct commits among them."""
        async with connection_to(self.admin_dsn) as admin:
            row = await admin.fetchrow("select count(*) as rows, count(distinct commit_id) as ids from ledger.inbox")
        return row["rows"], row["ids"]

    async def refusals(self, topic: str) -> int:
        """Recorded refusals of messages of one topic."""
        async with connection_to(self.admin_dsn) as admin:
            found: int = await admin.fetchval("select count(*) from ledger.intake_refusal where topic = $1", topic)
        return found

    async def committed(self) -> list[str]:
        """Runs in the log, in order."""
        binding_id = await self.ledger.register_binding(BINDING)
        return [e.run_id or "" async for e in self.ledger.events(binding_id) if e.kind == "plan.committed"]

    def has_taken(self, count: int) -> Callable[[], Awaitable[bool]]:
        """Whether the inbox has so many rows."""

        async def is_so() -> bool:
            return (await self.inbox())[0] >= count

        return is_so

    def has_relayed(self, topic: str, position: int) -> Callable[[], Awaitable[bool]]:
        """Whether the topic is known to hold everything up to ``position``."""

        async def is_so() -> bool:
            return any(each.relayed_position >= position for each in await self.ledger.relay_cursors(topic))

        return is_so
