"""``plan`` and ``show``: make a plan from a source, and read it before anything is written."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ledger.cli.fresh_plan import fresh_plan
from ledger.cli.ledger_words import warn_of_no_ledger, what_the_ledger_says
from ledger.cli.output import OutputForm, data_console, next_command, people, write_document, write_records
from ledger.cli.plan_kinds import require_kind
from ledger.cli.plan_origin import origin_of
from ledger.cli.progress import progress
from ledger.cli.run_lookup import find_run_directory
from ledger.cli.session import (
    infrahub_settings,
    known_schemas,
    open_ledger,
    run_async,
    settings_of,
)
from ledger.cli.written_meanwhile import with_the_writer
from ledger.errors import ConfigurationError, UsageError
from ledger.exit_codes import ExitCode

if TYPE_CHECKING:
    from ledger.binding import DestinationBinding
    from ledger.cli.settings import Settings
    from ledger.plan import SavedPlan
    from ledger.plan.review import LedgerWords, PlanOrigin
    from ledger.store.ledger import Ledger
    from producers.config import LoadedConfiguration
    from producers.planning import PlannedRun

OutputOption = Annotated[OutputForm, typer.Option("--output", "-o", help="Format of the data on stdout.")]
RunArgument = Annotated[
    str, typer.Argument(metavar="RUN", help="<sync-name>/<run-id>, or the whole run id if only one sync has it.")
]


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command("plan", short_help="Compare a source with its destination and save the changes.")(plan)
    app.command("show", short_help="Review a saved plan; nothing is written.")(show)


def plan(
    context: typer.Context,
    name: Annotated[str | None, typer.Option("--name", help="Name of the sync, looked for below --directory.")] = None,
    config_file: Annotated[Path | None, typer.Option("--config-file", help="The sync's configuration file.")] = None,
    directory: Annotated[Path, typer.Option("--directory", help="Where config.yml files are looked for.")] = Path(),
    branch: Annotated[str | None, typer.Option("--branch", help="Branch of the destination.")] = None,
    source_setting: Annotated[
        list[str] | None, typer.Option("--source-setting", metavar="NAME=VALUE", help="Override a source setting.")
    ] = None,
    continue_on_error: Annotated[
        bool,
        typer.Option(
            "--continue-on-error",
            help="Leave out rows that cannot be planned, each with its reason, instead of failing.",
        ),
    ] = False,
    allow_rowcount_drop: Annotated[
        bool, typer.Option("--allow-rowcount-drop", help="Plan even if a kind lost more than half of its rows.")
    ] = False,
    allow_rowcount_drop_of: Annotated[
        list[str] | None,
        typer.Option("--allow-rowcount-drop-of", metavar="KIND", help="The same for this kind alone; repeatable."),
    ] = None,
    concurrent_load: Annotated[
        bool, typer.Option("--concurrent-load/--no-concurrent-load", help="Read source and destination in parallel.")
    ] = True,
    detailed_exitcode: Annotated[
        bool, typer.Option("--detailed-exitcode", help="Exit with 2 if the plan contains a create or an update.")
    ] = False,
    output: OutputOption = OutputForm.TABLE,
) -> int:
    """Compare a source with its destination and save the changes as a plan; the destination is only read."""
    from producers.config import find_configuration, load_configuration

    if (name is None) == (config_file is None):
        raise UsageError(
            checked="the options of plan",
            expected="exactly one of --name and --config-file",
            found="both" if name else "neither",
            next_action="apply-ledger plan --config-file FILE",
        )
    path = config_file or find_configuration(directory, name or "")
    loaded = load_configuration(path, source_settings=_source_settings(source_setting or []))
    for warning in loaded.warnings:
        people.print(f"warning: {warning}", style="yellow")
    for kind in allow_rowcount_drop_of or []:
        require_kind(kind, loaded.config.kinds, option="--allow-rowcount-drop-of", of="this configuration")
    settings = settings_of(context)
    options = {
        "continue_on_error": continue_on_error,
        "allow_rowcount_drop": allow_rowcount_drop,
        "allow_rowcount_drop_of": frozenset(allow_rowcount_drop_of or []),
        "concurrent_load": concurrent_load,
    }
    planned = run_async(_plan(settings, loaded, branch, options))
    _show_planned(settings, planned, output, warnings=planned.warnings[len(loaded.warnings) :])
    changes = any(planned.counts.get(action) for action in ("create", "update"))
    return ExitCode.CHANGES_PRESENT if detailed_exitcode and changes else ExitCode.DONE


def show(
    context: typer.Context,
    run: RunArgument,
    detail: Annotated[bool, typer.Option("--detail", help="Show every resource with its fields.")] = False,
    kind: Annotated[str | None, typer.Option("--kind", help="Only resources of this kind.")] = None,
    output: OutputOption = OutputForm.TABLE,
) -> int:
    """Show a saved plan: what it would change, who wrote that last, whether it is stale. Nothing is written."""
    settings = settings_of(context)
    saved = _saved(find_run_directory(settings.cache_dir, run))
    require_kind(kind, saved.kinds)
    told, origin = run_async(what_the_ledger_says(settings, saved)), origin_of(saved.run_dir)
    if output is OutputForm.TABLE:
        from ledger.plan.review import render_review

        render_review(saved, data_console(), detail=detail, kind=kind, ledger=told, origin=origin)
        _say_how_it_goes_on(saved, told, origin)
        return ExitCode.REFUSED if saved.problems else ExitCode.DONE
    from ledger.plan.review import review_document

    document = review_document(saved, kind=kind, ledger=told, origin=origin)
    if output is OutputForm.JSON:
        write_document(document)
    else:
        write_records(document["resources"], stream="plan-review")
    return ExitCode.REFUSED if saved.problems else ExitCode.DONE


def _say_how_it_goes_on(saved: SavedPlan, told: LedgerWords, origin: PlanOrigin) -> None:
    """The command after a review: to apply these bytes, to look at their run, or to make a fresh plan."""
    from ledger.plan.model import APPLICABLE_FORMATS

    run = f"{saved.run_dir.parent.name}/{saved.run_dir.name}"
    if told.committed:
        next_command(f"apply-ledger runs show {run}")
    elif saved.problems or told.stale or saved.manifest.format_version not in APPLICABLE_FORMATS:
        next_command(fresh_plan(origin))
    elif not saved.summary.in_line:
        next_command(_apply_command(run, saved.manifest.plan_checksum))


def _apply_command(run: str, checksum: str) -> str:
    return f"apply-ledger apply {run} --expected-checksum {checksum}"


def _source_settings(pairs: list[str]) -> dict[str, str]:
    settings: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name or name in settings:
            raise UsageError(
                checked="--source-setting",
                expected="NAME=VALUE, each name once",
                found=repr(pair) if "=" not in pair else f"{name!r} twice or empty",
                next_action="for example --source-setting directory=../data/day0",
            )
        settings[name] = value
    return settings


async def _plan(
    settings: Settings, loaded: LoadedConfiguration, branch: str | None, options: dict[str, Any]
) -> PlannedRun:
    from consumers.infrahub.connection import open_reader
    from producers.binding import TOKEN_VARIABLE, destination_token
    from producers.config import resolve_binding
    from producers.planning import PlanOptions, make_plan

    binding = resolve_binding(loaded.config, environ=os.environ, branch_flag=branch)
    _say_what_decides(loaded, binding)
    destination = settings.declared(binding)
    # a destination that names another variable must not get the usual one's token: that may be another server's
    others = {name: value for name, value in os.environ.items() if name != TOKEN_VARIABLE}
    in_file = destination_token(loaded.config, environ=others)
    infrahub = infrahub_settings(settings, destination, fallback=in_file)
    async with open_reader(infrahub, known=known_schemas()) as reader:
        # Before anything is read there: what is written while we read must count as written since.
        position, baseline = await _position_and_baseline(settings, reader.binding, loaded.config.name)
        plan_options = PlanOptions(**options, baseline=baseline, ledger_position=position)
        with progress("objects") as report:
            return await make_plan(
                loaded,
                reader,
                root=settings.cache_dir,
                options=plan_options,
                clock=lambda: datetime.now(UTC),
                progress=lambda state: report(state.phase, state.done, state.total),
                explain=partial(with_the_writer, settings, reader.binding, position),
            )


async def _position_and_baseline(
    settings: Settings, binding: DestinationBinding, source: str
) -> tuple[int | None, dict[str, int] | None]:
    """The position of the binding's log, and the rows of this source's last applied plan; neither without a ledger."""
    from ledger.store.errors import LedgerUnavailableError

    try:
        async with open_ledger(settings) as ledger:
            row = await ledger.binding(binding)
            return (0, None) if row is None else (row.head_position, await _baseline(ledger, row.id, source))
    except LedgerUnavailableError as exc:
        warn_of_no_ledger("the plan has no ledger position, so every write of another source counts as newer", exc)
        return None, None


async def _baseline(ledger: Ledger, binding_id: int, source: str) -> dict[str, int] | None:
    """Rows per kind of this source's last applied plan, from the manifest in the ledger (design 4.13)."""
    from ledger.plan.manifest import decode_manifest, parse_manifest
    from producers.guards import rowcounts_of_snapshots

    manifest = await ledger.last_applied_manifest(binding_id, source)
    if manifest is None:
        return None
    return rowcounts_of_snapshots(parse_manifest(decode_manifest(manifest)).source_snapshot)


def _say_what_decides(loaded: LoadedConfiguration, binding: DestinationBinding) -> None:
    """The environment wins over the file, as it does in infrahub-sync; where they differ that must be seen."""
    from ledger.binding import normalise_url

    in_file = loaded.config.destination.settings.get("url")
    if not isinstance(in_file, str) or "$" in in_file:
        return
    try:
        named = normalise_url(in_file)
    except ConfigurationError:
        named = "no usable address"
    if named != binding.url:
        note = f"note: planning for {binding.url} from the environment; the file says {named}"
        people.print(note, style="yellow")


def _saved(run_dir: Path) -> SavedPlan:
    from ledger.plan import read_saved_plan

    return read_saved_plan(run_dir)


def _show_planned(settings: Settings, planned: PlannedRun, output: OutputForm, *, warnings: Sequence[str]) -> None:
    run = f"{planned.run_dir.parent.name}/{planned.run_id}"
    for warning in warnings:
        people.print(f"warning: {warning}", style="yellow")
    if output is OutputForm.TABLE:
        from ledger.plan.review import render_review

        saved = _saved(planned.run_dir)
        told = run_async(what_the_ledger_says(settings, saved))
        origin = replace(origin_of(saved.run_dir), warnings=())  # they were just printed
        render_review(saved, data_console(), listed=False, ledger=told, origin=origin)
    else:
        record = {
            "run": run,
            "run_id": planned.run_id,
            "run_dir": str(planned.run_dir),
            "plan_checksum": planned.manifest.plan_checksum,
            "counts": dict(planned.counts),
            "operations_count": planned.manifest.operations_count,
            "filtered_rows": dict(planned.filtered_rows),
            "source_rows": {name: rows.model_dump() for name, rows in planned.source_rows.items()},
            "findings": [finding.model_dump() for finding in planned.findings],
        }
        if output is OutputForm.JSON:
            write_document(record)
        else:
            write_records([record], stream="planned-run")
    next_command(f"apply-ledger show {run} --detail")
    if planned.counts["create"] or planned.counts["update"]:
        next_command(_apply_command(run, planned.manifest.plan_checksum))
