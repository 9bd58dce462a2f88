"""A topic of the real broker for each test, and a ledger to take commits into."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import count

import pytest

from ledger.store.ledger import Ledger
from tests.support.commit_topic import CommitTopic
from tests.support.kafka_broker import KafkaCluster

_numbers = count(1)


@pytest.fixture
async def topic(kafka: KafkaCluster) -> CommitTopic:
    found = CommitTopic(kafka.bootstrap(), f"plan-commits-{next(_numbers)}")
    await found.create()
    return found


@pytest.fixture
async def inbox(postgres18_ledger_dsns: dict[str, str]) -> AsyncIterator[Ledger]:
    async with await Ledger.open(postgres18_ledger_dsns["writer"], allow_unsafe_fsync=True) as ledger:
        yield ledger
