"""Through a real broker: the intake beside a loop that keeps messages as plainly as can be, the relay beside one that
sends as plainly.

The plain intake keeps the bytes of each message by one INSERT that the server commits by itself, and commits the offset
of each batch: less than that could lose a message. The plain relay reads the same events from the ledger and sends them
with the same producer's settings; it keeps no cursor.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Sequence
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from consumers.intake.reading import Alive, Intake
from consumers.intake.settings import IntakeSettings
from consumers.intake.taking import MessageTaker, ReceivedMessage
from consumers.relay.relaying import Relay
from consumers.relay.sending import EventSender
from consumers.relay.settings import RelaySettings
from ledger.commit_message import encode_commit
from ledger.event_message import encode_event
from ledger.store.embedded import Dsns
from ledger.store.ledger import Ledger
from tests.bench.frame import Case, Figure, Series, Setting, Target, interleaved_async, ratio
from tests.bench.recorded import record_runs
from tests.bench.server import connection_to, ledger_server
from tests.support.broker_faults import commits
from tests.support.broker_topics import new_topics
from tests.support.commit_topic import CommitTopic
from tests.support.kafka_broker import KafkaCluster, broker_jars
from tests.support.store import BINDING

_PLAIN = "insert into bench.message (place, value) values ($1, $2)"


def measure(setting: Setting) -> Sequence[Figure]:
    """Messages and events in a second, and their ratios."""
    with KafkaCluster(broker_jars(), setting.scratch / "kafka") as kafka:
        return asyncio.run(_measure(setting, kafka.bootstrap()))


async def _measure(setting: Setting, brokers: str) -> Sequence[Figure]:
    async with ledger_server(setting.scratch) as dsns, connection_to(dsns.admin) as connection:
        await connection.execute("create schema bench")
        await connection.execute("create table bench.message (place text primary key, value bytea not null)")
        intake = await _Intake.of(brokers, dsns, connection, setting.sized(2000, 20), setting.rounds)
        taken = await interleaved_async(setting.rounds, {"intake": intake.ours, "plain": intake.plain})
        binding_id = await record_runs(dsns, runs=1, operations=setting.sized(20_000, 50))
        relay = _Relaying(brokers, dsns, binding_id)
        sent = await interleaved_async(setting.rounds, {"relay": relay.ours, "plain": relay.plain})
    return [
        ratio(
            "intake ÷ a plain loop",
            Series("the intake: check, insert, commit the offset", "messages/s", taken["intake"]),
            Series("aiokafka, one INSERT for each message", "messages/s", taken["plain"]),
            Target("at least", 0.5),
        ),
        ratio(
            "relay ÷ a plain loop",
            Series("the relay, with its cursor", "events/s", sent["relay"]),
            Series("read, send, wait for the brokers", "events/s", sent["plain"]),
            Target("at least", 0.5),
        ),
    ]


class _Intake:
    """Topics with distinct commits, of which each variant reads one in each round."""

    def __init__(self, dsns: Dsns, connection: Any, topics: list[CommitTopic], count: int) -> None:
        self._dsns = dsns
        self._connection = connection
        self._topics = topics
        self._count = count

    @classmethod
    async def of(cls, brokers: str, dsns: Dsns, connection: Any, count: int, rounds: int) -> _Intake:
        """Fill the topics: every commit once, so that each is new to the inbox."""
        every = commits(count * rounds * 2)
        topics = []
        for number in range(rounds * 2):
            topic = CommitTopic(brokers, f"commits-{uuid.uuid4().hex[:8]}")
            await topic.create()
            await _send_all(topic, [encode_commit(each) for each in every[number * count : (number + 1) * count]])
            topics.append(topic)
        return cls(dsns, connection, topics, count)

    async def ours(self) -> float:
        """Messages in a second through the intake, its start and end included."""
        topic, stop, taken = self._topics.pop(), asyncio.Event(), 0
        async with await Ledger.open(self._dsns.writer) as ledger:
            await ledger.register_binding(BINDING)
            taker = MessageTaker(ledger, [BINDING])

            async def take(messages: Sequence[ReceivedMessage], alive: Alive) -> None:
                nonlocal taken
                taken += len(await taker.take_together(messages, alive=alive))
                if taken == self._count:
                    stop.set()

            settings = IntakeSettings(brokers=topic.brokers, topic=topic.name, group=f"intake-{topic.name}")
            started = time.perf_counter()
            await Intake(settings, taker.take, take_together=take).run_until(stop)
            return self._count / (time.perf_counter() - started)

    async def plain(self) -> float:
        """Messages in a second through the plain loop, its start and end included."""
        topic = self._topics.pop()
        consumer = AIOKafkaConsumer(
            topic.name,
            bootstrap_servers=topic.brokers,
            group_id=f"plain-{topic.name}",
            enable_auto_commit=False,
            auto_offset_reset="earliest",
        )
        statement = await self._connection.prepare(_PLAIN)
        started, done = time.perf_counter(), 0
        await consumer.start()
        try:
            while done < self._count:
                for partition, records in (await consumer.getmany(timeout_ms=200)).items():
                    for record in records:
                        await statement.fetchval(f"{record.topic}/{record.offset}", record.value)
                    done += len(records)
                    await consumer.commit({partition: records[-1].offset + 1})
        finally:
            await consumer.stop()
        return self._count / (time.perf_counter() - started)


async def _send_all(topic: CommitTopic, messages: Sequence[Any]) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=topic.brokers, acks="all", retry_backoff_ms=20)
    await producer.start()
    try:
        sent = [await producer.send(topic.name, key=m.key, value=m.value, headers=list(m.headers)) for m in messages]
        await asyncio.gather(*sent)
    finally:
        await producer.stop()


class _Relaying:
    """One long log, put onto a new topic in each round."""

    def __init__(self, brokers: str, dsns: Dsns, binding_id: int) -> None:
        self._brokers = brokers
        self._dsns = dsns
        self._binding_id = binding_id

    async def ours(self) -> float:
        """Events in a second through the relay."""
        settings, stop = RelaySettings(brokers=self._brokers, topic=await self._topic()), asyncio.Event()
        async with await Ledger.open(self._dsns.writer) as ledger:
            row = next(row for row in await ledger.bindings() if row.id == self._binding_id)

            def relayed(url: str, branch: str, count: int, position: int) -> None:
                if (url, branch, position) == (row.url, row.branch, row.head_position):
                    stop.set()

            sender = EventSender(settings)
            started = time.perf_counter()
            try:
                await Relay(settings, _OneBinding(ledger, row.id), sender, relayed=relayed).run_until(stop)
                return row.head_position / (time.perf_counter() - started)
            finally:
                await sender.close()

    async def plain(self) -> float:
        """Events in a second by reading and sending alone, in batches of the same size."""
        topic, count = await self._topic(), 0
        producer = AIOKafkaProducer(bootstrap_servers=self._brokers, acks="all", enable_idempotence=True)
        async with await Ledger.open(self._dsns.writer) as ledger:
            started = time.perf_counter()
            await producer.start()
            try:
                pending = []
                async for event in ledger.events(self._binding_id):
                    message = encode_event(event)
                    pending.append(
                        await producer.send(topic, key=message.key, value=message.value, headers=list(message.headers))
                    )
                    count += 1
                await asyncio.gather(*pending)
                return count / (time.perf_counter() - started)
            finally:
                await producer.stop()

    async def _topic(self) -> str:
        return (await new_topics(self._brokers)).events_topic


class _OneBinding:
    """A ledger of which one binding alone is to be seen."""

    def __init__(self, ledger: Ledger, binding_id: int) -> None:
        self._ledger = ledger
        self._binding_id = binding_id

    async def bindings(self) -> list[Any]:
        """The one."""
        return [row for row in await self._ledger.bindings() if row.id == self._binding_id]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)


CASE = Case(
    "broker", "through a real broker: intake ÷ a plain loop of aiokafka, relay ÷ a plain loop that sends", measure
)
