"""Two members of one group and one partition: one is frozen past its session with messages in hand, and wakes up."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from aiokafka.admin import AIOKafkaAdminClient

from consumers.intake.taking import MessageTaker
from tests.faults.broker.test_broker_faults import new_topic, require_each_once
from tests.support.broker_faults import Accounts, commits
from tests.support.commit_topic import CommitTopic
from tests.support.intake_member import AT_ONCE, SECOND
from tests.support.kafka_broker import KafkaCluster
from tests.support.store import BINDING
from tests.support.waiting import until, until_true

pytestmark = [pytest.mark.faults, pytest.mark.broker, pytest.mark.integration, pytest.mark.timeout(180)]

_READ, _HELD, _LATER, _LAST = 40, 20, 60, 70


@dataclass
class Member:
    """A process that is a member of the group, and what it has said."""

    process: asyncio.subprocess.Process
    lines: list[str] = field(default_factory=list)

    def has_said(self, line: str, *, after: int = 0) -> Callable[[], bool]:
        return lambda: line in self.lines[after:]

    async def listen(self) -> None:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            self.lines.append(line.decode().strip())

    async def go_on(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(b"\n")
        await self.process.stdin.drain()


@asynccontextmanager
async def member(topic: CommitTopic, dsn: str) -> AsyncIterator[Member]:
    """A member in a process of its own that stops before it takes the message at ``_HELD``; it has to end well."""
    pipe = asyncio.subprocess.PIPE
    arguments = ("-m", "tests.support.intake_member", topic.brokers, topic.name, dsn, str(_HELD))
    process = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, stdin=pipe, stdout=pipe, stderr=asyncio.subprocess.DEVNULL
    )
    one = Member(process)
    listening = asyncio.create_task(one.listen())
    try:
        yield one
        process.terminate()
        await process.wait()
        await listening
        assert process.returncode == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)


async def members_of(topic: CommitTopic) -> int | None:
    """How many members the topic's group has; None while it shares its partitions out."""
    admin = AIOKafkaAdminClient(bootstrap_servers=topic.brokers)
    await admin.start()
    try:
        (reply,) = await admin.describe_consumer_groups([topic.intake_settings().group])
    finally:
        await admin.close()
    _, _, state, _, _, members, *_ = reply.groups[0]
    return len(members) if state == "Stable" else None


@pytest.mark.rules("G2", "G7", "G10")
@pytest.mark.parametrize("is_member_again", [False, True], ids=["at once", "when it has its partition again"])
async def test_g07_a_member_that_wakes_up_after_its_partition_moved_doubles_no_order_and_sets_no_offset_back(
    kafka: KafkaCluster, accounts: Accounts, postgres18_ledger_dsns: dict[str, str], is_member_again: bool
) -> None:
    topic, wanted = await new_topic(kafka), commits(_LAST)
    await topic.put_commits(wanted[:_READ])
    async with member(topic, postgres18_ledger_dsns["writer"]) as zombie:
        await until(zombie.has_said(f"holds {_HELD}"))
        assert await accounts.inbox() == (_HELD, _HELD)
        os.kill(zombie.process.pid, signal.SIGSTOP)
        try:
            async with topic.reading(MessageTaker(accounts.ledger, [BINDING]).take, client_id=SECOND):
                await until_true(accounts.has_taken(_READ))  # its session had to end for this
                await topic.put_commits(wanted[_READ:_LATER])
                await until_true(lambda: _is_committed(topic, _LATER))
                thawed = len(zombie.lines)

                os.kill(zombie.process.pid, signal.SIGCONT)
                if is_member_again:
                    # Now the brokers would take its offset: it has the partition, because it is the first by name.
                    await until_true(lambda: _has_members(topic, 2))
                await zombie.go_on()
                await until(zombie.has_said("done", after=thawed))
                told = zombie.lines[thawed:]
                assert told[:AT_ONCE] == [f"took {_HELD + number} again" for number in range(AT_ONCE)], told
                assert await topic.committed() == _LATER, told
                assert await accounts.inbox() == (_LATER, _LATER)

                await until_true(lambda: _has_members(topic, 2))
                assert await topic.committed() == _LATER, "who has the partition now begins where the other one ended"
                await topic.put_commits(wanted[_LATER:])
                await until_true(lambda: _is_committed(topic, _LAST))
        finally:
            os.kill(zombie.process.pid, signal.SIGCONT)
    await require_each_once(accounts, topic, _LAST)
    assert await accounts.committed() == [commit.run_id for commit in wanted]


async def _is_committed(topic: CommitTopic, offset: int) -> bool:
    return await topic.committed() == offset


async def _has_members(topic: CommitTopic, count: int) -> bool:
    return await members_of(topic) == count
