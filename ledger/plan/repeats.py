"""Which of millions of numbers occur more than once, in memory that does not grow with Python objects."""

from __future__ import annotations

from array import array
from collections import Counter
from typing import Final

_PART: Final = 250_000
"""So many numbers are looked at together; each is a Python object for that long only."""


def number_array() -> array[int]:
    """An empty array of unsigned 64-bit numbers: eight bytes for each."""
    return array("Q")


def repeated(values: array[int], *, at_once: int = _PART) -> set[int]:
    """The numbers that occur at least twice; about ``at_once`` of them are looked at together."""
    parts = len(values) // at_once + 1
    found: set[int] = set()
    for part in range(parts):
        some = [value for value in values if value % parts == part] if parts > 1 else values
        if len(set(some)) < len(some):
            found.update(value for value, times in Counter(some).items() if times > 1)
    return found
