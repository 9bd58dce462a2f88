"""The lines of a stored plan, hashed, and compared with the columns by which they are looked up."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from hashlib import sha256
from typing import Any

from ledger.audit.bodies import parsed
from ledger.audit.outcome_order import planned_record
from ledger.audit.source import AuditSource, HashedSource
from ledger.plan.canonical import canonical_json_bytes

Page = tuple[Sequence[bytes], Sequence[bytes], Sequence[bytes]]
"""Lines, operation ids, object keys."""

_PAGE = 5000
_TEXT = rb'"[ !#-\[\]-~]*"'
_PLAIN = re.compile(
    rb'^\{"action":"(create|update|delete)",(?:"destination_id":%(text)s,)?'
    rb'"identity":(\{(?:%(text)s:(?:%(text)s|-?[0-9]+|true|false|null),?)+\}),'
    rb'"kind":(%(text)s),"operation_id":"([ !#-\[\]-~]*)",.*\n' % {b"text": _TEXT},
    re.MULTILINE,
)
"""A line whose identity holds nothing but plain values, in printable ASCII without anything that JSON escapes, as the
lines of most plans do. Its pieces are then the canonical bytes of what they say."""


async def planned_pages(source: AuditSource, checksum: str) -> AsyncIterator[Page]:
    """A stored plan in pages.

    Raises:
        PlanNotStoredError: no plan has this checksum.
    """
    if isinstance(source, HashedSource):
        async with aclosing(source.planned_pages(checksum)) as pages:
            async for found in pages:
                yield found
        return
    page: list[tuple[bytes, bytes, bytes]] = []
    async for stored in source.stored_operations(checksum):
        page.append((stored.line, stored.operation_id.encode(), stored.object_key))
        if len(page) == _PAGE:
            yield _columns(page)
            page = []
    if page:
        yield _columns(page)


Told = tuple[Sequence[bytes], Sequence[bytes], Sequence[bytes]]
"""What lines say of themselves: operation ids, object keys (a word if there is none), and what their successes
record."""


def told_by(lines: Sequence[bytes], data: bytes) -> Told:
    """What some lines say; ``data`` is all of them, one behind the other."""
    found = _PLAIN.findall(data)
    ends = [line[-1:] for line in lines]
    # As many matches as lines, and each line is one: then each match is one line, whole.
    if len(found) == len(lines) == data.count(b"\n") == ends.count(b"\n"):
        keys = [sha256(b"[%b,%b]" % (kind, identity)).digest() for _, identity, kind, _ in found]
        return [name for *_, name in found], keys, [planned_record(name, action) for action, _, _, name in found]
    told = [_told(line) for line in lines]
    return [name for name, _, _ in told], [key for _, key, _ in told], [record for *_, record in told]


def _told(line: bytes) -> tuple[bytes, bytes, bytes]:
    # An unreadable line has no id; that it was changed shows in the hash anyway, and so does another spelling.
    record = parsed(line)
    record = record if isinstance(record, dict) else {}
    name = str(record.get("operation_id")).encode("utf-8", "surrogatepass")
    action = str(record.get("action")).encode("utf-8", "surrogatepass")
    return name, _key_of(record), planned_record(name, action)


def _columns(page: Sequence[tuple[bytes, bytes, bytes]]) -> Page:
    lines, names, keys = zip(*page, strict=True)
    return lines, names, keys


def _key_of(record: dict[str, Any]) -> bytes:
    """The object key of a line's kind and identity, or a word where it has none."""
    kind, identity = record.get("kind"), record.get("identity")
    if not isinstance(kind, str) or not isinstance(identity, dict):
        return b"none"
    try:
        # An identity of a plan's line is canonical as it stands; of one that is not, the line is no plan's.
        return sha256(canonical_json_bytes([kind, identity])).digest()
    except (TypeError, ValueError, RecursionError):
        return b"none"
