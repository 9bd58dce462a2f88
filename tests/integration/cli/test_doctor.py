"""``doctor`` through the program: exit codes, forms of output, and what it never shows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_here import CommandHere
from tests.support.command_line import CommandLine

pytestmark = pytest.mark.integration


def _checks(stdout: str) -> dict[tuple[str, str], dict[str, Any]]:
    document = json.loads(stdout)
    assert document["document"] == "apply-ledger.doctor"
    return {
        (
            {"the ledger": "ledger", "the source": "source"}.get(check["subject"][:10], "destination"),
            check["check"],
        ): check
        for check in document["checks"]
    }


def _sync(cli: CommandLine) -> str:
    cli.source({"name": "red"})
    return str(cli.folder / "config.yml")


@pytest.mark.rules("G12", "P43")
def test_an_installation_that_is_well_ends_with_0_and_every_part_is_looked_at(
    cli: CommandLine, here: CommandHere
) -> None:
    config = _sync(cli)
    cli.plan()  # makes the ledger
    done = here.run("doctor", "--config-file", config, "--output", "json")
    assert done.returncode == 0, done.stdout
    checks = _checks(done.stdout)
    assert {verdict["verdict"] for verdict in checks.values()} <= {"good", "skipped", "warning"}
    for name in ("host name", "port", "HTTP", "version", "keep-alive", "token", "branch", "schema", "kinds"):
        assert checks["destination", name]["verdict"] == "good", checks["destination", name]
    assert checks["source", "settings"]["found"] == str(cli.folder / "data")
    assert checks["source", "endpoints"]["found"] == "1 row in 1 endpoint"
    of_ledger = {name: check for (subject, name), check in checks.items() if subject == "ledger"}
    assert {"encoding", "durability", "roles", "append-only", "unique keys", "database clock"} < of_ledger.keys()
    assert {name for name, check in of_ledger.items() if check["verdict"] != "good"} == set()
    (row,) = checks["destination", "kinds"]["facts"]["table"]
    assert (row["kind"], row["converges_on"]) == ("BuiltinTag", "human-friendly id")


@pytest.mark.rules("G12")
def test_a_failure_ends_with_1_and_names_what_to_do(cli: CommandLine, here: CommandHere) -> None:
    wrong = "canary-9c41-another-token"
    done = here.run("doctor", INFRAHUB_API_TOKEN=wrong)
    assert done.returncode == 1
    assert wrong not in done.stdout + done.stderr
    lines = done.stdout.splitlines()
    (failed,) = (number for number, line in enumerate(lines) if "FAIL" in line)
    assert "token" in lines[failed]
    assert "→ make a new token" in lines[failed + 1]
    assert "1 failed" in lines[-1]


def test_without_any_destination_the_ledger_is_looked_at_all_the_same(cli: CommandLine, here: CommandHere) -> None:
    done = here.run("doctor", "--output", "ndjson", INFRAHUB_ADDRESS="")
    assert done.returncode == 1
    head, *records = [json.loads(line) for line in done.stdout.splitlines()]
    assert head == {"stream": "doctor", "version": 1}
    assert records[0]["verdict"] == "failure"
    assert "[[destination]]" in records[0]["next_action"]
    assert any(record["check"] == "migrations" for record in records)


def test_a_ledger_that_was_never_made_is_no_failure_and_is_not_made_by_looking(
    cli: CommandLine, here: CommandHere, tmp_path: Path
) -> None:
    nowhere = tmp_path / "nowhere"
    done = here.run("doctor", "--output", "json", APPLY_LEDGER_DATA_DIR=str(nowhere))
    assert done.returncode == 0, done.stdout
    assert _checks(done.stdout)["ledger", "database"]["found"].startswith("none yet")
    assert not nowhere.exists()


def test_a_mapping_that_the_schema_does_not_fit_is_a_failure_of_the_kinds(cli: CommandLine, here: CommandHere) -> None:
    config = Path(_sync(cli))
    config.write_text(config.read_text("utf-8").replace("BuiltinTag", "BuiltinTagg"), "utf-8")
    done = here.run("doctor", "--config-file", str(config), "--output", "json")
    assert done.returncode == 1
    assert "BuiltinTagg" in _checks(done.stdout)["destination", "kinds"]["found"]


def test_a_source_that_no_plan_can_read_is_a_failure_of_the_source(cli: CommandLine, here: CommandHere) -> None:
    config = Path(_sync(cli))

    def of_source() -> dict[str, dict[str, Any]]:
        done = here.run("doctor", "--config-file", str(config), "--output", "json")
        return {name: check for (subject, name), check in _checks(done.stdout).items() if subject == "source"}

    (cli.folder / "data" / "tags.jsonl").write_text("")
    assert of_source()["endpoints"]["verdict"] == "warning"
    (cli.folder / "data" / "tags.jsonl").unlink()
    missing = of_source()["endpoints"]
    assert (missing["verdict"], "no such file" in missing["found"]) == ("failure", True)
    config.write_text(config.read_text("utf-8").replace("directory:", "directroy:"), "utf-8")
    misspelt = of_source()
    assert misspelt["settings"]["verdict"] == "failure"
    assert "directroy (did you mean directory?)" in misspelt["settings"]["found"]
    assert misspelt["endpoints"]["verdict"] == "skipped"


def test_two_ways_to_name_a_sync_are_a_usage_error(cli: CommandLine, here: CommandHere) -> None:
    assert here.run("doctor", "--name", "tags", "--config-file", "config.yml").returncode == 64
    assert here.run("doctor", "--branch", "lab").returncode == 1  # told beside the ledger's checks
