"""One member of an intake's group in a process of its own, to be frozen while it holds messages that it has read.

It tells on its output what it does: ``holds N`` before it takes the messages from offset N on, and waits there for a
line; ``took N first|again`` for each message; ``commits N``; ``done`` at the end of what one poll gave it.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from collections.abc import Sequence
from typing import Any

from consumers.intake.reading import Alive, Intake
from consumers.intake.taking import MessageTaker, ReceivedMessage
from ledger.store.ledger import Ledger
from tests.support.commit_topic import CommitTopic
from tests.support.store import BINDING

AT_ONCE = 5
FIRST, SECOND = "a-member", "b-member"
"""Names that the brokers know members by; of a group's members the first by name has the one partition."""


class ToldIntake(Intake):
    """Says when it commits an offset, and when it has done with what it had read."""

    async def _take_batch(self, *arguments: Any) -> None:
        await super()._take_batch(*arguments)
        _tell("done")

    async def _commit(self, consumer: Any, offsets: dict[Any, int]) -> None:
        _tell(f"commits {max(offsets.values())}")
        await super()._commit(consumer, offsets)


def _tell(what: str) -> None:
    print(what, flush=True)


async def serve(topic: CommitTopic, dsn: str, hold_at: int) -> None:
    """Read as a member of the topic's group until SIGTERM."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with await Ledger.open(dsn, allow_unsafe_fsync=True) as ledger:
        taker = MessageTaker(ledger, [BINDING])

        async def take_together(messages: Sequence[ReceivedMessage], alive: Alive) -> None:
            if messages[0].place.offset == hold_at:
                _tell(f"holds {hold_at}")
                await asyncio.to_thread(sys.stdin.readline)
            receipts = await taker.take_together(messages, alive=alive)
            for message, receipt in zip(messages, receipts, strict=True):
                _tell(f"took {message.place.offset} {'first' if receipt is not None and receipt.first else 'again'}")

        settings = topic.intake_settings(take_at_once=AT_ONCE, client_id=FIRST)
        await ToldIntake(settings, taker.take, take_together=take_together).run_until(stop)


def main() -> None:
    """The process."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("brokers", "topic", "dsn"):
        parser.add_argument(name)
    parser.add_argument("hold_at", type=int)
    given = parser.parse_args()
    asyncio.run(serve(CommitTopic(given.brokers, given.topic), given.dsn, given.hold_at))


if __name__ == "__main__":
    main()
