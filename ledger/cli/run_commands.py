"""``runs`` and ``runs show``: state and results of committed plans, from the projection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ledger.cli.current_projections import current_projections
from ledger.cli.output import OutputForm, clock, next_command, people, write_document, write_records, write_rows
from ledger.cli.plan_commands import OutputOption, RunArgument
from ledger.cli.run_display import binding_line, show_result
from ledger.cli.run_lookup import binding_of_run, plan_command, run_id_of
from ledger.cli.run_results import RunResult, order_document, run_result, state_word, writer_document
from ledger.cli.session import ledger_dsns, require_ledger, run_async, settings_of
from ledger.cli.verification_record import say_ledger
from ledger.exit_codes import ExitCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ledger.cli.settings import Settings
    from ledger.projections.run_summary import RunOverview
    from ledger.store.ledger import BindingRow, Order

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
    "waiting",
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
    left_out = set() if len(bindings) > 1 else {"destination"}
    if output is OutputForm.TABLE:
        say_ledger(settings)
        for binding, orders in bindings:
            people.print(binding_line(binding, orders))
        shown = [_table_row(row) for row in shown]
        if not any(row["waiting"] for row in shown):
            left_out.add("waiting")
    columns = [column for column in COLUMNS if column not in left_out]
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
        show_result(result, run, table=True, fresh=plan_command(settings.cache_dir, run))
    return ExitCode.DONE


def _table_row(row: dict[str, Any]) -> dict[str, Any]:
    """A run for people: one word for its state, and who ordered what nobody has begun to carry out."""
    begun = ("commit", "resume") if row["running"] else ("commit",)
    waits = [f"{order['kind']} by {order['by']}" for order in row["open_orders"] if order["kind"] not in begun]
    word = state_word(row["state"], running=row["running"], written=row["writer"] is not None)
    return {**row, "state": word, "waiting": ", ".join(waits), "committed_at": clock(row["committed_at"])}


async def _overviews(settings: Settings) -> tuple[list[dict[str, Any]], list[tuple[BindingRow, int]]]:
    from ledger.store.ledger import Ledger

    dsns = await ledger_dsns(settings)
    found: list[dict[str, Any]] = []
    bindings = []
    async with await Ledger.open(dsns.reader) as ledger, current_projections(dsns) as projections:
        for row in await ledger.bindings():
            orders = await ledger.open_orders(row.id)
            bindings.append((row, len(orders)))
            found += [_record(overview, row, orders) for overview in await projections.runs(row.id)]
    return sorted(found, key=lambda record: record["committed_at"] or "", reverse=True), bindings


def _record(overview: RunOverview, row: BindingRow, orders: Sequence[Order]) -> dict[str, Any]:
    run, commitment = overview.run, overview.run.commitment
    return {
        "run": run.run_id,
        "state": run.state,
        "running": run.is_running,
        "writer": writer_document(row),
        "source": commitment.source if commitment else None,
        "destination": str(row.binding),
        "planned": run.planned,
        "applied": overview.applied,
        "skipped": overview.skipped,
        "failed": overview.failed,
        "unknown": overview.unknown,
        "committed_at": commitment.committed_at if commitment else None,
        "position": run.first_position,
        "open_orders": [order_document(order) for order in orders if order.run_id == run.run_id],
    }


async def _one(settings: Settings, run_id: str) -> RunResult:
    from ledger.store.served import ServedLedger

    dsns = await ledger_dsns(settings)
    async with await ServedLedger.open(dsns.reader) as ledger:
        row = await binding_of_run(ledger, run_id)
        return await run_result(dsns, ledger, row.binding, run_id)
