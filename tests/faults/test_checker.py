"""The campaign's checker can fail: each guarantee, broken in a sound world, is found and named."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.faults.checker import chain_hash, starved, strays, violations
from tests.faults.facts import Facts, Freeze, Node, request_of
from tests.support.checked_world import MAKER, RUN, TYPE, World, sound_world

Doctor = Callable[[World], object]


def test_a_sound_world_has_no_violation() -> None:
    assert violations(sound_world().facts()) == []


def _change(number: int, **more: Any) -> Doctor:
    def doctor(world: World) -> None:
        world.requests[number] = replace(world.requests[number], **more)

    return doctor


def _body(place: int, **more: Any) -> Doctor:
    return lambda world: world.events[place]["body"].update(more)


def _event(place: int, **more: Any) -> Doctor:
    return lambda world: world.events[place].update(more)


def _without(*places: int) -> Doctor:
    def doctor(world: World) -> None:
        world.events = [event for number, event in enumerate(world.events) if number not in places]

    return doctor


def _node(name: str, **more: Any) -> Doctor:
    def doctor(world: World) -> None:
        node = world.after[name]
        world.after[name] = replace(node, values={**node.values, **more})

    return doctor


def _sent(place: int, **more: Any) -> Doctor:
    def doctor(world: World) -> None:
        request = world.requests[place]
        sent = {name: value for name, value in {**request.sent, **more}.items() if value is not None}
        world.requests[place] = replace(request, sent=sent)

    return doctor


def _twice(world: World) -> None:
    world.requests.insert(1, replace(world.requests[0], received_at=3.4, decided_at=3.5))


def _second_success(world: World) -> None:
    world.event("operation.applied", 2, 0, attempt=2, node_id="old")
    world.events.append(world.events.pop(-2))


def _failed_though_written(world: World) -> None:
    """A first attempt that was written is recorded as proven unwritten."""
    _event(5, kind="operation.failed")(world)
    _body(5, error="StaleDestinationIdError", wrote=False)(world)
    _event(5, writer_epoch=1)(world)
    world.events[4], world.events[5] = world.events[5], world.events[4]


def _frozen_before_its_check(world: World) -> None:
    """Thawed, it checked nothing and sent: no excuse for that."""
    world.freezes.append(Freeze("first", 4.3, 8.0))
    _change(1, received_at=8.05, decided_at=8.1, guarded_at=8.04)(world)


def _no_end_of_the_death(world: World) -> None:
    """The operation in flight is dispatched again under the same mark, and nobody recorded the first time."""
    _without(5, 6, 7)(world)
    world.requests[2] = replace(world.requests[2], attempt=1)
    _event(5, attempt=1)(world)


def _stopped_in_doubt(world: World) -> None:
    world.events[6] = {**world.events[6], "kind": "run.stopped"}


def _two_in_doubt(world: World) -> None:
    world.requests.append(replace(world.requests[3], epoch=1, writer="first", received_at=4.4, decided_at=4.5))
    world.requests.pop(3)
    world.requests.sort(key=lambda request: request.received_at)


def _doubled(world: World) -> None:
    world.after["copy"] = world.after["type"]


def _out_of_turn(world: World) -> None:
    world.events[8], world.events[10] = world.events[10], world.events[8]


DOCTORED: list[tuple[str, str, Doctor]] = [
    ("G1", "the stored lines are not", lambda world: setattr(world, "stored", b"{}\n")),
    ("G1", "another value", _sent(0, description={"value": "of another run"})),
    ("G1", "another value", _sent(0, surplus={"value": 1})),
    ("G1", "another value", _sent(0, description=None)),
    ("G1", "another id", _sent(0, id="another")),
    ("G1", "another form", _change(3, form="Upsert")),
    ("G1", "number of peers", _sent(1, manufacturer=[])),
    ("G1", "kind or action", _change(0, kind="BuiltinTag")),
    ("G1", "another place", _change(0, place=(RUN, 9))),
    ("G2", "epoch 1 under 2", _event(8, writer_epoch=1)),
    ("G2", "epoch 3 after 1", _event(4, writer_epoch=3)),
    ("G2", "after epoch 2 began", _change(1, received_at=5.5, decided_at=5.6, guarded_at=5.4)),
    ("G2", "after epoch 2 began", _frozen_before_its_check),
    ("G2", "which nobody opened", _change(0, epoch=7)),
    ("G2", "before", _change(1, decided_at=8.5)),
    ("G2", "before", _change(1, decided_at=None)),
    ("G3", "not accounted for", _without(9)),
    ("G3", "told", _body(6, not_attempted=3)),
    ("G3", "told", _body(11, applied=4)),
    ("G3", "in doubt", _stopped_in_doubt),
    ("G3", "before its turn", _out_of_turn),
    ("G3", "is not number", _event(3, operation_id="op_3")),
    ("G4", "2 requests in one attempt", _twice),
    ("G4", "2 requests in one attempt", _no_end_of_the_death),
    ("G4", "has no outcome", _without(8)),
    ("G4", "did not say so", _body(5, error="AnswerLostError")),
    ("G4", "left 2 operations in doubt", _two_in_doubt),
    ("G5", "said unwritten", _failed_though_written),
    ("G5", "said unsent", _body(5, sent=False)),
    ("G5", "it says False", _body(5, wrote=False)),
    ("G5", "no recorded delete", _event(8, kind="operation.skipped")),
    ("G6", "no request of it wrote", _change(3, written=False)),
    ("G6", "no request of it wrote", _body(3, node_id="another")),
    ("G6", "no request of it wrote", _change(0, decided_at=4.15)),
    ("G6", "not at the destination", lambda world: world.after.pop("port")),
    ("G7", "2 rows", lambda world: world.inbox.append(world.inbox[0])),
    ("G7", "0 events", _without(0)),
    ("G7", "answered with row 9", lambda world: world.receipts.append({"run_id": RUN, "inbox_id": 9})),
    ("G7", "attempts [1, 3]", _event(8, attempt=3)),
    ("G7", "attempts [1, 1]", _event(8, attempt=1)),
    ("G7", "succeeded 2 times", _second_success),
    ("G8", "the head is", lambda world: setattr(world, "head", 13)),
    ("G8", "acknowledged and is gone", lambda world: world.seen.append((13, "00" * 32))),
    ("G8", "acknowledged and is gone", lambda world: world.seen.append((3, "00" * 32))),
    ("at rest", "still in flight", lambda world: setattr(world, "in_flight", RUN)),
    ("at rest", "still open", lambda world: world.inbox.append({**world.inbox[0], "kind": "stop", "state": "open"})),
    ("at rest", "ended with run.interrupted", _without(7, 8, 9, 10, 11)),
    ("end state", "description is 'changed'", _node("old", description="changed")),
    ("end state", "is there as", _doubled),
    ("end state", "nothing recorded made it", lambda world: world.after.update(new=Node(MAKER, {"name": "N"}, {}))),
    ("end state", "is gone", lambda world: world.before.update(lost=Node(MAKER, {"name": "L"}, {}))),
    ("end state", "was sent as", _sent(3, device_type={"id": "old"})),
]


@pytest.mark.parametrize(
    ("guarantee", "words", "doctor"), DOCTORED, ids=[f"{g}-{words}-{n}" for n, (g, words, _) in enumerate(DOCTORED)]
)
def test_each_broken_guarantee_is_found(guarantee: str, words: str, doctor: Doctor) -> None:
    world = sound_world()
    doctor(world)
    found = [str(violation) for violation in violations(world.facts()) if violation.guarantee == guarantee]
    assert any(words in text for text in found), found


def _tampered(field: str, value: Any) -> Facts:
    facts = sound_world().facts()
    events = [dict(event) for event in facts.events]
    events[5][field] = value
    return replace(facts, events=events)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("body", "{}"),
        ("prev_hash", bytes(32)),
        ("hash", bytes(32)),
        ("microseconds", 1),
        ("event_id", uuid.UUID(int=99)),
        ("position", 7),
    ],
)
def test_g08_a_changed_event_is_found(field: str, value: Any) -> None:
    assert "G8" in {violation.guarantee for violation in violations(_tampered(field, value))}


def test_g08_an_event_that_was_taken_out_is_found() -> None:
    facts = sound_world().facts()
    found = {v.guarantee for v in violations(replace(facts, events=[*facts.events[:5], *facts.events[6:]]))}
    assert "G8" in found


def test_g08_the_hash_is_that_of_the_published_vectors() -> None:
    binding = {"url": "http://infrahub.example:8000", "branch": "main"}
    first = {
        "position": 1,
        "event_id": uuid.UUID("00000000-0000-4000-8000-000000000001"),
        "kind": "writer.opened",
        "schema_version": 1,
        "writer_epoch": 1,
        "run_id": None,
        "operation_id": None,
        "ordinal": None,
        "attempt": None,
        "microseconds": 1795953600123456,
        "body": '{"a":1}',
        "prev_hash": bytes(32),
    }
    one = chain_hash(binding, first)
    assert one.hex() == "2b245bd3a047cbcdd8c2726fb6af3c58cb3e71dada20b23b17295729ce2e2d05"
    second = first | {
        "position": 2,
        "event_id": uuid.UUID("00000000-0000-4000-8000-000000000002"),
        "kind": "operation.applied",
        "run_id": "20261129T1900-0a1b2c3d",
        "operation_id": "op_3531c0d83d698fd1",
        "ordinal": 0,
        "attempt": 1,
        "microseconds": 1795953600123457,
        "body": '{"é":"☃"}',
        "prev_hash": one,
    }
    expected = "59412f878bf41669abeceaafeeb2f6cc90270ea08ae0c07b68e5b9651ace56d0"
    assert chain_hash(binding, second).hex() == expected


def test_g02_the_one_request_of_a_writer_frozen_behind_its_check_is_excused_and_no_second_one() -> None:
    world = sound_world()
    world.freezes.append(Freeze("first", 4.2, 8.0))
    late = replace(world.requests[1], received_at=8.01, decided_at=8.02, guarded_at=4.19)
    world.requests[1] = late
    assert strays(world.facts()) == [late]
    assert violations(world.facts()) == []
    world.requests.insert(2, replace(late, received_at=8.03, decided_at=8.04, guarded_at=4.19))
    assert "G2" in {violation.guarantee for violation in violations(world.facts())}


def test_g02_a_request_that_a_starved_machine_held_up_is_told_apart() -> None:
    """Its writer was frozen too, but at another time."""
    world = sound_world()
    world.freezes.append(Freeze("first", 2.1, 2.9))
    late = replace(world.requests[1], received_at=8.01, decided_at=8.02, guarded_at=4.19)
    world.requests[1] = late
    assert starved(world.facts()) == [late]
    assert violations(world.facts()) == []
    world.requests[1] = replace(late, guarded_at=7.9)
    assert starved(world.facts()) == []
    assert "G2" in {violation.guarantee for violation in violations(world.facts())}


def test_an_operation_left_in_doubt_may_have_written_or_not() -> None:
    """The last attempt at the type is unknown: the object may be there, with its values, or not."""
    world = sound_world()
    _without(8, 9, 10, 11)(world)
    world.requests = [replace(world.requests[2], attempt=2) if n == 2 else r for n, r in enumerate(world.requests[:3])]
    world.event("operation.unknown", 2, 1, attempt=2, error="AnswerLostError", wrote=None, sent=True)
    ended: dict[str, Any] = {"applied": 1, "skipped": 0, "not_attempted": 2, "failed_operation": "op_1"}
    world.event("run.interrupted", 2, **ended)
    del world.after["port"]
    texts = [str(violation) for violation in violations(world.facts())]
    assert [text for text in texts if "at rest" not in text] == []
    world.after["type"] = Node(TYPE, {"name": "T", "description": "of nobody"}, {"manufacturer": ("old",)})
    assert any("'of nobody'" in str(violation) for violation in violations(world.facts()))


def test_g04_a_request_without_a_mark_is_no_fact() -> None:
    with pytest.raises(ValueError, match="without a mark"):
        request_of({"position": 1, "mutation": "BuiltinTagUpsert", "sender": None})
