"""Waiting for a run that another process writes: it is over when nothing is ordered for it any more."""

from __future__ import annotations

import json
import signal

import pytest

from consumers.infrahub.sandbox.faults import FaultAnswer, FaultRule
from tests.support.command_line import CommandLine

pytestmark = pytest.mark.integration


@pytest.mark.rules("G3")
@pytest.mark.usefixtures("service")
def test_g03_a_resume_waits_for_the_resumption_and_not_for_the_end_before_it(cli: CommandLine) -> None:
    cli.source({"name": "a"}, {"name": "b"})
    planned = cli.plan()
    cli.sandbox.faults.add(FaultRule(kind="BuiltinTag", branch=cli.branch, answer=FaultAnswer.DROP, write=True))
    assert cli.apply(planned).returncode == 5
    cli.sandbox.faults.add(FaultRule(kind="BuiltinTag", branch=cli.branch, delay_before_write=1.0))
    resumed = cli.run("resume", planned["run"], "--output", "json")
    assert resumed.returncode == 0, resumed.stderr
    assert json.loads(resumed.stdout)["state"] == "applied"
    assert "another writer serves" in resumed.stderr


@pytest.mark.usefixtures("service")
def test_8_a_resumption_that_goes_on_is_not_reported_by_the_end_before_it(cli: CommandLine) -> None:
    cli.source({"name": "a"})
    planned = cli.plan()
    cli.sandbox.faults.add(FaultRule(kind="BuiltinTag", branch=cli.branch, answer=FaultAnswer.DROP, write=True))
    assert cli.apply(planned).returncode == 5
    held = cli.sandbox.faults.add(FaultRule(kind="BuiltinTag", branch=cli.branch, hold="before-write"))
    waited = cli.run("resume", planned["run"], "--wait-timeout", "1")
    assert waited.returncode == 8, waited.stderr
    held.release()


@pytest.mark.rules("G4", "P143")
def test_g04_130_sigterm_leaves_the_run_open_and_nothing_in_doubt(cli: CommandLine) -> None:
    cli.source(*({"name": f"tag-{number:03}"} for number in range(100)))
    planned = cli.plan()
    held = cli.sandbox.faults.add(FaultRule(kind="BuiltinTag", branch=cli.branch, nth=3, hold="before-answer"))
    process = cli.start("apply", planned["run"], "--expected-checksum", planned["plan_checksum"], "--output", "json")
    assert held.wait_reached(60)
    process.send_signal(signal.SIGTERM)
    held.release()
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    left = json.loads(stdout)
    assert (left["state"], left["running"], left["unknown"], left["failed"]) == ("open", True, 0, 0)
    assert left["applied"] == cli.sandbox.store.count("BuiltinTag", branch=cli.branch) < 100
    done = cli.apply(planned)
    assert done.returncode == 0, done.stderr
    assert cli.mutations() == 100
