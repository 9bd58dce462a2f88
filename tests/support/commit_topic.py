"""A topic of plan commits on a real broker: fill it with anything, run an intake over it, look at its offsets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from consumers.intake.reading import Intake, Take
from consumers.intake.settings import IntakeSettings
from ledger.commit import PlanCommit
from ledger.commit_message import Headers, Message, encode_commit
from producers.publish import PublishSettings
from tests.support.waiting import until_true

RawMessage = tuple[bytes | None, bytes | None, Headers]
"""Key, value and headers of anything."""


@dataclass(frozen=True)
class CommitTopic:
    """One topic with one partition."""

    brokers: str
    name: str

    @property
    def partition(self) -> TopicPartition:
        return TopicPartition(self.name, 0)

    def intake_settings(self, **changes: Any) -> IntakeSettings:
        """Times that let a test see a rebalance."""
        values: dict[str, Any] = {
            "brokers": self.brokers,
            "topic": self.name,
            "group": f"intake-of-{self.name}",
            "request_timeout": 5.0,
            "session_timeout": 2.0,
            "heartbeat_interval": 0.3,
            "poll_wait": 0.1,
            "retry_wait": 0.1,
        }
        return IntakeSettings(**(values | changes))

    @property
    def publish_settings(self) -> PublishSettings:
        return PublishSettings(brokers=self.brokers, topic=self.name, request_timeout=5.0, publish_within=10.0)

    async def create(self) -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=self.brokers)
        await admin.start()
        try:
            reply = await admin.create_topics([NewTopic(self.name, num_partitions=1, replication_factor=1)])
            errors = [(error[0], error[1]) for error in reply.topic_errors if error[1] != 0]
            if errors:
                raise RuntimeError(f"the topic was not created: {errors}")
        finally:
            await admin.close()

    async def put(
        self, messages: Sequence[Message | tuple[bytes | None, bytes | None, Sequence[tuple[str, bytes]]]]
    ) -> None:
        """Append messages as they are, in this order, by a plain producer."""
        producer = AIOKafkaProducer(bootstrap_servers=self.brokers, retry_backoff_ms=20)
        await producer.start()
        try:
            for message in messages:
                key, value, headers = (
                    (message.key, message.value, message.headers) if isinstance(message, Message) else message
                )
                await producer.send_and_wait(self.name, key=key, value=value, headers=list(headers), partition=0)
        finally:
            await producer.stop()

    async def put_commits(self, commits: Sequence[PlanCommit]) -> None:
        await self.put([encode_commit(commit) for commit in commits])

    async def limit(self, size: int) -> None:
        """The longest message that the topic takes, in bytes."""
        admin = AIOKafkaAdminClient(bootstrap_servers=self.brokers)
        await admin.start()
        try:
            resource = ConfigResource(ConfigResourceType.TOPIC, self.name, {"max.message.bytes": str(size)})
            await admin.alter_configs([resource])
        finally:
            await admin.close()

    async def forget_before(self, offset: int) -> None:
        """What retention does: the messages before ``offset`` are gone."""
        admin = AIOKafkaAdminClient(bootstrap_servers=self.brokers)
        await admin.start()
        try:
            await admin.delete_records({self.partition: RecordsToDelete(before_offset=offset)})
        finally:
            await admin.close()

    async def leader(self) -> int:
        """The broker that leads the partition."""
        admin = AIOKafkaAdminClient(bootstrap_servers=self.brokers)
        await admin.start()
        try:
            (described,) = await admin.describe_topics([self.name])
            return int(described["partitions"][0]["leader"])
        finally:
            await admin.close()

    async def end(self) -> int:
        """The offset behind the last message."""
        async with self._reader(None) as consumer:
            found: dict[TopicPartition, int] = await consumer.end_offsets([self.partition])
            return found[self.partition]

    async def committed(self, group: str | None = None) -> int | None:
        """The offset that the group committed."""
        async with self._reader(group or self.intake_settings().group) as consumer:
            found: int | None = await consumer.committed(self.partition)
            return found

    @asynccontextmanager
    async def _reader(self, group: str | None) -> AsyncIterator[AIOKafkaConsumer]:
        consumer = AIOKafkaConsumer(bootstrap_servers=self.brokers, group_id=group, enable_auto_commit=False)
        consumer.assign([self.partition])
        await consumer.start()
        try:
            yield consumer
        finally:
            await consumer.stop()

    @asynccontextmanager
    async def reading(self, take: Take, **changes: Any) -> AsyncIterator[asyncio.Task[None]]:
        """An intake at work; at the end of the block it is stopped, and what ended it is raised."""
        stop = asyncio.Event()
        task = asyncio.create_task(Intake(self.intake_settings(**changes), take).run_until(stop))
        try:
            yield task
        finally:
            stop.set()
            await task

    async def read_to_the_end(self, take: Take, **changes: Any) -> None:
        """Run an intake until its group has committed everything that is there."""
        end = await self.end()
        group = self.intake_settings(**changes).group

        async def is_committed() -> bool:
            return task.done() or await self.committed(group) == end

        async with self.reading(take, **changes) as task:
            await until_true(is_committed)
