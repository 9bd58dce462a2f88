"""``docs/output.md`` names the fields that commands print."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.command_here import CommandHere
from tests.support.output_document import documented, shape_of

pytestmark = pytest.mark.integration

CLI = Path(__file__).resolve().parents[3] / "ledger" / "cli"
READ_FROM_THE_CODE = {"kafka init", "verify --from-kafka", "replay --onto"}
"""What these print needs brokers, or an Infrahub in which nothing is."""

Call = tuple[str, ...]


@dataclass(frozen=True)
class Told:
    """A ledger with one applied run, and the plan of a second one."""

    run: str
    checksum: str
    operation: str
    at: Call
    """Names the destination."""


def _planned(here: CommandHere, description: str) -> dict[str, str]:
    here.cli.source({"name": "red", "description": description}, {"name": "blue", "description": "cold"})
    planned: dict[str, str] = json.loads(here.run("plan", "--config-file", "config.yml", "--output", "json").stdout)
    return planned


def _story(here: CommandHere) -> Told:
    cli, first = here.cli, _planned(here, "warm")
    applied = here.run("apply", first["run"], "--expected-checksum", first["plan_checksum"])
    assert applied.returncode == 0, applied.stderr
    planned = _planned(here, "hot")
    lines = (cli.folder / "runs" / planned["run"] / "plan" / "operations.jsonl").read_text(encoding="utf-8")
    operation = json.loads(lines.splitlines()[0])["operation_id"]
    assert here.run("checkpoint", "key", "new", "audit").returncode == 0
    return Told(planned["run"], planned["plan_checksum"], operation, ("--url", cli.sandbox.url, "--branch", cli.branch))


def _calls(told: Told) -> Mapping[str, tuple[Call, Call]]:
    """For each command a call for JSON and one for NDJSON, in an order in which all of them have an answer."""
    checked = ("--expected-checksum", told.checksum)

    def twice(*arguments: str) -> tuple[Call, Call]:
        return arguments, arguments

    def new(*arguments: str) -> tuple[Call, Call]:
        """For a command that makes something of its own name: one name each."""
        return tuple(word.replace("*", "one") for word in arguments), tuple(w.replace("*", "two") for w in arguments)

    return {
        "plan": twice("plan", "--config-file", "config.yml"),
        "show": twice("show", told.run),
        "rehearse": twice("rehearse", told.run),
        "commit": twice("commit", told.run, *checked),
        "apply": twice("apply", told.run, *checked),
        "runs": twice("runs"),
        "runs show": twice("runs", "show", told.run),
        "replay": twice("replay", *told.at),
        "replay --state": twice("replay", "--state", *told.at),
        "replay --diff": twice("replay", "--diff", "0", "2999-01-01", *told.at),
        "history": twice("history", "BuiltinTag", "name=red", *told.at),
        "blame": twice("blame", "BuiltinTag", "name=red", *told.at),
        "checkpoint publish": twice("checkpoint", "publish", *told.at),
        "checkpoint list": twice("checkpoint", "list", *told.at),
        "checkpoint key list": twice("checkpoint", "key", "list"),
        "checkpoint key new": new("checkpoint", "key", "new", "key-*"),
        "verify": twice("verify", *told.at),
        "rebuild": twice("rebuild"),
        "export": new("export", "*", *told.at),
        "verify --export": twice("verify", "--export", "one"),
        "verify --against": twice("verify", "--against", "one"),
        "prove": new("prove", told.run, told.operation, "--to", "*.json"),
        "verify --proof": twice("verify", "--proof", "one.json"),
        "doctor": twice("doctor"),
        "token create": new("token", "create", f"*-{told.at[-1]}", "--role", "reader"),
        "token list": twice("token", "list"),
    }


@pytest.mark.timeout(900)
def test_the_fields_of_every_command_are_those_of_the_page(here: CommandHere) -> None:
    rows: dict[str, str] = {}
    silent = []
    for command, calls in _calls(_story(here)).items():
        printed = [here.run(*call, "--output", form) for call, form in zip(calls, ("json", "ndjson"), strict=True)]
        if all(done.stdout for done in printed):
            rows[command] = shape_of(printed[0].stdout, printed[1].stdout).row(command)
        else:
            silent.append((command, [done.stderr for done in printed]))
    assert silent == []
    known = documented()
    wrong = [row for command, row in rows.items() if command not in known or known[command].group(0) != row]
    assert wrong == [], "docs/output.md should say:\n" + "\n".join(wrong)
    assert set(known) - set(rows) == READ_FROM_THE_CODE


def test_every_stream_that_the_program_names_is_on_the_page() -> None:
    source = "".join(path.read_text(encoding="utf-8") for path in sorted(CLI.glob("*.py")))
    named = set(re.findall(r'(?:stream=|_Shape\(|^STREAM = )"([a-z-]+)"', source, re.MULTILINE))
    assert {row["stream"] for row in documented().values()} == named
