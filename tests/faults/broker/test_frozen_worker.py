"""A whole worker, with its writer and its intake, frozen past its lease and its membership while another takes over."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from consumers.infrahub.sandbox.faults import FaultRule
from tests.integration.cli.conftest import cli, cli_database, cli_sandbox
from tests.support.broker_topics import new_topics
from tests.support.command_line import CommandLine
from tests.support.kafka_broker import KafkaCluster, free_ports

__all__ = ["cli", "cli_database", "cli_sandbox"]

pytestmark = [pytest.mark.faults, pytest.mark.broker, pytest.mark.integration, pytest.mark.timeout(300)]

_SESSION = 2.0
_WITHIN = 120.0
Workers = dict[int, subprocess.Popen[str]]


@pytest.fixture
async def workers(cli: CommandLine, kafka: KafkaCluster) -> Any:
    topics = await new_topics(kafka.bootstrap())
    cli.variables |= {
        "APPLY_LEDGER_KAFKA__BROKERS": kafka.bootstrap(),
        "APPLY_LEDGER_KAFKA__COMMITS_TOPIC": topics.commits_topic,
        "APPLY_LEDGER_KAFKA__EVENTS_TOPIC": topics.events_topic,
        "APPLY_LEDGER_KAFKA__GROUP": f"group-of-{topics.commits_topic}",
        "APPLY_LEDGER_KAFKA__SESSION_TIMEOUT": str(_SESSION),
    }
    started: Workers = {port: cli.start("work", "--metrics-port", str(port)) for port in free_ports(2)}
    yield started
    for process in started.values():
        process.send_signal(signal.SIGCONT)
        process.send_signal(signal.SIGTERM)
    for process in started.values():
        _, said = process.communicate(timeout=60)
        assert process.returncode == 0, said
        assert "Traceback" not in said


def until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + _WITHIN
    while not condition():
        assert time.monotonic() < deadline, what


def asked(port: int, page: str) -> httpx.Response | None:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/{page}", trust_env=False, timeout=1.0)
    except httpx.TransportError:
        return None


def is_ready(port: int) -> bool:
    answer = asked(port, "readyz")
    return answer is not None and answer.status_code == 200


def holds(cli: CommandLine, port: int) -> bool:
    answer = asked(port, "metrics")
    wanted = f'apply_ledger_lease_held{{branch="{cli.branch}",url="{cli.sandbox.url}"}} 1.0'
    return answer is not None and wanted in answer.text


def committed(cli: CommandLine, prefix: str) -> dict[str, Any]:
    cli.source(*({"name": f"{prefix}-{number}"} for number in range(6)))
    planned = cli.plan()
    done = cli.run("commit", planned["run"], "--expected-checksum", planned["plan_checksum"], "--allow-stale")
    assert done.returncode == 0, done.stderr
    return planned


def until_applied(cli: CommandLine, *plans: dict[str, Any]) -> None:
    def are_applied() -> bool:
        listed = json.loads(cli.run("runs", "--output", "json").stdout)
        states = {run["run"]: "running" if run["running"] else run["state"] for run in listed}
        # between the end of a frozen writer's lease and the other's first event its run reads as interrupted, and it is
        assert not {"failed", "refused"} & {states.get(planned["run_id"]) for planned in plans}
        return all(states.get(planned["run_id"]) == "applied" for planned in plans)

    until(are_applied, "not all runs are applied")


def head(cli: CommandLine) -> int:
    reports = json.loads(cli.run("verify", "--output", "json").stdout)
    return int(next(report["head_position"] for report in reports if report["branch"] == cli.branch))


@pytest.mark.rules("G2", "G4", "G7", "G10")
def test_g02_a_worker_frozen_past_lease_and_session_and_thawed_appends_nothing_and_begins_no_request(
    cli: CommandLine, workers: Workers
) -> None:
    for port in workers:
        until(lambda port=port: is_ready(port), "a worker is not ready")  # type: ignore[misc]  # a default is not typed
    cli.sandbox.faults.add(FaultRule(kind="BuiltinTag", branch=cli.branch, delay_before_write=0.5, count=None))
    first = committed(cli, "first")
    until(lambda: cli.mutations() >= 2, "nothing is written")
    (frozen,) = (port for port in workers if holds(cli, port))
    seen = cli.mutations()
    until(lambda: cli.mutations() > seen, "nothing more is written")
    os.kill(workers[frozen].pid, signal.SIGSTOP)  # its request has just arrived, and will be answered in half a second
    second = committed(cli, "second")
    (other,) = (port for port in workers if port != frozen)
    until_applied(cli, first, second)
    assert holds(cli, other)
    before = head(cli), cli.mutations()
    assert before[1] <= 6 + 1 + 6, "only the operation in flight may be sent twice"

    os.kill(workers[frozen].pid, signal.SIGCONT)
    until(lambda: is_ready(frozen), "the thawed worker does not come back")
    third = committed(cli, "third")
    until_applied(cli, third)
    assert cli.mutations() == before[1] + 6
    assert holds(cli, other)
    events = json.loads(cli.run("replay", "--run", third["run_id"], "--output", "json").stdout)
    assert head(cli) == before[0] + len(events), "something was appended beside the run that was committed"
    assert cli.run("verify").returncode == 0
