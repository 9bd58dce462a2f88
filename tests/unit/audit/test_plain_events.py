"""Stretches of applied operations: what holds is taken as a whole, and whatever is otherwise is not."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable
from datetime import UTC, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.audit.outcome_order import OutcomeOrder, PlannedOrder, planned_record
from ledger.audit.plain_events import PlainEvents, Stretch
from ledger.audit.projections import FoldedProjection, Sum
from ledger.chain import ChainVerifier, event_hash
from ledger.events import StoredEvent
from ledger.hashed_event import event_of, hashed_bytes, position_of
from ledger.projections.registry import PROJECTIONS
from tests.support.events import BRANCH, RUN, URL, EventLog, operation_id, rechained


def _log(count: int = 6) -> list[StoredEvent]:
    log = EventLog()
    log.commit(count)
    for ordinal in range(count):
        log.applied(ordinal)
    return log.events


def _stretch(events: list[StoredEvent]) -> Stretch | None:
    """What is made of the events behind the first one."""
    before = ChainVerifier(URL, BRANCH)
    before.feed(events[0])
    plain = PlainEvents(URL, BRANCH)
    hashed, hashes = [hashed_bytes(event) for event in events[1:]], [event.hash for event in events[1:]]
    return plain.stretch(hashed, hashes, before) if all(plain.marks(hashed)) else None


@pytest.mark.rules("G8")
def test_g08_a_stretch_that_holds_says_what_its_events_say() -> None:
    events = _log()
    stretch = _stretch(events)
    assert stretch is not None
    assert (stretch.run_id, stretch.first_position, stretch.last_position, stretch.first_ordinal) == (RUN, 2, 7, 0)
    assert [name.decode() for name in stretch.operations] == [event.operation_id for event in events[1:]]
    assert [stretch.event(number) for number in range(6)] == events[1:]


_OTHERWISE: dict[str, Callable[[StoredEvent], StoredEvent]] = {
    "url": lambda e: e._replace(url="http://infrahub.example:8001"),
    "branch": lambda e: e._replace(branch="mein"),
    "position": lambda e: e._replace(position=e.position + 1),
    "event id": lambda e: e._replace(event_id=uuid.UUID(int=99)),
    "kind": lambda e: e._replace(kind="operation.skipped"),
    "version": lambda e: e._replace(schema_version=2),
    "run": lambda e: e._replace(run_id="another"),
    "run of the same length": lambda e: e._replace(run_id=RUN[:-1] + "x"),
    "operation": lambda e: e._replace(operation_id=operation_id(99)),
    "an operation's longer id": lambda e: e._replace(operation_id="op_0"),
    "no operation": lambda e: e._replace(operation_id=None),
    "ordinal": lambda e: e._replace(ordinal=99),
    "no ordinal": lambda e: e._replace(ordinal=None),
    "attempt": lambda e: e._replace(attempt=2),
    "epoch": lambda e: e._replace(writer_epoch=2),
    "no epoch": lambda e: e._replace(writer_epoch=None),
    "time": lambda e: e._replace(recorded_at=e.recorded_at + timedelta(microseconds=1)),
    "body": lambda e: e._replace(body=e.body.replace(b'"sent_ms":1', b'"sent_ms":2')),
    "link": lambda e: e._replace(prev_hash=hashlib.sha256(b"x").digest()),
    "hash": lambda e: e._replace(hash=hashlib.sha256(b"x").digest()),
}
_NEVER_PLAIN = _OTHERWISE.keys() - {"event id", "operation", "time", "body", "link", "hash"}
"""What is no stretch of one run either where somebody has computed every hash anew."""


@pytest.mark.rules("G8")
@pytest.mark.parametrize("what", _OTHERWISE)
@pytest.mark.parametrize("place", [1, 3, 6])
def test_g08_one_edited_field_of_one_event_is_no_stretch(what: str, place: int) -> None:
    events = _log()
    events[place] = _OTHERWISE[what](events[place])
    assert _stretch(events) is None


@pytest.mark.rules("G8")
@pytest.mark.parametrize("what", sorted(_NEVER_PLAIN))
def test_g08_hashes_that_were_computed_anew_do_not_make_it_one(what: str) -> None:
    events = _log()
    events[3] = _OTHERWISE[what](events[3])
    assert _stretch(rechained(events, start=3)) is None


@pytest.mark.rules("G8")
def test_g08_an_event_that_links_to_another_one_is_no_stretch_though_every_hash_is_right() -> None:
    events = _log()
    linked = events[3]._replace(prev_hash=hashlib.sha256(b"x").digest())
    events[3] = linked._replace(hash=event_hash(linked))
    assert _stretch(rechained(events, start=4)) is None


@pytest.mark.rules("G8")
def test_g08_no_byte_of_an_event_can_be_another_without_being_read_as_what_it_is() -> None:
    """Whoever computes the hash anew may make another event of it; a stretch then says just what that event says."""
    events = _log(1)
    before = ChainVerifier(URL, BRANCH)
    before.feed(events[0])
    whole = hashed_bytes(events[1])
    for at in range(len(whole)):
        data = whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]
        own_hash = hashlib.sha256(data).digest()
        stretch = PlainEvents(URL, BRANCH).stretch([data], [own_hash], before)
        if stretch is not None:
            event = event_of(data, own_hash)
            assert not ChainVerifier(URL, BRANCH, before.position, before.head).feed(event)
            said = (event.run_id, event.position, event.ordinal, (event.operation_id or "").encode(), event.kind)
            told = (stretch.run_id, stretch.first_position, stretch.first_ordinal, stretch.operations[0])
            assert said == (*told, "operation.applied"), at


@pytest.mark.rules("G8")
def test_g08_a_time_that_no_calendar_has_is_left_to_who_can_say_so() -> None:
    events = _log(1)
    far = hashed_bytes(events[1])
    at = len(far) - len(events[1].body) - 16
    far = far[:at] + (2**62).to_bytes(8, "big") + far[at + 8 :]
    before = ChainVerifier(URL, BRANCH)
    before.feed(events[0])
    assert PlainEvents(URL, BRANCH).stretch([far], [hashlib.sha256(far).digest()], before) is None


@pytest.mark.parametrize(
    "body", [b'{"node_id":"n"}', b'{"duration_ms":2,"node_id":"n","note":null,"sent_ms":01}', b"{}"]
)
def test_a_body_that_is_not_plain_is_looked_at_by_itself(body: bytes) -> None:
    events = _log()
    events[3] = events[3]._replace(body=body)
    assert _stretch(rechained(events, start=3)) is None


@pytest.mark.rules("G9")
def test_g09_projections_make_the_same_of_a_stretch_and_of_its_events() -> None:
    log = EventLog()
    log.commit(40)
    log.unknown(0)
    for ordinal in range(40):
        log.applied(ordinal, attempt=2 if ordinal == 0 else 1)
    log.unknown(40)
    log.applied(40)  # twice at its first attempt, which no database takes
    log.applied(41)
    for projection in PROJECTIONS:
        sums = []
        for first in (3, 5, 30, 43, 45):  # events before it are fed one by one
            folded = FoldedProjection(projection, len(log.events), log.events[-1].hash, Sum(bytes(32)))
            for event in log.events[:first]:
                folded.feed(event)
            for start, end in ((first, 42), (max(first, 43), 45)):
                if start < end:
                    stretch = _behind(log.events[:start], log.events[start:end])
                    assert folded.can_take(stretch)
                    folded.take_stretch(stretch)
                if end == 42 and first <= 42:
                    folded.feed(log.events[42])
            folded.finish()
            sums.append((folded.folded, folded.reached))
        assert len(set(map(str, sums))) == 1, projection.name


def _behind(before: list[StoredEvent], events: list[StoredEvent]) -> Stretch:
    verifier = ChainVerifier(URL, BRANCH)
    for event in before:
        verifier.feed(event)
    stretch = PlainEvents(URL, BRANCH).stretch(
        [hashed_bytes(event) for event in events], [event.hash for event in events], verifier
    )
    assert stretch is not None
    return stretch


@given(
    st.builds(
        StoredEvent,
        url=st.text(max_size=20),
        branch=st.text(max_size=20),
        position=st.integers(1, 2**63 - 1),
        event_id=st.uuids(),
        kind=st.text(max_size=20),
        schema_version=st.integers(0, 2**31 - 1),
        run_id=st.none() | st.text(max_size=20),
        operation_id=st.none() | st.text(max_size=20),
        ordinal=st.none() | st.integers(0, 2**63 - 1),
        attempt=st.none() | st.integers(0, 2**31 - 1),
        writer_epoch=st.none() | st.integers(0, 2**63 - 1),
        recorded_at=st.datetimes(timezones=st.just(UTC)),
        body=st.binary(max_size=40),
        prev_hash=st.binary(min_size=32, max_size=32),
        hash=st.binary(min_size=32, max_size=32),
    )
)
def test_an_event_comes_back_from_its_hashed_bytes(event: StoredEvent) -> None:
    assert event_of(hashed_bytes(event), event.hash) == event
    assert position_of(hashed_bytes(event)) == event.position


@given(st.binary(max_size=300))
def test_other_bytes_are_no_event(data: bytes) -> None:
    with pytest.raises((ValueError, OverflowError)):
        event_of(data, bytes(32))


_IDS = [operation_id(number).encode() for number in range(5)]


def _planned(wanted: int, actions: list[bytes]) -> PlannedOrder:
    planned = PlannedOrder(wanted)
    records = [planned_record(name, action) for name, action in zip(_IDS, actions, strict=False)]
    planned.take(records[:2])
    planned.take(records[2:])
    return planned


@pytest.mark.rules("G3", "P112")
def test_g03_outcomes_in_the_plans_order_have_its_digest_and_no_others() -> None:
    creates = [b"create"] * 5
    order = OutcomeOrder()
    order.applied(0, _IDS[:3])
    assert order.is_order_of(_planned(3, creates))
    assert not order.is_order_of(_planned(3, [b"create", b"delete", b"create", b"create", b"create"]))
    order.applied(3, _IDS[3:])
    assert order.is_order_of(_planned(5, creates))
    assert not order.is_order_of(_planned(5, creates[:4]))
    gap = OutcomeOrder()
    gap.applied(1, _IDS[1:])
    assert not gap.is_order_of(_planned(4, creates))
    moved = OutcomeOrder()
    moved.applied(1, _IDS[:3])
    assert not moved.is_order_of(_planned(3, creates))
    swapped = OutcomeOrder()
    swapped.applied(0, [_IDS[1], _IDS[0]])
    assert not swapped.is_order_of(_planned(2, creates))


@pytest.mark.rules("G3")
def test_g03_a_single_outcome_goes_the_same_way_and_a_failure_ends_it() -> None:
    log = EventLog()
    log.commit(3)
    log.applied(0)
    log.skipped(1)
    order = OutcomeOrder()
    for event in log.events[1:]:
        order.take(event)
    assert order.is_order_of(_planned(2, [b"create", b"delete"]))
    order.take(log.unknown(2))
    assert not order.is_order_of(_planned(3, [b"create", b"delete", b"create"]))
