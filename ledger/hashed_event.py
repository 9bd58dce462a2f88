"""The binary encoding of an event over which its hash is computed, and its decoding (G8).

Every field with its length before it, in one order, so that no two events have the same bytes. Written from the
description of the chain, like its verifier.
"""

from __future__ import annotations

import struct
import uuid
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from ledger.events import StoredEvent

FORMAT = b"\x01"
ABSENT = b"\xff" * 8
_LENGTH = struct.Struct(">Q")
_INT, _LONG = struct.Struct(">Qi").pack, struct.Struct(">Qq").pack
_PLACE = struct.Struct(">QqQ16s").pack
"""Numbers with the length before each."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def hashed_bytes(event: StoredEvent) -> bytes:
    """What the hash of an event is taken over: its fields and its own ``prev_hash``.

    Raises:
        ValueError: ``recorded_at`` has no time zone, or a number does not fit its field.
    """
    try:
        return b"".join(
            (
                FORMAT,
                event.prev_hash,
                prefixed(event.url),
                prefixed(event.branch),
                _PLACE(8, event.position, 16, event.event_id.bytes),
                prefixed(event.kind),
                _INT(4, event.schema_version),
                ABSENT if event.writer_epoch is None else _LONG(8, event.writer_epoch),
                ABSENT if event.run_id is None else prefixed(event.run_id),
                ABSENT if event.operation_id is None else _text(event.operation_id),
                ABSENT if event.ordinal is None else _LONG(8, event.ordinal),
                ABSENT if event.attempt is None else _INT(4, event.attempt),
                _LONG(8, microseconds(event.recorded_at)),
                _LENGTH.pack(len(event.body)),
                event.body,
            )
        )
    except struct.error as exc:
        raise ValueError(f"event {event.position} has a number that does not fit its field: {exc}") from exc


def event_of(hashed: bytes, own_hash: bytes) -> StoredEvent:
    """The event whose hashed bytes these are; ``own_hash`` is the hash that is stored with it.

    Raises:
        ValueError: bytes that are no event's.
        OverflowError: a time that no calendar here has.
    """
    fields = _Fields(hashed)
    prev_hash, url, branch = fields.bare(33)[1:], fields.text(), fields.text()
    position, event_id, kind = fields.number(), uuid.UUID(bytes=fields.some() or b""), fields.text()
    schema_version, epoch, run_id, operation_id = fields.number(), fields.number(), fields.text(), fields.text()
    ordinal, attempt, moment, body = fields.number(), fields.number(), fields.number(), fields.some()
    if None in (url, branch, position, kind, schema_version, moment, body) or hashed[:1] != FORMAT or fields.left():
        raise ValueError("these bytes are not those of an event")
    return StoredEvent(
        url or "",
        branch or "",
        position or 0,
        event_id,
        kind or "",
        schema_version or 0,
        run_id,
        operation_id,
        ordinal,
        attempt,
        epoch,
        _EPOCH + timedelta(microseconds=moment or 0),
        body or b"",
        prev_hash,
        own_hash,
    )


def position_of(hashed: bytes) -> int:
    """The position of the event whose hashed bytes these are.

    Raises:
        ValueError: bytes that are no event's.
    """
    fields = _Fields(hashed)
    fields.bare(33)
    fields.some()
    fields.some()
    return fields.number() or 0


def microseconds(moment: datetime) -> int:
    """Whole microseconds since 1970 in UTC, by integer arithmetic.

    Raises:
        ValueError: a time without a zone, which could mean anything.
    """
    if moment.tzinfo is None:
        raise ValueError("a time without a time zone cannot be hashed")
    since = moment - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


class _Fields:
    """Reads one field after the other."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def bare(self, size: int) -> bytes:
        """So many bytes without a length before them."""
        found = self._data[self._at : self._at + size]
        if len(found) != size:
            raise ValueError("these bytes end before the event does")
        self._at += size
        return found

    def some(self) -> bytes | None:
        """A field, or None where it is absent."""
        length = self.bare(8)
        return None if length == ABSENT else self.bare(_LENGTH.unpack(length)[0])

    def text(self) -> str | None:
        found = self.some()
        return None if found is None else found.decode()

    def number(self) -> int | None:
        found = self.some()
        return None if found is None else int.from_bytes(found, "big", signed=True)

    def left(self) -> bool:
        return self._at != len(self._data)


def _text(value: str) -> bytes:
    data = value.encode()
    return _LENGTH.pack(len(data)) + data


prefixed = lru_cache(maxsize=256)(_text)
"""A text with its length before it, for texts that one event after the other repeats."""
