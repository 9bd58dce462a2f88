"""The report of ``verify`` for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from ledger.cli.output import data_console, people

if TYPE_CHECKING:
    from ledger.audit import VerifyReport

_STYLES = {"held": "green", "failed": "bold red", "not checked": "yellow", "nothing there": "dim"}
_STATUS, _LEVEL, _CHECKED = 15, 13, 24


def print_report(report: VerifyReport) -> None:
    """The verdict, where the first break is, and a row for each level: what was looked at, and what is wrong."""
    from ledger.audit.report import COUNTS

    console = data_console()
    verdict = ("holds", "bold green") if report.holds else ("DOES NOT HOLD", "bold red")
    console.print(Text.assemble((f"{report.url} [{report.branch}] ", "bold"), verdict, f"  {report.events:,} events"))
    if (first := report.first_break) is not None:
        where = f"  first break: event {first.position:,}, {first.kind} ({first.level})"
        console.print(Text(where, style="bold red"), soft_wrap=True)
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
    console.print(Text(f"  head {report.head_position} {report.head_hash.hex()}", style="dim"), soft_wrap=True)


def print_findings(report: VerifyReport) -> None:
    """Every finding that is kept in full, and how many more there are on each level."""
    for level in report.levels:
        for finding in level.findings:
            people.print(Text(str(finding), style="red"))
        if more := level.total - len(level.findings):
            people.print(Text(f"and {more:,} more findings on the level {level.level}", style="red"))
