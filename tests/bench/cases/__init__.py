"""All cases, in the order in which they run. A new one is a module here with a ``CASE``, and a line below."""

from __future__ import annotations

from tests.bench.cases import append, replay
from tests.bench.frame import Case

CASES: tuple[Case, ...] = (append.CASE, replay.CASE)
