"""The sources of a soak: each commits its runs in order, through the product's own publisher, until it is told."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from ledger.commit_message import Message, encode_commit
from producers.publish import CommitPublisher, PublishSettings
from tests.faults.soak.plans import Committed
from tests.faults.soak.script import Poison
from tests.support.broker_faults import AGAIN

_POISON_WITHIN = 15.0


@dataclass
class Published:
    """What was said to be committed: the list against which the end is checked."""

    runs: list[Committed] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


async def commit_all(
    runs: Sequence[Committed], settings: PublishSettings, published: Published, *, began: float
) -> None:
    """Commit the runs of one source at their times, or as soon after as the brokers take them."""
    async with CommitPublisher(settings) as publisher:
        for run in runs:
            await asyncio.sleep(max(0.0, began + run.order.at - time.monotonic()))
            published.runs.append(run)
            for _ in range(run.order.times):
                await _publish(publisher, run, published)
            if run.order.poison is not None:
                await _poison(settings, run, run.order.poison, published)


async def _publish(publisher: CommitPublisher, run: Committed, published: Published) -> None:
    while True:
        try:
            await publisher.publish(run.commit)
        except AGAIN:
            published.counts["publications repeated because of an unknown answer"] += 1
            await asyncio.sleep(0.1)
        else:
            published.counts["publications acknowledged"] += 1
            return


async def _poison(settings: PublishSettings, run: Committed, poison: Poison, published: Published) -> None:
    """Send what is no commit, until a broker has it; how often it got onto the topic is asked of the topic."""
    key, value, headers = poisoned(encode_commit(run.commit), poison)
    while True:
        producer = AIOKafkaProducer(bootstrap_servers=settings.brokers, request_timeout_ms=5000)
        try:
            async with asyncio.timeout(_POISON_WITHIN):
                await producer.start()
                await producer.send_and_wait(settings.topic, key=key, value=value, headers=headers, partition=0)
            published.counts["poison acknowledged"] += 1
            return
        except (KafkaError, OSError, TimeoutError):
            await asyncio.sleep(0.2)
        finally:
            await producer.stop()


def poisoned(message: Message, poison: Poison) -> tuple[bytes | None, bytes | None, list[tuple[str, bytes]]]:
    """A message that was made no commit."""
    headers = list(message.headers)
    match poison:
        case "not json":
            return message.key, b"\xff" + (message.value or b""), headers
        case "cut":
            return message.key, (message.value or b"")[:-7], headers
        case "tombstone":
            return message.key, None, headers
        case "no key":
            return None, message.value, headers
        case _:
            return message.key, message.value, []
