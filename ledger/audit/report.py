"""What an audit found, level by level, and what it could not look at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from ledger.audit.errors import LedgerTamperedError
from ledger.errors import Finding

MAX_FINDINGS = 200
"""Findings that are kept in full for each level; further ones are only counted."""

COMPARE = "stop the writers of this binding and compare with a backup or a published checkpoint"
COMPARE_COPIES = "find the first event that differs from another copy: `apply-ledger verify --against EXPORT`"
"""A checkpoint says that something differs, not where."""


class Level(StrEnum):
    """What is looked at, from the single event to the whole."""

    POSITIONS = "positions"
    CHAIN = "chain"
    HEAD = "head"
    CATALOGUE = "catalogue"
    PLANS = "plans"
    OUTCOMES = "outcomes"
    ORDERS = "orders"
    GUARDS = "guards"
    CHECKPOINTS = "checkpoints"
    PROJECTIONS = "projections"
    FILES = "files"
    TABLES = "tables"


EXPORT_LEVELS = frozenset({Level.FILES, Level.TABLES})
"""Only an export has them."""


SAYS: Mapping[Level, str] = {
    Level.POSITIONS: "every position from the first to the head is there once, in order, and no row beside them",
    Level.CHAIN: "each event carries the hash of its own fields and of the event before it",
    Level.HEAD: "the last event is the one that the binding's head names, and the last claim the one of its epoch",
    Level.CATALOGUE: "each event is of a kind and version that this program knows, with a canonical body of that shape,"
    " and stands where it can: behind everything that it presupposes of the events before it",
    Level.PLANS: "each plan is sealed, its bytes hash to its checksum, its artifact digest and its coverage digest, and"
    " the columns by which plans and commits are looked up say what those bytes say, each line at its own ordinal once",
    Level.OUTCOMES: "outcomes are those of the plan's operations, in the plan's order, none passed over, none twice",
    Level.ORDERS: "the inbox holds the orders that the log knows, none taken out, each closed as its run's end says",
    Level.GUARDS: "the triggers that refuse changes are in force, in every session, on every table that they guard, and"
    " so is every key that refuses a second row; the functions are those of the migrations, word for word",
    Level.CHECKPOINTS: "the log agrees with each signed head that was kept outside this database, as far as that"
    " reaches",
    Level.PROJECTIONS: "what the read side holds is what the events fold to, document by document",
    Level.FILES: "every file is one of an export, listed in the manifest with its size and its digest",
    Level.TABLES: "the tables that are made for queries, and the manifest, say what the events and the plans say,"
    " row for row",
}

COUNTS: Mapping[Level, str] = {
    Level.POSITIONS: "events",
    Level.CHAIN: "events",
    Level.HEAD: "heads",
    Level.CATALOGUE: "events",
    Level.PLANS: "plans",
    Level.OUTCOMES: "outcomes",
    Level.ORDERS: "orders",
    Level.GUARDS: "databases",
    Level.CHECKPOINTS: "signed heads",
    Level.PROJECTIONS: "documents",
    Level.FILES: "files",
    Level.TABLES: "rows",
}
"""What a level counts."""


class Status(StrEnum):
    """What became of a level."""

    HELD = "held"
    FAILED = "failed"
    NOT_CHECKED = "not checked"
    NOTHING_THERE = "nothing there"


@dataclass(frozen=True, slots=True, order=True)
class Break:
    """Where something does not hold.

    Attributes:
        position: of the event at which it shows.
        kind: the name of the finding.
        level: whose finding it is.
        after: None where it shows at that event itself. Else it lies somewhere behind the event at this position, up to
            which a signed head agrees (0: none does), and at or before ``position``.
    """

    position: int
    kind: str
    level: Level
    after: int | None = field(default=None, compare=False)

    @property
    def where(self) -> str:
        """The place in words."""
        if self.after is None:
            return f"event {self.position:,}"
        known = f"behind event {self.after:,}, up to which a signed head agrees" if self.after else "none agrees before"
        return f"at or before event {self.position:,}, where a signed head differs ({known})"


@dataclass(slots=True)
class LevelReport:
    """One level. Until it says that it came to its end, it was not checked.

    Attributes:
        level: which.
        checked: how many things were looked at.
        findings: what is wrong, the first :data:`MAX_FINDINGS` in full.
        total: how many findings there are.
        unchecked: what was not looked at, and why.
        notes: what was found out besides, right or not to be judged: how far a signed head reaches, whose it is.
        first: the first break among those findings that have a position.
    """

    level: Level
    checked: int = 0
    findings: list[Finding] = field(default_factory=list)
    total: int = 0
    unchecked: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    first: Break | None = None
    _ended: bool = False
    _more_unchecked: int = 0

    @property
    def status(self) -> Status:
        """Failed beats everything. Held is a level that was gone through to its end and looked at something."""
        if self.total:
            return Status.FAILED
        if self._ended and self.checked:
            return Status.HELD
        return Status.NOT_CHECKED if self.unchecked or not self._ended else Status.NOTHING_THERE

    def ended(self) -> None:
        """Everything that there is for this level was looked at, but for what ``unchecked`` names."""
        self._ended = True
        if self._more_unchecked:
            self.unchecked.append(f"and {self._more_unchecked:,} more")

    def skip(self, what: str) -> None:
        """Note what is not looked at, and why; what could be many is named :data:`MAX_FINDINGS` times and counted."""
        if len(self.unchecked) < MAX_FINDINGS:
            self.unchecked.append(what)
        else:
            self._more_unchecked += 1

    def add(
        self,
        name: str,
        *,
        checked: str,
        expected: str,
        found: str,
        position: int | None = None,
        after: int | None = None,
        next_action: str = COMPARE,
    ) -> None:
        """Note a finding; ``position`` and ``after`` are those of its :class:`Break`, where it has a place."""
        self.total += 1
        if position is not None and (self.first is None or position < self.first.position):
            self.first = Break(position, name, self.level, after)
        if len(self.findings) < MAX_FINDINGS:
            self.findings.append(
                Finding(
                    name=name,
                    checked=checked,
                    expected=expected,
                    found=found,
                    next_action=next_action,
                )
            )


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """The audit of one binding.

    Attributes:
        url: of the binding.
        branch: of the binding.
        head_position: the head that was read before the events.
        head_hash: its hash.
        events: how many events were read.
        levels: one report for each level, in order.
        covered_to: the last event that a signed head covers which was given, and with which the log agrees; None where
            there is no such head.
    """

    url: str
    branch: str
    head_position: int
    head_hash: bytes
    events: int
    levels: tuple[LevelReport, ...]
    covered_to: int | None = None

    @property
    def holds(self) -> bool:
        """Whether nothing that could be checked is wrong."""
        return all(level.status is not Status.FAILED for level in self.levels)

    @property
    def first_break(self) -> Break | None:
        """The first event at which something does not hold; None where no event shows anything wrong."""
        return min((level.first for level in self.levels if level.first is not None), default=None)

    @property
    def findings_total(self) -> int:
        """How many findings there are, also those that are not kept in full."""
        return sum(level.total for level in self.levels)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Everything that is wrong, in the order of the levels."""
        return tuple(finding for level in self.levels for finding in level.findings)

    def level(self, level: Level) -> LevelReport:
        """The report of one level."""
        return next(report for report in self.levels if report.level is level)

    def require_intact(self) -> None:
        """Raise where something is wrong.

        Raises:
            LedgerTamperedError: with every finding.
        """
        if not self.holds:
            raise LedgerTamperedError(
                checked=f"the ledger of {self.url} [{self.branch}]",
                findings=self.findings,
                next_action=COMPARE,
            )

    def document(self) -> dict[str, Any]:
        """The report for machines."""
        return {
            "url": self.url,
            "branch": self.branch,
            "holds": self.holds,
            "head_position": self.head_position,
            "head_hash": self.head_hash.hex(),
            "events": self.events,
            "covered_to": self.covered_to,
            "first_break": None
            if (first := self.first_break) is None
            else {
                "position": first.position,
                "kind": first.kind,
                "level": str(first.level),
                "after": first.after,
            },
            "levels": [
                {
                    "level": str(level.level),
                    "says": SAYS[level.level],
                    "status": str(level.status),
                    "checked": level.checked,
                    "findings": [finding.model_dump(mode="json") for finding in level.findings],
                    "findings_total": level.total,
                    "unchecked": level.unchecked,
                    "notes": level.notes,
                }
                for level in self.levels
            ],
        }
