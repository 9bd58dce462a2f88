"""An event of the ledger as a message: a reader of the topic alone can verify the chain (G8).

The body is the very bytes that were stored and hashed. Everything else that the hash covers is in key and headers:
the key names the binding, headers hold the rest beside the attributes of CloudEvents in Kafka's binary mode. A field
that the event does not have has no header.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import ClassVar

from ledger.binding import DestinationBinding
from ledger.commit_message import CLOUD_EVENTS_VERSION, CONTENT_TYPE, Headers, Message, message_key
from ledger.errors import ApplyLedgerError, ConfigurationError
from ledger.events import StoredEvent
from ledger.exit_codes import ExitCode
from ledger.plan.decode import decode_json
from ledger.plan.errors import JsonDocumentError

EVENT_TYPE = "apply-ledger.event.v1"
"""``ce_type``: how key, headers and body are made up. What is in the body says ``ledger_kind``."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_NUMBER = re.compile(rb"0|[1-9][0-9]{0,18}")
_HASH = re.compile(rb"[0-9a-f]{64}")

HEADERS: Mapping[str, str] = {
    "ce_specversion": "version of CloudEvents: 1.0",
    "ce_type": f"{EVENT_TYPE}: how this message is made up",
    "ce_id": "id of the event, a UUID that follows from what it is about",
    "ce_source": "url of the destination",
    "ce_time": "when it was recorded, by the database's clock",
    "content-type": CONTENT_TYPE,
    "ledger_kind": "kind of the event; says what the body is",
    "ledger_schema_version": "version of that kind of body",
    "ledger_position": "place in the log of the binding, from 1, without gaps",
    "ledger_recorded_at": "ce_time in microseconds since 1970, as it is hashed",
    "ledger_prev_hash": "hash of the event before, 64 zeros before the first",
    "ledger_hash": "sha256 over the event and the hash before it",
}
"""Headers that every event has."""

OPTIONAL_HEADERS: Mapping[str, str] = {
    "ledger_epoch": "epoch of the writer that appended it",
    "ledger_run_id": "run that it belongs to",
    "ledger_operation_id": "operation of that run",
    "ledger_ordinal": "place of that operation in its plan, from 0",
    "ledger_attempt": "attempt at that operation, from 1",
}
"""Headers of events that have what they say."""


class UnreadableEventMessageError(ApplyLedgerError):
    """A message on the topic of events is not an event of the relay."""

    exit_code: ClassVar[ExitCode] = ExitCode.TAMPERED


def encode_event(event: StoredEvent) -> Message:
    """The message for a stored event."""
    texts: dict[str, str | None] = {
        "ce_specversion": CLOUD_EVENTS_VERSION,
        "ce_type": EVENT_TYPE,
        "ce_id": str(event.event_id),
        "ce_source": event.url,
        "ce_time": event.recorded_at.isoformat(timespec="microseconds"),
        "content-type": CONTENT_TYPE,
        "ledger_kind": event.kind,
        "ledger_schema_version": str(event.schema_version),
        "ledger_position": str(event.position),
        "ledger_recorded_at": str((event.recorded_at - _EPOCH) // _MICROSECOND),
        "ledger_prev_hash": event.prev_hash.hex(),
        "ledger_hash": event.hash.hex(),
        "ledger_epoch": _told(event.writer_epoch),
        "ledger_run_id": event.run_id,
        "ledger_operation_id": event.operation_id,
        "ledger_ordinal": _told(event.ordinal),
        "ledger_attempt": _told(event.attempt),
    }
    return Message(
        _key(event.url, event.branch),
        event.body,
        tuple((name, text.encode()) for name, text in texts.items() if text is not None),
    )


def decode_event(key: bytes | None, value: bytes | None, headers: Headers) -> StoredEvent:
    """The event that a message carries, as it claims to be; whether it is what was appended says its hash.

    Raises:
        UnreadableEventMessageError: the message is no event.
    """
    if key is None or value is None:
        raise _unreadable("key and body", "both", "one is missing")
    if _text(headers, "ce_type") != EVENT_TYPE:
        raise _unreadable("the header ce_type", EVENT_TYPE, "another value")
    binding = _binding(key)
    return StoredEvent(
        url=binding.url,
        branch=binding.branch,
        position=_required_number(headers, "ledger_position"),
        event_id=_uuid(headers),
        kind=_text(headers, "ledger_kind"),
        schema_version=_required_number(headers, "ledger_schema_version"),
        run_id=_optional_text(headers, "ledger_run_id"),
        operation_id=_optional_text(headers, "ledger_operation_id"),
        ordinal=_number(headers, "ledger_ordinal"),
        attempt=_number(headers, "ledger_attempt"),
        writer_epoch=_number(headers, "ledger_epoch"),
        recorded_at=_moment(headers),
        body=value,
        prev_hash=_hash(headers, "ledger_prev_hash"),
        hash=_hash(headers, "ledger_hash"),
    )


@lru_cache(maxsize=256)  # one event after the other has the same
def _key(url: str, branch: str) -> bytes:
    return message_key(DestinationBinding(url=url, branch=branch))


def _told(number: int | None) -> str | None:
    return None if number is None else str(number)


def _unreadable(what: str, expected: str, found: str) -> UnreadableEventMessageError:
    return UnreadableEventMessageError(
        checked=what,
        expected=expected,
        found=found,
        next_action="find out which other program writes to this topic; only the relay may",
    )


def _binding(key: bytes) -> DestinationBinding:
    try:
        names = decode_json(key, what="the key of the message")
    except JsonDocumentError:
        names = None
    if isinstance(names, list) and len(names) == 2 and all(isinstance(name, str) for name in names):
        binding = DestinationBinding(url=names[0], branch=names[1])
        try:
            if message_key(binding) == key:
                return binding
        except ConfigurationError:
            pass  # the url is none: told below
    raise _unreadable("the key of the message", "url and branch of a destination, normalised", "something else")


def _header(headers: Headers, name: str) -> bytes | None:
    values = [value for found, value in headers if found == name]
    if len(values) > 1:
        raise _unreadable(f"the header {name}", "at most one", f"{len(values)}")
    return values[0] if values else None


def _optional_text(headers: Headers, name: str) -> str | None:
    value = _header(headers, name)
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        raise _unreadable(f"the header {name}", "text in UTF-8", "bytes that are not valid") from None


def _text(headers: Headers, name: str) -> str:
    text = _optional_text(headers, name)
    if text is None:
        raise _unreadable(f"the header {name}", "one", "none")
    return text


def _number(headers: Headers, name: str) -> int | None:
    value = _header(headers, name)
    if value is not None and not _NUMBER.fullmatch(value):
        raise _unreadable(f"the header {name}", "a whole number", "something else")
    return None if value is None else int(value)


def _required_number(headers: Headers, name: str) -> int:
    number = _number(headers, name)
    if number is None:
        raise _unreadable(f"the header {name}", "one", "none")
    return number


def _hash(headers: Headers, name: str) -> bytes:
    value = _header(headers, name)
    if value is None or not _HASH.fullmatch(value):
        raise _unreadable(f"the header {name}", "a sha256 in lower case", "something else")
    return bytes.fromhex(value.decode())


def _uuid(headers: Headers) -> uuid.UUID:
    text = _text(headers, "ce_id")
    try:
        return uuid.UUID(text)
    except ValueError:
        raise _unreadable("the header ce_id", "a UUID", "something else") from None


def _moment(headers: Headers) -> datetime:
    try:
        return _EPOCH + _required_number(headers, "ledger_recorded_at") * _MICROSECOND
    except OverflowError:
        raise _unreadable("the header ledger_recorded_at", "a time before the year 10000", "a later one") from None
