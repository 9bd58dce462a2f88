"""A saved plan as a review reads it: from files alone, without an adapter, a lock or a new folder (A85, C49).

Reading for review is lenient where applying is not: a wrong checksum or a damaged account does not hide the plan, it is
named above it. The gate refuses the same plan.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ledger.errors import Finding
from ledger.plan.checksum import plan_checksum
from ledger.plan.coverage import (
    COVERAGE_ACTIONS,
    CoverageAction,
    CoverageLine,
    counts,
)
from ledger.plan.coverage_account import coverage_disagreements, read_coverage
from ledger.plan.coverage_check import coverage_problem
from ledger.plan.errors import CoverageInvalidError, PlanVerificationError
from ledger.plan.layout import COVERAGE_FILE, REPLAN
from ledger.plan.model import PlanManifest, PlannedOperation
from ledger.plan.reader import PlanArtifact, RawPlanArtifact, parse_artifact, read_raw_artifact, require_plan_directory

_ACTION_OF_OPERATION: dict[str, CoverageAction] = {"create": "create", "update": "update", "delete": "remove"}


@dataclass(frozen=True, slots=True)
class PlanSummary:
    """What a plan holds, in figures.

    Attributes:
        counts: the five actions, zeros included; ``skip`` and ``none`` are 0 where no coverage was recorded.
        coverage_recorded: whether the plan has a coverage line for *every* resource.
        delete_operations_computed: False: the plan says nothing about objects that exist only at the destination.
        operations_count: creates, updates and recorded deletes.
        tiers: the number of their tiers.
    """

    counts: dict[str, int]
    coverage_recorded: bool
    delete_operations_computed: bool
    operations_count: int
    tiers: int

    @property
    def line(self) -> str:
        """The last line of every review, of fixed shape: always all five counts (H12, H14)."""
        return counts_line(self.counts)

    @property
    def in_line(self) -> bool:
        """Whether an apply would write nothing (H30)."""
        return not self.counts["create"] and not self.counts["update"]


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource of a plan: its operation, its coverage line, or both."""

    action: CoverageAction
    operation: PlannedOperation | None
    line: CoverageLine | None

    @property
    def _source(self) -> PlannedOperation | CoverageLine:
        source = self.operation or self.line
        if source is None:
            raise ValueError("a resource has an operation or a coverage line")
        return source

    @property
    def kind(self) -> str:
        """The object's kind."""
        return self._source.kind

    @property
    def identity(self) -> dict[str, object]:
        """The object's identity."""
        return self._source.identity

    @property
    def tier(self) -> int:
        """The tier that the operation is written in, or that the kind is in."""
        return self._source.tier

    @property
    def destination_id(self) -> str | None:
        """The id recorded for the object: by the operation of an update, else as it was observed."""
        own = self.operation.destination_id if self.operation is not None else None
        return own or (self.line.destination_id if self.line is not None else None)


@dataclass(frozen=True, slots=True)
class SavedPlan:
    """A plan that was read for review.

    Attributes:
        run_dir: where it was read.
        artifact: the parsed manifest and operations.
        coverage: one line for every resource; None if it was not recorded or cannot be read.
        problems: what the gate would refuse about these files; shown above the plan.
    """

    run_dir: Path
    artifact: PlanArtifact
    coverage: tuple[CoverageLine, ...] | None
    problems: tuple[Finding, ...]

    @property
    def manifest(self) -> PlanManifest:
        """The plan's header."""
        return self.artifact.manifest

    @property
    def operations(self) -> Sequence[PlannedOperation]:
        """All operations, recorded deletes included, in stored order."""
        return self.artifact.operations

    @property
    def summary(self) -> PlanSummary:
        """The plan in figures."""
        recorded = self.coverage is not None
        found = counts(self.coverage) if self.coverage is not None else _counts_of(self.operations)
        return PlanSummary(
            counts=found,
            coverage_recorded=recorded,
            delete_operations_computed=self.manifest.delete_operations_computed,
            operations_count=len(self.operations),
            tiers=len({operation.tier for operation in self.operations}),
        )

    @property
    def kinds(self) -> list[str]:
        """All kinds that the plan is about, sorted: of its resources, and those of which the source had no row."""
        read = {PurePosixPath(record.path).stem for record in self.manifest.source_snapshot}
        accounted = {line.kind for line in self.coverage or ()}
        return sorted(read | accounted | {operation.kind for operation in self.operations})

    def resources(self, kind: str | None = None) -> tuple[Resource, ...]:
        """All resources: operations in stored order, then those that need none in the order of the account.

        Args:
            kind: only resources of this kind.
        """
        accounted = {line.operation_id: line for line in self.coverage or () if line.operation_id is not None}
        found = [
            Resource(_ACTION_OF_OPERATION[operation.action], operation, accounted.get(operation.operation_id))
            for operation in self.operations
        ]
        found += [Resource(line.action, None, line) for line in self.coverage or () if line.operation_id is None]
        return tuple(resource for resource in found if kind is None or resource.kind == kind)


def read_saved_plan(run_dir: Path) -> SavedPlan:
    """Read the plan of a run for review; writes nothing (A85).

    Raises:
        PlanArtifactError: there is no plan, or it is torn, unreadable or of an unknown format (A7 to A13).
    """
    require_plan_directory(run_dir)
    raw = read_raw_artifact(run_dir)
    artifact = parse_artifact(raw)
    problems = list(_checksum_problems(raw, artifact))
    coverage: tuple[CoverageLine, ...] | None = None
    if raw.coverage is not None and artifact.manifest.coverage is not None:
        try:
            coverage = read_coverage(raw.coverage)
        except CoverageInvalidError as exc:
            problems += exc.findings
    problems += _coverage_problems(raw, artifact, coverage)
    return SavedPlan(run_dir=run_dir, artifact=artifact, coverage=coverage, problems=tuple(problems))


def counts_line(found: dict[str, int]) -> str:
    """``3 create · 1 update · 0 remove · 2 skip · 40 none``."""
    return " · ".join(f"{found.get(action, 0):,} {action}" for action in COVERAGE_ACTIONS)


def _counts_of(operations: Iterable[PlannedOperation]) -> dict[str, int]:
    found = Counter(_ACTION_OF_OPERATION[operation.action] for operation in operations)
    return {action: found[action] for action in COVERAGE_ACTIONS}


def _checksum_problems(raw: RawPlanArtifact, artifact: PlanArtifact) -> list[Finding]:
    found = plan_checksum(artifact.manifest_document, raw.operations)
    if found == artifact.manifest.plan_checksum:
        return []
    return [_problem("the plan checksum", artifact.manifest.plan_checksum, f"{found}: a file was changed")]


def _coverage_problems(
    raw: RawPlanArtifact, artifact: PlanArtifact, coverage: tuple[CoverageLine, ...] | None
) -> list[Finding]:
    problem = coverage_problem(artifact.manifest_document.get("coverage"), raw.coverage)
    problems = [] if problem is None else [_problem(COVERAGE_FILE, problem.expected, problem.found)]
    if coverage is not None:
        problems += coverage_disagreements(coverage, artifact.operations)
    return problems


def _problem(checked: str, expected: str, found: str) -> Finding:
    return Finding(
        name=PlanVerificationError.__name__, checked=checked, expected=expected, found=found, next_action=REPLAN
    )
