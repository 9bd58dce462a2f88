"""Times in questions: with a zone, and ones that exist in UTC, which is what everything behind them reckons in."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime


def in_utc(moment: datetime) -> datetime:
    """The same moment in UTC.

    Raises:
        ValueError: it has no zone, or UTC has no such year: what lies a zone's offset before year 1 or behind 9999.
    """
    if moment.tzinfo is None:
        raise ValueError("it has no zone")
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("in UTC it is before year 1 or behind year 9999") from None


UtcMoment = Annotated[AwareDatetime, AfterValidator(in_utc)]
"""A parameter that is a time; converted where it comes in, so that nothing behind it meets one that cannot be."""
