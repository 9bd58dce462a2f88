"""A call imports the module of its command and finds all of them where it names none."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

import pytest
import typer
import typer.core
import typer.main

from ledger.cli.commands import COMMANDS, command_of, modules
from ledger.cli.main import application


def names(app: typer.Typer) -> list[str]:
    root = typer.main.get_command(app)
    assert isinstance(root, typer.core.TyperGroup)
    return sorted(root.commands)


def test_the_table_says_what_each_module_adds() -> None:
    for module, commands in COMMANDS.items():
        app = typer.Typer()
        (found,) = modules((commands[0],))
        found.register(app)
        assert found.__name__ == f"ledger.cli.{module}"
        added = [command.name for command in app.registered_commands] + [group.name for group in app.registered_groups]
        assert added == list(commands)


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        (("plan", "show"), "plan"),
        (("--config", "show", "plan"), "plan"),
        (("--config=show", "-v", "plan"), "plan"),
        (("--verbose", "--config", "x", "runs", "list"), "runs"),
        (("--help",), "--help"),
        (("--config", "plan"), None),
        (("-v",), None),
        ((), None),
    ],
)
def test_the_command_stands_behind_the_global_options(arguments: Sequence[str], command: str | None) -> None:
    assert command_of(arguments) == command


@pytest.mark.parametrize("arguments", [(), ("--help",), ("plna",), ("-x", "plan"), ("--config", "plan")])
def test_where_no_command_is_known_all_are_there(arguments: Sequence[str]) -> None:
    assert names(application(arguments)) == sorted(name for commands in COMMANDS.values() for name in commands)


def test_a_plan_waits_for_the_modules_of_no_other_command() -> None:
    code = "import sys; from ledger.cli.main import main; main(['plan', '--help']); print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = ran.stdout.splitlines()[-1].split()
    assert "ledger.cli.plan_commands" in loaded
    assert not {f"ledger.cli.{module}" for module in COMMANDS if module != "plan_commands"} & set(loaded)
    assert not {"asyncpg", "infrahub_sdk", "ledger.audit", "opentelemetry.sdk"} & set(loaded)
