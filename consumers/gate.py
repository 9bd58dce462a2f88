"""All checks before the first write, in their order; all failures are reported at once (P100 to P109).

The run directory must hold a plan; its files are read once; those bytes are verified together with the destination's
write surface, the binding and the commit; then the same bytes are parsed, and all operations are checked. Only what
passed is handed on, and nothing here writes anything anywhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from consumers.errors import ArtifactLocationError, RunRefusedError
from consumers.history import RunHistory
from consumers.overlaps import ForeignOverlap, find_overlaps, notes_of_creates, overlap_refusals
from consumers.plan_checks import PlanChecks, findings_of
from consumers.ports import LedgerPort
from consumers.staleness import stale_plan
from ledger.binding import DestinationBinding
from ledger.commit import PlanCommit, Policy
from ledger.destination import OpenDestination, PlannedWriteDestination
from ledger.errors import Finding
from ledger.events import Overlap
from ledger.plan.errors import PathOutsideRunError, PlanArtifactError
from ledger.plan.files import confined, require_inside
from ledger.plan.model import PlanManifest
from ledger.plan.reader import PlanArtifact, RawPlanArtifact, read_raw_artifact, require_plan_directory
from ledger.schema import DestinationSchema


@dataclass(frozen=True, slots=True)
class AdmittedPlan:
    """A plan that may be applied now, with the write surface that passed, and what it will overwrite."""

    artifact: PlanArtifact
    destination: PlannedWriteDestination
    waits_for_guard: bool
    """Whether an operation may be begun before it is marked: its requests wait for the guard."""
    overlaps: tuple[Overlap, ...]
    notes: Mapping[str, str]
    """What the outcomes of creates say that meet an object which is known to be there, by operation id."""


def read_committed(root: Path, commit: PlanCommit) -> RawPlanArtifact:
    """The bytes of the committed artifact, each file read once.

    Raises:
        ArtifactLocationError: the location is not a run directory below ``root`` (never a URL, absolute, or with ..).
        PlanArtifactError: the verdict of the plan format on a directory without a readable plan.
    """
    run_dir = _locate(root, commit.artifact)
    require_plan_directory(run_dir)
    return read_raw_artifact(run_dir)


def require_location(artifact: str) -> None:
    """Refuse what cannot be a run directory below any root, before anything is looked for.

    Raises:
        ArtifactLocationError: a URL, an absolute path, or one that leads out.
    """
    if "://" in artifact:
        raise _no_location("a URL; what a message names is never fetched")
    try:
        require_inside(artifact)
    except PathOutsideRunError as exc:
        raise _no_location(exc.found) from exc


def _locate(root: Path, artifact: str) -> Path:
    require_location(artifact)
    try:
        return confined(root, artifact)
    except PlanArtifactError as exc:
        raise _no_location(exc.found) from exc


def _no_location(found: str) -> ArtifactLocationError:
    return ArtifactLocationError(
        checked="the artifact's location in the commit",
        expected="a run directory relative to the writer's artifact root, as <sync name>/<run id>",
        found=found,
        next_action="commit the run again with this program, from the root that the writer is configured with",
    )


@dataclass(frozen=True, slots=True)
class Gate:
    """The checks for one run. ``policy`` is the commit's, or that of the order to resume.

    ``aliases`` are declared as other names of the destination that ``binding`` names.
    """

    ledger: LedgerPort
    binding_id: int
    binding: DestinationBinding
    commit: PlanCommit
    policy: Policy
    history: RunHistory
    aliases: tuple[DestinationBinding, ...] = ()

    async def admit(self, raw: RawPlanArtifact, opened: OpenDestination) -> AdmittedPlan:
        """Run all checks on bytes that were read.

        Raises:
            RunRefusedError: at least one check failed; all failures are in it.
        """
        destination = opened.writes
        surface = destination if isinstance(destination, PlannedWriteDestination) else None
        missing_on = None if surface is not None else type(destination).__name__
        # In a thread: hashing and checking a big plan must not hold up the renewal of the lease.
        findings, artifact = await asyncio.to_thread(
            self._checks.run, raw, opened.schema, write_surface_missing_on=missing_on
        )
        overlaps: list[ForeignOverlap] = []
        if artifact is not None:
            findings += await self._stale_findings(artifact.manifest)
            overlaps = await self._overlaps(artifact)
            findings += self._overlap_findings(overlaps, opened.schema)
        if findings or artifact is None or surface is None:
            raise RunRefusedError(run_id=self.commit.run_id, findings=findings)
        return AdmittedPlan(
            artifact=artifact,
            destination=surface,
            waits_for_guard=opened.waits_for_guard,
            overlaps=tuple(found.overlap for found in overlaps),
            notes=notes_of_creates(overlaps),
        )

    @property
    def _checks(self) -> PlanChecks:
        return PlanChecks(binding=self.binding, commit=self.commit, policy=self.policy, aliases=self.aliases)

    async def _stale_findings(self, manifest: PlanManifest) -> list[Finding]:
        """Whether a newer plan of the same source was applied since this one was made (design 7.7)."""
        if self.policy.allow_stale:
            return []
        stale = await stale_plan(
            self.ledger,
            self.binding_id,
            source=self.commit.source,
            run_id=self.commit.run_id,
            ledger_position=self.commit.ledger_position,
            created_at=manifest.created_at,
        )
        return [] if stale is None else list(stale.findings)

    async def _overlaps(self, artifact: PlanArtifact) -> list[ForeignOverlap]:
        """Writes to the same objects since the plan was made.

        Newer ones of the same source make a plan stale. Where a person applies it all the same, they are named too.
        """
        found = await find_overlaps(
            self.ledger,
            self.binding_id,
            source="" if self.policy.allow_stale else self.commit.source,
            after_position=self.commit.ledger_position or 0,
            operations=artifact.operations,
            is_done=self.history.has_success,
        )
        return [one for one in found if one.overlap.run_id != self.commit.run_id]

    def _overlap_findings(self, overlaps: Sequence[ForeignOverlap], schema: DestinationSchema) -> list[Finding]:
        refuse_all = self.policy.on_overlap == "refuse"
        return findings_of(overlap_refusals(overlaps, schema, own_source=self.commit.source, refuse_all=refuse_all))
