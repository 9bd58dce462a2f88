"""JSON Lines of an artifact: cutting bytes into records, and the faults that a cut can show (A15, C13, FF34)."""

from __future__ import annotations

import io
from collections.abc import Iterator

from ledger.errors import Finding
from ledger.plan.errors import BlankLineError, CarriageReturnError, PlanArtifactError, UnterminatedLineError
from ledger.plan.layout import REPLAN

MAX_FAULTS = 100
"""Faults of one artifact that are kept in full; the rest is counted, so that a hostile file costs no memory."""


def iter_lines(data: bytes) -> Iterator[bytes]:
    """Every line with its newline, cut at the byte ``\\n`` alone: U+2028, U+2029, U+0085 and ``\\r`` are data."""
    return iter(io.BytesIO(data))


def count_lines(data: bytes) -> int:
    """How many lines :func:`iter_lines` gives; an unterminated rest counts as one."""
    return data.count(b"\n") + (1 if data and not data.endswith(b"\n") else 0)


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
    """Faults in the order in which they were found; at most :data:`MAX_FAULTS` are kept, all are counted."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.total = 0

    def add(self, error: PlanArtifactError) -> None:
        """Count a fault, and keep it while there is room."""
        self.total += 1
        if self.total <= MAX_FAULTS:
            self.findings.extend(error.findings)

    def summary(self) -> str:
        """The first faults in one line, and how many there are besides."""
        first = "; ".join(f"{fault.checked}: {fault.name}, found {fault.found}" for fault in self.findings[:3])
        rest = self.total - min(self.total, 3)
        return f"{first}; and {rest} more" if rest else first
