"""Everything that is checked before the first write, in its order; every failure is named at once (P100 to P109).

The run directory must hold a plan; its files are read once; those bytes are verified together with the destination's
write surface, the binding and the commit; then the same bytes are parsed, and all operations are checked. Only what
passed is handed on, and nothing here writes anything anywhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from consumers.errors import (
    ArtifactDigestMismatchError,
    ArtifactLocationError,
    CommitContradictsManifestError,
    CommittedChecksumMismatchError,
    DestinationBindingMismatchError,
    RunRefusedError,
    UncountableOperationsError,
)
from consumers.history import RunHistory
from consumers.overlaps import ForeignOverlap, find_overlaps, notes_of_creates, overlap_refusals
from consumers.ports import LedgerPort
from consumers.staleness import stale_plan
from ledger.binding import DestinationBinding
from ledger.commit import PlanCommit, Policy
from ledger.destination import OpenDestination, PlannedWriteDestination
from ledger.errors import ApplyLedgerError, Finding
from ledger.events import Overlap
from ledger.plan.coverage_account import account_findings
from ledger.plan.errors import PlanArtifactError
from ledger.plan.files import confined
from ledger.plan.gate import operation_findings
from ledger.plan.model import PlanManifest
from ledger.plan.reader import (
    PlanArtifact,
    RawPlanArtifact,
    parse_artifact,
    read_raw_artifact,
    require_applicable,
    require_plan_directory,
)
from ledger.plan.repeats import number_array, repeated
from ledger.plan.stored_operations import identifiers_of
from ledger.plan.verify import verify_plan
from ledger.schema import DestinationSchema


@dataclass(frozen=True, slots=True)
class AdmittedPlan:
    """A plan that may be applied now, with the write surface that passed, and what it will overwrite."""

    artifact: PlanArtifact
    destination: PlannedWriteDestination
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


def _locate(root: Path, artifact: str) -> Path:
    found = ""
    if "://" in artifact:
        found = "a URL; what a message names is never fetched"
    else:
        try:
            return confined(root, artifact)
        except PlanArtifactError as exc:
            found = exc.found
    raise ArtifactLocationError(
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
        findings, artifact = await asyncio.to_thread(self._check_bytes, raw, missing_on, opened.schema)
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
            overlaps=tuple(found.overlap for found in overlaps),
            notes=notes_of_creates(overlaps),
        )

    def _check_bytes(
        self, raw: RawPlanArtifact, write_surface_missing_on: str | None, schema: DestinationSchema
    ) -> tuple[list[Finding], PlanArtifact | None]:
        """Verify the bytes, then parse the same bytes, then check every operation."""
        findings = self._digest_findings(raw)
        failures = verify_plan(
            artifact=raw,
            run_id=self.commit.run_id,
            config_version=self.commit.config_version,
            write_surface_missing_on=write_surface_missing_on,
        )
        findings += [failure.finding() for failure in failures]
        try:
            artifact = parse_artifact(raw)
        except PlanArtifactError as exc:
            # What does not parse was named by the verification; the parse adds what only it can see (P105).
            known = {finding.name for finding in findings}
            if not failures or any(finding.name not in known for finding in exc.findings):
                findings += exc.findings
            return findings, None
        findings += _findings_of(self._artifact_refusals(artifact))
        findings += operation_findings(artifact.operations, schema)
        if raw.coverage is not None and artifact.manifest.coverage is not None:
            findings += account_findings(raw.coverage, artifact.operations)
        return findings, artifact

    def _digest_findings(self, raw: RawPlanArtifact) -> list[Finding]:
        if raw.artifact_digest == self.commit.artifact_digest:
            return []
        refusal = ArtifactDigestMismatchError(
            checked="the raw bytes of manifest and operations",
            expected=f"sha256 {self.commit.artifact_digest}, as committed",
            found=f"sha256 {raw.artifact_digest}",
            next_action="restore the files that were reviewed, or make, review and commit a fresh plan",
        )
        return list(refusal.findings)

    def _artifact_refusals(self, artifact: PlanArtifact) -> list[ApplyLedgerError]:
        refusals: list[ApplyLedgerError] = []
        try:
            require_applicable(artifact)
        except ApplyLedgerError as exc:
            refusals.append(exc)
        refusals += self._checksum_refusals(artifact.manifest)
        refusals += self._contradictions(artifact)
        refusals += self._binding_refusals(artifact.manifest)
        refusals += _countability(artifact)
        return refusals

    def _checksum_refusals(self, manifest: PlanManifest) -> list[ApplyLedgerError]:
        if manifest.plan_checksum == self.commit.plan_checksum:
            return []
        return [
            CommittedChecksumMismatchError(
                checked="the plan in the run directory",
                expected=f"checksum {self.commit.plan_checksum}, as committed",
                found=f"checksum {manifest.plan_checksum}",
                next_action="restore the plan that was reviewed, or review and commit this one",
            )
        ]

    def _contradictions(self, artifact: PlanArtifact) -> list[ApplyLedgerError]:
        """What the commit repeats from the manifest must say the same; a plan made elsewhere names no source."""
        manifest = artifact.manifest
        pairs: list[tuple[str, object, object]] = [
            ("format_version", self.commit.format_version, manifest.format_version),
            ("operations_count", self.commit.operations_count, manifest.operations_count),
        ]
        if manifest.source is not None:
            pairs.append(("source", self.commit.source, manifest.source))
        return [
            CommitContradictsManifestError(
                checked=f"{name} of the plan",
                expected=f"{committed}, as committed",
                found=f"{stated} in the manifest",
                next_action="commit the run again with this program",
            )
            for name, committed, stated in pairs
            if committed != stated
        ]

    def _binding_refusals(self, manifest: PlanManifest) -> list[ApplyLedgerError]:
        """The plan's destination against the writer's, in normal form; an old plan that names none passes (A65)."""
        planned = manifest.destination_binding
        if planned is None or self.policy.allow_destination_change:
            return []
        if any(planned.same_as(name) for name in (self.binding, *self.aliases)):
            return []
        return [
            DestinationBindingMismatchError(
                checked="the destination that the plan was made for",
                expected=str(self.binding.normalised()),
                found=str(planned.normalised()),
                next_action="make a plan for this destination, or commit with allow_destination_change",
            )
        ]

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
        return _findings_of(overlap_refusals(overlaps, schema, own_source=self.commit.source, refuse_all=refuse_all))


def _countability(artifact: PlanArtifact) -> list[ApplyLedgerError]:
    """At the end, applied and skipped must equal the plan's identifiers; that needs each of them once (P147)."""
    numbers = number_array()
    numbers.extend(int(name[3:], 16) for name in identifiers_of(artifact.operations))
    twice = sorted(f"op_{number:016x}" for number in repeated(numbers))
    if not twice and len(artifact.operations) == artifact.manifest.operations_count:
        return []
    return [
        UncountableOperationsError(
            checked="the identifiers of the plan's operations",
            expected=f"{artifact.manifest.operations_count} operations, each identifier once",
            found=f"{len(artifact.operations)} operations, twice: {', '.join(twice[:10]) or 'none'}",
            next_action="make a fresh plan",
        )
    ]


def _findings_of(refusals: Sequence[ApplyLedgerError]) -> list[Finding]:
    return [finding for refusal in refusals for finding in refusal.findings]
