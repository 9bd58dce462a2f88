"""The database is stopped and started in the middle of a run that `work` carries out."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from contextlib import suppress
from typing import Any

import pytest

from consumers.infrahub.sandbox.faults import FaultRule
from ledger.store.embedded import EmbeddedPostgres
from ledger.store.process_table import processes_in
from tests.support.command_line import CommandLine

pytestmark = pytest.mark.integration

COUNT = 60


def _until_written(cli: CommandLine, count: int) -> None:
    deadline = time.monotonic() + 60
    while cli.mutations() < count and time.monotonic() < deadline:
        time.sleep(0.005)  # the other side is a process, which sets no event of ours
    assert cli.mutations() >= count


async def _restart(cli: CommandLine) -> None:
    server = EmbeddedPostgres(cli.data_dir)
    assert await server.stop()
    await server.ensure_running()


def _kill(cli: CommandLine) -> int:
    """What a machine short of memory does, or a panic: every process of the server is gone at once; which was first."""
    postmaster = EmbeddedPostgres(cli.data_dir).status().pid
    assert postmaster is not None
    for pid in [postmaster, *processes_in(cli.data_dir / "data")]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return postmaster


def _events(cli: CommandLine, run_id: str) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = json.loads(cli.run("replay", "--run", run_id, "--output", "json").stdout)
    return events


@pytest.mark.rules("G4", "G3", "G8")
@pytest.mark.usefixtures("service")
def test_g04_a_restarted_database_costs_at_most_one_doubtful_operation(cli: CommandLine) -> None:
    cli.source(*({"name": f"tag-{number:03}"} for number in range(COUNT)))
    planned = cli.plan()
    cli.sandbox.faults.add(FaultRule(kind="BuiltinTag", branch=cli.branch, delay_before_write=0.05, count=None))
    checksum = planned["plan_checksum"]
    assert cli.run("commit", planned["run"], "--expected-checksum", checksum).returncode == 0
    _until_written(cli, 3)
    asyncio.run(_restart(cli))
    assert cli.mutations() < COUNT
    done = cli.apply(planned)
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert (summary["applied"], summary["unknown"], summary["not_attempted"]) == (COUNT, 0, 0)
    kinds = [event["kind"] for event in _events(cli, planned["run_id"])]
    assert kinds.count("operation.applied") == COUNT
    assert kinds.count("operation.unknown") <= 1
    assert cli.mutations() <= COUNT + kinds.count("operation.unknown")
    verified = cli.run("verify", "--url", cli.sandbox.url, "--branch", cli.branch)
    assert verified.returncode == 0, verified.stdout


@pytest.mark.rules("G4", "G10")
@pytest.mark.usefixtures("service")
def test_g10_a_database_that_crashed_under_work_is_started_by_it_and_the_run_goes_on(cli: CommandLine) -> None:
    """No other command is called until all is written: each of them would start the database itself."""
    cli.source(*({"name": f"killed-{number:03}"} for number in range(30)))
    planned = cli.plan()
    cli.sandbox.faults.add(FaultRule(kind="BuiltinTag", branch=cli.branch, delay_before_write=0.05, count=None))
    done = cli.run("commit", planned["run"], "--expected-checksum", planned["plan_checksum"])
    assert done.returncode == 0
    _until_written(cli, 3)
    killed = _kill(cli)
    assert cli.mutations() < 30
    _until_written(cli, 30)
    assert EmbeddedPostgres(cli.data_dir).status().pid not in (None, killed)
    assert cli.summary(cli.apply(planned), 0)["applied"] == 30


def test_g11_a_database_that_was_stopped_has_not_crashed(cli: CommandLine) -> None:
    asyncio.run(EmbeddedPostgres(cli.data_dir).ensure_running())
    assert asyncio.run(EmbeddedPostgres(cli.data_dir).stop())
    status = EmbeddedPostgres(cli.data_dir).status()
    assert (status.exists, status.pid, status.crashed) == (True, None, False)
    asyncio.run(EmbeddedPostgres(cli.data_dir).ensure_running())
    assert EmbeddedPostgres(cli.data_dir).status().crashed is False


@pytest.mark.rules("G11")
@pytest.mark.usefixtures("service")
def test_g11_a_database_that_others_use_is_not_stopped_by_the_way(cli: CommandLine) -> None:
    refused = cli.run("down")
    assert refused.returncode == 8, refused.stderr
    assert "DatabaseInUseError" in refused.stderr
    assert "apply-ledger worker" in refused.stderr
    assert EmbeddedPostgres(cli.data_dir).status().pid is not None
    forced = cli.run("down", "--force")
    assert forced.returncode == 0, forced.stderr
    assert cli.run("runs").returncode == 0, "any command starts it again"
