"""Makes the commit of a saved plan, the order to apply it (design 5)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError

from ledger.binding import DestinationBinding
from ledger.commit import PlanCommit, Policy, commit_id, utc_text
from ledger.plan.checksum import plan_checksum
from ledger.plan.errors import ManifestInvalidError
from ledger.plan.layout import REPLAN
from ledger.plan.model import PlanManifest
from ledger.plan.reader import PlanArtifact, parse_artifact, read_raw_artifact, require_applicable
from producers.config import load_configuration
from producers.errors import AlteredPlanError, ConfigurationChangedError, UnexpectedChecksumError
from producers.run_directory import RUN_FILE, RunRecord, read_run_record


def build_commit(
    run_dir: Path,
    *,
    actor: str,
    reason: str,
    policy: Policy,
    clock: Callable[[], datetime],
    expected_checksum: str | None = None,
    configuration: Path | None = None,
    binding: DestinationBinding | None = None,
    traceparent: str | None = None,
) -> PlanCommit:
    """The commit of the plan in a run directory.

    The configuration version is recomputed from the configuration as it is now, never copied from the manifest: the
    gate compares the two (A60).

    Args:
        run_dir: ``<root>/<sync-name>/<run_id>``.
        actor: who asks for the apply, as claimed.
        reason: why; at most 64 KiB.
        policy: what the writer does where a person would have to decide.
        clock: tells the time, with a zone.
        expected_checksum: the plan checksum that was reviewed; None to take the plan as it stands.
        configuration: where the configuration file is now; None for the path that ``run.json`` recorded.
        binding: the destination to apply to; None for the one that the plan was made for. The gate compares them.
        traceparent: W3C trace context to continue with.

    Raises:
        PlanArtifactError: there is no complete plan, or one that cannot be applied.
        AlteredPlanError: manifest or operations were changed since the plan was written.
        UnexpectedChecksumError: the plan is not the one that was reviewed.
        RunDirectoryError: ``run.json`` is missing or damaged.
        ConfigurationChangedError: the configuration is another one by now, or its location is not known.
        ConfigurationError: the configuration cannot be read any more.
    """
    raw = read_raw_artifact(run_dir)
    artifact = parse_artifact(raw)
    require_applicable(artifact)
    manifest = artifact.manifest
    _require_unaltered(artifact)
    if expected_checksum is not None and expected_checksum != manifest.plan_checksum:
        raise UnexpectedChecksumError(
            checked=f"the plan of run {manifest.run_id}",
            expected=f"checksum {expected_checksum}, which was reviewed",
            found=manifest.plan_checksum,
            next_action="review this plan, or commit the run that was reviewed",
        )
    record = _run_record(run_dir, configuration)
    config_version = _current_config_version(record, manifest, configuration)
    with _committable(manifest):
        return PlanCommit(
            commit_id=commit_id(manifest.run_id, manifest.plan_checksum),
            run_id=manifest.run_id,
            binding=binding or _planned_binding(manifest),
            plan_checksum=manifest.plan_checksum,
            artifact_digest=raw.artifact_digest,
            format_version=manifest.format_version,
            operations_count=manifest.operations_count,
            config_version=config_version,
            source=manifest.source or run_dir.parent.name,
            artifact=f"{run_dir.parent.name}/{run_dir.name}",
            # Positions count the events of one binding: of another one's they say nothing.
            ledger_position=record.ledger_position if _is_planned_for(manifest, binding) else None,
            actor=actor,
            reason=reason,
            policy=policy,
            committed_at=utc_text(clock().astimezone(UTC)),
            traceparent=traceparent,
        )


def _require_unaltered(artifact: PlanArtifact) -> None:
    """The gate compares again; here a changed byte is named before anything it says is believed (G1)."""
    computed = plan_checksum(artifact.manifest_document, artifact.raw.operations)
    if computed != artifact.manifest.plan_checksum:
        raise AlteredPlanError(
            checked=f"the checksum over manifest and operations of run {artifact.manifest.run_id}",
            expected=artifact.manifest.plan_checksum,
            found=computed,
            next_action=REPLAN,
        )


@contextmanager
def _committable(manifest: PlanManifest) -> Iterator[None]:
    """A plan made elsewhere may have names that a commit cannot carry."""
    try:
        yield
    except ValidationError as exc:
        fields = sorted({".".join(map(str, error["loc"])) for error in exc.errors(include_input=False)})
        raise ManifestInvalidError(
            checked=f"the plan {manifest.plan_checksum} as something to commit",
            expected="names of letters, digits, '.', '_' and '-', and texts in UTF-8",
            found=f"unusable: {', '.join(fields)}",
            next_action="make the plan again under such names",
        ) from None  # the cause would show the values


def _is_planned_for(manifest: PlanManifest, binding: DestinationBinding | None) -> bool:
    planned = manifest.destination_binding
    return binding is None or (planned is not None and planned.same_as(binding))


def _run_record(run_dir: Path, configuration: Path | None) -> RunRecord:
    """The run's record; a plan of another program has none of ours, and then the configuration has to be named."""
    if configuration is not None and not (run_dir / RUN_FILE).exists():
        return RunRecord(status="planned")
    return read_run_record(run_dir)


def _planned_binding(manifest: PlanManifest) -> DestinationBinding:
    if manifest.destination_binding is None:
        raise ManifestInvalidError(
            checked=f"the destination of run {manifest.run_id}",
            expected="a destination_binding in the manifest",
            found="none: the plan was made before it was recorded",
            next_action="name the destination when committing, or make a fresh plan",
        )
    return manifest.destination_binding


def _current_config_version(record: RunRecord, manifest: PlanManifest, configuration: Path | None) -> str:
    where = configuration if configuration is not None else record.configuration
    if where is None:
        raise ConfigurationChangedError(
            checked=f"the configuration of run {manifest.run_id}",
            expected="its path in run.json, or on the command line",
            found="neither",
            next_action="name the configuration file when committing",
        )
    current = load_configuration(Path(where), source_settings=record.source_settings).config_version
    if current != manifest.config_version:
        raise ConfigurationChangedError(
            checked=f"the configuration {where}",
            expected=f"version {manifest.config_version}, from which run {manifest.run_id} was planned",
            found=f"version {current}",
            next_action="make a new plan with the configuration as it is now",
        )
    return current
