"""Stretches of applied operations of one run, checked as a whole.

A log of a million events is mostly these, one like the other. Where a stretch holds, nothing of it is made into an
event: every check is one comparison of columns. Where anything about it is otherwise, nothing is decided here, and
each of its events goes the way of all others, which knows what to say.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from itertools import repeat

from ledger.chain import ChainVerifier
from ledger.events import SCHEMA_VERSION, StoredEvent
from ledger.hashed_event import FORMAT, event_of, prefixed

_BODY = re.compile(
    rb'\{"duration_ms":(?:0|[1-9][0-9]{0,17}),"node_id":"[ !#-\[\]-~]*","note":null,"sent_ms":(?:0|[1-9][0-9]{0,17})\}'
)
"""A body of ``operation.applied`` as nearly all are: plain numbers and an id of printable ASCII without anything that
JSON escapes. What matches is valid and canonical; what does not is looked at field by field."""

APPLIED = "operation.applied"
_MARK = prefixed(APPLIED) + struct.pack(">Qi", 4, SCHEMA_VERSION) + struct.pack(">Q", 8)
"""Kind, version, and the length of an epoch, as they stand behind the event's id."""
_ID_SIZE = len("op_0123456789abcdef")
_ID_LENGTH = struct.pack(">Q", _ID_SIZE)
_EIGHT, _SIXTEEN = struct.pack(">Q", 8), struct.pack(">Q", 16)
_FIRST_ATTEMPT = struct.pack(">QiQ", 4, 1, 8)
"""With the length of the time behind it."""
_TIMES = (-62_135_596_800_000_000, 253_370_764_800_000_000)
"""Microseconds since 1970 between which every calendar here goes."""
_LENGTH = struct.Struct(">Q").unpack_from
_EPOCH = struct.Struct(">q").unpack_from


def is_plain_body(body: bytes) -> bool:
    """Whether a body of ``operation.applied`` is certainly valid and canonical."""
    return _BODY.fullmatch(body) is not None


@dataclass(frozen=True, slots=True)
class Stretch:
    """Applied operations of one run, one behind the other in the log and in the plan.

    Attributes:
        run_id: the run.
        writer_epoch: of all of them.
        first_position: of the first one.
        first_ordinal: its place in the plan.
        operations: their ids, each of 19 bytes.
        hashes: of the events, which is what they hash to.
        hashed: the bytes of the events.
    """

    run_id: str
    writer_epoch: int
    first_position: int
    first_ordinal: int
    operations: Sequence[bytes]
    hashes: Sequence[bytes]
    hashed: Sequence[bytes]

    @property
    def last_position(self) -> int:
        """Of the last one."""
        return self.first_position + len(self.hashes) - 1

    def event(self, number: int) -> StoredEvent:
        """One of its events."""
        return event_of(self.hashed[number], self.hashes[number])


class PlainEvents:
    """Finds stretches among the hashed bytes of a binding's events."""

    def __init__(self, url: str, branch: str) -> None:
        self._named = prefixed(url) + prefixed(branch)
        self._mark_at = 33 + len(self._named) + 16 + 24

    def marks(self, hashed: Sequence[bytes]) -> list[bool]:
        """Of each event whether it may be part of a stretch."""
        start, end = self._mark_at, self._mark_at + len(_MARK)
        return [data[start:end] == _MARK for data in hashed]

    def stretch(self, hashed: Sequence[bytes], hashes: Sequence[bytes], after: ChainVerifier) -> Stretch | None:
        """The stretch that these events are, every check passed; None where they are none.

        Args:
            hashed: the bytes of some events with marks, in order.
            hashes: what is stored as their hashes.
            after: where the chain is in front of them.
        """
        try:
            layout = self._layout_of(hashed[0])
            columns = zip(*map(layout.struct.unpack_from, hashed), strict=True)
            formats, links, names, positions, id_lengths, heads, operations, *behind = columns
        except (struct.error, UnicodeDecodeError):
            return None
        lengths, ordinals, attempts, moments, sizes = behind
        count = len(hashed)
        computed = [sha256(data).digest() for data in hashed]
        constants = (
            (formats, FORMAT), (names, layout.names), (id_lengths, _SIXTEEN), (heads, layout.head), (lengths, _EIGHT),
            (attempts, _FIRST_ATTEMPT),
        )  # fmt: skip
        if not (
            computed == list(hashes)
            and links == (after.head, *computed[:-1])
            and positions == tuple(range(after.position + 1, after.position + 1 + count))
            and all(column.count(value) == count for column, value in constants)
            and ordinals == tuple(range(ordinals[0], ordinals[0] + count))
            and ordinals[0] >= 0
            and _TIMES[0] < min(moments) <= max(moments) < _TIMES[1]
            and list(sizes) == [len(data) - layout.struct.size for data in hashed]
            and all(map(_BODY.fullmatch, hashed, repeat(layout.struct.size)))
        ):
            return None
        return Stretch(layout.run_id, layout.epoch, positions[0], ordinals[0], operations, computed, hashed)

    def _layout_of(self, data: bytes) -> _Layout:
        """How the events of one run are laid out: all fields but the body have the same size."""
        size_at = self._mark_at + len(_MARK) + 8
        (size,) = _LENGTH(data, size_at)
        head = data[self._mark_at : size_at + 8 + size]
        if size > 128 or not head.startswith(_MARK):
            raise struct.error("no event of a stretch")
        return _layout(self._named, head)


@dataclass(frozen=True, slots=True)
class _Layout:
    """Where the fields are, and what those hold that are the same in all events of a stretch: ``names`` with the
    length of the position behind it, ``head`` from the kind to the length of the operation's id.
    """

    run_id: str
    epoch: int
    names: bytes
    head: bytes
    struct: struct.Struct


@lru_cache(maxsize=64)
def _layout(named: bytes, head: bytes) -> _Layout:
    run_id, (epoch,) = head[len(_MARK) + 16 :].decode(), _EPOCH(head, len(_MARK))
    names, whole = named + _EIGHT, head + _ID_LENGTH
    fields = struct.Struct(f">s32s{len(names)}sq8s16x{len(whole)}s{_ID_SIZE}s8sq20sqQ")
    return _Layout(run_id, epoch, names, whole, fields)
