"""A plan whose run directory is not ours in every part: its outcome is the ledger's, whatever stands beside it."""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.support.command_line import PROGRAM, CommandLine

pytestmark = pytest.mark.integration


@pytest.mark.rules("P122", "G6")
def test_g06_an_applied_run_is_reported_as_applied_although_its_record_cannot_be_completed(cli: CommandLine) -> None:
    cli.source({"name": "a"})
    planned = cli.plan()
    (cli.folder / "runs" / planned["run"] / "run.json").unlink()
    done = cli.apply(planned, "--config-file", "config.yml")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["state"] == "applied"
    assert "were not completed" in done.stderr


@pytest.mark.rules("G11")
def test_64_an_order_whose_words_are_not_utf_8_is_refused(cli: CommandLine) -> None:
    for command, option in (("stop", "--reason"), ("resume", "--actor"), ("commit", "--reason")):
        done = subprocess.run(
            [*PROGRAM, command, "20260101T0000-00000000", option, b"gr\xfc\xdfe"],
            cwd=cli.folder,
            env=cli.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 64, done.stderr
        assert b"UTF-8" in done.stderr
        assert b"Traceback" not in done.stderr
