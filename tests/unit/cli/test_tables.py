"""Tables, help and summaries as a terminal of 80 columns shows them."""

from __future__ import annotations

import io
from typing import Any

import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from ledger.cli import main as program
from ledger.cli import output, run_display
from ledger.cli.output import OutputForm, write_rows
from tests.support.run_documents import run_document

EVENT: dict[str, Any] = {
    "position": 1_000_000,
    "recorded_at": "2026-11-30T02:52:18",
    "kind": "operation.applied",
    "run_id": "20261130T0252-0dfbc44f",
    "operation_id": "op_2cbe1bd966a6cb8d",
    "ordinal": 1,
    "attempt": 1,
    "writer_epoch": 1,
}


class _Terminal:
    """Consoles of one width for data and for people, and what was printed on each."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
        self.data, self.words = io.StringIO(), io.StringIO()
        made = Console(file=self.data, width=width, highlight=False, markup=False)
        monkeypatch.setattr(output, "data_console", lambda: made)
        monkeypatch.setattr(run_display, "data_console", lambda: made)
        monkeypatch.setattr(output, "people", Console(file=self.words, width=width, highlight=False, markup=False))


@pytest.mark.parametrize(
    ("width", "left_out"),
    [(200, []), (116, ["epoch"]), (80, ["epoch", "attempt", "ordinal", "recorded"])],
)
def test_a_narrow_terminal_goes_without_columns_and_says_so_instead_of_folding(
    monkeypatch: pytest.MonkeyPatch, width: int, left_out: list[str]
) -> None:
    terminal = _Terminal(monkeypatch, width)
    spare = ("writer_epoch", "attempt", "ordinal", "recorded_at")
    write_rows([EVENT], form=OutputForm.TABLE, stream="events", columns=list(EVENT), spare=spare)
    heading, row = terminal.data.getvalue().splitlines()
    assert not set(left_out) & set(heading.split())
    assert EVENT["run_id"] in row
    assert EVENT["operation_id"] in row
    assert all(name in terminal.words.getvalue() for name in left_out)
    assert bool(terminal.words.getvalue()) == bool(left_out)


@pytest.mark.parametrize("width", [250, 120])
def test_long_values_are_folded_before_a_column_is_left_out(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    row = {"attribute": "tags", "value": " ".join(f"word{number}" for number in range(60)), "actor": "ada", "why": "w"}
    terminal = _Terminal(monkeypatch, width)
    columns, spare = list(row), ("why", "actor")
    write_rows([row], form=OutputForm.TABLE, stream="x", columns=columns, spare=spare, folded=("attribute", "value"))
    lines = terminal.data.getvalue().splitlines()
    assert lines[0].split() == columns
    assert lines[1].split()[-2:] == ["ada", "w"]
    assert max(map(len, lines)) <= width
    assert all(f"word{number}" in terminal.data.getvalue() for number in range(60)), "folded, not cut"
    assert terminal.words.getvalue() == ""


def test_where_folding_is_not_enough_columns_are_left_out_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = _Terminal(monkeypatch, 40)
    row = {"value": "long words " * 20, "actor": "somebody.of.the.network", "why": "CHG-1"}
    write_rows([row], form=OutputForm.TABLE, stream="x", columns=list(row), spare=("actor",), folded=("value",))
    assert terminal.data.getvalue().splitlines()[0].split() == ["value", "why"]
    assert "actor" in terminal.words.getvalue()


def _commands() -> list[tuple[str, ...]]:
    root = typer.main.get_command(program.application())
    return [(), *((name,) for name in root.commands), ("runs", "show")]  # type: ignore[attr-defined] # root is a group


@pytest.mark.parametrize("command", _commands(), ids=" ".join)
def test_the_help_of_each_command_names_its_options_in_full_at_80_columns(command: tuple[str, ...]) -> None:
    narrow = {"COLUMNS": "80", "TERMINAL_WIDTH": "80"}
    shown = CliRunner().invoke(program.application(), [*command, "--help"], env=narrow)
    assert shown.exit_code == 0
    assert "…" not in shown.output
    # dots that say "and more of these" are no cut
    assert "..." not in shown.output.replace("[ARGS]...", "").replace("}...", "")
    assert max(map(len, shown.output.splitlines())) <= 80


@pytest.mark.rules("G5")
def test_g05_a_refused_attempt_says_that_an_earlier_one_of_its_run_wrote(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = _Terminal(monkeypatch, 200)
    run_display.print_run(run_document(state="refused"))
    assert "this attempt wrote nothing; writes of earlier attempts stay: 2 applied" in terminal.data.getvalue()
    for other in ({"started_position": None, "applied": 0}, {"state": "stopped"}):
        terminal = _Terminal(monkeypatch, 200)
        run_display.print_run(run_document(**{"state": "refused"} | other))
        assert "earlier attempts" not in terminal.data.getvalue()


def test_words_for_people_are_never_broken_into_lines(capsys: pytest.CaptureFixture[str]) -> None:
    command = f"apply-ledger apply tags/{EVENT['run_id']} --expected-checksum {'0' * 64} --reason long"
    output.people.print(f"run {EVENT['run_id']} had been committed before; nothing changed, see {command}")
    output.next_command(command)
    assert [line for line in capsys.readouterr().err.splitlines() if command not in line] == []
