"""Prints a checkup: one line per check, and below it what to do, if necessary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from ledger.checkup import CheckResult, Verdict
from ledger.cli.output import data_console
from ledger.plan.review_page import Page
from ledger.printable import words

_STYLES = {Verdict.GOOD: "green", Verdict.WARNING: "yellow", Verdict.FAILURE: "bold red", Verdict.SKIPPED: "dim"}
_SIGNS = {Verdict.GOOD: "ok", Verdict.WARNING: "warn", Verdict.FAILURE: "FAIL", Verdict.SKIPPED: "–"}
_NAMES = {Verdict.GOOD: "good", Verdict.WARNING: "warning", Verdict.FAILURE: "failed", Verdict.SKIPPED: "not looked at"}
_SIGN_COLUMN = 6
_CHECK_COLUMN = 16
_WIDE = 110
"""Columns of a terminal from which on the sync's identity is shown beside the destination's key."""

_CONVERGES = {"human-friendly id": "hfid"}


class DoctorPage:
    """Shows results as they come, grouped by what they are about."""

    def __init__(self) -> None:
        console = data_console()
        self._page = Page(console)
        self._width = console.width
        self._subject: str | None = None

    def show(self, result: CheckResult) -> None:
        """One result; the first of a subject names it above."""
        page, said = self._page, result.said
        if result.subject != self._subject:
            if self._subject is not None:
                page.blank()
            page.line(Text(words(result.subject), style="bold"))
            self._subject = result.subject
        head = Text.assemble(
            (f"{_SIGNS[said.verdict]:<{_SIGN_COLUMN}}", _STYLES[said.verdict]),
            (f"{result.check:<{_CHECK_COLUMN}}", "" if said.verdict is not Verdict.SKIPPED else "dim"),
        )
        self._hanging(head, words(said.found), "dim" if said.verdict is Verdict.SKIPPED else "")
        if said.next_action:
            self._hanging(Text(" " * (_SIGN_COLUMN + _CHECK_COLUMN)), f"→ {words(said.next_action)}", "cyan")
        table = said.facts.get("table")
        if isinstance(table, Sequence) and table:
            page.block(_kinds(table, wide=self._width >= _WIDE), 2 + _SIGN_COLUMN)
        page.flush()

    def end(self, counts: Mapping[Verdict, int]) -> None:
        """All counts, zeros too."""
        self._page.blank()
        told = " · ".join(f"{counts.get(verdict, 0)} {name}" for verdict, name in _NAMES.items())
        self._page.last_line(Text(told, style="bold"))

    def _hanging(self, head: Text, text: str, style: str) -> None:
        """A head and words beside it; the words' own lines stay beside it where they are folded."""
        grid = Table.grid(padding=0)
        grid.add_column(width=_SIGN_COLUMN + _CHECK_COLUMN)
        grid.add_column(overflow="fold")
        grid.add_row(head, Text(text, style=style))
        self._page.indented(grid, 2)


def _kinds(rows: Sequence[Mapping[str, Any]], *, wide: bool) -> Table:
    """Which kind converges on what: the destination's key, not the configuration's identifiers (P40, P43)."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("kind", overflow="fold")
    table.add_column("converges on", no_wrap=True)
    table.add_column("key at the destination", overflow="fold")
    if wide:
        table.add_column("identity of the sync", overflow="fold")
    for row in rows:
        style = "red" if row["problem"] else ("yellow" if row["converges_on"] == "constraint" else "")
        key = ", ".join(path.removesuffix("__value").replace("__", ".") for path in row["key"])
        cells = [row["kind"], _CONVERGES.get(row["converges_on"], row["converges_on"]), key or "–"]
        cells += [", ".join(row["identity"]) or "–"] if wide else []
        table.add_row(*(Text(words(str(cell)), style=style) for cell in cells))
    return table
