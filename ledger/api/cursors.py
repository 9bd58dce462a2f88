"""Opaque cursors: where a list goes on, for the very list and filters that they were handed out for.

A cursor holds nothing that its bearer may not read, so it is checked and not signed: its checksum tells a cut or edited
one from ours, the digest of list and filters one that belongs elsewhere, and the types of its parts the rest.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from ledger.api.errors import InvalidCursorError
from ledger.api.moments import in_utc

MAX_LENGTH = 1024
_VERSION = 1
_CHECK = 8
_LARGEST = 2**63 - 1

Part = int | str | datetime


def new_cursor(scope: Sequence[Any], parts: Sequence[Part]) -> str:
    """A cursor for one list.

    Args:
        scope: the list's name and its filters.
        parts: the key behind which the list goes on.
    """
    values = [part.isoformat() if isinstance(part, datetime) else part for part in parts]
    payload = json.dumps([_VERSION, _digest(scope), *values], separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(_check(payload) + payload).rstrip(b"=").decode()


def read_cursor(cursor: str, scope: Sequence[Any], kinds: Sequence[type[Part]]) -> tuple[Any, ...]:
    """The key in a cursor.

    Args:
        cursor: as it came.
        scope: as it was made with.
        kinds: the types of its parts.

    Raises:
        InvalidCursorError: it is none of this list with these filters.
    """
    try:
        if len(cursor) > MAX_LENGTH:
            raise ValueError(cursor)
        data = base64.b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        payload = data[_CHECK:]
        if data[:_CHECK] != _check(payload):
            raise ValueError(cursor)
        version, digest, *values = json.loads(payload)
        if (version, digest, len(values)) != (_VERSION, _digest(scope), len(kinds)):
            raise ValueError(cursor)
        return tuple(_part(value, kind) for value, kind in zip(values, kinds, strict=True))
    except (ValueError, TypeError, RecursionError, binascii.Error):
        raise InvalidCursorError(
            checked="the parameter cursor",
            expected="a value of `next` of this list, with the same filters",
            found="another one",
            next_action="begin again without a cursor",
        ) from None


def _part(value: Any, kind: type[Part]) -> Part:
    if kind is datetime:
        return in_utc(datetime.fromisoformat(value))
    if type(value) is not kind or (isinstance(value, int) and not -1 <= value <= _LARGEST):
        raise ValueError(value)
    if isinstance(value, str) and b"\0" in value.encode():  # half of a surrogate pair is a ValueError too
        raise ValueError(value)
    return value


def _digest(scope: Sequence[Any]) -> str:
    return hashlib.sha256(json.dumps(scope, separators=(",", ":"), default=str).encode()).hexdigest()[:16]


def _check(payload: bytes) -> bytes:
    return hashlib.sha256(b"apply-ledger cursor" + payload).digest()[:_CHECK]
