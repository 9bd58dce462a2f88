"""How often Python searches its heap for cycles while a plan is made."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_NEW_OBJECTS = 200_000
_MIDDLE, _OLD = 20, 100


@contextmanager
def seldom_searched() -> Iterator[None]:
    """Search for cycles once in 200,000 new objects, not once in 700.

    Planning builds a heap of millions of records, which have no cycles and stay until the plan is written. Searching
    it as it grows takes a quarter of the time. The search is not switched off: what else runs in the process may make
    cycles. The setting is the process's own; it is put back at the end.
    """
    before = gc.get_threshold()
    if before[0] > 0:  # zero: whoever set it does not want any search
        gc.set_threshold(max(before[0], _NEW_OBJECTS), _MIDDLE, _OLD)
    try:
        yield
    finally:
        gc.set_threshold(*before)
