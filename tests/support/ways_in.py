"""The two ways in which a commit reaches the inbox, for tests that must not be able to tell them apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from consumers.intake.taking import MessageTaker
from ledger.commit import PlanCommit
from ledger.errors import ApplyLedgerError
from producers.publish import CommitPublisher
from tests.support.commit_topic import CommitTopic
from tests.support.real_writer import RealWriter


class WayIn(Protocol):
    """Brings one commit to the inbox."""

    async def commit(self, commit: PlanCommit) -> str:
        """Returns ``taken``, or the name of the refusal."""
        ...


@dataclass(frozen=True)
class Direct:
    """Without Kafka: the command writes the inbox."""

    writer: RealWriter

    async def commit(self, commit: PlanCommit) -> str:
        try:
            await self.writer.submit(commit)
        except ApplyLedgerError as exc:
            return type(exc).__name__
        return "taken"


@dataclass(frozen=True)
class ThroughKafka:
    """Published to a real broker, and taken by an intake."""

    writer: RealWriter
    topic: CommitTopic

    async def commit(self, commit: PlanCommit) -> str:
        async with CommitPublisher(self.topic.publish_settings) as publisher:
            place = await publisher.publish(commit)
        await self.topic.read_to_the_end(MessageTaker(self.writer.ledger, [self.writer.binding]).take)
        reason = await self.writer.ledger.message_refusal(place)
        return "taken" if reason is None else reason.split(":")[0]
