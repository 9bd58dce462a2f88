"""How values look on a page: numbers, times, names that anybody may have chosen. Autoescape is on, and stays on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from ledger.dashboard.assets import Assets
from ledger.dashboard.states import described, tone, word
from ledger.printable import visible, words

FOLDER = Path(__file__).parent / "templates"
NOTHING = "–"
WHOLE = 200_000
"""Characters of a value that a page shows on demand; more than that is for the API."""


def new_environment(assets: Assets) -> Environment:
    """Templates with every filter that they use; a name that is not given is an error and not an empty text."""
    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        cache_size=200,
    )
    environment.filters |= {
        "number": number,
        "moment": moment_text,
        "iso": iso_text,
        "duration": duration,
        "local": local_text,
        "shown": words,
        "whole": whole,
        "value": value_text,
        "tone": tone,
        "word": word,
        "described": described,
    }
    environment.globals |= {"asset": assets.url, "href": href, "ago": ago, "elapsed": elapsed}
    return environment


def number(value: int | None) -> str:
    """With thousands separators; nothing known is a dash."""
    return NOTHING if value is None else f"{value:,}"


def moment(value: datetime | str) -> datetime:
    """A time of the ledger, in UTC."""
    return (datetime.fromisoformat(value) if isinstance(value, str) else value).astimezone(UTC)


def moment_text(value: datetime | str) -> str:
    """To the second, with its zone."""
    return moment(value).strftime("%Y-%m-%d %H:%M:%S UTC")


def iso_text(value: datetime | str) -> str:
    """Whole, for machines and for who looks closer."""
    return moment(value).isoformat(timespec="microseconds")


def local_text(value: datetime) -> str:
    """As a field for a time wants it, to the thousandths of a second that it can hold; without its zone, UTC."""
    when = moment(value).replace(tzinfo=None)
    return when.isoformat(timespec="milliseconds" if when.microsecond else "seconds" if when.second else "minutes")


def elapsed(begin: datetime | str, end: datetime | str) -> float:
    """Seconds between two times."""
    return max(0.0, (moment(end) - moment(begin)).total_seconds())


def ago(value: datetime | str, now: datetime) -> str:
    """How long before ``now`` something was; what a clock ahead of ours says is "just now"."""
    seconds = max(0.0, (now - moment(value)).total_seconds())
    return "just now" if seconds < 1 else f"{duration(seconds)} ago"


_UNITS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def duration(seconds: float | None) -> str:
    """Two units at most: ``3 h 12 min``, ``4.2 s``, ``870 ms``."""
    if seconds is None:
        return NOTHING
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 10:
        return f"{seconds:.1f} s"
    rest = round(seconds)
    parts: list[str] = []
    for size, unit in _UNITS:
        count, rest = divmod(rest, size)
        if count or parts:
            parts.append(f"{count:,} {unit}" if count else "")
        if len(parts) == 2:
            break
    return " ".join(part for part in parts if part)


def whole(text: str) -> str:
    """A text that was cut, whole: with what is invisible made visible, and an end all the same."""
    return words(text, WHOLE)


def value_text(value: Any) -> str:
    """A value of a plan: text as it is, everything else as JSON."""
    return value if isinstance(value, str) else visible(json.dumps(value, ensure_ascii=False))


def href(path: str, segments: Mapping[str, Any] | None = None, **query: Any) -> str:
    """An address of this server: segments for ``{…}`` in ``path``, and the query parameters that are something."""
    for key, value in (segments or {}).items():
        path = path.replace("{" + key + "}", quote(str(value), safe=""))
    given = {key: _parameter(value) for key, value in query.items() if value not in (None, "")}
    return f"{path}?{urlencode(given)}" if given else path


def _parameter(value: Any) -> str:
    return iso_text(value) if isinstance(value, datetime) else str(value)
