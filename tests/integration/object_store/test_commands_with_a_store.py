"""The program with its runs in an object store: committed on one host, carried out on another, looked at by doctor."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import pytest

from ledger.plan.object_store import ObjectStore
from tests.support.command_line import CommandLine
from tests.support.s3_server import S3Server

pytestmark = [pytest.mark.integration]


@pytest.fixture
def with_store(cli: CommandLine, store: ObjectStore, s3: S3Server) -> CommandLine:
    cli.variables |= {**s3.environment, "APPLY_LEDGER_ARTIFACT_STORE": str(store)}
    return cli


def until_applied(cli: CommandLine, run_id: str) -> None:
    deadline, state = time.monotonic() + 90, ""
    while state != "applied":
        assert time.monotonic() < deadline, f"the run is {state or 'nowhere'}"
        runs = json.loads(cli.run("runs", "--output", "json").stdout)
        state = next((run["state"] for run in runs if run["run"] == run_id), "")


@pytest.mark.rules("G1", "G12")
def test_g01_a_run_is_committed_here_and_carried_out_there_and_its_copies_are_gone(
    with_store: CommandLine, store: ObjectStore, s3: S3Server, tmp_path: Path
) -> None:
    cli = with_store
    cli.source({"name": "a"}, {"name": "b"})
    planned = cli.plan()
    run_dir = cli.folder / "runs" / planned["run"]
    done = cli.run("commit", planned["run"], "--expected-checksum", planned["plan_checksum"], "--output", "json")
    assert done.returncode == 0, done.stderr

    manifest = json.loads((run_dir / "plan" / "manifest.json").read_bytes())
    snapshots = [record["path"] for record in manifest["source_snapshot"]]
    assert snapshots
    for path in ["plan/manifest.json", "plan/operations.jsonl", *snapshots]:
        assert s3.call("GET", store.key(f"{planned['run']}/{path}")) == (run_dir / path).read_bytes(), path

    copies, nothing = tmp_path / "copies", tmp_path / "nothing"
    copies.mkdir()
    cli.variables |= {"TMPDIR": str(copies), "INFRAHUB_SYNC_CACHE_DIR": str(nothing)}
    worker = cli.start("work")
    try:
        until_applied(cli, planned["run_id"])
    finally:
        worker.send_signal(signal.SIGTERM)
        _, stderr = worker.communicate(timeout=60)
    assert worker.returncode == 0, stderr
    assert cli.mutations() == 2
    assert [path.name for path in copies.iterdir() if path.name.startswith("apply-ledger-run-")] == []
    assert not nothing.exists()


@pytest.mark.rules("G11", "G12")
def test_g11_doctor_says_whether_the_bucket_is_there(with_store: CommandLine, store: ObjectStore, s3: S3Server) -> None:
    cli = with_store

    def check() -> tuple[str, str]:
        done = cli.run("doctor", "--output", "json")
        assert s3.environment["AWS_SECRET_ACCESS_KEY"] not in done.stdout + done.stderr
        (found,) = [c for c in json.loads(done.stdout)["checks"] if c["subject"].startswith("runs in s3://")]
        return found["check"], found["verdict"]

    assert check() == ("bucket", "good")
    cli.variables["APPLY_LEDGER_ARTIFACT_STORE"] = "s3://no-such-bucket/runs"
    assert check() == ("bucket", "failure")
