"""FF31: an offset is committed for work that is durable, never for what was only fetched."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from consumers.intake.errors import BrokerUnavailableError, IntakeStuckError, MissingTopicError, VanishedOffsetsError
from consumers.intake.reading import Intake
from consumers.intake.taking import MessageTaker, ReceivedMessage
from ledger.commit import PlanCommit
from ledger.store.errors import LedgerUnavailableError
from ledger.store.ledger import Ledger
from tests.support.commit_topic import CommitTopic
from tests.support.store import BINDING, make_commit
from tests.support.waiting import until, until_true

pytestmark = [pytest.mark.integration, pytest.mark.broker]

ROOT = Path(__file__).parents[3]


def commits(count: int) -> list[PlanCommit]:
    return [make_commit(f"20261129T1900-{number:08x}", f"{number:064x}") for number in range(count)]


class Recorder:
    """Takes messages into nothing, and fails at one offset, once, with one error."""

    def __init__(self, fail_at: int | None = None, error: Exception | None = None) -> None:
        self.taken: list[int] = []
        self._fail_at = fail_at
        self._error = error

    async def take(self, message: ReceivedMessage) -> None:
        if message.place.offset == self._fail_at and self._error is not None:
            error, self._error = self._error, None
            raise error
        self.taken.append(message.place.offset)


def away() -> LedgerUnavailableError:
    return LedgerUnavailableError(checked="the ledger", expected="an answer", found="none", next_action="wait")


async def runs(inbox: Ledger) -> list[str]:
    return [order.run_id for order in await inbox.open_orders(await inbox.register_binding(BINDING))]


@pytest.mark.rules("G7", "G10")
async def test_ff31_a_process_killed_after_the_fourth_of_ten_messages_leaves_ten_rows_each_once(
    topic: CommitTopic, inbox: Ledger, postgres18_ledger_dsns: dict[str, str]
) -> None:
    await topic.put_commits(commits(10))
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.field_failures.broker.intake_process",
        topic.intake_settings().model_dump_json(),
        postgres18_ledger_dsns["writer"],
        "4",
        cwd=ROOT,
    )
    assert await process.wait() == -9
    assert await runs(inbox) == [commit.run_id for commit in commits(4)]
    assert await topic.committed() is None

    await topic.read_to_the_end(MessageTaker(inbox, [BINDING]).take)

    assert await runs(inbox) == [commit.run_id for commit in commits(10)]
    assert await topic.committed() == 10


@pytest.mark.rules("G7")
async def test_ff31_an_error_and_a_stop_commit_what_is_durable_and_nothing_else(topic: CommitTopic) -> None:
    await topic.put_commits(commits(10))
    failing = Recorder(4, RuntimeError("a defect"))
    with pytest.raises(RuntimeError, match="a defect"):
        async with topic.reading(failing.take) as task:
            await until(task.done)
    assert failing.taken == [0, 1, 2, 3]
    assert await topic.committed() is None

    stopped = Recorder(6, away())
    async with topic.reading(stopped.take, retry_wait=3600.0):
        await until_true(lambda: _is(topic, 6))
    assert stopped.taken == [0, 1, 2, 3, 4, 5]
    assert await topic.committed() == 6

    rest = Recorder()
    await topic.read_to_the_end(rest.take)
    assert rest.taken == [6, 7, 8, 9]
    assert await topic.committed() == 10


@pytest.mark.rules("G10")
async def test_ff31_an_end_in_the_middle_of_a_batch_commits_what_was_taken_and_nothing_that_was_only_fetched(
    topic: CommitTopic,
) -> None:
    await topic.put_commits(commits(10))
    stop, taken = asyncio.Event(), list[int]()

    async def take(message: ReceivedMessage) -> None:
        taken.append(message.place.offset)
        if len(taken) == 4:
            stop.set()

    await Intake(topic.intake_settings(), take).run_until(stop)
    assert taken == [0, 1, 2, 3]
    assert await topic.committed() == 4

    rest = Recorder()
    await topic.read_to_the_end(rest.take)
    assert rest.taken == [4, 5, 6, 7, 8, 9]


async def _is(topic: CommitTopic, offset: int) -> bool:
    return await topic.committed() == offset


@pytest.mark.rules("G10")
async def test_ff31_a_message_waits_while_the_ledger_is_away_and_none_is_passed_over(topic: CommitTopic) -> None:
    await topic.put_commits(commits(5))
    patient = Recorder(2, away())

    await topic.read_to_the_end(patient.take)

    assert patient.taken == [0, 1, 2, 3, 4]


@pytest.mark.rules("G10")
async def test_ff31_messages_that_are_gone_end_the_intake_by_name(topic: CommitTopic) -> None:
    await topic.put_commits(commits(3))
    await topic.read_to_the_end(Recorder().take)
    await topic.put_commits(commits(5))
    await topic.forget_before(5)

    late = Recorder()
    with pytest.raises(VanishedOffsetsError, match=f"{topic.name}/0 at 3"):
        async with topic.reading(late.take) as task:
            await until(task.done)

    assert late.taken == []
    assert await topic.committed() == 3


@pytest.mark.rules("G10")
async def test_ff31_a_new_group_begins_with_the_first_message_that_is_left(topic: CommitTopic) -> None:
    await topic.put_commits(commits(4))
    await topic.forget_before(2)

    new = Recorder()
    await topic.read_to_the_end(new.take)

    assert new.taken == [2, 3]


@pytest.mark.rules("G11")
async def test_ff31_what_is_not_there_is_told_by_name(topic: CommitTopic) -> None:
    missing = topic.intake_settings(topic="no-such-topic", start_within=0.5, request_timeout=0.3)
    with pytest.raises(MissingTopicError, match="no-such-topic"):
        await Intake(missing, Recorder().take).run_until(asyncio.Event())
    nobody = topic.intake_settings(brokers="127.0.0.1:1", start_within=0.5)
    with pytest.raises(BrokerUnavailableError, match=r"127\.0\.0\.1:1"):
        await Intake(nobody, Recorder().take).run_until(asyncio.Event())


@pytest.mark.rules("G10")
async def test_ff31_a_client_that_does_not_come_back_ends_the_intake_by_name(topic: CommitTopic) -> None:
    await topic.put_commits(commits(1))

    async def hang(message: ReceivedMessage) -> None:
        await asyncio.Event().wait()

    with pytest.raises(IntakeStuckError, match="comes back from a poll"):
        async with topic.reading(hang, stuck_after=0.5, call_within=3.0) as task:
            await until(task.done)
    assert await topic.committed() is None
