"""The id of a binding is asked for once, and again where the ledger does not know it any more."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

import pytest

from consumers.intake.taking import MessageTaker, ReceivedMessage
from ledger.binding import DestinationBinding
from ledger.commit import PlanCommit
from ledger.commit_message import encode_commit
from ledger.store.errors import UnknownBindingError
from ledger.store.records import MessagePlace, Receipt
from tests.support.store import BINDING, make_commit


class _Inbox:
    """A ledger that can be made anew, with other ids."""

    def __init__(self) -> None:
        self.id = 1
        self.registered = 0
        self.taken: list[str] = []

    async def register_binding(self, binding: DestinationBinding) -> int:
        self.registered += 1
        return self.id

    async def binding(self, binding: DestinationBinding) -> None:
        return None

    async def submit_commit(self, binding_id: int, commit: PlanCommit) -> Receipt:
        if binding_id != self.id:
            raise UnknownBindingError(checked="id", expected="known", found="not", next_action="register")
        self.taken.append(commit.run_id)
        return Receipt(order_id=uuid.uuid4(), inbox_id=len(self.taken), first=True, position=1)

    async def refuse_message(self, place: MessagePlace, **_: Any) -> bool:
        raise AssertionError(f"{place} is a commit")


def _messages(count: int) -> Sequence[ReceivedMessage]:
    messages = [encode_commit(make_commit(f"run-{number}", f"{number:064x}")) for number in range(count)]
    return [
        ReceivedMessage(MessagePlace("commits", 0, n), m.key, m.value, tuple(m.headers)) for n, m in enumerate(messages)
    ]


@pytest.mark.rules("G7", "G10")
async def test_g10_a_ledger_that_was_made_anew_takes_what_comes() -> None:
    inbox = _Inbox()
    taker = MessageTaker(inbox, [BINDING])
    first, second, third, fourth = _messages(4)
    await taker.take(first)
    await taker.take(second)
    assert inbox.registered == 1
    inbox.id = 2
    await taker.take(third)
    await taker.take(fourth)
    assert (inbox.registered, inbox.taken) == (2, ["run-0", "run-1", "run-2", "run-3"])
