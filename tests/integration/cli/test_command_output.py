"""What commands write and where: streams, closed and full outputs, nothing where only reading was asked for."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command_line import CommandLine

pytestmark = pytest.mark.integration

TWO = ({"name": "prod", "description": "Production"}, {"name": "lab", "description": None})


def test_1_output_that_finds_no_place_is_said_and_is_no_defect(cli: CommandLine) -> None:
    cli.source(*TWO)
    planned = cli.plan()
    for options in ([], ["--output", "json"]):
        with open("/dev/full", "wb") as full:
            done = subprocess.run(
                [sys.executable, "-m", "ledger.cli.main", "show", planned["run"], *options],
                cwd=cli.folder,
                env=cli.environment,
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
            )
        assert done.returncode == 1, done.stderr
        assert "could not be written" in done.stderr
        assert "Traceback" not in done.stderr


def test_verify_has_a_stream_form(cli: CommandLine) -> None:
    cli.source(*TWO)
    assert cli.apply(cli.plan()).returncode == 0
    lines = cli.run("verify", "--branch", cli.branch, "--output", "ndjson").stdout.splitlines()
    assert json.loads(lines[0])["stream"] == "verify"
    assert [json.loads(line)["holds"] for line in lines[1:]] == [True]


def test_a_closed_or_narrow_stdout_is_no_defect(cli: CommandLine) -> None:
    cli.source(*TWO)
    planned = cli.plan()
    assert cli.run("show", planned["run"], PYTHONIOENCODING="ascii").returncode == 0
    closed = subprocess.run(
        ["/bin/sh", "-c", f'"{sys.executable}" -m ledger.cli.main show {planned["run"]} >&-'],
        cwd=cli.folder,
        env=cli.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (closed.returncode, "Traceback" in closed.stderr) == (0, False)


@pytest.mark.rules("A85", "C49")
def test_show_writes_nothing(cli: CommandLine, tmp_path: Path) -> None:
    cli.source(*TWO)
    planned = cli.plan()
    before = {path: path.stat().st_mtime_ns for path in sorted(cli.folder.rglob("*"))}
    requests = cli.mutations()
    done = cli.run("show", planned["run"], "--detail", APPLY_LEDGER_DATA_DIR=str(tmp_path / "no-ledger"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "2 create · 0 update · 0 remove · 0 skip · 0 none"
    assert {path: path.stat().st_mtime_ns for path in sorted(cli.folder.rglob("*"))} == before
    assert cli.mutations() == requests
    assert not (tmp_path / "no-ledger").exists()


@pytest.mark.rules("C57")
def test_both_ways_of_reading_make_the_same_plan(cli: CommandLine) -> None:
    cli.source(*TWO)
    at_once, in_turn = cli.plan(), cli.plan("--no-concurrent-load")
    assert at_once["plan_checksum"] == in_turn["plan_checksum"]
