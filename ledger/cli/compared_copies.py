"""``verify --against``: where another copy of the log differs from this one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ledger.cli.chosen_bindings import normalised_url
from ledger.cli.output import (
    OutputForm,
    clock,
    data_console,
    write_document,
    write_records,
    write_rows,
)
from ledger.cli.session import open_ledger, run_async
from ledger.cli.verification_record import VerificationRecord, export_subject, ledger_subject, recorded
from ledger.errors import UsageError
from ledger.exit_codes import ExitCode
from ledger.plan.describe import value_text
from ledger.printable import visible

if TYPE_CHECKING:
    from ledger.audit.source import AuditSource
    from ledger.audit.two_copies import Comparison, Difference
    from ledger.cli.settings import Settings
    from ledger.store.records import BindingRow

_COLUMNS = ("change", "position", "position_there", "kind", "recorded_at", "run_id", "differs")
_SPARE = ("run_id", "recorded_at")


def compare_copies(
    settings: Settings, against: Path, export: Path | None, url: str | None, branch: str | None, form: OutputForm
) -> int:
    """Compare the ledger, or an export, with an export of another copy; print what differs."""
    found, row = run_async(_compared(settings, against, export, url, branch))
    subject = ledger_subject(settings) if export is None else export_subject(export)
    record = recorded(f"{subject}, beside {export_subject(against)}", [], {})
    document = {"url": row.url, "branch": row.branch, **_document(found), "verification": record.document()}
    if form is OutputForm.JSON:
        write_document(document)
    elif form is OutputForm.NDJSON:
        write_records([document], stream="comparison")
    else:
        _print(found, row, record)
    return ExitCode.DONE if found.same else ExitCode.TAMPERED


async def _compared(
    settings: Settings, against: Path, export: Path | None, url: str | None, branch: str | None
) -> tuple[Comparison, BindingRow]:
    from contextlib import closing

    from ledger.audit.export.reading import ExportedLedger

    with closing(ExportedLedger(against)) as there:
        other = (await there.bindings())[0]
        _require_named(other, url, branch)
        if export is not None:
            with closing(ExportedLedger(export)) as here:
                return await _compare(here, there, other)
        async with open_ledger(settings) as ledger:
            return await _compare(ledger, there, other)


async def _compare(here: AuditSource, there: AuditSource, other: BindingRow) -> tuple[Comparison, BindingRow]:
    from ledger.audit.two_copies import compare_copies as compared

    row = await here.binding(other.binding)
    if row is None:
        raise UsageError(
            checked="the binding of the export behind --against",
            expected=", ".join(str(known.binding) for known in await here.bindings()) or "a binding",
            found=str(other.binding),
            next_action="compare copies of one binding",
        )
    return await compared(here, row, there, other), row


def _require_named(other: BindingRow, url: str | None, branch: str | None) -> None:
    if (url is not None and normalised_url(url) != other.url) or branch not in (None, other.branch):
        raise UsageError(
            checked="--url and --branch",
            expected=str(other.binding),
            found=f"{url or 'any url'} [{branch or 'any branch'}]",
            next_action="leave them out: the export says which binding it is of",
        )


def _document(found: Comparison) -> dict[str, Any]:
    return {
        "same": found.same,
        "compared": found.compared,
        "differences": [difference.document() for difference in found.differences],
        "differences_total": found.total,
        "behind_here": found.behind_here,
        "behind_there": found.behind_there,
        "unreadable": found.unreadable,
    }


def _print(found: Comparison, row: BindingRow, record: VerificationRecord) -> None:
    console = data_console()

    def say(text: str, style: str = "") -> None:
        console.print(visible(text), style=style, soft_wrap=True)

    verdict = "the copies agree" if found.same else "THE COPIES DIFFER"
    say(f"{row.url} [{row.branch}] {verdict}  {found.compared:,} events are in both", "bold")
    if found.differences:
        rows = [_row(difference) for difference in found.differences]
        write_rows(
            rows,
            form=OutputForm.TABLE,
            stream="comparison",
            columns=_COLUMNS,
            spare=_SPARE,
            folded=("differs",),
        )
    if found.total > len(found.differences):
        say(f"and {found.total - len(found.differences):,} more")
    for text in found.unreadable:
        say(f"not readable, and not compared from there on: {text}", "red")
    if found.behind_here:
        say(f"this copy goes on behind the other one by {found.behind_here:,} events")
    if found.behind_there:
        say(f"this copy ends, and the other one goes on by {found.behind_there:,} events", "red")
    for label, text in record.lines():
        say(f"  {label:<10}{text}")


def _row(difference: Difference) -> dict[str, Any]:
    document = difference.document()
    differs = [
        f"{name}: {value_text(values['here'])} here, {value_text(values['there'])} there"
        for name, values in document["fields"].items()
    ]
    return {**document, "recorded_at": clock(document["recorded_at"]), "differs": "; ".join(differs) or None}
