"""``?at=``: a moment at which is to be read. There is no history here, so what is a moment is answered as now."""

from __future__ import annotations

import re
from datetime import UTC, datetime, time, timedelta

_SPANS = {
    "seconds": re.compile(r"(\d+)(s|sec|second|seconds)"),
    "minutes": re.compile(r"(\d+)(m|min|minute|minutes)"),
    "hours": re.compile(r"(\d+)(h|hour|hours)"),
}
"""Found anywhere in the text, as at the server."""


class MomentRefusedError(Exception):
    """A text that names no moment, or one at which there was nothing yet; ``status`` is that of HTTP."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


def check_moment(text: str, *, beginning: str | None, now: datetime) -> None:
    """Refuse what the server refuses of ``?at=``.

    Args:
        text: the moment.
        beginning: when the default branch was made; None where that does not matter.
        now: that spans count back from.

    Raises:
        MomentRefusedError: it is none, or before the beginning.
    """
    moment = _parsed(text, now)
    if moment is None:
        raise MomentRefusedError(f"Invalid time format for {text}", 400)
    if beginning is not None and moment < datetime.fromisoformat(beginning):
        shown = moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        raise MomentRefusedError(f"Requested time '{shown}' is before branch 'main' was created at '{beginning}'.", 422)


def _parsed(text: str, now: datetime) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        found = {name: float(match[1]) for name, span in _SPANS.items() if (match := span.search(text))}
        return now - timedelta(**found) if found else None
    if "T" not in text and " " not in text:
        moment = datetime.combine(moment, time(12))  # a day is taken for its noon
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
