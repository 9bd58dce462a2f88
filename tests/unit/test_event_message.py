"""An event as a message: nothing that the hash covers is lost on the way, and the topic alone shows every change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.audit.errors import LedgerTamperedError
from ledger.audit.topic import TopicAudit
from ledger.chain import GENESIS, event_hash
from ledger.commit_message import Message
from ledger.event_message import (
    HEADERS,
    OPTIONAL_HEADERS,
    UnreadableEventMessageError,
    decode_event,
    encode_event,
)
from ledger.events import StoredEvent
from ledger.exit_codes import ExitCode
from ledger.store.records import MessagePlace
from tests.support.events import EventLog

pytestmark = pytest.mark.rules("G8")

LOG = EventLog()
LOG.commit(2)
LOG.started(2)
LOG.applied(0)
LOG.unknown(1)
LOG.applied(1, attempt=2)
LOG.ended("run.applied")
EVENTS = LOG.events


def decoded(message: Message) -> StoredEvent:
    return decode_event(message.key, message.value, message.headers)


def audited(events: list[StoredEvent], *, change: Callable[[Message], Message] = lambda message: message) -> TopicAudit:
    audit = TopicAudit()
    for offset, event in enumerate(events):
        message = change(encode_event(event))
        audit.feed(MessagePlace("ledger-events", 0, offset), message.key, message.value, message.headers)
    return audit


def test_g08_the_hash_of_an_event_can_be_computed_from_its_message_alone() -> None:
    for event in EVENTS:
        message = encode_event(event)
        assert message.value == event.body
        assert decoded(message) == event
        assert event_hash(decoded(message)) == event.hash
        names = [name for name, _ in message.headers]
        assert set(HEADERS) <= set(names) <= {*HEADERS, *OPTIONAL_HEADERS}
        assert len(names) == len(set(names))


def test_g08_repeats_and_a_late_relay_change_nothing() -> None:
    audit = audited([*EVENTS[:4], *EVENTS[1:], *EVENTS[:2]])
    assert audit.holds
    (found,) = [binding.document() for binding in audit.bindings.values()]
    assert (found["events"], found["repeats"], found["head_position"], found["head_hash"]) == (
        6,
        5,
        6,
        EVENTS[-1].hash.hex(),
    )


@pytest.mark.parametrize(
    ("events", "position", "kind"),
    [
        (EVENTS[1:], 2, "gap"),
        ([*EVENTS[:2], *EVENTS[3:]], 4, "gap"),
        ([*EVENTS[:3], EVENTS[3]._replace(body=b"{}"), *EVENTS[4:]], 4, "hash"),
        ([*EVENTS[:3], EVENTS[3]._replace(attempt=9), *EVENTS[4:]], 4, "hash"),
        ([*EVENTS, EVENTS[2]._replace(body=b"{}")], 3, "repetition"),
        ([*EVENTS, EVENTS[2]._replace(hash=GENESIS)], 3, "repetition"),
        ([*EVENTS[:2], EVENTS[2]._replace(position=10**18)], 10**18, "gap"),
        ([EVENTS[0]._replace(schema_version=10**18)], 1, "hash"),
        ([*EVENTS, EVENTS[0]._replace(schema_version=10**18)], 1, "repetition"),
    ],
)
def test_g08_a_break_is_told_with_its_position_and_kind(events: list[StoredEvent], position: int, kind: str) -> None:
    audit = audited(events)
    (found,) = [binding.document() for binding in audit.bindings.values()]
    assert (found["holds"], found["first_break_position"], found["first_break_kind"]) == (False, position, kind)
    with pytest.raises(LedgerTamperedError) as refused:
        audit.require_intact()
    assert refused.value.exit_code == ExitCode.TAMPERED


def _without(name: str) -> Callable[[Message], Message]:
    return lambda message: replace(message, headers=tuple(pair for pair in message.headers if pair[0] != name))


def _with(name: str, value: bytes) -> Callable[[Message], Message]:
    return lambda message: replace(message, headers=(*_without(name)(message).headers, (name, value)))


@pytest.mark.rules("G10")
@pytest.mark.parametrize(
    "change",
    [
        *(_without(name) for name in HEADERS if name.startswith("ledger_")),
        _without("ce_id"),
        _with("ce_type", b"apply-ledger.plan-commit.v1"),
        _with("ce_id", b"not a uuid"),
        _with("ledger_position", b"-1"),
        _with("ledger_position", b"01"),
        _with("ledger_recorded_at", b"999999999999999999"),
        _with("ledger_hash", b"AB" * 32),
        _with("ledger_kind", b"\xff"),
        lambda message: replace(message, headers=(*message.headers, ("ledger_position", b"1"))),
        lambda message: replace(message, key=b'["http://x.example:80","main"]'),
        lambda message: replace(message, key=b'["no url","main"]'),
        lambda message: replace(message, key=b"{"),
    ],
)
def test_g10_a_message_that_is_no_event_is_a_finding_and_the_next_one_is_read(
    change: Callable[[Message], Message],
) -> None:
    with pytest.raises(UnreadableEventMessageError):
        decoded(change(encode_event(EVENTS[0])))
    audit = audited(EVENTS[:1], change=change)
    assert (audit.holds, audit.messages, len(audit.findings)) == (False, 1, 1)
    message = encode_event(EVENTS[0])
    audit.feed(MessagePlace("ledger-events", 0, 1), message.key, message.value, message.headers)
    assert len(audit.bindings) == 1


@given(st.binary() | st.none(), st.binary() | st.none(), st.lists(st.tuples(st.sampled_from([*HEADERS]), st.binary())))
def test_g10_no_bytes_at_all_bring_the_reader_down(
    key: bytes | None, value: bytes | None, headers: list[tuple[str, bytes]]
) -> None:
    audit = TopicAudit()
    audit.feed(MessagePlace("ledger-events", 0, 0), key, value, headers)
    assert not audit.holds
