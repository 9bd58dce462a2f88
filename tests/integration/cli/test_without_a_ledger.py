"""Planning and reviewing need no ledger: what it would have said is left out, and that is said."""

from __future__ import annotations

import json
import socket

import pytest

from tests.support.command_line import CommandLine

pytestmark = pytest.mark.integration


@pytest.mark.rules("A85")
def test_a_plan_is_made_and_reviewed_while_the_ledger_is_away(cli: CommandLine) -> None:
    cli.source({"name": "a"})
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    away = {"APPLY_LEDGER_DSN": f"postgresql://writer:canary-dsn-password@127.0.0.1:{port}/ledger"}
    made = cli.run("plan", "--config-file", "config.yml", "--output", "json", **away)
    assert made.returncode == 0, made.stderr
    planned = json.loads(made.stdout)
    record = json.loads((cli.folder / "runs" / planned["run"] / "run.json").read_text())
    assert record["ledger_position"] is None
    shown = cli.run("show", planned["run"], **away)
    assert shown.returncode == 0, shown.stderr
    for done in (made, shown):
        assert "the ledger cannot be reached" in done.stderr
        assert "canary-dsn-password" not in done.stdout + done.stderr
    checksum = planned["plan_checksum"]
    refused = cli.run("commit", planned["run"], "--expected-checksum", checksum, **away)
    assert refused.returncode == 8
    assert "canary-dsn-password" not in refused.stdout + refused.stderr
    done = cli.apply(planned)
    assert done.returncode == 0, done.stderr
