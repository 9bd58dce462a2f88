"""Checks of an installation: each checks one thing and reports what it found and what to do.

A check lives where the thing is known (the destination's with the destination, the database's with the store); here is
only what they have in common, and the order in which they run. A check that cannot be made because an earlier one
failed is not guessed at: it is named, with the reason.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from ledger.errors import ApplyLedgerError
from ledger.printable import words

CLOCK_SECONDS = 5.0
"""Difference of two clocks that is worth a warning. No lease and no order depends on it."""

CHECK_SECONDS = 60.0
"""The longest time that one check may take; what it looks at has shorter limits of its own."""


class Verdict(StrEnum):
    """How a check came out. A warning is for a person to decide on; only a failure fails a checkup."""

    GOOD = "good"
    WARNING = "warning"
    FAILURE = "failure"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Said:
    """What one look says.

    Attributes:
        verdict: in a word.
        found: what was seen, in words fit to be shown.
        next_action: what to do; empty where nothing is to be done.
        facts: the same for programs, plain JSON values.
    """

    verdict: Verdict
    found: str
    next_action: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)


def good(found: str, **facts: Any) -> Said:
    """All is well."""
    return Said(Verdict.GOOD, found, facts=facts)


def warning(found: str, next_action: str, **facts: Any) -> Said:
    """It works, with a warning."""
    return Said(Verdict.WARNING, found, next_action, facts)


def failure(found: str, next_action: str, **facts: Any) -> Said:
    """It does not work."""
    return Said(Verdict.FAILURE, found, next_action, facts)


def skipped(found: str, **facts: Any) -> Said:
    """It was not looked at, for this reason."""
    return Said(Verdict.SKIPPED, found, facts=facts)


@dataclass(frozen=True, slots=True)
class Check:
    """One check. ``needs`` names those that have to come out without a failure before; it may say several things."""

    name: str
    look: Callable[[], Awaitable[Said | Sequence[Said]]]
    needs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What one check said of one subject (a destination, the ledger)."""

    subject: str
    check: str
    said: Said

    def record(self) -> dict[str, Any]:
        """As it is in a document."""
        return {
            "subject": self.subject,
            "check": self.check,
            "verdict": str(self.said.verdict),
            "found": self.said.found,
            "next_action": self.said.next_action,
            "facts": dict(self.said.facts),
        }


async def run_checks(subject: str, checks: Sequence[Check]) -> AsyncGenerator[CheckResult, None]:
    """Run checks in their order; a refusal is a failure of the check, and a defect propagates."""
    causes: dict[str, str] = {}
    for check in checks:
        cause = next((causes[name] for name in check.needs if name in causes), None)
        said = [skipped(f"not looked at, because of the {cause}")] if cause is not None else await _look(check)
        if cause is not None or any(one.verdict is Verdict.FAILURE for one in said):
            causes[check.name] = cause or check.name
        for one in said:
            yield CheckResult(subject, check.name, one)


async def _look(check: Check) -> Sequence[Said]:
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            said = await check.look()
    except TimeoutError:
        return [failure(f"no answer within {CHECK_SECONDS:.0f} s", "look at what hangs there, then ask again")]
    except ApplyLedgerError as exc:
        return [failure(words(f"{item.checked}: {item.found}"), item.next_action) for item in exc.findings]
    return [said] if isinstance(said, Said) else said


def clock_said(told: datetime, before: datetime, after: datetime, *, whose: str, resolution: float = 0.0) -> Said:
    """The verdict on a clock that was read between two looks at our own.

    Args:
        told: the time that the clock showed.
        before: our clock before it was asked.
        after: our clock when it had answered.
        whose: in words.
        resolution: of what it tells, in seconds.
    """
    early, late = (told - after).total_seconds(), (told - before).total_seconds() + resolution
    off = 0.0 if early <= 0 <= late else (early if early > 0 else late)
    if abs(off) < CLOCK_SECONDS:
        within = max(abs(off), (after - before).total_seconds(), resolution, 0.001)
        return good(f"{whose} is ours, within {within:.2g} s", seconds=round(off, 3))
    way = "ahead of" if off > 0 else "behind"
    return warning(
        f"{whose} is {abs(off):,.1f} s {way} ours",
        "set both clocks by one time server; times in the record are the database's, times in plans are this machine's",
        seconds=round(off, 3),
    )
