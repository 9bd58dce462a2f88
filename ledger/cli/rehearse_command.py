"""``rehearse``: dry run of a saved plan on a sandbox in place of the destination."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ledger.cli.output import OutputForm, clock, next_command
from ledger.cli.plan_commands import OutputOption, RunArgument
from ledger.cli.plan_kinds import require_kind
from ledger.cli.progress import progress
from ledger.cli.rehearsal_display import Told
from ledger.cli.run_lookup import find_run_directory
from ledger.cli.session import infrahub_settings, run_async, settings_of
from ledger.exit_codes import ExitCode

if TYPE_CHECKING:
    from consumers.infrahub.reader import InfrahubReader
    from consumers.infrahub.sandbox.seeding import Seeded
    from consumers.rehearsal import Effect, RehearsalSummary
    from ledger.cli.settings import Settings
    from ledger.commit import PlanCommit
    from ledger.destination import ObservedObject
    from ledger.plan.reader import PlanArtifact, RawPlanArtifact
    from ledger.schema import DestinationSchema

_ACTOR = "rehearsal"


@dataclass(frozen=True, slots=True)
class _Stage:
    """What a rehearsal begins with: the destination's schema and its objects, and where both are from."""

    document: Mapping[str, Any]
    schema: DestinationSchema
    schema_from: str
    observed: Sequence[ObservedObject]
    observed_from: str


def register(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command("rehearse", short_help="Dry run: apply a plan to a copy of its destination.")(rehearse)


def rehearse(
    context: typer.Context,
    run: RunArgument,
    schema: Annotated[
        Path | None,
        typer.Option("--schema", help="Saved answer to GET /api/schema; the destination is not contacted."),
    ] = None,
    config_file: Annotated[
        Path | None, typer.Option("--config-file", help="The sync's configuration file, if it was moved.")
    ] = None,
    detail: Annotated[bool, typer.Option("--detail", help="Show every operation with its fields, old → new.")] = False,
    kind: Annotated[str | None, typer.Option("--kind", help="List only operations on this kind.")] = None,
    output: OutputOption = OutputForm.TABLE,
) -> int:
    """Dry run: apply a saved plan to a sandbox with the destination's schema and the plan's snapshot.

    The destination is only read, the ledger is not touched, and nothing is recorded. Exit code 0 if an apply would
    carry out everything, 3 if the writer would refuse the plan before its first write, 4 if an operation would be
    refused.
    """
    settings = settings_of(context)
    summary = run_async(_rehearse(settings, run, schema, config_file, output, detail=detail, kind=kind))
    if summary.stopped_at is not None:
        return ExitCode.STOPPED_UNWRITTEN
    return ExitCode.DONE


async def _rehearse(
    settings: Settings,
    run: str,
    schema_file: Path | None,
    config_file: Path | None,
    form: OutputForm,
    *,
    detail: bool,
    kind: str | None,
) -> RehearsalSummary:
    from ledger.plan.reader import parse_artifact, read_raw_artifact
    from producers.commit import build_commit

    run_dir = find_run_directory(settings.cache_dir, run)
    raw = read_raw_artifact(run_dir)
    artifact = parse_artifact(raw)
    commit = build_commit(
        run_dir, actor=_ACTOR, reason="", policy=_policy(), clock=lambda: datetime.now(UTC), configuration=config_file
    )
    require_kind(kind, {operation.kind for operation in artifact.operations})
    stage = await _stage(settings, run_dir, artifact, commit, schema_file)
    _require_admitted(settings, raw, commit, stage.schema)
    head = {
        "run": f"{run_dir.parent.name}/{run_dir.name}",
        "run_id": commit.run_id,
        "plan_checksum": commit.plan_checksum,
        "destination_binding": commit.binding.model_dump(),
        "schema": {"from": stage.schema_from, "hash": stage.schema.hash},
        "observed": {
            "from": stage.observed_from,
            "objects": len(stage.observed),
            "kinds": len({item.kind for item in stage.observed}),
        },
    }
    told = Told(form, kind=kind, detail=detail, head=head, schema=stage.schema)
    summary, notes = await _perform(stage, artifact, commit, told)
    told.end(summary, notes)
    if summary.stopped_at is None and summary.operations and form is OutputForm.TABLE:
        next_command(f"apply-ledger apply {head['run']} --expected-checksum {commit.plan_checksum}")
    return summary


async def _perform(
    stage: _Stage, artifact: PlanArtifact, commit: PlanCommit, told: Told
) -> tuple[RehearsalSummary, list[str]]:
    from consumers.infrahub.observed import kinds_of_interest, narrowed
    from consumers.infrahub.rehearsed import open_rehearsal
    from consumers.rehearsal import Rehearsal, RehearsalSummary

    summary, total = RehearsalSummary(), len(artifact.operations)
    kinds = kinds_of_interest(stage.schema, artifact.operations) | {item.kind for item in stage.observed}
    document = narrowed(stage.document, kinds)
    # a bar and lines that come meanwhile would be drawn into each other on one terminal
    with nullcontext(None) if told.streams else progress("operations") as report:

        def took(effect: Effect) -> None:
            summary.take(effect)
            told.take(effect)
            if report is not None:
                report("rehearsing", summary.operations, total)

        async with open_rehearsal(document, stage.observed, run_id=commit.run_id, told=took) as opened:
            await Rehearsal(
                artifact.operations,
                opened.destination,
                binding=commit.binding,
                run_id=commit.run_id,
                skipped=opened.destination.skipped,
            ).run()
    return summary, _notes(opened.seeded)


def _policy() -> Any:
    from ledger.commit import Policy

    return Policy()


async def _stage(
    settings: Settings, run_dir: Path, artifact: PlanArtifact, commit: PlanCommit, schema_file: Path | None
) -> _Stage:
    """The schema now, or from a file; the objects as they were observed, or, of a plan made elsewhere, as they are."""
    from consumers.infrahub.connection import open_reader
    from consumers.infrahub.sandbox.server import load_schema_document
    from ledger.schema import parse_schema

    if schema_file is not None:
        document = load_schema_document(schema_file)
        schema = parse_schema(document)
        observed, origin = _snapshot(run_dir, artifact, schema)
        return _Stage(
            document, schema, f"from the file {schema_file}; the destination was not contacted", observed, origin
        )
    destination = settings.declared(commit.binding)
    async with open_reader(infrahub_settings(settings, destination)) as reader:
        document = await reader.schema_document()
        schema = parse_schema(document)
        if _was_observed(run_dir, artifact):
            observed, origin = _snapshot(run_dir, artifact, schema)
        else:
            observed, origin = await _read(reader, schema, artifact), "read from the destination now"
        return _Stage(document, schema, "of the destination now", observed, origin)


def _was_observed(run_dir: Path, artifact: PlanArtifact) -> bool:
    """Whether the destination was read for the plan; a plan of an empty destination has no snapshot, but a coverage."""
    from consumers.infrahub.observed import has_snapshot

    return has_snapshot(run_dir) or artifact.manifest.coverage is not None


def _snapshot(run_dir: Path, artifact: PlanArtifact, schema: DestinationSchema) -> tuple[Sequence[ObservedObject], str]:
    from consumers.infrahub.observed import observed_in_snapshot

    if not _was_observed(run_dir, artifact):
        return [], "because the plan has no snapshot and the destination was not contacted"
    return list(
        observed_in_snapshot(run_dir, schema)
    ), f"as observed for the plan at {clock(artifact.manifest.created_at)}"


async def _read(reader: InfrahubReader, schema: DestinationSchema, artifact: PlanArtifact) -> Sequence[ObservedObject]:
    from consumers.infrahub.observed import observed_now

    with progress("objects") as report:
        return await observed_now(
            reader, schema, artifact.operations, lambda done: report("reading the destination", done, None)
        )


def _require_admitted(settings: Settings, raw: RawPlanArtifact, commit: PlanCommit, schema: DestinationSchema) -> None:
    """What the gate would say, all of it (exit code 3)."""
    from consumers.errors import RehearsalRefusedError
    from consumers.plan_checks import PlanChecks

    aliases = [name for item in settings.destination if item.names(commit.binding) for name in item.other_names]
    checks = PlanChecks(
        binding=settings.recorded_as(commit.binding), commit=commit, policy=commit.policy, aliases=tuple(aliases)
    )
    findings, _ = checks.run(raw, schema)
    if findings:
        raise RehearsalRefusedError(run_id=commit.run_id, findings=findings)


def _notes(seeded: Seeded) -> list[str]:
    """What a rehearsal cannot know."""
    notes = []
    if seeded.unknown:
        notes.append(f"observed then, and not in the schema any more: {', '.join(sorted(seeded.unknown))}")
    for where, count in sorted(seeded.dangling.items()):
        notes.append(f"{count:,} peers under {where} were not observed, so they are missing here")
    return notes
