"""Topics are made with the settings that the guarantees need, and one that differs is named with the difference."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from consumers.intake.errors import BrokerUnavailableError
from consumers.topics import (
    TopicDiffersError,
    TopicNotCreatedError,
    TopicSettings,
    Verdict,
    check_topics,
    create_topics,
)
from tests.support.kafka_broker import KafkaCluster

pytestmark = [pytest.mark.integration, pytest.mark.broker]


@pytest.fixture
def settings(kafka: KafkaCluster) -> TopicSettings:
    name = uuid.uuid4().hex[:8]
    return TopicSettings(
        brokers=kafka.bootstrap(), commits_topic=f"commits-{name}", events_topic=f"events-{name}", partitions=3
    )


async def make(settings: TopicSettings, name: str, **configs: Any) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=settings.brokers)
    await admin.start()
    try:
        reply = await admin.create_topics([NewTopic(name, 1, 1, topic_configs=configs)])
        assert [error[1] for error in reply.topic_errors] == [0]
    finally:
        await admin.close()


@pytest.mark.rules("G7", "G8", "G10")
async def test_g10_topics_are_made_once_with_what_the_guarantees_need(settings: TopicSettings) -> None:
    made = await create_topics(settings)
    assert [(state.name, state.state, state.partitions) for state in made] == [
        (settings.commits_topic, "created", 3),
        (settings.events_topic, "created", 3),
    ]
    commits, events = (state.settings for state in made)
    assert commits["retention.ms"] == str(30 * 24 * 3600 * 1000)
    assert (events["retention.ms"], events["retention.bytes"], events["cleanup.policy"]) == ("-1", "-1", "delete")
    assert int(commits["max.message.bytes"]) > 256 * 1024 < int(events["max.message.bytes"])

    again = await create_topics(settings.model_copy(update={"partitions": 6}))
    assert [(state.state, state.partitions) for state in again] == [("was there", 3)] * 2
    checks = await check_topics(settings)
    weak = {check.checked: (check.verdict, check.found) for check in checks if check.verdict is not Verdict.HOLDS}
    assert weak == {
        "the number of brokers": (Verdict.WEAK, "1"),
        "offsets.retention.minutes": (Verdict.WEAK, "10080"),  # seven days, the brokers' default
    }
    week = settings.model_copy(update={"commit_retention_days": 7})
    assert "offsets.retention.minutes" in {c.checked for c in await check_topics(week) if c.verdict is Verdict.HOLDS}


@pytest.mark.rules("G10", "G11")
async def test_g11_a_topic_with_other_settings_is_named_with_each_difference_and_left_alone(
    settings: TopicSettings,
) -> None:
    await make(settings, settings.commits_topic, **{"retention.ms": "1000", "max.message.bytes": "1000"})
    await make(settings, settings.events_topic, **{"cleanup.policy": "compact"})
    for _ in range(2):
        with pytest.raises(TopicDiffersError) as refused:
            await create_topics(settings)
        assert sorted(finding.checked.split()[0] for finding in refused.value.findings) == [
            "cleanup.policy",
            "max.message.bytes",
            "retention.ms",
            "retention.ms",
        ]
    failing = [check for check in await check_topics(settings) if check.verdict is Verdict.FAILS]
    assert len(failing) == 4
    assert any("--add-config retention.ms=-1" in check.next_action for check in failing)


@pytest.mark.rules("G11")
async def test_g11_what_is_missing_and_what_cannot_be_made_is_told_by_name(settings: TopicSettings) -> None:
    missing = [check for check in await check_topics(settings) if check.verdict is Verdict.FAILS]
    assert [check.checked for check in missing] == [
        f"the topic {settings.commits_topic}",
        f"the topic {settings.events_topic}",
    ]
    with pytest.raises(TopicNotCreatedError, match="replication"):
        await create_topics(settings.model_copy(update={"replication": 2}))
    nobody = settings.model_copy(update={"brokers": "127.0.0.1:1", "call_within": 2.0})
    with pytest.raises(BrokerUnavailableError, match=r"127\.0\.0\.1:1"):
        await check_topics(nobody)
