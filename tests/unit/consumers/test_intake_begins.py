"""A group that never committed asks where the topic begins, and asks again where nobody says."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import (
    GroupAuthorizationFailedError,
    IllegalStateError,
    KafkaTimeoutError,
    NoOffsetForPartitionError,
    RequestTimedOutError,
)

from consumers.intake import reading
from consumers.intake.reading import Intake
from consumers.intake.settings import IntakeSettings

PARTITION = TopicPartition("plan-commits", 0)
SETTINGS = IntakeSettings(brokers="127.0.0.1:1", retry_wait=0.001)


class BeginningClient:
    """A client of a group without offsets; the first question where the topic begins goes wrong."""

    def __init__(self, trouble: BaseException, stop: asyncio.Event) -> None:
        self.trouble: BaseException | None = trouble
        self.stop_polling = stop
        self.position: int | None = None

    def subscribe(self, topics: list[str], listener: Any) -> None:
        """Nothing to do."""

    async def start(self) -> None:
        """Nothing to do."""

    async def stop(self) -> None:
        """Nothing to do."""

    def assignment(self) -> set[TopicPartition]:
        return {PARTITION}

    async def getmany(self, timeout_ms: int) -> dict[TopicPartition, list[Any]]:
        if self.position is None:
            raise NoOffsetForPartitionError
        self.stop_polling.set()
        return {}

    async def committed(self, partition: TopicPartition) -> int | None:
        return None

    async def beginning_offsets(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        trouble, self.trouble = self.trouble, None
        if trouble is not None:
            raise trouble
        return dict.fromkeys(partitions, 7)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        assert partition == PARTITION
        self.position = offset


async def begun(trouble: BaseException, monkeypatch: pytest.MonkeyPatch) -> int | None:
    stop = asyncio.Event()
    client = BeginningClient(trouble, stop)
    monkeypatch.setattr(reading, "AIOKafkaConsumer", lambda **_options: client)

    async def take(message: Any) -> None:
        raise AssertionError(message)

    async with asyncio.timeout(30):
        await Intake(SETTINGS, take).run_until(stop)
    return client.position


@pytest.mark.rules("G10")
@pytest.mark.parametrize("trouble", [KafkaTimeoutError(), RequestTimedOutError(), IllegalStateError(), TimeoutError()])
async def test_g10_brokers_that_go_away_before_the_first_message_are_asked_again(
    trouble: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await begun(trouble, monkeypatch) == 7


async def test_what_does_not_pass_ends_the_intake(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(GroupAuthorizationFailedError):
        await begun(GroupAuthorizationFailedError(), monkeypatch)
