"""Somebody who has failed runs resumed while it is disturbed, and the wait until everything has come to rest."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

import asyncpg
from aiokafka import AIOKafkaConsumer, TopicPartition

from ledger.binding import DestinationBinding
from ledger.store.errors import RunFinishedError, RunStillOpenError, StoreError
from ledger.store.ledger import Ledger
from tests.faults.soak.accounts import Message
from tests.faults.soak.plans import POLICY

_ENDED = (
    "select b.url, b.branch, e.run_id from (select distinct on (binding_id, run_id) binding_id, run_id, kind from"
    " ledger.event where kind in ('run.applied', 'run.failed', 'run.interrupted', 'run.stopped', 'run.started',"
    " 'run.resumed') order by binding_id, run_id, position desc) e join ledger.binding b on b.id = e.binding_id"
    " where e.kind in ('run.failed', 'run.interrupted', 'run.stopped') and not exists (select from ledger.inbox i"
    " where i.binding_id = e.binding_id and i.run_id = e.run_id and i.state = 'open')"
)
_LEFT = (
    "select (select count(*) from ledger.inbox where state = 'open') as orders,"
    " (select count(*) from ledger.event where kind = 'run.applied') as applied,"
    " (select count(*) from ledger.intake_refusal) as refused, (select sum(head_position) from ledger.binding)::bigint"
    " as head"
)
_AWAY = (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)
_LOOK_EVERY = 1.0
_STANDSTILL = 120.0
"""Seconds without any progress after which it will not come to rest any more."""


@dataclass(frozen=True)
class Place:
    """Where a soak happens."""

    admin: str
    writer: str
    brokers: str
    commits_topic: str
    events_topic: str
    group: str


async def resume_what_failed(place: Place) -> None:
    """As an operator would, until this is cancelled."""
    while True:
        with suppress(*_AWAY, StoreError):
            await _resume(place)
        await asyncio.sleep(_LOOK_EVERY)


async def _resume(place: Place) -> None:
    connection = await asyncpg.connect(place.admin, timeout=5)
    try:
        ended = await connection.fetch(_ENDED)
    finally:
        await connection.close()
    if not ended:
        return
    async with await Ledger.open(place.writer) as ledger:
        for row in ended:
            binding_id = await ledger.register_binding(DestinationBinding(url=row["url"], branch=row["branch"]))
            with suppress(RunFinishedError, RunStillOpenError):
                await ledger.submit_resume(
                    binding_id, run_id=row["run_id"], by="the soak", reason="looked at", policy=POLICY
                )


async def come_to_rest(place: Place, runs: int) -> str:
    """Wait until all runs are applied, all messages are handled and all events are relayed; else what is missing."""
    moved_at, last = time.monotonic(), ""
    while time.monotonic() - moved_at < _STANDSTILL:
        try:
            left, state = await _left(place, runs)
        except _AWAY as exc:
            left, state = f"the database or the broker is away ({type(exc).__name__})", last
        if not left:
            return ""
        if state != last:
            moved_at, last = time.monotonic(), state
        await asyncio.sleep(_LOOK_EVERY)
    return f"it did not come to rest: {left}"


async def _left(place: Place, runs: int) -> tuple[str, str]:
    """What is missing, empty where nothing is; and a text that changes with any progress."""
    connection = await asyncpg.connect(place.admin, timeout=5)
    try:
        row = await connection.fetchrow(_LEFT)
    finally:
        await connection.close()
    async with await Ledger.open(place.writer) as ledger:
        cursors = await ledger.relay_cursors(place.events_topic)
    behind = sum(cursor.head_position - cursor.relayed_position for cursor in cursors)
    unread = await _unread(place)
    state = f"{dict(row)}, {behind} events to relay, {unread} messages to read, {runs} runs in all"
    is_done = (row["orders"], row["applied"], behind, unread) == (0, runs, 0, 0)
    return "" if is_done else state, state


async def _unread(place: Place) -> int:
    """Messages of the topic of commits behind the offsets that the group has committed."""
    consumer = AIOKafkaConsumer(bootstrap_servers=place.brokers, group_id=place.group, enable_auto_commit=False)
    async with asyncio.timeout(15):
        await consumer.start()
        try:
            partitions = await _partitions(consumer, place.commits_topic)
            ends: Mapping[TopicPartition, int] = await consumer.end_offsets(partitions)
            return sum([ends[each] - (await consumer.committed(each) or 0) for each in partitions])
        finally:
            await consumer.stop()


async def _partitions(consumer: AIOKafkaConsumer, topic: str) -> list[TopicPartition]:
    await consumer._client.force_metadata_update()  # no group assigns them here
    found = consumer.partitions_for_topic(topic) or set()
    if not found:
        await consumer._client.add_topic(topic)
        found = consumer.partitions_for_topic(topic) or set()
    partitions = [TopicPartition(topic, number) for number in sorted(found)]
    consumer.assign(partitions)
    return partitions


async def messages_of(brokers: str, topic: str) -> list[Message]:
    """Every message of a topic, each partition in order, by a reader of no group."""
    consumer = AIOKafkaConsumer(bootstrap_servers=brokers, enable_auto_commit=False, auto_offset_reset="earliest")
    await consumer.start()
    try:
        partitions = await _partitions(consumer, topic)
        ends = await consumer.end_offsets(partitions)
        await consumer.seek_to_beginning(*partitions)
        found: list[Message] = []
        left = sum(ends.values())
        while left:
            for records in (await consumer.getmany(timeout_ms=500)).values():
                found += [
                    Message(r.topic, r.partition, r.offset, r.key, r.value, dict(r.headers))
                    for r in records
                    if r.offset < ends[TopicPartition(r.topic, r.partition)]
                ]
            left = sum(ends.values()) - len(found)
        return sorted(found, key=lambda message: (message.partition, message.offset))
    finally:
        await consumer.stop()
