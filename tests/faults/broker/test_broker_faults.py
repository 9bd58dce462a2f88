"""Broker, database, intakes break while commits travel: what went in is in the inbox, once, or a recorded refusal."""

from __future__ import annotations

import asyncio
import os
import random
import uuid

import pytest

from consumers.intake.errors import BrokerUnavailableError
from consumers.intake.reading import Intake
from consumers.intake.taking import MessageTaker, ReceivedMessage
from consumers.relay.errors import EventsNotSentError
from consumers.relay.relaying import Relay
from consumers.relay.sending import EventSender
from consumers.relay.settings import RelaySettings
from consumers.relay.topic_reader import read_topic
from consumers.topics import TopicSettings, create_topics
from ledger.audit.topic import TopicAudit
from ledger.commit_message import Message, encode_commit
from ledger.store.ledger import Ledger
from producers.publish import BrokerNotReachedError, CommitPublisher, PublishSettings, PublishUnknownError
from tests.support.broker_faults import Accounts, commits, last, publish_until_all_are
from tests.support.commit_topic import CommitTopic
from tests.support.kafka_broker import KafkaCluster
from tests.support.postgres import PostgresServer, migrate_fully
from tests.support.store import BINDING
from tests.support.waiting import until_true

COMMITS = int(os.environ.get("APPLY_LEDGER_TEST_COMMITS", "200"))
"""How many travel through a fault; more for a longer look."""

SEED = int(os.environ.get("APPLY_LEDGER_TEST_SEED", "20261130"))
"""Decides when the broker is killed, and for how long it is away."""

pytestmark = [
    pytest.mark.faults,
    pytest.mark.broker,
    pytest.mark.integration,
    pytest.mark.timeout(max(300, COMMITS // 5)),
]


async def new_topic(kafka: KafkaCluster) -> CommitTopic:
    """One partition, with as many copies as there are brokers, made by the program itself."""
    name = uuid.uuid4().hex[:8]
    topic = CommitTopic(kafka.bootstrap(), f"commits-{name}")
    await create_topics(
        TopicSettings(brokers=topic.brokers, commits_topic=topic.name, events_topic=f"events-{name}", partitions=1)
    )
    return topic


def taker(ledger: Ledger) -> MessageTaker:
    return MessageTaker(ledger, [BINDING])


async def require_each_once(accounts: Accounts, topic: CommitTopic, distinct: int, *, refused: int = 0) -> None:
    assert await accounts.inbox() == (distinct, distinct)
    assert await accounts.refusals(topic.name) == refused
    runs = await accounts.committed()
    assert len(runs) == len(set(runs)) == distinct


def kills(rng: random.Random) -> list[float]:
    """How much has been taken when the broker is killed: twice, and once more for every thousand commits."""
    return sorted(rng.uniform(0.05, 0.9) for _ in range(2 + COMMITS // 1000))


@pytest.mark.rules("G7", "G10")
async def test_g07_a_broker_killed_and_restarted_while_commits_travel_loses_none_and_doubles_none(
    kafka: KafkaCluster, accounts: Accounts
) -> None:
    topic, wanted = await new_topic(kafka), commits(COMMITS)
    (broker,) = kafka.brokers
    async with topic.reading(taker(accounts.ledger).take):
        publishing = asyncio.create_task(publish_until_all_are(topic.publish_settings, wanted))
        for part in kills(random.Random(SEED)):
            await until_true(accounts.has_taken(int(COMMITS * part)))
            await asyncio.to_thread(broker.kill)
            broker.start()
            await asyncio.to_thread(kafka.wait_ready)
        await publishing
        await until_true(accounts.has_taken(COMMITS))
    await topic.read_to_the_end(taker(accounts.ledger).take)
    await require_each_once(accounts, topic, COMMITS)


@pytest.mark.rules("G7", "G10")
async def test_g07_a_broker_frozen_for_longer_than_the_session_of_an_intake_changes_nothing(
    kafka: KafkaCluster, accounts: Accounts
) -> None:
    topic, wanted = await new_topic(kafka), commits(60)
    (broker,) = kafka.brokers
    async with topic.reading(taker(accounts.ledger).take):
        publishing = asyncio.create_task(publish_until_all_are(topic.publish_settings, wanted))
        await until_true(accounts.has_taken(10))
        broker.pause()
        try:
            await last(topic.intake_settings().session_timeout * 1.5)
        finally:
            broker.resume()
        await publishing
        await until_true(accounts.has_taken(60))
    await require_each_once(accounts, topic, 60)


@pytest.mark.rules("G7", "G10")
async def test_g10_three_deliveries_out_of_order_with_poison_between_them_through_two_intakes_are_one_order_each(
    kafka: KafkaCluster, accounts: Accounts
) -> None:
    topic, wanted = await new_topic(kafka), commits(40)
    good = [encode_commit(commit) for commit in wanted]
    shuffled = random.Random(7)
    messages: list[Message | tuple[bytes | None, bytes | None, tuple[tuple[str, bytes], ...]]] = [*good * 3]
    poison = [(good[0].key, b"\xff not json", good[0].headers), (b"k", None, ()), (None, b"{}", good[0].headers)] * 5
    messages += poison
    shuffled.shuffle(messages)
    await topic.put(messages)

    await asyncio.gather(*(topic.read_to_the_end(taker(accounts.ledger).take, group=group) for group in ("one", "two")))

    await require_each_once(accounts, topic, 40, refused=len(poison))
    first_seen = dict.fromkeys(m.value for m in messages if isinstance(m, Message))
    by_body = {commit.canonical_bytes(): commit.run_id for commit in wanted}
    assert await accounts.committed() == [by_body[body] for body in first_seen]


@pytest.mark.rules("G4", "G7", "G10")
async def test_g10_a_database_killed_and_restarted_while_an_intake_takes_loses_none_and_doubles_none(
    kafka: KafkaCluster,
) -> None:
    server = await asyncio.to_thread(PostgresServer.start, "18", durable=True)
    try:
        name = server.create_database(server.template("newest", migrate_fully))
        admin_dsn, dsn = server.dsn(name), server.dsn(name, user="ledger_writer")
        topic, wanted = await new_topic(kafka), commits(120)
        await topic.put_commits(wanted)
        async with await Ledger.open(dsn) as ledger:
            accounts = Accounts(ledger, admin_dsn)
            async with topic.reading(taker(ledger).take):
                for part in (20, 70):
                    await until_true(accounts.has_taken(part))
                    await asyncio.to_thread(server.cluster.stop, mode="immediate")
                    await asyncio.to_thread(server.cluster.start)
                await until_true(accounts.has_taken(120))
            await require_each_once(accounts, topic, 120)
            assert await accounts.committed() == [commit.run_id for commit in wanted]
    finally:
        await asyncio.to_thread(server.stop)


def tasks_of_the_client() -> list[str]:
    """What still runs of the brokers' client in this event loop."""
    running = ((task, getattr(task.get_coro(), "cr_code", None)) for task in asyncio.all_tasks())
    return [task.get_name() for task, code in running if code is not None and "aiokafka" in code.co_filename]


@pytest.mark.rules("G10")
async def test_g10_clients_that_are_given_up_while_the_broker_is_frozen_leave_nothing_running(
    kafka: KafkaCluster, accounts: Accounts
) -> None:
    topic = await new_topic(kafka)
    (first, *more) = commits(3)
    publisher = CommitPublisher(topic.publish_settings.model_copy(update={"publish_within": 0.5}))
    sender = EventSender(
        RelaySettings(brokers=topic.brokers, topic=topic.name, request_timeout=3.0, send_within=0.5, claim_ttl=5.0)
    )
    binding_id = await accounts.ledger.register_binding(BINDING)
    for commit in more:
        await accounts.ledger.submit_commit(binding_id, commit)
    events = [event async for event in accounts.ledger.events(binding_id)]
    await publisher.publish(first)
    await sender.send(events)
    (broker,) = kafka.brokers
    async with topic.reading(taker(accounts.ledger).take, call_within=1.0):
        await until_true(accounts.has_taken(3))
        broker.pause()
        try:
            with pytest.raises(PublishUnknownError):
                await publisher.publish(more[0])
            with pytest.raises(EventsNotSentError):
                await sender.send(events)
            with pytest.raises((BrokerNotReachedError, PublishUnknownError)):
                await publisher.publish(more[1])
        finally:
            broker.resume()
    await publisher.close()
    await sender.close()
    assert tasks_of_the_client() == []


@pytest.mark.rules("G11")
async def test_g11_a_name_that_cannot_be_resolved_is_told_at_both_ends(kafka: KafkaCluster) -> None:
    topic = CommitTopic("no-such-host.invalid:9092", "commits")
    async with CommitPublisher(PublishSettings(brokers=topic.brokers, publish_within=5.0)) as publisher:
        with pytest.raises(BrokerNotReachedError, match=r"no-such-host\.invalid"):
            await publisher.publish(commits(1)[0])
    with pytest.raises(BrokerUnavailableError, match=r"no-such-host\.invalid"):
        await Intake(topic.intake_settings(start_within=0.5), _nothing).run_until(asyncio.Event())


async def _nothing(message: ReceivedMessage) -> None:
    raise AssertionError(f"nobody can have sent {message.place}")


@pytest.mark.rules("G7", "G10")
async def test_g07_the_leader_of_three_brokers_is_killed_while_commits_are_published_and_none_is_lost_or_doubled(
    three_brokers: KafkaCluster, accounts: Accounts
) -> None:
    topic, wanted = await new_topic(three_brokers), commits(COMMITS)
    async with topic.reading(taker(accounts.ledger).take):
        publishing = asyncio.create_task(publish_until_all_are(topic.publish_settings, wanted, at_once=8))
        await until_true(accounts.has_taken(COMMITS // 4))
        number = await topic.leader()
        leader = next(broker for broker in three_brokers.brokers if broker.node_id == number)
        leader.kill()
        await publishing
        await until_true(accounts.has_taken(COMMITS))
    leader.start()
    await asyncio.to_thread(three_brokers.wait_ready)
    await require_each_once(accounts, topic, COMMITS)


@pytest.mark.rules("G8", "G10")
async def test_g08_a_broker_killed_and_restarted_under_the_relay_leaves_a_topic_that_proves_every_event(
    kafka: KafkaCluster, accounts: Accounts
) -> None:
    topic = await new_topic(kafka)
    settings = RelaySettings(
        brokers=topic.brokers, topic=topic.name, request_timeout=3.0, send_within=6.0, batch_events=20, retry_wait=0.1
    )
    binding_id = await accounts.ledger.register_binding(BINDING)
    for commit in commits(200):
        await accounts.ledger.submit_commit(binding_id, commit)
    (broker,) = kafka.brokers
    stop, sender = asyncio.Event(), EventSender(settings)
    relaying = asyncio.create_task(Relay(settings, accounts.ledger, sender).run_until(stop))
    for position in (20, 100):
        await until_true(accounts.has_relayed(topic.name, position))
        broker.kill()
        broker.start()
        await asyncio.to_thread(kafka.wait_ready)
    await until_true(accounts.has_relayed(topic.name, 200))
    stop.set()
    await relaying
    await sender.close()

    audit = TopicAudit()
    await read_topic(settings, audit.feed)
    found = audit.bindings[BINDING.url, BINDING.branch].document()
    row = await accounts.ledger.binding(BINDING)
    assert row is not None
    assert (audit.holds, found["events"], found["head_hash"]) == (True, 200, row.head_hash.hex())
