"""FF27: a message that is no commit is recorded with where it came from, and the next one is taken."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import pytest

from consumers.intake.taking import MessageTaker, ReceivedMessage
from ledger.audit.verify import verify_binding
from ledger.binding import DestinationBinding
from ledger.commit import PlanCommit, Policy
from ledger.commit_message import Message, encode_commit, message_key
from ledger.store.errors import MessageConflictError
from ledger.store.ledger import Ledger
from ledger.store.records import MessagePlace, Receipt
from tests.support.commit_topic import CommitTopic, RawMessage
from tests.support.store import BINDING, chain_is_whole, connection_to, make_commit

pytestmark = [pytest.mark.integration, pytest.mark.broker]

MARK = "a-word-of-the-payload"


def good(number: int) -> PlanCommit:
    return make_commit(f"20261129T1900-{number:08x}", f"{number:064x}")


def raw(commit: PlanCommit, **fields: Any) -> RawMessage:
    """The message of a commit, with fields of its body replaced; None takes one away."""
    message = encode_commit(commit)
    document = json.loads(message.value) | fields
    document = {name: value for name, value in document.items() if value is not None or name == "ledger_position"}
    return (message.key, json.dumps(document, sort_keys=True, separators=(",", ":")).encode(), message.headers)


def other_headers(message: Message, **headers: str | None) -> RawMessage:
    """The same message; a header with another text, or without it where that is None."""
    kept = [(name, value) for name, value in message.headers if name not in headers]
    return (message.key, message.value, [*kept, *((name, text.encode()) for name, text in headers.items() if text)])


BASE = encode_commit(good(99))
BAD: dict[str, tuple[str, RawMessage]] = {
    "no JSON": ("MessageNotJsonError", (BASE.key, f"{MARK}{{".encode(), BASE.headers)),
    "invalid UTF-8": ("MessageNotJsonError", (BASE.key, b'{"\xff":1}', BASE.headers)),
    "a byte order mark": ("MessageNotJsonError", (BASE.key, b"\xef\xbb\xbf" + BASE.value, BASE.headers)),
    "a key twice": ("MessageNotJsonError", (BASE.key, b'{"run_id":"a",' + BASE.value[1:], BASE.headers)),
    "nested without end": ("MessageNotJsonError", (BASE.key, b"[" * 100_000, BASE.headers)),
    "a list": ("InvalidCommitError", (BASE.key, b"[]", BASE.headers)),
    "no body": ("TombstoneMessageError", (BASE.key, None, BASE.headers)),
    "an empty body": ("MessageNotJsonError", (BASE.key, b"", BASE.headers)),
    "too long": ("MessageTooLargeError", (BASE.key, b" " * 300_000, BASE.headers)),
    "an unknown version": ("UnknownMessageVersionError", other_headers(BASE, ce_type="apply-ledger.plan-commit.v2")),
    "other CloudEvents": ("UnknownMessageVersionError", other_headers(BASE, ce_specversion="2.0")),
    "no version": ("MissingHeaderError", other_headers(BASE, ce_type=None)),
    "two versions": ("MissingHeaderError", (BASE.key, BASE.value, [*BASE.headers, ("ce_type", b"x")])),
    "no run id": ("InvalidCommitError", raw(good(99), run_id=None)),
    "a count as text": ("InvalidCommitError", raw(good(99), operations_count="3")),
    "a field too many": ("InvalidCommitError", raw(good(99), **{MARK: MARK})),
    "another run's checksum": ("ContradictoryMessageError", raw(good(99), plan_checksum="e" * 64)),
    "another id": ("ContradictoryMessageError", other_headers(BASE, ce_id="00000000-0000-4000-8000-000000000000")),
    "another key": ("ContradictoryMessageError", (b'["http://elsewhere:8000","main"]', BASE.value, BASE.headers)),
    "no key": ("ContradictoryMessageError", (None, BASE.value, BASE.headers)),
    "a path that leads out": ("CommitLocationError", raw(good(99), artifact="../netbox/run")),
    "an absolute path": ("CommitLocationError", raw(good(99), artifact="/etc")),
    "a URL": ("CommitLocationError", raw(good(99), artifact="https://elsewhere/plan")),
    "a position that no ledger has reached": ("UnknownPositionError", raw(good(99), ledger_position=10_000)),
}


def elsewhere() -> RawMessage:
    binding = DestinationBinding(url="http://elsewhere.example:8000", branch="main")
    message = encode_commit(good(99).model_copy(update={"binding": binding}))
    return (message.key, message.value, message.headers)


async def refusals(dsns: dict[str, str]) -> list[Any]:
    async with connection_to(dsns["admin"]) as connection:
        return list(
            await connection.fetch(
                'select topic, partition, "offset", digest, reason from ledger.intake_refusal order by "offset"'
            )
        )


@pytest.mark.rules("G10", "G11")
async def test_ff27_each_message_that_is_no_commit_is_recorded_and_the_next_one_is_taken(
    topic: CommitTopic,
    inbox: Ledger,
    postgres18_ledger_dsns: dict[str, str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    bad = [*BAD.values(), ("UndeclaredBindingError", elsewhere())]
    messages: list[Message | RawMessage] = []
    for number, (_, message) in enumerate(bad):
        messages += [message, encode_commit(good(number))]
    await topic.put(messages)
    taker = MessageTaker(inbox, [BINDING])

    await topic.read_to_the_end(taker.take)

    rows = await refusals(postgres18_ledger_dsns)
    assert [row["offset"] for row in rows] == [2 * number for number in range(len(bad))]
    assert [row["reason"].split(":")[0] for row in rows] == [name for name, _ in bad]
    assert [row["digest"] for row in rows] == [hashlib.sha256(value or b"").digest() for _, (_, value, _) in bad]
    assert {(row["topic"], row["partition"]) for row in rows} == {(topic.name, 0)}
    binding_id = await inbox.register_binding(BINDING)
    assert [order.run_id for order in await inbox.open_orders(binding_id)] == [good(n).run_id for n in range(len(bad))]
    assert MARK not in capsys.readouterr().out + "".join(row["reason"] for row in rows)


@pytest.mark.rules("G7", "G10")
async def test_ff27_a_refused_message_that_comes_again_is_one_refusal_and_no_run_of_its_binding_ends(
    topic: CommitTopic, inbox: Ledger, postgres18_ledger_dsns: dict[str, str]
) -> None:
    taken = good(1)
    await topic.put([encode_commit(taken), raw(taken, plan_checksum="e" * 64), BAD["no JSON"][1]])
    taker = MessageTaker(inbox, [BINDING])

    for group in ("first", "second", "third"):
        await topic.read_to_the_end(taker.take, group=group)

    assert [row["offset"] for row in await refusals(postgres18_ledger_dsns)] == [1, 2]
    binding_id = await inbox.register_binding(BINDING)
    events = [event async for event in inbox.events(binding_id)]
    assert [(event.kind, event.run_id) for event in events] == [
        ("plan.committed", taken.run_id),
        ("plan.refused", None),
        ("plan.refused", None),
    ]
    assert (await inbox.run_state(binding_id, taken.run_id)).is_open
    assert await chain_is_whole(inbox, binding_id) == 3
    assert (await verify_binding(inbox, BINDING)).holds


@pytest.mark.rules("G7", "G10")
async def test_ff27_a_commit_that_contradicts_what_is_recorded_is_refused_and_one_of_a_finished_run_is_no_news(
    topic: CommitTopic, inbox: Ledger, postgres18_ledger_dsns: dict[str, str]
) -> None:
    taken = good(1)
    other_policy = taken.model_copy(update={"policy": Policy(on_unknown="converge")})
    other_plan = make_commit(taken.run_id, "e" * 64)
    await topic.put_commits([taken, other_policy, other_plan, taken])

    await topic.read_to_the_end(MessageTaker(inbox, [BINDING]).take)

    rows = await refusals(postgres18_ledger_dsns)
    assert [(row["offset"], row["reason"].split(":")[0]) for row in rows] == [
        (1, "PolicyConflictError"),
        (2, "RunChecksumConflictError"),
    ]
    assert len(await inbox.open_orders(await inbox.register_binding(BINDING))) == 1


class Broken(Ledger):
    """A ledger behind a program that fails at one commit."""

    def __init__(self, whole: Ledger, at: str) -> None:
        super().__init__(whole._session)
        self._at = at

    async def submit_commit(self, binding_id: int, commit: PlanCommit) -> Receipt:
        if commit.run_id == self._at:
            raise ZeroDivisionError(MARK)
        return await super().submit_commit(binding_id, commit)


@pytest.mark.rules("G10")
async def test_ff27_a_defect_at_one_message_is_recorded_without_its_text_and_the_next_one_is_taken(
    topic: CommitTopic, inbox: Ledger, postgres18_ledger_dsns: dict[str, str]
) -> None:
    await topic.put_commits([good(1), good(2), good(3)])

    await topic.read_to_the_end(MessageTaker(Broken(inbox, good(2).run_id), [BINDING]).take)

    (row,) = await refusals(postgres18_ledger_dsns)
    assert (row["offset"], row["reason"].split(":")[0]) == (1, "IntakeDefectError")
    assert MARK not in row["reason"]
    runs = [order.run_id for order in await inbox.open_orders(await inbox.register_binding(BINDING))]
    assert runs == [good(1).run_id, good(3).run_id]


@pytest.mark.rules("G8", "G10")
async def test_ff27_another_message_in_the_place_of_a_refused_one_is_an_alarm(inbox: Ledger) -> None:
    taker = MessageTaker(inbox, [BINDING])
    place = MessagePlace("plan-commits", 0, 2**31 + 1)

    def message(value: bytes) -> ReceivedMessage:
        return ReceivedMessage(place, message_key(BINDING), value, ())

    assert await taker.take(message(b"one")) is None
    assert await taker.take(message(b"one")) is None
    with pytest.raises(MessageConflictError, match=str(2**31 + 1)):
        await taker.take(message(b"two"))


def test_ff27_every_class_of_refused_message_is_among_these_cases() -> None:
    from consumers.intake import errors
    from ledger import commit_message

    modules: Sequence[Any] = (errors, commit_message)
    refused = {
        name
        for module in modules
        for name, value in vars(module).items()
        if isinstance(value, type)
        and issubclass(value, commit_message.MessageRefusedError)
        and value is not commit_message.MessageRefusedError
    }
    shown = {name for name, _ in BAD.values()} | {"UndeclaredBindingError", "IntakeDefectError"}
    assert refused <= shown
