"""Data goes to stdout in the form that was asked for; everything for people goes to stderr (design 9)."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ledger.errors import ApplyLedgerError
from ledger.printable import visible, visible_json
from ledger.record_stream import record_line, stream_head

PIPE_WIDTH = 250
UNBROKEN = frozenset({"run", "run_id", "operation_id", "kind", "position", "state"})
"""Columns that are copied or read at a glance: never folded, whatever the width."""

HEADINGS = {"writer_epoch": "epoch", "operation_id": "operation", "run_id": "run", "recorded_at": "recorded"}
_GAP = 2
"""Blanks between two columns."""
_FOLDED = 24
"""Cells that a column has at least whose values are folded into lines."""


class OutputForm(StrEnum):
    """How data is written to stdout; never guessed from a pipe."""

    TABLE = "table"
    JSON = "json"
    NDJSON = "ndjson"


people = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
"""For people: progress, hints, refusals. Never broken into lines, because commands, paths and checksums are copied from
it and logs are searched line by line; a terminal breaks them itself. Rich honours NO_COLOR by itself."""


def data_console() -> Console:
    """For tables on stdout; as wide as the terminal, and never broken for a pipe or a file."""
    return Console(highlight=False, markup=False, width=None if sys.stdout.isatty() else PIPE_WIDTH)


def document_text(document: Mapping[str, Any] | Sequence[Any]) -> str:
    """A JSON document as it is written: what a terminal would act on is escaped, as JSON allows."""
    return visible_json(json.dumps(document, indent=2, ensure_ascii=False))


def write_document(document: Mapping[str, Any] | Sequence[Any]) -> None:
    """One JSON document on stdout."""
    # as one piece: json.dump writes bracket by bracket, each a system call of its own where stdout has no buffer
    sys.stdout.write(document_text(document) + "\n")


def write_records(records: Iterable[Mapping[str, Any]], *, stream: str) -> None:
    """NDJSON on stdout: a first line that names the stream and its version, then a record a line."""
    write_stream_head(stream)
    for record in records:
        write_record_line(record)


def write_stream_head(stream: str) -> None:
    """The first line of a stream; unknown record types behind it must be tolerated."""
    sys.stdout.write(stream_head(stream))


def write_record_line(record: Mapping[str, Any]) -> None:
    """One record of a stream."""
    sys.stdout.write(record_line(record))


def write_rows(
    rows: Sequence[Mapping[str, Any]],
    *,
    form: OutputForm,
    stream: str,
    columns: Sequence[str],
    total: int | None = None,
    spare: Sequence[str] = (),
    folded: Sequence[str] = (),
) -> None:
    """A list in the form asked for; says on stderr when it was cut.

    Args:
        rows: one mapping a row.
        form: table, JSON or NDJSON.
        stream: name of the kind of record, for NDJSON.
        columns: keys shown in a table, in order; JSON forms always have all keys.
        total: how many rows there are in all, where ``rows`` was limited.
        spare: columns that are left out on a narrow terminal, in this order; stderr names them.
        folded: columns whose values are folded into several lines before any other column is left out.
    """
    if form is OutputForm.JSON:
        write_document(list(rows))
    elif form is OutputForm.NDJSON:
        write_records(rows, stream=stream)
    else:
        _print_table(rows, columns, spare, folded)
    if total is not None and total > len(rows):
        people.print(f"showing {len(rows)} of {total:,}; --limit shows more", style="dim")


def _print_table(
    rows: Sequence[Mapping[str, Any]], columns: Sequence[str], spare: Sequence[str], folded: Sequence[str]
) -> None:
    console = data_console()
    widths = {
        column: max(cell_len(text) for text in (_heading(column), *(_cell(row.get(column)) for row in rows)))
        for column in columns
    }
    shown = _fitting(widths, spare, folded, console.width)
    room = _shared(widths, shown, folded, console.width)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in shown:
        table.add_column(
            _heading(column),
            overflow="fold",
            justify=_justify(rows, column),
            no_wrap=column in UNBROKEN,
            width=room.get(column),
        )
    for row in rows:
        table.add_row(*(Text(_cell(row.get(column))) for column in shown))
    console.print(table)
    left_out = [_heading(column) for column in columns if column not in shown]
    if left_out:
        people.print(f"too narrow for {', '.join(left_out)}; use a wider terminal or --output json", style="dim")


def _fitting(widths: Mapping[str, int], spare: Sequence[str], folded: Sequence[str], width: int) -> list[str]:
    """The columns that fit into ``width``, as far as folding and leaving out the spare ones can bring that about."""
    needed = {name: min(cells, _FOLDED) if name in folded else cells for name, cells in widths.items()}
    shown = list(widths)
    for column in spare:
        if _row_width(needed, shown) <= width:
            break
        if column in shown:
            shown.remove(column)
    return shown


def _shared(widths: Mapping[str, int], shown: Sequence[str], folded: Sequence[str], width: int) -> dict[str, int]:
    """The cells of each folded column: what the others leave, and none more than it needs."""
    left = width - _row_width(widths, [*shown]) + sum(widths[name] for name in shown if name in folded)
    narrow_first = sorted((name for name in shown if name in folded), key=lambda name: widths[name])
    room: dict[str, int] = {}
    for turn, name in enumerate(narrow_first):
        fair = left // (len(narrow_first) - turn)
        room[name] = min(widths[name], max(_FOLDED, fair))
        left -= room[name]
    return room


def _row_width(widths: Mapping[str, int], shown: Sequence[str]) -> int:
    return sum(widths[name] + _GAP for name in shown) - _GAP


def _heading(column: str) -> str:
    return HEADINGS.get(column, column.replace("_", " "))


def _justify(rows: Sequence[Mapping[str, Any]], column: str) -> Any:
    return "right" if rows and all(isinstance(row.get(column), int) for row in rows) else "left"


def clock(moment: str | None) -> str:
    """A recorded time (ISO 8601 in UTC) as a table shows it: to the second, with its zone; empty for None."""
    return "" if not moment else f"{moment[:19]}Z"


def _cell(value: Any) -> str:
    match value:
        case None:
            return "–"
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case str():
            return visible(value)
        case _:
            return visible(json.dumps(value, ensure_ascii=False))


def show_refusal(error: ApplyLedgerError, *, console: Console = people) -> None:
    """A refusal for people: each finding with what was checked, expected, found, and the next action (G11).

    What differs in nothing but in what was checked stands together. What is to be done about all of it comes last.
    """
    findings = error.findings
    if len(findings) > 1:
        console.print(Text(f"{type(error).__name__}: {len(findings):,} findings", style="bold red"))
    alike: dict[tuple[str, str, str, str], list[str]] = {}
    for finding in findings:
        words = (finding.name, finding.expected, finding.found, finding.next_action)
        alike.setdefault(words, []).append(finding.checked)
    for (name, expected, found, next_action), checked in alike.items():
        console.print(Text(name if len(checked) == 1 else f"{name} ({len(checked):,} times)", style="bold red"))
        for turn, text in enumerate(checked):
            _print_labelled(console, "checked" if turn == 0 else "", text)
        for label, text in (("expected", expected), ("found", found), ("next", next_action)):
            _print_labelled(console, label, text)
    if error.next_action not in {finding.next_action for finding in findings}:
        if len(alike) == 1:
            _print_labelled(console, "then", error.next_action)
        else:
            console.print(Text.assemble(("for all of it: ", "dim"), error.next_action), soft_wrap=True)


def _print_labelled(console: Console, label: str, text: str) -> None:
    console.print(Text.assemble((f"  {label:<9}", "dim"), text), soft_wrap=True)


def next_command(command: str) -> None:
    """Print the command to run next, ready to be copied."""
    people.print(Text.assemble(("next: ", "dim"), (command, "bold")))
