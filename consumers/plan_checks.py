"""The checks of a committed plan that need only its bytes, its commit and the destination's schema.

The gate runs them before the first write of a run, a rehearsal before it rehearses anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from consumers.errors import (
    ArtifactDigestMismatchError,
    CommitContradictsManifestError,
    CommittedChecksumMismatchError,
    DestinationBindingMismatchError,
    UncountableOperationsError,
)
from ledger.binding import DestinationBinding
from ledger.commit import PlanCommit, Policy
from ledger.errors import ApplyLedgerError, Finding
from ledger.plan.coverage_account import account_findings
from ledger.plan.errors import PlanArtifactError
from ledger.plan.gate import operation_findings
from ledger.plan.model import PlanManifest
from ledger.plan.reader import PlanArtifact, RawPlanArtifact, parse_artifact, require_applicable
from ledger.plan.repeats import number_array, repeated
from ledger.plan.stored_operations import identifiers_of
from ledger.plan.verify import verify_plan
from ledger.schema import DestinationSchema


@dataclass(frozen=True, slots=True)
class PlanChecks:
    """The checks of one committed plan. ``aliases`` are declared as other names of the destination ``binding``."""

    binding: DestinationBinding
    commit: PlanCommit
    policy: Policy
    aliases: tuple[DestinationBinding, ...] = ()

    def run(
        self, raw: RawPlanArtifact, schema: DestinationSchema, *, write_surface_missing_on: str | None = None
    ) -> tuple[list[Finding], PlanArtifact | None]:
        """Verify the bytes, then parse the same bytes, then check every operation.

        Returns what is wrong, everything at once, and the parsed plan where it could be parsed.

        Args:
            raw: the bytes, read once.
            schema: of the destination.
            write_surface_missing_on: the class of a destination that cannot be written to.
        """
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
        findings += findings_of(self._artifact_refusals(artifact))
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


def findings_of(refusals: Sequence[ApplyLedgerError]) -> list[Finding]:
    """Everything that these refusals name."""
    return [finding for refusal in refusals for finding in refusal.findings]
