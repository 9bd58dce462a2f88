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

_COMPARE = "stop the writers of this binding and compare with a backup or a published checkpoint"


class Level(StrEnum):
    """What is looked at, from the single event to the whole."""

    POSITIONS = "positions"
    CHAIN = "chain"
    HEAD = "head"
    CATALOGUE = "catalogue"
    PLANS = "plans"
    OUTCOMES = "outcomes"
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
    Level.HEAD: "the last event is the one that the binding's head names",
    Level.CATALOGUE: "each event is of a kind and version that this program knows, with a canonical body of that shape",
    Level.PLANS: "the stored bytes of each plan hash to its checksum, its artifact digest and its coverage digest, and"
    " the columns by which plans and commits are looked up say what those bytes say, each line at its own ordinal once",
    Level.OUTCOMES: "outcomes are those of the plan's operations, in the plan's order, none passed over, none twice",
    Level.GUARDS: "the triggers that refuse changes are in force, in every session, on every table that they guard, and"
    " so is every key that refuses a second row",
    Level.CHECKPOINTS: "the head agrees with one that was published outside this database",
    Level.PROJECTIONS: "what the read side holds is what the events fold to, document by document",
    Level.FILES: "every file is listed in the manifest, with its size and its digest",
    Level.TABLES: "the tables that are made for queries say what the events and the plans say",
}


class Status(StrEnum):
    """What became of a level."""

    HELD = "held"
    FAILED = "failed"
    NOT_CHECKED = "not checked"


@dataclass(slots=True)
class LevelReport:
    """One level.

    Attributes:
        level: which.
        checked: how many things were looked at.
        findings: what is wrong, the first :data:`MAX_FINDINGS` in full.
        total: how many findings there are.
        unchecked: what could not be looked at, and why.
    """

    level: Level
    checked: int = 0
    findings: list[Finding] = field(default_factory=list)
    total: int = 0
    unchecked: list[str] = field(default_factory=list)

    @property
    def status(self) -> Status:
        """Failed beats not checked beats held."""
        if self.total:
            return Status.FAILED
        return Status.NOT_CHECKED if self.unchecked and not self.checked else Status.HELD

    def add(self, name: str, *, checked: str, expected: str, found: str, next_action: str = _COMPARE) -> None:
        """Note a finding."""
        self.total += 1
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
    """

    url: str
    branch: str
    head_position: int
    head_hash: bytes
    events: int
    levels: tuple[LevelReport, ...]

    @property
    def holds(self) -> bool:
        """Whether nothing that could be checked is wrong."""
        return all(level.status is not Status.FAILED for level in self.levels)

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
                next_action=_COMPARE,
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
            "levels": [
                {
                    "level": str(level.level),
                    "says": SAYS[level.level],
                    "status": str(level.status),
                    "checked": level.checked,
                    "findings": [finding.model_dump(mode="json") for finding in level.findings],
                    "findings_total": level.total,
                    "unchecked": level.unchecked,
                }
                for level in self.levels
            ],
        }
