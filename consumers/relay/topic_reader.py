"""Reads a topic once, from its first message to its end at the start of the reading; joins no group."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import UnknownTopicOrPartitionError

from consumers.intake.errors import BrokerUnavailableError, MissingTopicError
from consumers.relay.settings import RelaySettings
from ledger.broker import reason_of, told_by_client
from ledger.commit_message import Headers
from ledger.kafka_producer import Unreachable
from ledger.store.records import MessagePlace

Feed = Callable[[MessagePlace, bytes | None, bytes | None, Headers], None]
Progress = Callable[[int, int], None]
"""Called with how many messages were read and how many there are."""

_PAGE = 2000


async def read_topic(settings: RelaySettings, feed: Feed, *, progress: Progress | None = None) -> int:
    """Hand every message of the topic to ``feed``, each partition in order; returns how many there were.

    Raises:
        BrokerUnavailableError: no broker answered in time.
        MissingTopicError: the topic is not there.
    """
    consumer = AIOKafkaConsumer(
        settings.topic,
        bootstrap_servers=settings.brokers,
        client_id=settings.client_id,
        group_id=None,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        request_timeout_ms=max(1, round(settings.request_timeout * 1000)),
        **settings.security.client_options(),
    )
    with told_by_client() as told:
        try:
            async with asyncio.timeout(settings.send_within):
                await consumer.start()
            return await _read(consumer, settings, feed, progress)
        except UnknownTopicOrPartitionError as exc:
            raise MissingTopicError(
                checked=f"the topic {settings.topic}",
                expected="that it exists",
                found="no such topic at these brokers",
                next_action="create it with `apply-ledger kafka init`",
            ) from exc
        except Unreachable as exc:
            raise BrokerUnavailableError(
                checked=f"the topic {settings.topic} at the brokers {settings.brokers}",
                expected=f"its messages, each answer within {settings.send_within:g} s",
                found=reason_of(exc, told),
                next_action="check address, credentials and certificate",
            ) from exc
        finally:
            with suppress(*Unreachable):
                async with asyncio.timeout(settings.send_within):
                    await consumer.stop()


async def _read(consumer: Any, settings: RelaySettings, feed: Feed, progress: Progress | None) -> int:
    async with asyncio.timeout(settings.send_within):
        partitions = sorted(consumer.assignment())  # without a group: all of the topic
        begins, ends = await consumer.beginning_offsets(partitions), await consumer.end_offsets(partitions)
    total, seen = sum(ends[each] - begins[each] for each in partitions), 0
    for partition in partitions:
        if begins[partition] == ends[partition]:
            consumer.pause(partition)
        consumer.seek(partition, begins[partition])
    left = {each for each in partitions if begins[each] < ends[each]}
    while left:
        async with asyncio.timeout(settings.send_within):
            batches = await _some(consumer, left)
        for partition, records in batches.items():
            for record in records:
                if record.offset < ends[partition]:
                    place = MessagePlace(record.topic, record.partition, record.offset)
                    feed(place, record.key, record.value, tuple(record.headers))
                    seen += 1
            if records and records[-1].offset >= ends[partition] - 1:
                left.discard(partition)
        if progress is not None:
            progress(seen, total)
    return seen


async def _some(consumer: Any, left: set[TopicPartition]) -> dict[TopicPartition, list[Any]]:
    while True:
        batches: dict[TopicPartition, list[Any]] = await consumer.getmany(*left, timeout_ms=500, max_records=_PAGE)
        if batches:
            return batches
