"""A short soak, and that its accounts see what is wrong; the long one is ``make soak``."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.faults.facts import Facts, Freeze
from tests.faults.soak.accounts import Message, check_binding, check_commits, check_events
from tests.faults.soak.script import script_of
from tests.faults.soak.soak import Soak
from tests.support.checked_world import World, sound_world

SECONDS, SEED = 18.0, 3


@pytest.mark.faults
@pytest.mark.broker
@pytest.mark.integration
@pytest.mark.timeout(600)  # the machine may be slow; nothing here is decided by time
@pytest.mark.rules("G1", "G2", "G3", "G4", "G5", "G6", "G7", "G8", "G10")
async def test_g10_no_guarantee_gives_way_while_workers_broker_and_database_are_killed(tmp_path: Path) -> None:
    report = await Soak(script_of(SEED, SECONDS), tmp_path).run()
    print("\n".join(report.lines()))
    assert report.wrong == []
    # A soak that breaks nothing, or in which nothing happens, would show nothing.
    for what in ("worker kill", "worker freeze", "broker kill", "database kill all", "answer", "recorded refusals"):
        assert report.counts[what] > 0, what
    assert report.counts["distinct commits"] == report.counts["run.applied"] > 0


def _late(world: World) -> None:
    """The first writer's request comes after the second one took over."""
    world.requests[1] = replace(world.requests[1], received_at=5.5, decided_at=5.6)


def _late_after_a_freeze(world: World) -> None:
    world.freezes.append(Freeze("worker-0", 4.0, 5.4))
    _late(world)


def _twice_after_a_freeze(world: World) -> None:
    _late_after_a_freeze(world)
    world.requests.insert(2, replace(world.requests[1], received_at=5.7, decided_at=5.8))


def _twice(world: World) -> None:
    world.requests.insert(1, replace(world.requests[0], received_at=3.4, decided_at=3.5))


def _over_each_other(world: World) -> None:
    world.requests[0] = replace(world.requests[0], decided_at=4.3)


def _back(world: World) -> None:
    world.events[8]["writer_epoch"] = 1


def test_a_sound_binding_has_no_violation_and_one_request_of_a_thawed_worker_is_excused() -> None:
    assert check_binding(sound_world().facts())[0] == []
    world = sound_world()
    _late_after_a_freeze(world)
    found, counts = check_binding(world.facts())
    assert (found, counts["requests that a frozen worker had begun"]) == ([], 1)


@pytest.mark.parametrize(
    ("words", "doctor"),
    [
        ("G2: ('run-1', 1) came at 5.500, outside", _late),
        ("G2: ('run-1', 1) came at 5.700, outside", _twice_after_a_freeze),
        ("G4: ('run-1', 0) attempt 1: 2 requests", _twice),
        ("before another one ended", _over_each_other),
        ("epoch 1 under 2", _back),
        ("G7: 1 commits, 0 rows", lambda world: world.inbox.clear()),
        ("G3", lambda world: world.events.pop(9)),
    ],
)
def test_what_is_wrong_on_a_binding_is_found(words: str, doctor: Callable[[World], object]) -> None:
    world = sound_world()
    doctor(world)
    found = [str(violation) for violation in check_binding(world.facts())[0]]
    assert any(words in text for text in found), found


GOOD, BAD = b"a commit", b"no commit"
ROW = {"kind": "commit", "commit_id": "c1"}
REFUSED = {"topic": "t", "partition": 0, "offset": 2, "digest": hashlib.sha256(BAD).digest()}


def _topic() -> list[Message]:
    """A commit that was delivered twice, and something that is none."""
    values = (GOOD, GOOD, BAD)
    return [Message("t", 0, offset, b"k", value, {"ce_id": b"1"}) for offset, value in enumerate(values)]


@pytest.mark.parametrize(
    ("inbox", "refusals", "words"),
    [
        ([ROW], [REFUSED], None),
        ([], [REFUSED], "0 rows"),
        ([ROW, ROW], [REFUSED], "2 rows"),
        ([ROW, {**ROW, "commit_id": "c2"}], [REFUSED], "commit c2"),
        ([ROW], [], "is not refused"),
        ([ROW], [REFUSED, {**REFUSED, "offset": 1}], "refused and a commit"),
        ([ROW], [{**REFUSED, "digest": bytes(32)}], "other bytes"),
    ],
)
def test_g10_each_message_is_a_row_or_a_refusal(
    inbox: list[dict[str, Any]], refusals: list[dict[str, Any]], words: str | None
) -> None:
    found = [str(violation) for violation in check_commits(_topic(), {GOOD: "c1"}, inbox, refusals)]
    assert found == [] if words is None else any(words in text for text in found), found


def test_g10_a_commit_that_is_not_on_its_topic_is_found() -> None:
    found = [str(violation) for violation in check_commits(_topic()[2:], {GOOD: "c1"}, [ROW], [REFUSED])]
    assert any("is not on the topic" in text for text in found), found


def _told(facts: Facts) -> list[Message]:
    """The events of a binding as messages, spelled out."""
    messages: list[Message] = []
    names = {"writer_epoch": "epoch", "run_id": "run_id", "operation_id": "operation_id"}
    names |= {"ordinal": "ordinal", "attempt": "attempt", "kind": "kind", "schema_version": "schema_version"}
    names |= {"position": "position", "microseconds": "recorded_at"}
    for event in facts.events:
        headers = {
            f"ledger_{header}": str(event[name]).encode() for name, header in names.items() if event[name] is not None
        }
        headers |= {f"ledger_{name}": event[name].hex().encode() for name in ("prev_hash", "hash")}
        headers["ce_id"] = str(event["event_id"]).encode()
        messages.append(Message("events", 0, len(messages), b"key", event["body"].encode(), headers))
    return messages


def _events_wrong(change: Callable[[list[Message]], object]) -> list[str]:
    facts = sound_world().facts()
    messages = _told(facts)
    change(messages)
    return [str(violation) for violation in check_events(messages, {b"key": (facts.binding, facts.events)})]


def test_g08_the_whole_topic_has_no_violation_and_neither_have_repeats() -> None:
    assert _events_wrong(lambda messages: None) == []
    assert _events_wrong(lambda messages: messages.insert(5, messages[3])) == []


@pytest.mark.parametrize(
    ("words", "change"),
    [
        ("position 6 behind 4", lambda messages: messages.pop(4)),
        ("the topic ends at 11", lambda messages: messages.pop()),
        ("position 3 behind 1", lambda messages: messages.insert(1, messages.pop(2))),
        ("came again as another event", lambda messages: messages.insert(5, replace(messages[3], value=b"{}"))),
        ("does not follow", lambda messages: messages.__setitem__(3, replace(messages[3], value=b"{}"))),
        ("an event of nobody", lambda messages: messages.append(replace(messages[4], key=b"x"))),
    ],
)
def test_g08_what_is_wrong_on_the_topic_is_found(words: str, change: Callable[[list[Message]], object]) -> None:
    found = _events_wrong(change)
    assert any(words in text for text in found), found
