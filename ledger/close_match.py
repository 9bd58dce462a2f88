"""Finds the known name that a mistyped name may have been meant for."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_CLOSE = 0.75
"""A swapped or missing letter is closer than this; ``description`` and ``destination`` are not."""

_LONGEST = 80
"""Characters: what is longer is no slip of the hand, and comparing costs the square of it."""


_SHORTEST = 3
"""Characters from which on a name may be a part of the known one: ``dir`` for ``directory``, ``Device`` for a kind."""


def with_close_match(name: str, known: Iterable[str]) -> str:
    """``name``, followed by the known name that is closest to it, where one is close.

    Where none is close, the one known name that begins or ends with it, whatever the case.
    """
    names = list(known)
    if len(name) > _LONGEST:
        return name
    close = difflib.get_close_matches(name, names, n=1, cutoff=_CLOSE) or _longer_forms(name, names)
    return f"{name} (did you mean {close[0]}?)" if len(close) == 1 else name


def _longer_forms(name: str, known: Iterable[str]) -> list[str]:
    part = name.casefold()
    if len(part) < _SHORTEST:
        return []
    return [each for each in known if each.casefold().startswith(part) or each.casefold().endswith(part)]
