"""Finds the known name that a mistyped name may have been meant for."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_CLOSE = 0.75
"""A swapped or missing letter is closer than this; ``description`` and ``destination`` are not."""

_LONGEST = 80
"""Characters: what is longer is no slip of the hand, and comparing costs the square of it."""


def with_close_match(name: str, known: Iterable[str]) -> str:
    """``name``, followed by the known name that is closest to it, where one is close."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=_CLOSE) if len(name) <= _LONGEST else []
    return f"{name} (did you mean {close[0]}?)" if close else name
