"""JSON Lines of an artifact: the faults that cutting bytes into records can show (A15, C13, FF34).

Lines are cut at the byte ``\\n`` alone: U+2028, U+2029, U+0085 and ``\\r`` are data.
"""

from __future__ import annotations

from ledger.errors import Finding
from ledger.plan.errors import BlankLineError, CarriageReturnError, PlanArtifactError, UnterminatedLineError
from ledger.plan.layout import REPLAN

MAX_FAULTS = 100
"""Faults of one artifact that are kept in full; the rest is counted, so that a hostile file costs no memory."""

MAX_COUNTED = 10_000
"""Faulty lines after which reading stops: describing a fault takes a hundred times as long as reading a line."""


def line_body(line: bytes, *, what: str) -> bytes:
    """A line without its newline.

    Raises:
        UnterminatedLineError: there is no newline.
        CarriageReturnError: there is a carriage return before it.
        BlankLineError: there is nothing before it.
    """
    if line[-1:] != b"\n":
        raise _fault(UnterminatedLineError, what, "a line feed at the end", "none; the file may have been cut")
    if line[-2:-1] == b"\r":
        raise _fault(CarriageReturnError, what, "a line feed alone at the end", "a carriage return before it")
    body = line[:-1]
    if not body or body.isspace():
        raise _fault(BlankLineError, what, "one record", "a blank line")
    return body


def _fault(error: type[PlanArtifactError], what: str, expected: str, found: str) -> PlanArtifactError:
    return error(checked=what, expected=expected, found=found, next_action=REPLAN)


class FaultList:
    """Faults by line; at most :data:`MAX_FAULTS` are kept, all are counted."""

    def __init__(self) -> None:
        self._kept: list[tuple[int, PlanArtifactError]] = []
        self.total = 0

    @property
    def is_enough(self) -> bool:
        """Whether there are so many that the rest of the file need not be looked at."""
        return self.total >= MAX_COUNTED

    @property
    def has_room(self) -> bool:
        """Whether the next fault will be kept."""
        return len(self._kept) < MAX_FAULTS

    def add(self, error: PlanArtifactError, number: int) -> None:
        """Count a fault of a line, and keep it while there is room."""
        self.total += 1
        if self.has_room:
            self._kept.append((number, error))

    @property
    def findings(self) -> list[Finding]:
        """What is kept, in the order of the lines."""
        ordered = sorted(self._kept, key=lambda kept: kept[0])
        return [finding for _, error in ordered for finding in error.findings]

    def summary(self) -> str:
        """The first faults in one line, and how many there are besides."""
        first = "; ".join(f"{fault.checked}: {fault.name}, found {fault.found}" for fault in self.findings[:3])
        rest = self.total - min(self.total, 3)
        unread = ", behind which nothing was looked at" if self.is_enough else ""
        return f"{first}; and {rest} more{unread}" if rest else first
