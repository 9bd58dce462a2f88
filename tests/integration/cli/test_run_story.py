"""What the commands tell of a run: who ordered it and why, what happened to it, and what waits for a writer."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from consumers.infrahub.sandbox.faults import FaultAnswer, FaultRule
from ledger.store.embedded import EmbeddedPostgres
from tests.support.command_here import CommandHere
from tests.support.command_line import CommandLine

pytestmark = pytest.mark.integration

TWO = ({"name": "a"}, {"name": "b"})


def _applied(cli: CommandLine, here: CommandHere, code: int, *options: str) -> dict[str, Any]:
    cli.source(*TWO)
    planned = cli.plan()
    done = here.run("apply", planned["run"], "--expected-checksum", planned["plan_checksum"], *options)
    assert done.returncode == code, done.stderr
    return planned


@pytest.mark.rules("G3", "G5")
def test_g03_a_run_tells_who_ordered_it_what_happened_and_which_attempts_were_in_doubt(
    cli: CommandLine, here: CommandHere
) -> None:
    cli.sandbox.faults.add(FaultRule(kind="BuiltinTag", branch=cli.branch, answer=FaultAnswer.DROP, write=True))
    run = _applied(cli, here, 5, "--actor", "jo", "--reason", "CHG-1007")["run_id"]
    resumed = here.run("resume", run, "--actor", "ana", "--reason", "looked at it")
    assert resumed.returncode == 0, resumed.stderr
    shown = here.run("runs", "show", run)
    assert shown.stdout == resumed.stdout  # what the end of a command tells, the run tells for good
    lines = [" ".join(line.split()) for line in shown.stdout.splitlines()]
    told = {line.split()[0]: line for line in lines}
    assert told["committed"].endswith("by jo: CHG-1007")
    assert told["resumed"].endswith("from operation 0 on, by ana: looked at it")
    assert "at operation 0 (op_" in told["interrupted"]
    assert told["committed"].split()[1].endswith("Z")
    (attempts,) = [line for line in lines if line.startswith("operation 0 (op_")]
    assert "attempt 1 unknown (" in attempts
    assert "attempt 2 applied (event " in attempts

    document = json.loads(here.run("runs", "show", run, "--output", "json").stdout)
    assert (document["actor"], document["reason"]) == ("jo", "CHG-1007")
    assert document["committed_at"].endswith("+00:00")
    assert [step["what"] for step in document["happened"]] == [
        "committed",
        "started",
        "interrupted",
        "resumed",
        "applied",
    ]
    assert [step["by"] for step in document["happened"]] == ["jo", None, None, "ana", None]
    assert [attempt["outcome"] for attempt in document["attempts"][0]["attempts"]] == ["unknown", "applied"]
    log = here.run("replay", "--run", run, "--output", "ndjson").stdout.splitlines()[1:]
    assert document["events"] == len(log)
    others = document["position"] - document["committed_position"] + 1 - len(log)
    assert others == 2  # each of the two writers opened the binding in between
    assert f"({len(log)} events of this run, {others} of others between them)" in shown.stdout


def test_130_a_run_that_somebody_else_stopped_says_who_and_why(cli: CommandLine, here: CommandHere) -> None:
    cli.source(*TWO)
    planned, other = cli.plan(), cli.plan()
    patient = {"APPLY_LEDGER_WRITER__REQUEST_TIMEOUT": "60", "APPLY_LEDGER_WRITER__LEASE_TTL": "120"}
    cli.variables.update(patient)  # the answer is held until everything was looked at
    held = cli.sandbox.faults.add(FaultRule(kind="BuiltinTag", branch=cli.branch, hold="before-answer"))
    applying = cli.start("apply", planned["run"], "--expected-checksum", planned["plan_checksum"])
    assert held.wait_reached(60)
    listed, shown = here.run("runs"), here.run("runs", "show", planned["run_id"])
    assert any(line.split()[:2] == [planned["run_id"], "running"] for line in listed.stdout.splitlines())
    assert f"run {planned['run_id']} running" in shown.stdout
    assert "written by " in shown.stdout
    stopped = here.run("stop", planned["run"], "--actor", "ana", "--reason", "CAB call: freeze")
    assert stopped.returncode == 0, stopped.stderr
    assert "warning" not in stopped.stderr
    behind = here.run("commit", other["run"], "--expected-checksum", other["plan_checksum"])
    assert f"next: apply-ledger runs show {other['run_id']} " in behind.stderr
    again = here.run("stop", planned["run"], "--actor", "otto", "--reason", "withdrawn")
    assert "a stop was ordered before, " in again.stderr
    assert "by ana: CAB call: freeze; nothing changed, and this reason is not recorded" in again.stderr
    asked = here.run("runs", "show", planned["run_id"]).stdout
    assert "waiting: stop, ordered " in asked
    held.release()
    stdout, stderr = applying.communicate(timeout=60)
    assert applying.returncode == 130, stderr
    for told in (stdout, here.run("runs", "show", planned["run_id"]).stdout):
        (line,) = [line for line in told.splitlines() if line.startswith("  stopped ")]
        assert line.endswith("after operation 0, by ana: CAB call: freeze")

    again = here.run("stop", planned["run"])
    assert again.returncode != 0
    assert f"the order to stop run {planned['run_id']}" in again.stderr
    assert "apply-ledger resume" in again.stderr
    assert "LG0" not in again.stderr
    assert "submit" not in again.stderr


def test_an_order_that_nobody_carries_out_is_told_until_somebody_does(cli: CommandLine, here: CommandHere) -> None:
    cli.sandbox.faults.add(FaultRule(kind="BuiltinTag", branch=cli.branch, answer=FaultAnswer.DROP, write=True))
    first = _applied(cli, here, 5)
    ordered = here.run("resume", first["run"], "--no-wait", "--actor", "ana", "--reason", "looked at it")
    assert ordered.returncode == 0
    assert "warning: no process serves" in ordered.stderr
    shown, listed = here.run("runs", "show", first["run_id"]), here.run("runs")
    assert "waiting: resume, ordered " in shown.stdout
    assert "by ana: looked at it" in shown.stdout
    assert "next: apply-ledger work" in shown.stderr
    (row,) = [line for line in listed.stdout.splitlines() if first["run_id"] in line]
    assert "interrupted" in row
    assert "resume by ana" in row
    (place,) = [line for line in listed.stderr.splitlines() if f"[{cli.branch}]" in line]
    assert place.endswith("no writer now · 1 order waits")
    (record,) = [r for r in json.loads(here.run("runs", "-o", "json").stdout) if r["run"] == first["run_id"]]
    assert (record["state"], record["running"]) == ("interrupted", False)
    assert [(order["kind"], order["by"]) for order in record["open_orders"]] == [("resume", "ana")]

    cli.source(*TWO, {"name": "c"})
    second = cli.plan()
    done = here.run("apply", second["run"], "--expected-checksum", second["plan_checksum"], "--allow-stale")
    assert done.returncode == 0, done.stderr
    assert f"waiting: run {first['run_id']} of tags comes first: its resume was ordered " in done.stderr
    assert "looked at it" in done.stderr
    later = here.run("runs")
    assert "resume by ana" not in later.stdout
    assert not any("waits" in line for line in later.stderr.splitlines() if f"[{cli.branch}]" in line)


@pytest.mark.rules("G4", "G5")
def test_g04_a_run_whose_writer_was_killed_is_open_in_every_list_and_names_what_is_in_flight(
    cli: CommandLine, here: CommandHere
) -> None:
    cli.source(*TWO)
    planned = cli.plan()
    held = cli.sandbox.faults.add(FaultRule(kind="BuiltinTag", branch=cli.branch, nth=2, hold="before-answer"))
    process = cli.start("apply", planned["run"], "--expected-checksum", planned["plan_checksum"])
    assert held.wait_reached(60)
    process.kill()
    process.communicate(timeout=60)
    held.release()
    shown = here.run("runs", "show", planned["run_id"])
    while "no process writes it now" not in shown.stdout:  # until the lease of the dead has run out
        assert f"run {planned['run_id']} running" in shown.stdout
        shown = here.run("runs", "show", planned["run_id"])
    assert f"run {planned['run_id']} open" in shown.stdout
    assert "in flight: operation 1, attempt 1" in shown.stdout
    assert f"apply-ledger apply {planned['run_id']} --expected-checksum {planned['plan_checksum']}" in shown.stderr
    listed = here.run("runs").stdout.splitlines()[1:]
    assert any(line.split()[:2] == [planned["run_id"], "open"] for line in listed)
    assert here.run("apply", planned["run"], "--expected-checksum", planned["plan_checksum"]).returncode == 0
    told = here.run("runs", "show", planned["run_id"]).stdout
    assert "by writer: take-over after the writer's end" in told
    assert "attempt 1 unknown (WriterDiedError, event " in told


def test_a_login_that_only_reads_sees_runs_as_the_log_has_them(cli: CommandLine, here: CommandHere) -> None:
    dsns = asyncio.run(EmbeddedPostgres(cli.data_dir).ensure_running())
    auditor = {"APPLY_LEDGER_DSN": dsns.reader}
    cli.source(*TWO)
    planned = cli.plan()
    commit = here.run("commit", planned["run"], "--expected-checksum", planned["plan_checksum"], "--reason", "CHG-1")
    assert commit.returncode == 0, commit.stderr
    behind = here.run("runs", **auditor)
    assert behind.returncode == 0, behind.stderr
    assert "events are not counted here yet: this login may only read" in behind.stderr
    assert here.run("apply", planned["run"], "--expected-checksum", planned["plan_checksum"]).returncode == 0
    told = here.run("runs", "show", planned["run_id"]).stdout
    seen = here.run("runs", "show", planned["run_id"], **auditor)
    assert (seen.returncode, seen.stdout) == (0, told)
    listed = here.run("runs", **auditor)
    assert "not counted here yet" not in listed.stderr
    assert planned["run_id"] in listed.stdout
    assert here.run("rebuild", **auditor).returncode == 1


def test_a_run_is_folded_from_the_log_where_its_projection_may_not_be_moved(
    cli: CommandLine, here: CommandHere
) -> None:
    dsns = asyncio.run(EmbeddedPostgres(cli.data_dir).ensure_running())
    cli.source(*TWO)
    planned = cli.plan()
    commit = here.run("commit", planned["run"], "--expected-checksum", planned["plan_checksum"], "--reason", "CHG-1")
    assert commit.returncode == 0, commit.stderr
    seen = here.run("runs", "show", planned["run_id"], APPLY_LEDGER_DSN=dsns.reader)
    assert seen.returncode == 0, seen.stderr
    assert "not counted" not in seen.stderr
    assert f"run {planned['run_id']} open" in seen.stdout
    assert seen.stdout == here.run("runs", "show", planned["run_id"]).stdout
