"""Places in a log, as people name them: by position, or by a time.

Positions are the order of a log; times are those of the database's clock when each event was recorded. A time is found
by halving, some twenty look-ups in a log of a million events. Where that clock was once set back, times are no longer
in order and a time names one of several places; positions always name one.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

from ledger.errors import UsageError
from ledger.store.ledger import Ledger
from ledger.store.records import BindingRow

_TO_THE_SECOND = re.compile(r"[T ]\d\d:\d\d:\d\d(?![.,\d])")

Place = int | datetime
"""A position, or a moment with its zone."""


def place_of(text: str, *, option: str, ends: bool = False) -> Place:
    """Read a place.

    Args:
        text: digits are a position; else a date or time in ISO 8601, in UTC where it names no zone.
        option: whose value it is, for the refusal.
        ends: whether the place ends what is read: then a time to the second is that whole second, because tables show
            times like that, and whoever copies one means the event that it stands beside.

    Raises:
        UsageError: it is neither.
    """
    if text.isascii() and text.isdigit() and len(text) < 19:
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
        if ends and _TO_THE_SECOND.search(text):
            moment = moment.replace(microsecond=999_999)
        return (moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment).astimezone(UTC)
    except (ValueError, OverflowError):  # an OverflowError: no year of UTC
        raise UsageError(
            checked=option,
            expected="a position, or a time such as 2026-11-29, 2026-11-29T18:05 or 2026-11-29T18:05:00+01:00",
            found=text,
            next_action="`apply-ledger replay` shows positions and times",
        ) from None


async def last_position(ledger: Ledger, row: BindingRow, place: Place | None) -> int:
    """The position of the last event that had happened at a place; 0 where none had.

    Args:
        ledger: open, with any role that may read.
        row: the binding, whose head bounds what is looked at.
        place: None is the head.
    """
    if place is None:
        return row.head_position
    if isinstance(place, int):
        return min(place, row.head_position)
    return await _count(ledger, row, place, inclusive=True)


async def before(ledger: Ledger, row: BindingRow, place: Place | None) -> int:
    """The position of the last event in front of a place, so that reading after it begins there."""
    if place is None:
        return 0
    if isinstance(place, int):
        return max(place - 1, 0)
    return await _count(ledger, row, place, inclusive=False)


async def _count(ledger: Ledger, row: BindingRow, moment: datetime, *, inclusive: bool) -> int:
    """How many events were recorded before a moment, or at it."""
    low, high = 0, row.head_position
    while low < high:
        middle = (low + high + 1) // 2
        recorded = await ledger.recorded_at(row.id, middle)
        if recorded is not None and (recorded <= moment if inclusive else recorded < moment):
            low = middle
        else:
            high = middle - 1
    return low
