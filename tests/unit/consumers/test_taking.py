"""The id of a binding is asked for once, and again where the ledger does not know it any more."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from structlog.testing import capture_logs

from consumers.intake.reading import Alive, Intake
from consumers.intake.settings import IntakeSettings
from consumers.intake.taking import MessageTaker, ReceivedMessage
from ledger.binding import DestinationBinding
from ledger.commit import PlanCommit
from ledger.commit_message import encode_commit
from ledger.store.errors import CommitConflictError, LedgerUnavailableError, UnknownBindingError
from ledger.store.records import MessagePlace, Receipt
from tests.support.store import BINDING, make_commit


class _Inbox:
    """A ledger that can be made anew, with other ids."""

    def __init__(self) -> None:
        self.id = 1
        self.registered = 0
        self.taken: list[str] = []
        self.together: list[int] = []
        self.refused: list[int] = []
        self.conflicts: set[str] = set()

    async def register_binding(self, binding: DestinationBinding) -> int:
        self.registered += 1
        return self.id

    async def binding(self, binding: DestinationBinding) -> None:
        return None

    async def submit_commit(self, binding_id: int, commit: PlanCommit) -> Receipt:
        if commit.run_id in self.conflicts:
            raise CommitConflictError(checked="x", expected="x", found="x", next_action="x")
        if binding_id != self.id:
            raise UnknownBindingError(checked="id", expected="known", found="not", next_action="register")
        self.taken.append(commit.run_id)
        return Receipt(order_id=uuid.uuid4(), inbox_id=len(self.taken), first=True, position=1)

    async def submit_commits(self, binding_id: int, commits: Sequence[PlanCommit]) -> list[Receipt]:
        self.together.append(len(commits))
        if any(commit.run_id in self.conflicts for commit in commits):
            raise CommitConflictError(checked="x", expected="x", found="x", next_action="x")
        return [await self.submit_commit(binding_id, commit) for commit in commits]

    async def refuse_message(self, place: MessagePlace, **_: Any) -> bool:
        self.refused.append(place.offset)
        return True


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


@pytest.mark.rules("G7", "G10")
async def test_g10_commits_of_one_destination_are_taken_in_one_call_and_in_their_order() -> None:
    inbox = _Inbox()
    receipts = await MessageTaker(inbox, [BINDING]).take_together(_messages(5))
    assert (inbox.together, inbox.taken) == ([5], [f"run-{number}" for number in range(5)])
    assert [receipt.inbox_id for receipt in receipts if receipt is not None] == [1, 2, 3, 4, 5]


@pytest.mark.rules("G10")
@pytest.mark.parametrize("how", ["poison", "conflict", "made anew"])
async def test_g10_where_one_speaks_against_it_each_is_taken_alone(how: str) -> None:
    inbox, messages = _Inbox(), list(_messages(4))
    taker = MessageTaker(inbox, [BINDING])
    await taker.take(messages.pop(0))
    if how == "poison":
        messages[1] = replace(messages[1], value=b"\xff no commit")
    elif how == "conflict":
        inbox.conflicts.add("run-2")
    else:
        inbox.id = 2
    receipts = await taker.take_together(messages)
    refused = [] if how == "made anew" else [2]
    assert (inbox.refused, [receipt is None for receipt in receipts]) == (refused, [False, bool(refused), False])
    assert inbox.taken == ["run-0", "run-1", *([] if refused else ["run-2"]), "run-3"]


@pytest.mark.rules("G10")
async def test_g10_a_ledger_that_is_away_is_no_fault_of_the_messages() -> None:
    inbox = _Inbox()

    async def away(binding_id: int, commits: Sequence[PlanCommit]) -> list[Receipt]:
        raise LedgerUnavailableError(checked="x", expected="x", found="x", next_action="x")

    inbox.submit_commits = away  # type: ignore[method-assign]  # the ledger is away from here on
    with pytest.raises(LedgerUnavailableError):
        await MessageTaker(inbox, [BINDING]).take_together(_messages(2))
    assert (inbox.taken, inbox.refused) == ([], [])


@pytest.mark.rules("G10")
async def test_g10_many_single_takes_of_a_slow_ledger_do_not_look_like_one_that_hangs() -> None:
    """Each answers within the time that one may last; only all of them together last longer."""
    inbox, now, silent = _Inbox(), 0.0, []
    inbox.conflicts.add("run-0")  # so that they are taken one by one
    submit = inbox.submit_commit

    async def slowly(binding_id: int, commit: PlanCommit) -> Receipt:
        nonlocal now
        now += 20.0
        silent.append(intake.silent_for)
        return await submit(binding_id, commit)

    inbox.submit_commit = slowly  # type: ignore[method-assign]  # every answer takes its time from here on
    taker = MessageTaker(inbox, [BINDING])

    async def together(messages: Sequence[ReceivedMessage], alive: Alive) -> None:
        await taker.take_together(messages, alive=alive)

    for take_together in (together, None):
        settings = IntakeSettings(brokers="localhost:1")
        intake = Intake(settings, taker.take, take_together=take_together, clock=lambda: now)
        await intake._take_some(_messages(6))
    assert silent == [20.0] * 12


@pytest.mark.rules("G10")
@pytest.mark.parametrize(
    ("raised", "level", "told"),
    [
        (CommitConflictError(checked="x", expected="x", found="x", next_action="x"), "info", "one is refused"),
        (TypeError("a column too few"), "error", "a defect"),
    ],
)
async def test_g10_why_messages_are_taken_one_by_one_is_told(raised: Exception, level: str, told: str) -> None:
    inbox = _Inbox()

    async def fails(binding_id: int, commits: Sequence[PlanCommit]) -> list[Receipt]:
        raise raised

    inbox.submit_commits = fails  # type: ignore[method-assign]  # it cannot take several from here on
    with capture_logs() as logs:
        assert None not in await MessageTaker(inbox, [BINDING]).take_together(_messages(3))
    (line,) = logs
    assert (line["log_level"], line["place"]) == (level, "commits/0/0")
    assert told in line["event"]
    assert bool(line.get("exc_info")) is (level == "error")


@pytest.mark.rules("G10")
async def test_g10_messages_of_two_destinations_are_taken_alone_and_that_is_told() -> None:
    inbox = _Inbox()
    other = BINDING.model_copy(update={"branch": "other"})
    message = encode_commit(make_commit("run-9", "9" * 64, binding=other))
    foreign = ReceivedMessage(MessagePlace("commits", 0, 9), message.key, message.value, tuple(message.headers))
    with capture_logs() as logs:
        await MessageTaker(inbox, [BINDING, other]).take_together([*_messages(2), foreign])
    assert (inbox.together, inbox.taken) == ([], ["run-0", "run-1", "run-9"])
    assert ["not all of one declared destination" in line["event"] for line in logs] == [True]
