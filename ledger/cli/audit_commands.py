"""``replay``, ``verify`` and ``rebuild``: read the record, prove it whole, compute the read side anew."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from ledger.binding import DestinationBinding
from ledger.cli.chosen_bindings import BranchOption, UrlOption, chosen_bindings, normalised_url
from ledger.cli.output import (
    OutputForm,
    data_console,
    people,
    write_document,
    write_record_line,
    write_records,
    write_rows,
    write_stream_head,
)
from ledger.cli.plan_commands import OutputOption
from ledger.cli.progress import progress
from ledger.cli.run_lookup import run_id_of
from ledger.cli.session import ledger_dsns, open_ledger, require_ledger, run_async, settings_of
from ledger.cli.topic_verification import audit_topic, show_topic_audit
from ledger.errors import ApplyLedgerError
from ledger.exit_codes import ExitCode

if TYPE_CHECKING:
    from ledger.audit import VerifyReport
    from ledger.cli.settings import Settings
    from ledger.store.projection_rebuild import Rebuilt

REPLAY_COLUMNS = ("position", "recorded_at", "kind", "run_id", "operation_id", "ordinal", "attempt", "writer_epoch")
REBUILD_COLUMNS = ("projection", "binding", "position", "documents", "equal", "digest")


class NothingToVerifyError(ApplyLedgerError):
    """An empty ledger holds nothing that could be wrong, and proves nothing either."""


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command("replay", short_help="List events exactly as they were recorded, in order.")(replay)
    app.command("verify", short_help="Check the chain, the stored plans and the outcomes.")(verify)
    app.command("rebuild", short_help="Compute the read side anew and compare it with the live one.")(rebuild)


def replay(
    context: typer.Context,
    run: Annotated[str | None, typer.Option("--run", help="Only the events of this run.")] = None,
    url: UrlOption = None,
    branch: BranchOption = None,
    after: Annotated[int, typer.Option("--after", min=0, help="Only events above this position.")] = 0,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="How many at most; a table shows 50 unless told.")
    ] = None,
    output: OutputOption = OutputForm.TABLE,
) -> int:
    """List events exactly as they were recorded, in order."""
    settings = settings_of(context)
    require_ledger(settings)
    if output is OutputForm.TABLE:
        rows, total = run_async(_first_events(settings, run, url, branch, after, limit or 50))
        known = ("run_id",) if run is not None else ()
        spare = (*known, "writer_epoch", "attempt", "ordinal", "recorded_at")
        write_rows(rows, form=output, stream="events", columns=REPLAY_COLUMNS, total=total, spare=spare)
        return ExitCode.DONE
    run_async(_stream_events(settings, run, url, branch, after, limit, output))
    return ExitCode.DONE


async def _stream_events(
    settings: Settings,
    run: str | None,
    url: str | None,
    branch: str | None,
    after: int,
    limit: int | None,
    form: OutputForm,
) -> None:
    if form is OutputForm.NDJSON:
        write_stream_head("events")
        async for record in _records(settings, run, url, branch, after, limit):
            write_record_line(record)
    else:
        write_document([record async for record in _records(settings, run, url, branch, after, limit)])


async def _first_events(
    settings: Settings, run: str | None, url: str | None, branch: str | None, after: int, limit: int
) -> tuple[list[dict[str, Any]], int]:
    rows: list[dict[str, Any]] = []
    total = 0
    async for record in _records(settings, run, url, branch, after, None):
        total += 1
        if len(rows) < limit:
            rows.append({**record, "recorded_at": record["recorded_at"][:19]})
    return rows, total


async def _records(
    settings: Settings, run: str | None, url: str | None, branch: str | None, after: int, limit: int | None
) -> AsyncIterator[dict[str, Any]]:
    from ledger.audit import replay_record

    run_id = None if run is None else run_id_of(run)
    left = limit
    async with open_ledger(settings) as ledger:
        for row in await chosen_bindings(ledger, url, branch, run_id):
            async for event in ledger.events(row.id, after=after, run_id=run_id):
                if left == 0:
                    return
                yield replay_record(event)
                left = None if left is None else left - 1


def verify(
    context: typer.Context,
    url: UrlOption = None,
    branch: BranchOption = None,
    from_kafka: Annotated[
        bool, typer.Option("--from-kafka", help="From the topic of events alone, without the database.")
    ] = False,
    output: OutputOption = OutputForm.TABLE,
) -> int:
    """Check the chain of events, the stored plans and the outcomes; say what held and what could not be checked."""
    settings = settings_of(context)
    if from_kafka:
        wanted = None if url is None else DestinationBinding(url=normalised_url(url), branch=branch or "main")
        return show_topic_audit(run_async(audit_topic(settings)), wanted, branch, output)
    require_ledger(settings)
    reports = run_async(_verify(settings, url, branch))
    if output is OutputForm.TABLE:
        for report in reports:
            _print_report(report)
    elif output is OutputForm.NDJSON:
        write_records([report.document() for report in reports], stream="verify")
    else:
        write_document([report.document() for report in reports])
    if not reports:
        raise NothingToVerifyError(
            checked="the bindings of this ledger",
            expected="at least one with a record to verify",
            found="none",
            next_action="check APPLY_LEDGER_DATA_DIR or APPLY_LEDGER_DSN; `apply-ledger runs` lists what was committed",
        )
    if all(report.holds for report in reports):
        return ExitCode.DONE
    for report in reports:
        for finding in report.findings:
            people.print(Text(str(finding), style="red"))
    return ExitCode.TAMPERED


async def _verify(settings: Settings, url: str | None, branch: str | None) -> list[VerifyReport]:
    from ledger.audit import verify_binding

    async with open_ledger(settings) as ledger:
        reports = []
        for row in await chosen_bindings(ledger, url, branch):
            with progress("events") as report:
                found = await verify_binding(
                    ledger, row.binding, progress=lambda done, total: report("verifying", done, total)
                )
            reports.append(found)
        return reports


def _print_report(report: VerifyReport) -> None:
    console = data_console()
    verdict = ("holds", "bold green") if report.holds else ("DOES NOT HOLD", "bold red")
    console.print(Text.assemble((f"{report.url} [{report.branch}] ", "bold"), verdict, f"  {report.events:,} events"))
    styles = {"held": "green", "failed": "bold red", "not checked": "yellow"}
    for level in report.levels:
        status = str(level.status)
        console.print(
            Text.assemble("  ", (f"{status:<12}", styles[status]), f"{level.level:<12}", f"{level.checked:>9,} ")
        )
        for note in level.unchecked:
            console.print(Text(f"      {note}", style="dim"), soft_wrap=True)
    console.print(Text(f"  head {report.head_position} {report.head_hash.hex()}", style="dim"), soft_wrap=True)


def rebuild(context: typer.Context, output: OutputOption = OutputForm.TABLE) -> int:
    """Compute every projection from the first event again and compare it with the live one, byte for byte."""
    settings = settings_of(context)
    require_ledger(settings)
    found, names = run_async(_rebuild(settings))
    rows = [
        {
            "projection": item.projection,
            "binding": names[item.binding_id],
            "position": item.position,
            "documents": item.documents,
            "equal": item.equal,
            "digest": item.digest,
        }
        for item in found
    ]
    write_rows(rows, form=output, stream="rebuild", columns=REBUILD_COLUMNS, spare=("digest",))
    differing = [row for row in rows if row["equal"] is False]
    if differing:
        people.print(
            f"{len(differing)} live projections differed from the log and were replaced; the log is the truth",
            style="yellow",
        )
    return ExitCode.ERROR if differing else ExitCode.DONE


async def _rebuild(settings: Settings) -> tuple[list[Rebuilt], dict[int, str]]:
    from ledger.projections.errors import ProjectionDriftedError
    from ledger.store.ledger import Ledger
    from ledger.store.projection_rebuild import rebuild as rebuild_projections
    from ledger.store.projections import ProjectionStore

    dsns = await ledger_dsns(settings)
    async with await ProjectionStore.open(dsns.projector) as projections:
        try:
            await projections.catch_up()
        except ProjectionDriftedError as exc:
            # after a restored backup the log lies behind the projection, and this command is the cure
            people.print(Text(f"the live projections do not follow from this log: {exc.found}", style="yellow"))
    found = await rebuild_projections(dsns.projector)
    async with await Ledger.open(dsns.reader) as ledger:
        return found, {row.id: str(row.binding) for row in await ledger.bindings()}
