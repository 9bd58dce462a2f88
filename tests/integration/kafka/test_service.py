"""The program as a person meets it with a broker behind it: init, work, apply, verify from the topic alone."""

from __future__ import annotations

import json
import signal
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from consumers.infrahub.sandbox.faults import FaultRule
from tests.integration.cli.conftest import cli, cli_database, cli_sandbox
from tests.support.command_line import CommandLine
from tests.support.kafka_broker import KafkaCluster, free_ports

__all__ = ["cli", "cli_database", "cli_sandbox"]

pytestmark = [pytest.mark.integration, pytest.mark.broker]


@pytest.fixture
def through_kafka(cli: CommandLine, kafka: KafkaCluster) -> CommandLine:
    name = uuid.uuid4().hex[:8]
    cli.variables |= {
        "APPLY_LEDGER_KAFKA__BROKERS": kafka.bootstrap(),
        "APPLY_LEDGER_KAFKA__COMMITS_TOPIC": f"commits-{name}",
        "APPLY_LEDGER_KAFKA__EVENTS_TOPIC": f"events-{name}",
        "APPLY_LEDGER_KAFKA__GROUP": f"group-{name}",
    }
    done = cli.run("kafka", "init", "--output", "json")
    assert done.returncode == 0, done.stderr
    assert [row["state"] for row in json.loads(done.stdout)] == ["created", "created"]
    return cli


@pytest.mark.rules("G11", "G12")
def test_g11_doctor_names_what_the_brokers_lack(through_kafka: CommandLine) -> None:
    cli = through_kafka
    found = {check["check"]: check["verdict"] for check in _kafka_checks(cli)}
    assert found["brokers"] == "good"
    assert found["the number of brokers"] == "warning"
    assert "failure" not in found.values()
    cli.variables["APPLY_LEDGER_KAFKA__EVENTS_TOPIC"] = "no-such-topic"
    (missing,) = [check for check in _kafka_checks(cli) if check["verdict"] == "failure"]
    assert (missing["check"], missing["next_action"]) == ("the topic no-such-topic", "apply-ledger kafka init")


def _kafka_checks(cli: CommandLine) -> list[dict[str, str]]:
    document = json.loads(cli.run("doctor", "--output", "json").stdout)
    return [check for check in document["checks"] if check["subject"].startswith("Kafka at ")]


@pytest.fixture
def port() -> int:
    return free_ports(1)[0]


@pytest.fixture
def worker(through_kafka: CommandLine, port: int) -> Iterator[subprocess.Popen[str]]:
    process = through_kafka.start("work", "--metrics-port", str(port))
    _until_ready(process, port)
    yield process
    process.send_signal(signal.SIGTERM)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 0, stderr
    assert "Traceback" not in stderr


def _until_ready(process: subprocess.Popen[str], port: int) -> None:
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if httpx.get(f"http://127.0.0.1:{port}/readyz", trust_env=False).status_code == 200:
                return
        except httpx.TransportError:
            continue
    raise AssertionError(f"the service did not become ready; it says {process.poll()}")


@pytest.mark.rules("G7", "G8")
@pytest.mark.usefixtures("worker")
def test_g08_the_main_job_through_a_real_broker_and_the_proof_from_its_topic(
    through_kafka: CommandLine, port: int
) -> None:
    cli = through_kafka
    cli.source({"name": "a"}, {"name": "b"})
    planned = cli.plan()

    # committed, not applied: with an order before it, whoever waits for a run may be its writer as well as the service
    done = cli.run("commit", planned["run"], "--expected-checksum", planned["plan_checksum"])
    assert done.returncode == 0, done.stderr
    _until_ended(cli, port)
    again = cli.apply(planned)
    assert cli.summary(again, 0)["applied"] == 2
    assert "applied before" in again.stderr
    assert cli.mutations() == 2

    _until_relayed(cli, port)
    document = json.loads(cli.run("verify", "--from-kafka", "--output", "json").stdout)
    (proven,) = document["bindings"]
    (recorded,) = (
        report for report in json.loads(cli.run("verify", "--output", "json").stdout) if report["branch"] == cli.branch
    )
    assert (proven["holds"], proven["repeats"]) == (True, 0)
    assert (proven["head_position"], proven["head_hash"]) == (recorded["head_position"], recorded["head_hash"])
    metrics = httpx.get(f"http://127.0.0.1:{port}/metrics", trust_env=False).text
    assert 'apply_ledger_intake_messages_total{outcome="taken"} 1.0' in metrics
    assert f'apply_ledger_lease_held{{branch="{cli.branch}"' in metrics
    named = {"url": cli.sandbox.url, "branch": cli.branch}
    wanted: list[tuple[str, dict[str, str], float]] = [
        ("apply_ledger_operations_total", named | {"outcome": "applied"}, 2),
        ("apply_ledger_runs_total", named | {"ending": "applied"}, 1),
        ("apply_ledger_head_position", named, recorded["head_position"]),
        ("apply_ledger_open_orders", named, 0),
        ("apply_ledger_database_up", {}, 1),
    ]
    deadline = time.monotonic() + 60  # what stands in the database is measured every few seconds
    while (measured := _measured(port, wanted)) != [[value] for *_, value in wanted] and time.monotonic() < deadline:
        pass
    assert measured == [[value] for *_, value in wanted]
    assert httpx.get(f"http://127.0.0.1:{port}/healthz", trust_env=False).json()["ok"] is True


def _measured(port: int, wanted: list[tuple[str, dict[str, str], float]]) -> list[list[float]]:
    """What the metrics say of each of these."""
    metrics = httpx.get(f"http://127.0.0.1:{port}/metrics", trust_env=False).text
    samples = [sample for family in text_string_to_metric_families(metrics) for sample in family.samples]
    return [
        [sample.value for sample in samples if (sample.name, sample.labels) == (name, labels)]
        for name, labels, _ in wanted
    ]


def _until_ended(cli: CommandLine, port: int) -> None:
    """Until the service has applied a run."""
    deadline = time.monotonic() + 60
    wanted = f'apply_ledger_runs_total{{branch="{cli.branch}",ending="applied",url="{cli.sandbox.url}"}} 1.0'
    while wanted not in httpx.get(f"http://127.0.0.1:{port}/metrics", trust_env=False).text:
        assert time.monotonic() < deadline, f"never applied: {wanted}"


def _until_relayed(cli: CommandLine, port: int) -> None:
    """Until the topic holds the end of the last run: what the metrics say is the head."""
    deadline = time.monotonic() + 60
    head = next(
        report["head_position"]
        for report in json.loads(cli.run("verify", "--output", "json").stdout)
        if report["branch"] == cli.branch
    )
    wanted = f'apply_ledger_relay_position{{branch="{cli.branch}",url="{cli.sandbox.url}"}} {float(head)}'
    while wanted not in httpx.get(f"http://127.0.0.1:{port}/metrics", trust_env=False).text:
        assert time.monotonic() < deadline, f"never relayed: {wanted}"


@pytest.mark.rules("G7", "G11")
def test_g11_a_commit_that_nobody_takes_is_on_its_topic_and_the_exit_says_so(
    through_kafka: CommandLine, port: int
) -> None:
    cli = through_kafka
    cli.source({"name": "a"})
    planned = cli.plan()
    cli.variables["APPLY_LEDGER_KAFKA__TAKEN_WITHIN"] = "0.3"
    waited = cli.apply(planned)
    assert waited.returncode == 8, waited.stderr
    assert "CommitNotTakenError" in waited.stderr
    checksum = planned["plan_checksum"]
    committed = cli.run("commit", planned["run"], "--expected-checksum", checksum, "--output", "json")
    assert committed.returncode == 0, committed.stderr
    document = json.loads(committed.stdout)
    assert (document["first"], document["order_id"]) == (None, None)
    assert document["message"].startswith(cli.variables["APPLY_LEDGER_KAFKA__COMMITS_TOPIC"])

    del cli.variables["APPLY_LEDGER_KAFKA__TAKEN_WITHIN"]
    process = cli.start("work", "--metrics-port", str(port))
    try:
        _until_ready(process, port)
        assert cli.summary(cli.apply(planned), 0)["state"] == "applied"  # three messages, one order
        assert cli.mutations() == 1
    finally:
        process.send_signal(signal.SIGTERM)
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == 0, stderr


@pytest.mark.rules("G7")
def test_g07_a_host_without_a_ledger_publishes_and_makes_none(through_kafka: CommandLine, tmp_path: Path) -> None:
    cli = through_kafka
    cli.source({"name": "a"})
    planned = cli.plan()
    cli.variables["APPLY_LEDGER_DATA_DIR"] = str(tmp_path / "no-ledger")
    committed = cli.run("commit", planned["run"], "--expected-checksum", planned["plan_checksum"], "--output", "json")
    assert committed.returncode == 0, committed.stderr
    assert json.loads(committed.stdout)["message"].endswith("/0")
    assert not (tmp_path / "no-ledger").exists()


@pytest.mark.rules("G11")
def test_g11_brokers_that_are_away_are_told_and_nothing_was_committed(cli: CommandLine) -> None:
    cli.source({"name": "a"})
    planned = cli.plan()
    cli.variables["APPLY_LEDGER_KAFKA__BROKERS"] = "127.0.0.1:1"
    away = cli.apply(planned)
    assert away.returncode == 8, away.stderr
    assert "nothing was published" in away.stderr
    del cli.variables["APPLY_LEDGER_KAFKA__BROKERS"]
    assert cli.summary(cli.apply(planned), 0)["state"] == "applied"


@pytest.mark.rules("G11")
@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (("work", "--no-writers"), 1, "NothingToServeError"),
        (("verify", "--from-kafka"), 1, "APPLY_LEDGER_KAFKA__BROKERS"),
        (("kafka", "init"), 1, "APPLY_LEDGER_KAFKA__BROKERS"),
        (("work", "--metrics-port", "1", "--metrics-host", "192.0.2.1"), 1, "StatusPortError"),
    ],
)
def test_g11_what_is_missing_for_kafka_is_named(
    cli: CommandLine, arguments: tuple[str, ...], code: int, told: str
) -> None:
    done = cli.run(*arguments)
    assert done.returncode == code, done.stderr
    assert told in done.stderr


def _ready(port: int) -> tuple[int, dict[str, str]]:
    try:
        answer = httpx.get(f"http://127.0.0.1:{port}/readyz", trust_env=False)
    except httpx.TransportError:
        return 0, {}
    return answer.status_code, answer.json()["parts"]


@pytest.mark.rules("G2", "G4")
def test_g02_without_brokers_writers_go_on_the_port_says_what_is_missing_and_sigterm_ends_it_in_bounds(
    cli: CommandLine, port: int
) -> None:
    cli.source({"name": "a"})
    planned = cli.plan()
    assert cli.run("commit", planned["run"], "--expected-checksum", planned["plan_checksum"]).returncode == 0
    cli.variables["APPLY_LEDGER_KAFKA__BROKERS"] = "127.0.0.1:1"
    process = cli.start("work", "--metrics-port", str(port))
    try:
        deadline = time.monotonic() + 90
        code, parts = _ready(port)
        while time.monotonic() < deadline and (cli.mutations() < 1 or code == 0):
            code, parts = _ready(port)
        assert (cli.mutations(), code) == (1, 503)
        assert parts["writers"] == "runs"
        assert "member of its group" in parts["intake"] or "127.0.0.1:1" in parts["intake"]
        assert httpx.get(f"http://127.0.0.1:{port}/healthz", trust_env=False).status_code == 200
    finally:
        process.send_signal(signal.SIGTERM)
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == 0, stderr
    assert "Traceback" not in stderr
    del cli.variables["APPLY_LEDGER_KAFKA__BROKERS"]
    assert cli.summary(cli.apply(planned), 0)["state"] == "applied"
    assert cli.mutations() == 1


def _holds(cli: CommandLine, port: int) -> bool:
    metrics = httpx.get(f"http://127.0.0.1:{port}/metrics", trust_env=False).text
    return f'apply_ledger_lease_held{{branch="{cli.branch}",url="{cli.sandbox.url}"}} 1.0' in metrics


@pytest.mark.rules("G2", "G3", "G4")
def test_g04_of_two_workers_the_one_that_writes_is_killed_and_the_other_finishes_the_run(
    through_kafka: CommandLine,
) -> None:
    cli = through_kafka
    cli.source(*({"name": f"tag-{number:02}"} for number in range(30)))
    planned = cli.plan()
    cli.sandbox.faults.add(FaultRule(kind="BuiltinTag", branch=cli.branch, delay_before_write=0.1, count=None))
    ports = free_ports(2)
    workers = {port: cli.start("work", "--metrics-port", str(port)) for port in ports}
    try:
        for port, process in workers.items():
            _until_ready(process, port)
        waiting = cli.start(
            "apply", planned["run"], "--expected-checksum", planned["plan_checksum"], "--output", "json"
        )
        deadline = time.monotonic() + 90
        while cli.mutations() < 5:
            assert time.monotonic() < deadline, "nothing is written"
        (holder,) = (port for port in ports if _holds(cli, port))
        workers[holder].kill()
        stdout, stderr = waiting.communicate(timeout=90)
    finally:
        for process in workers.values():
            process.send_signal(signal.SIGTERM)
        ends = {port: process.communicate(timeout=60) for port, process in workers.items()}
    assert waiting.returncode == 0, stderr
    summary = json.loads(stdout)
    assert (summary["state"], summary["applied"]) == ("applied", 30)
    assert 30 <= cli.mutations() <= 31, "only the operation in flight may be sent twice"
    assert sorted(process.returncode for process in workers.values()) == [-9, 0], ends
    assert cli.run("verify").returncode == 0
