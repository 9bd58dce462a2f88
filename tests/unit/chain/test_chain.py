"""The chain: the agreed vectors, and that every kind of change of a stored event shows (G8)."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.chain import GENESIS, BreakKind, ChainBreak, ChainVerifier, event_hash
from ledger.events import StoredEvent
from ledger.hashed_event import microseconds
from tests.support.events import BRANCH, URL, EventLog, rechained

_FIRST = StoredEvent(
    url=URL,
    branch=BRANCH,
    position=1,
    event_id=uuid.UUID("00000000-0000-4000-8000-000000000001"),
    kind="writer.opened",
    schema_version=1,
    run_id=None,
    operation_id=None,
    ordinal=None,
    attempt=None,
    writer_epoch=1,
    recorded_at=datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=1795953600123456),
    body=b'{"a":1}',
    prev_hash=GENESIS,
    hash=bytes.fromhex("2b245bd3a047cbcdd8c2726fb6af3c58cb3e71dada20b23b17295729ce2e2d05"),
)
_SECOND = StoredEvent(
    url=URL,
    branch=BRANCH,
    position=2,
    event_id=uuid.UUID("00000000-0000-4000-8000-000000000002"),
    kind="operation.applied",
    schema_version=1,
    run_id="20261129T1900-0a1b2c3d",
    operation_id="op_3531c0d83d698fd1",
    ordinal=0,
    attempt=1,
    writer_epoch=1,
    recorded_at=datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=1795953600123457),
    body='{"é":"☃"}'.encode(),
    prev_hash=_FIRST.hash,
    hash=bytes.fromhex("59412f878bf41669abeceaafeeb2f6cc90270ea08ae0c07b68e5b9651ace56d0"),
)


def _verify(events: list[StoredEvent]) -> list[ChainBreak]:
    verifier = ChainVerifier(URL, BRANCH)
    return [found for event in events for found in verifier.feed(event)]


def _log(length: int = 6) -> list[StoredEvent]:
    log = EventLog()
    log.commit(length)
    for ordinal in range(length - 1):
        log.append("operation.applied", {"node_id": f"n{ordinal}"}, ordinal=ordinal)
    return log.events


@pytest.mark.rules("G8")
@pytest.mark.parametrize("event", [_FIRST, _SECOND], ids=["first", "second"])
def test_g08_the_agreed_vectors(event: StoredEvent) -> None:
    assert event_hash(event) == event.hash


@pytest.mark.rules("G8")
def test_g08_an_untouched_chain_holds() -> None:
    events = _log()
    verifier = ChainVerifier(URL, BRANCH)

    assert [found for event in events for found in verifier.feed(event)] == []
    assert (verifier.position, verifier.head, verifier.events) == (6, events[-1].hash, 6)
    assert _verify([_FIRST, _SECOND]) == []


_EDITS: dict[str, Callable[[StoredEvent], StoredEvent]] = {
    "event id": lambda e: e._replace(event_id=uuid.uuid4()),
    "kind": lambda e: e._replace(kind="operation.skipped"),
    "schema version": lambda e: e._replace(schema_version=2),
    "run": lambda e: e._replace(run_id="another"),
    "run taken away": lambda e: e._replace(run_id=None),
    "operation": lambda e: e._replace(operation_id="op_ffffffffffffffff"),
    "ordinal": lambda e: e._replace(ordinal=99),
    "attempt": lambda e: e._replace(attempt=2),
    "epoch": lambda e: e._replace(writer_epoch=7),
    "time, one microsecond": lambda e: e._replace(recorded_at=e.recorded_at + timedelta(microseconds=1)),
    "body, one byte": lambda e: e._replace(body=e.body.replace(b"n2", b"n3")),
    "body, same value in other bytes": lambda e: e._replace(body=e.body.replace(b":", b": ")),
    "hash": lambda e: e._replace(hash=bytes(32)),
}


@pytest.mark.rules("G8")
@pytest.mark.parametrize("edit", _EDITS.values(), ids=_EDITS)
def test_g08_any_edit_of_an_event_is_found_where_it_is(edit: Callable[[StoredEvent], StoredEvent]) -> None:
    events = _log()
    events[3] = edit(events[3])

    breaks = _verify(events)

    assert (4, BreakKind.HASH) in [(found.position, found.kind) for found in breaks]
    assert all(found.position in (4, 5) for found in breaks)


@pytest.mark.rules("G8")
def test_g08_an_edit_with_its_own_hash_recomputed_breaks_the_link_behind_it() -> None:
    events = _log()
    edited = events[3]._replace(body=b"{}")
    events[3] = edited._replace(hash=event_hash(edited))

    assert [(found.position, found.kind) for found in _verify(events)] == [(5, BreakKind.LINK)]


@pytest.mark.rules("G8")
def test_g08_an_edit_of_the_first_link_is_found() -> None:
    events = _log()
    events[0] = events[0]._replace(prev_hash=b"\x01" * 32)
    events[0] = events[0]._replace(hash=event_hash(events[0]))

    assert (1, BreakKind.LINK) in [(found.position, found.kind) for found in _verify(events)]


@pytest.mark.rules("G8")
def test_g08_everything_recomputed_shows_in_the_head_alone() -> None:
    original = _log()
    forged = rechained([*original[:2], original[2]._replace(body=b"{}"), *original[3:]], start=2)

    assert _verify(forged) == []
    assert forged[-1].hash != original[-1].hash


@pytest.mark.rules("G8")
def test_g08_a_gap_in_the_middle_is_found() -> None:
    events = _log()
    del events[2]

    assert [(found.position, found.kind) for found in _verify(events)] == [(4, BreakKind.GAP), (4, BreakKind.LINK)]


@pytest.mark.rules("G8")
def test_g08_two_events_that_changed_places_are_found() -> None:
    events = _log()
    events[2], events[3] = events[3], events[2]
    assert {found.kind for found in _verify(events)} >= {BreakKind.GAP, BreakKind.ORDER, BreakKind.LINK}

    renumbered = [event._replace(position=index) for index, event in enumerate(events, 1)]
    assert {BreakKind.HASH, BreakKind.LINK} <= {found.kind for found in _verify(renumbered)}


@pytest.mark.rules("G8")
def test_g08_an_event_put_in_twice_is_found() -> None:
    events = _log()

    assert BreakKind.ORDER in {found.kind for found in _verify([*events[:3], events[2], *events[3:]])}


@pytest.mark.rules("G8")
def test_g08_an_event_of_another_binding_is_found() -> None:
    moved = [event._replace(branch="other") for event in _log()]

    assert {found.kind for found in _verify(moved)} == {BreakKind.BINDING, BreakKind.HASH}


@pytest.mark.rules("G8")
def test_g08_fields_cannot_lend_bytes_to_each_other_and_null_is_not_empty() -> None:
    base = _log()[1]

    assert event_hash(base._replace(run_id="ab", operation_id="c")) != event_hash(
        base._replace(run_id="a", operation_id="bc")
    )
    assert event_hash(base._replace(run_id=None)) != event_hash(base._replace(run_id=""))


@pytest.mark.rules("G8")
def test_g08_a_time_is_one_moment_in_every_zone_and_none_without_a_zone() -> None:
    tokyo = _SECOND.recorded_at.astimezone(timezone(timedelta(hours=9)))
    assert event_hash(_SECOND._replace(recorded_at=tokyo)) == _SECOND.hash

    naive = _SECOND._replace(recorded_at=_SECOND.recorded_at.replace(tzinfo=None))
    with pytest.raises(ValueError, match="without a time zone"):
        event_hash(naive)
    assert [found.kind for found in _verify([_FIRST, naive])] == [BreakKind.HASH]


@pytest.mark.rules("G8")
def test_g08_a_number_out_of_its_range_is_a_finding_and_no_crash() -> None:
    assert [found.kind for found in _verify([_FIRST, _SECOND._replace(attempt=2**40)])] == [BreakKind.HASH]


@given(st.datetimes(timezones=st.just(UTC)))
def test_microseconds_are_exact_to_the_year_9999(moment: datetime) -> None:
    assert datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds(moment)) == moment


@pytest.mark.rules("G8")
@given(data=st.data())
def test_g08_any_one_byte_of_any_body_flipped_is_found(data: st.DataObject) -> None:
    events = _log()
    index = data.draw(st.integers(0, len(events) - 1))
    place = data.draw(st.integers(0, len(events[index].body) - 1))
    bit = data.draw(st.integers(0, 7))
    body = bytearray(events[index].body)
    body[place] ^= 1 << bit
    events[index] = events[index]._replace(body=bytes(body))

    assert [(found.position, found.kind) for found in _verify(events)] == [(index + 1, BreakKind.HASH)]


@pytest.mark.rules("G8", "G11")
def test_g08_each_break_says_where_it_is_what_had_to_be_there_and_what_is() -> None:
    events = _log(3)
    first, second, third = events
    moved = second._replace(position=4)
    naive = second._replace(recorded_at=second.recorded_at.replace(tzinfo=None))
    huge = second._replace(attempt=2**40)

    assert _verify([first, third]) == [
        ChainBreak(3, BreakKind.GAP, "position 2", "position 3"),
        ChainBreak(3, BreakKind.LINK, first.hash.hex(), second.hash.hex()),
    ]
    assert _verify([first, second, second]) == [
        ChainBreak(2, BreakKind.ORDER, "position 3", "position 2"),
        ChainBreak(2, BreakKind.LINK, second.hash.hex(), first.hash.hex()),
    ]
    assert _verify([first, moved]) == [
        ChainBreak(4, BreakKind.GAP, "position 2", "position 4"),
        ChainBreak(4, BreakKind.HASH, event_hash(moved).hex(), second.hash.hex()),
    ]
    assert _verify([first, second._replace(url="http://other:1")])[0] == ChainBreak(
        2, BreakKind.BINDING, f"{URL} [{BRANCH}]", f"http://other:1 [{BRANCH}]"
    )
    assert _verify([first, naive]) == [
        ChainBreak(2, BreakKind.HASH, "fields that can be hashed", "a time without a time zone cannot be hashed")
    ]
    (found,) = _verify([first, huge])
    assert (found.position, found.kind, found.expected) == (2, BreakKind.HASH, "fields that can be hashed")
    assert found.found.startswith("event 2 has a number that does not fit its field: ")
