"""FF30: an apply that outlasts every limit of the group, with rebalances in the middle: each operation is sent once."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.errors import CommitFailedError, IllegalStateError

from consumers.infrahub.sandbox import FaultRule, RunningSandbox
from consumers.intake.taking import MessageTaker
from ledger.store.ledger import Ledger
from producers.publish import CommitPublisher
from tests.support.commit_topic import CommitTopic
from tests.support.committed_plans import commit_of, in_order, save, tag
from tests.support.real_writer import RealWriter
from tests.support.waiting import until, until_true

pytestmark = [pytest.mark.integration, pytest.mark.broker]

RUN = "20261129T1900-0a1b2c3d"


@pytest.fixture
async def writer(
    inbox: Ledger, postgres18_ledger_dsns: dict[str, str], sandbox: RunningSandbox, branch: str, tmp_path: Path
) -> RealWriter:
    return RealWriter(dsn=postgres18_ledger_dsns["writer"], ledger=inbox, sandbox=sandbox, branch=branch, root=tmp_path)


async def publish(topic: CommitTopic, writer: RealWriter, names: int) -> None:
    operations = in_order([tag(f"tag-{number}") for number in range(names)])
    run_dir = save(writer.root, RUN, operations, binding=writer.binding)
    commit = commit_of(writer.root, run_dir, binding=writer.binding)
    async with CommitPublisher(topic.publish_settings) as publisher:
        await publisher.publish(commit)


@pytest.mark.rules("G2", "G7")
async def test_ff30_rebalances_in_the_middle_of_a_long_apply_change_nothing(
    topic: CommitTopic, writer: RealWriter, sandbox: RunningSandbox
) -> None:
    sandbox.faults.add(FaultRule(delay_before_write=0.1, branch=writer.branch, count=None))
    taker = MessageTaker(writer.ledger, [writer.binding])
    stop = asyncio.Event()
    applying = asyncio.create_task(writer.writer().run_until(stop))

    async with topic.reading(taker.take):
        await publish(topic, writer, 30)
        await until(lambda: len(writer.sent()) >= 3)
        for _ in range(2):  # each comes and goes: two rebalances while the apply runs
            before = len(writer.sent())
            async with topic.reading(taker.take):
                await until(lambda before=before: len(writer.sent()) >= before + 5)  # type: ignore[misc]  # bound early

        async def ended() -> bool:
            return "run.applied" in await writer.kinds(RUN)

        await until_true(ended)
    stop.set()
    await applying

    assert await writer.outcomes(RUN) == [(ordinal, "applied", 1) for ordinal in range(30)]
    assert len(writer.sent()) == 30


@pytest.mark.rules("G2", "G7")
@pytest.mark.parametrize("error", [CommitFailedError, IllegalStateError, TimeoutError])
async def test_ff30_an_offset_that_cannot_be_committed_neither_ends_the_intake_nor_repeats_applied_work(
    error: type[Exception], topic: CommitTopic, writer: RealWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = AIOKafkaConsumer.commit
    failed: list[Any] = []

    async def failing(consumer: Any, offsets: Any = None) -> None:
        if not failed:
            failed.append(offsets)
            raise error()
        await whole(consumer, offsets)

    monkeypatch.setattr(AIOKafkaConsumer, "commit", failing)
    taker = MessageTaker(writer.ledger, [writer.binding])
    await publish(topic, writer, 3)
    async with topic.reading(taker.take):
        await until(lambda: bool(failed))
    await writer.writer().drain(RUN, by="grace")

    await topic.read_to_the_end(taker.take)  # the same message again, of a run that is finished by now
    assert await topic.committed() == 1

    assert len(await writer.ledger.open_orders(await writer.binding_id())) == 0
    assert await writer.outcomes(RUN) == [(ordinal, "applied", 1) for ordinal in range(3)]
    assert len(writer.sent()) == 3


@pytest.mark.rules("G7")
async def test_ff30_two_groups_on_one_topic_make_one_order_of_each_commit(
    topic: CommitTopic, writer: RealWriter
) -> None:
    await publish(topic, writer, 2)
    taker = MessageTaker(writer.ledger, [writer.binding])

    await asyncio.gather(*(topic.read_to_the_end(taker.take, group=group) for group in ("one", "two")))

    (order,) = await writer.ledger.open_orders(await writer.binding_id())
    assert (order.kind, order.run_id) == ("commit", RUN)
    await writer.writer().drain(RUN, by="grace")
    assert len(writer.sent()) == 2
