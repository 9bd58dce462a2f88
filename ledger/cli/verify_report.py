"""The report of ``verify`` for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from ledger.cli.output import data_console
from ledger.printable import visible

if TYPE_CHECKING:
    from ledger.audit import VerifyReport
    from ledger.cli.verification_record import VerificationRecord

_STYLES = {"held": "green", "failed": "bold red", "not checked": "yellow", "nothing there": "dim"}
_STATUS, _LEVEL, _CHECKED = 15, 13, 24


def print_report(report: VerifyReport, record: VerificationRecord) -> None:
    """The verdict, the first break, each level with what is wrong there, and when, where and with what it was verified.

    All of it goes to where data goes: a report that is kept has its reasons with it.
    """
    console = data_console()
    _print_verdict(report, console)
    _print_levels(report, console)
    console.print(Text(f"  head {report.head_position} {report.head_hash.hex()}", style="dim"), soft_wrap=True)
    for label, text in record.lines():
        console.print(Text.assemble((f"  {label:<10}", "dim"), visible(text)), soft_wrap=True)
    print_findings(report, console)


def _print_verdict(report: VerifyReport, console: Console) -> None:
    verdict = ("holds", "bold green") if report.holds else ("DOES NOT HOLD", "bold red")
    console.print(Text.assemble((f"{report.url} [{report.branch}] ", "bold"), verdict, f"  {report.events:,} events"))
    if (first := report.first_break) is not None:
        where = f"  first break: {first.where}, {first.kind} ({first.level})"
        console.print(Text(where, style="bold red"), soft_wrap=True)


def _print_levels(report: VerifyReport, console: Console) -> None:
    from ledger.audit.report import COUNTS

    head = f"  {'status':<{_STATUS}}{'level':<{_LEVEL}}{'checked':<{_CHECKED}}findings"
    console.print(Text(head, style="dim"))
    for level in report.levels:
        status = str(level.status)
        unit = COUNTS[level.level]
        checked = f"{level.checked:,} {unit.removesuffix('s') if level.checked == 1 else unit}"
        total = (f"{level.total:,}", "bold red" if level.total else "")
        row = f"{level.level:<{_LEVEL}}{checked:<{_CHECKED}}"
        console.print(Text.assemble("  ", (f"{status:<{_STATUS}}", _STYLES[status]), row, total))
        for note in level.notes:
            console.print(Text(f"      {note}", style="dim"), soft_wrap=True)
        for skipped in level.unchecked:
            console.print(Text(f"      not checked: {skipped}", style="dim"), soft_wrap=True)


def print_findings(report: VerifyReport, console: Console) -> None:
    """Every finding that is kept in full, and how many more there are on each level."""
    for level in report.levels:
        for finding in level.findings:
            console.print(Text(f"  {level.level}: {finding}", style="red"), soft_wrap=True)
        if more := level.total - len(level.findings):
            console.print(Text(f"  and {more:,} more findings on the level {level.level}", style="red"), soft_wrap=True)
