"""Compares a manifest's coverage entry with the bytes: digest and count of each action (design 4.12, H12)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from ledger.plan.coverage import COVERAGE_ACTIONS
from ledger.plan.decode import MAX_LINE_BYTES
from ledger.plan.layout import COVERAGE_FILE, MANIFEST_FILE, shown
from ledger.plan.private_copy import PrivateCopy

_LONGEST = MAX_LINE_BYTES + 1
_BEFORE_ACTION = b'{"action":"'
"""How each canonical coverage line begins: ``action`` sorts before every other key."""


@dataclass(frozen=True, slots=True)
class CoverageProblem:
    """Why the coverage is not the one that the manifest covers."""

    expected: str
    found: str


def coverage_problem(recorded: Any, coverage: PrivateCopy | None) -> CoverageProblem | None:
    """Compare the manifest's ``coverage`` value with the file; None when they agree, or when there is neither.

    Args:
        recorded: the value as decoded, None where the key is absent.
        coverage: the raw file, None if there is none.
    """
    if recorded is None and coverage is None:
        return None
    if recorded is None:
        return CoverageProblem(f"no {COVERAGE_FILE}, as {MANIFEST_FILE} covers none", "a file that nothing vouches for")
    if not isinstance(recorded, dict):
        return CoverageProblem("a digest and counts", shown(recorded))
    expected = f"{COVERAGE_FILE} with digest {shown(recorded.get('digest'))} and the recorded counts"
    if coverage is None:
        return CoverageProblem(expected, "no such file")
    digest = coverage.digest(b"")
    if digest != recorded.get("digest"):
        return CoverageProblem(expected, f"digest {digest}")
    counts = count_actions(coverage)
    if counts is None:
        return CoverageProblem(expected, "a line that is not whole or has none of the five actions")
    # Compared with their types: true is no count.
    stated = recorded.get("counts")
    if not isinstance(stated, dict) or {**stated} != counts or any(type(n) is not int for n in stated.values()):
        return CoverageProblem(expected, f"the counts {', '.join(f'{name} {n}' for name, n in counts.items())}")
    return None


class ActionCounter:
    """Counts lines by their action without decoding them; strict reading is ``ledger.plan.coverage_account``."""

    def __init__(self) -> None:
        self._found: Counter[bytes] = Counter()

    def add(self, line: bytes) -> None:
        """Count one canonical line, newline included; anything else counts as a line without an action."""
        start = len(_BEFORE_ACTION)
        whole = line.startswith(_BEFORE_ACTION) and line.find(b"\n") == len(line) - 1
        self._found[line[start : line.find(b'"', start)] if whole else b"?"] += 1

    def counts(self) -> dict[str, int] | None:
        """A count for each of the five actions, zeros included; None when a line began with no known action."""
        counts: dict[str, int] = {action: self._found[action.encode()] for action in COVERAGE_ACTIONS}
        return counts if sum(counts.values()) == self._found.total() else None


def count_actions(coverage: PrivateCopy) -> dict[str, int] | None:
    """:class:`ActionCounter` over all lines of a file."""
    counter = ActionCounter()
    with coverage.open_at() as reader:
        # A line that has no end is not held whole to be counted as one without an action.
        while line := reader.readline(_LONGEST):
            counter.add(line)
    return counter.counts()
