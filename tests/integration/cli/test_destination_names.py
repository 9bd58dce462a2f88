"""A destination that has several names is one binding with one writer; one that cannot be opened refuses no plan."""

from __future__ import annotations

import json

import pytest

from tests.support.command_line import CommandLine

pytestmark = pytest.mark.integration


def _declare(cli: CommandLine, url: str, alias: str) -> None:
    text = f'[[destination]]\nurl = "{url}"\nbranch = "{cli.branch}"\naliases = ["{alias}"]\n'
    (cli.folder / "apply-ledger.toml").write_text(text, encoding="utf-8")


@pytest.mark.rules("G2", "A64")
def test_g02_a_plan_made_under_an_alias_is_committed_to_the_one_binding(cli: CommandLine) -> None:
    alias = cli.sandbox.url.replace("127.0.0.1", "localhost")
    assert alias != cli.sandbox.url
    cli.source({"name": "a"})
    planned = json.loads(cli.run("plan", "--config-file", "config.yml", "-o", "json", INFRAHUB_ADDRESS=alias).stdout)
    _declare(cli, cli.sandbox.url, alias)
    done = cli.apply(planned)
    assert done.returncode == 0, done.stderr
    (listed,) = [run for run in json.loads(cli.run("runs", "-o", "json").stdout) if run["run"] == planned["run_id"]]
    assert listed["destination"] == f"{cli.sandbox.url} [{cli.branch}]"
    assert "overlap" not in cli.run("show", planned["run"]).stderr


@pytest.mark.rules("G2")
def test_g02_a_name_of_the_ledger_cannot_become_an_alias_of_another(cli: CommandLine) -> None:
    alias = cli.sandbox.url.replace("127.0.0.1", "localhost")
    cli.source({"name": "a"})
    planned = cli.plan()
    assert cli.apply(planned).returncode == 0
    _declare(cli, alias, cli.sandbox.url)
    refused = cli.run("resume", planned["run"])
    assert refused.returncode == 1, refused.stderr
    assert f"declare {cli.sandbox.url}" in refused.stderr


@pytest.mark.rules("G10", "G11", "G12")
def test_g10_1_a_missing_token_refuses_no_plan(cli: CommandLine) -> None:
    """It is this process's trouble: the order stays, for this one with a token or for another writer."""
    cli.source({"name": "a"})
    planned = cli.plan()
    command = ("apply", planned["run"], "--expected-checksum", planned["plan_checksum"])
    refused = cli.run(*command, INFRAHUB_API_TOKEN="")
    assert refused.returncode == 1, refused.stderr
    assert "INFRAHUB_API_TOKEN" in refused.stderr
    events = json.loads(cli.run("replay", "--run", planned["run_id"], "--output", "json").stdout)
    assert [event["kind"] for event in events] == ["plan.committed"]
    assert cli.apply(planned).returncode == 0
