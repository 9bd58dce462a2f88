"""``runs`` and ``runs show``: state and results of committed plans, from the projection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ledger.cli.applying import RunResult, run_result
from ledger.cli.output import OutputForm, next_command, people, write_document, write_records, write_rows
from ledger.cli.plan_commands import OutputOption, RunArgument
from ledger.cli.run_display import binding_line, print_run
from ledger.cli.run_lookup import binding_of_run, run_id_of
from ledger.cli.session import ledger_dsns, require_ledger, run_async, settings_of
from ledger.exit_codes import ExitCode

if TYPE_CHECKING:
    from ledger.cli.settings import Settings
    from ledger.store.ledger import BindingRow

COLUMNS = (
    "run",
    "state",
    "source",
    "destination",
    "planned",
    "applied",
    "skipped",
    "failed",
    "unknown",
    "committed_at",
)
SPARE = ("committed_at", "skipped", "destination", "planned")
"""The first one first: a run's id begins with the time at which it was planned, and newer runs stand first."""

runs = typer.Typer(help="List runs, newest first; `runs show RUN` shows one.", invoke_without_command=True)


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.add_typer(runs, name="runs")


@runs.callback()
def list_runs(
    context: typer.Context,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Maximum number of runs.")] = 20,
    output: OutputOption = OutputForm.TABLE,
) -> int | None:
    """List runs, newest first."""
    if context.invoked_subcommand is not None:
        return None
    settings = settings_of(context)
    require_ledger(settings)
    rows, bindings = run_async(_overviews(settings))
    shown = rows[:limit]
    columns = COLUMNS if len(bindings) > 1 else tuple(column for column in COLUMNS if column != "destination")
    if output is OutputForm.TABLE:
        for binding in bindings:
            people.print(binding_line(binding))
        shown = [{**row, "committed_at": (row["committed_at"] or "")[:16].replace("T", " ")} for row in shown]
    write_rows(shown, form=output, stream="runs", columns=columns, total=len(rows), spare=SPARE)
    if not rows:
        people.print("nothing has been committed to this ledger yet")
        next_command("apply-ledger plan --config-file FILE")
    return ExitCode.DONE


@runs.command("show", short_help="Show one run: counts, positions, what failed.")
def show_run(context: typer.Context, run: RunArgument, output: OutputOption = OutputForm.TABLE) -> int:
    """Show one run: counts that add up to its plan, positions, what failed, what it overwrote."""
    settings = settings_of(context)
    require_ledger(settings)
    result = run_async(_one(settings, run_id_of(run)))
    if output is OutputForm.JSON:
        write_document({**result.document, "findings": [finding.model_dump() for finding in result.findings]})
    elif output is OutputForm.NDJSON:
        write_records([result.document], stream="run-summary")
    else:
        print_run(result.document)
        for finding in result.findings:
            people.print(str(finding), style="red")
    return ExitCode.DONE


async def _overviews(settings: Settings) -> tuple[list[dict[str, Any]], list[BindingRow]]:
    from ledger.store.ledger import Ledger
    from ledger.store.projections import ProjectionStore

    dsns = await ledger_dsns(settings)
    found: list[dict[str, Any]] = []
    async with await Ledger.open(dsns.reader) as ledger, await ProjectionStore.open(dsns.projector) as projections:
        await projections.catch_up()
        bindings = await ledger.bindings()
        for row in bindings:
            for overview in await projections.runs(row.id):
                commitment = overview.run.commitment
                found.append(
                    {
                        "run": overview.run.run_id,
                        "state": "running" if overview.run.is_running else overview.run.state,
                        "source": commitment.source if commitment else None,
                        "destination": str(row.binding),
                        "planned": overview.run.planned,
                        "applied": overview.applied,
                        "skipped": overview.skipped,
                        "failed": overview.failed,
                        "unknown": overview.unknown,
                        "committed_at": commitment.committed_at if commitment else None,
                        "position": overview.run.first_position,
                    }
                )
    return sorted(found, key=lambda record: record["committed_at"] or "", reverse=True), bindings


async def _one(settings: Settings, run_id: str) -> RunResult:
    from ledger.store.ledger import Ledger

    dsns = await ledger_dsns(settings)
    async with await Ledger.open(dsns.reader) as ledger:
        row = await binding_of_run(ledger, run_id)
        return await run_result(dsns, ledger, row.binding, run_id)
