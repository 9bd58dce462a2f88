"""The audit commands as an auditor meets them: real runs on a sandbox, real processes, real exit codes."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import duckdb
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ledger.audit.signed_note import SigningKey
from tests.support.command_here import CommandHere
from tests.support.command_line import CommandLine

pytestmark = pytest.mark.integration


def _documents(cli: CommandLine, *arguments: str, code: int = 0) -> Any:
    done = cli.run(*arguments, "--output", "json")
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)


def _two_runs(cli: CommandLine) -> tuple[dict[str, Any], dict[str, Any]]:
    cli.source({"name": "red", "description": "warm"}, {"name": "blue", "description": "cold"})
    first = cli.plan()
    cli.summary(cli.apply(first, "--reason", "first import"), 0)
    cli.source({"name": "red", "description": "hot"}, {"name": "blue", "description": "cold"})
    second = cli.plan()
    cli.summary(cli.apply(second, "--reason", "summer"), 0)
    return first, second


@pytest.mark.rules("G8", "C40", "C47")
@pytest.mark.timeout(300)
def test_g08_an_auditor_asks_exports_and_proves(cli: CommandLine) -> None:
    first, second = _two_runs(cli)
    here = ("--url", cli.sandbox.url, "--branch", cli.branch)

    (blamed,) = _documents(cli, "blame", "BuiltinTag", "name=red", *here)
    description = next(entry for entry in blamed["attributes"] if entry["name"] == "description")
    assert (description["value"], description["before"], description["reason"]) == ("hot", "warm", "summer")
    assert [entry["value"] for entry in description["earlier"]] == ["warm"]
    history = cli.run("history", "BuiltinTag", "name=red", *here)
    assert '"warm" → "hot"' in history.stdout
    assert 'BuiltinTag(name="red")' in history.stdout
    who = cli.run("blame", "BuiltinTag", "name=red", *here)
    assert all(word in who.stdout for word in ("recorded", "actor", "reason", "summer")), who.stdout
    assert "too narrow" not in who.stderr
    slip = cli.run("blame", "BuiltinTab", "name=red", *here)
    assert (slip.returncode, "did you mean BuiltinTag?" in slip.stderr) == (1, True), slip.stderr
    assert cli.run("history", "BuiltinTag", "name=green", *here).returncode == 1
    assert cli.run("history", "BuiltinTag", "green", *here).returncode == 64

    _replays(cli, here, description)
    note, key = _published(cli, here)
    _verifies_with_notes(cli, here, note, key)
    folder = cli.folder / "export"
    told = cli.run("export", str(folder), *here)
    assert (told.returncode, f"verify --export {folder} --key {key}" in told.stderr) == (0, True), told.stderr
    compared = _documents(cli, "verify", "--against", str(folder))
    assert (compared["same"], compared["differences"], compared["behind_here"]) == (True, [], 0)
    assert cli.run("verify", "--against", str(folder), "--export", str(folder)).returncode == 0
    assert cli.run("verify", "--against", str(folder), "--branch", "another").returncode == 64
    status = cli.run("migrate", "--status").stderr
    assert "psql 'postgresql://ledger_reader@/apply_ledger?host=" in status
    assert str(cli.data_dir / "credentials.json") in status
    operation = description["operation_id"]
    proof = str(cli.folder / "proof.json")
    assert cli.run("prove", second["run"], operation, "--to", proof).returncode == 0
    _offline(cli, folder, proof, key)
    plan_table = cli.folder / "runs" / first["run"] / "plan.parquet"
    found = duckdb.sql(f"select action, source_id from read_parquet('{plan_table}') order by 2").fetchall()
    assert found == [("create", "blue"), ("create", "red")]


def _replays(cli: CommandLine, here: tuple[str, ...], description: dict[str, Any]) -> None:
    states = _documents(cli, "replay", "--state", "--at", str(description["earlier"][0]["position"]), *here)
    assert {state["identity"]["name"]: state["fields"]["description"] for state in states}["red"] == "warm"
    (change,) = _documents(cli, "replay", "--diff", str(description["position"] - 1), "2999-01-01", *here)
    assert change["fields"] == {"description": {"before": "warm", "after": "hot"}}
    assert cli.run("replay", "--at", "7").returncode == 64
    events = cli.run("replay", *here).stdout
    assert "reason first import" in events
    assert "host " in events
    times = [line.split()[1] for line in events.splitlines() if "operation.applied" in line]
    # a time as the table shows it means the event that it stands beside
    assert times[0] in cli.run("replay", *here, "--to", times[0]).stdout
    of_red = _documents(cli, "replay", "--kind", "BuiltinTag", "--identity", "name=red", *here)
    assert [event["kind"] for event in of_red] == ["operation.applied"] * 2
    assert cli.run("replay", "--kind", "BuiltinTag", "--identity", "name=green", *here).returncode == 1
    slip = cli.run("replay", "--state", "--kind", "BuiltinTags", *here)
    assert (slip.returncode, "did you mean BuiltinTag?" in slip.stderr) == (1, True), slip.stderr
    cut = cli.run("replay", *here, "--limit", "2")
    assert (cut.returncode, "the first 2, and more follow" in cut.stderr) == (0, True)
    assert "ERROR" not in cut.stderr
    for form in ("json", "ndjson"):
        assert cli.run("replay", *here, "--limit", "2", "--output", form).stderr == ""
    assert cli.run("replay", "--state", *here, "--limit", "1", "--output", "ndjson").stderr == ""
    assert "more follow" not in cli.run("replay", *here, "--limit", "500").stderr


def _verifies_with_notes(cli: CommandLine, here: tuple[str, ...], note: str, key: str) -> None:
    report = _documents(cli, "verify", *here, "--checkpoint", note, "--key", key)
    assert [level["status"] for level in report[0]["levels"] if level["level"] == "checkpoints"] == ["held"]
    assert cli.run("verify", *here, "--resume-from", note).returncode == 0
    stranger = SigningKey("tests", Ed25519PrivateKey.generate()).public.text()
    alien = cli.run("verify", *here, "--checkpoint", note, "--key", stranger)
    # trouble with the evidence is no finding about the ledger
    assert (alien.returncode, alien.stdout, "NoteNotTrustedError" in alien.stderr) == (1, "", True), alien.stderr
    (circumstances,) = (told["verification"] for told in report)
    assert str(cli.data_dir) in circumstances["subject"]
    assert [entry["name"] for entry in circumstances["files"]] == [note]
    assert report[0]["covered_to"] == report[0]["head_position"] - 1


def _published(cli: CommandLine, here: tuple[str, ...]) -> tuple[str, str]:
    assert cli.run("checkpoint", "publish", *here).returncode == 1  # there is no key yet
    assert cli.run("checkpoint", "key", "new", "tests").returncode == 0
    (published,) = _documents(cli, "checkpoint", "publish", *here)
    assert published["new"]
    assert _documents(cli, "checkpoint", "list", *here)[0]["position"] == published["position"]
    return published["file"], cli.run("checkpoint", "key", "public").stdout.strip()


def _offline(cli: CommandLine, folder: Path, proof: str, key: str) -> None:
    """Without the ledger: its folder is one that is not there."""
    away = {
        "APPLY_LEDGER_DATA_DIR": str(cli.folder / "nowhere"),
        "APPLY_LEDGER_CHECKPOINT_KEYS": str(cli.folder / "no"),
    }
    done = cli.run("verify", "--export", str(folder), "--key", key, **away)
    assert done.returncode == 0, done.stderr
    done = cli.run("verify", "--proof", proof, "--key", key, "--output", "json", **away)
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    assert shown["operation"]["payload"]["description"] == "hot"
    assert cli.run("verify", "--proof", proof, **away).returncode == 1  # no key, no proof
    bent = Path(proof).read_text().replace('\\"hot\\"', '\\"not\\"')
    Path(proof).write_text(bent)
    assert cli.run("verify", "--proof", proof, "--key", key, **away).returncode == 9
    runs = folder / "events.ndjson"
    runs.write_text(runs.read_text().replace("summer", "winter"))
    assert cli.run("verify", "--export", str(folder), "--key", key, **away).returncode == 9


@pytest.mark.timeout(300)
def test_a_drill_rebuilds_what_was_applied_and_compares(cli: CommandLine) -> None:
    first, _ = _two_runs(cli)
    target = f"{cli.branch}-drill"
    cli.sandbox.store.create_branch(target)
    record = ("--url", cli.sandbox.url, "--record-branch", cli.branch)
    drill = ("replay", "--onto", cli.sandbox.url, "--branch", target, *record)
    done = _documents(cli, *drill)
    assert (done["asserted"], done["equal"], done["different"], done["not_rebuilt_total"]) == (3, 2, 0, 0)
    content = json.dumps(cli.sandbox.store.content(branch=target))
    assert all(text in content for text in ("red", "hot", "blue", "cold"))
    assert "warm" not in content
    # as of the first run alone: yesterday can be rebuilt
    yesterday = f"{cli.branch}-yesterday"
    cli.sandbox.store.create_branch(yesterday)
    at = str(_documents(cli, "runs", "show", first["run"])["position"])
    done = _documents(cli, "replay", "--onto", cli.sandbox.url, "--branch", yesterday, *record, "--at", at)
    assert (done["position"], done["asserted"], done["equal"], done["different"]) == (int(at), 2, 2, 0)
    content = json.dumps(cli.sandbox.store.content(branch=yesterday))
    assert "warm" in content
    assert "hot" not in content
    # not twice onto the same place, and never onto what the ledger writes to
    assert cli.run(*drill).returncode == 3
    refused = cli.run("replay", "--onto", cli.sandbox.url, "--branch", cli.branch, *record)
    assert refused.returncode == 3
    assert "DrillOntoRecordedDestinationError" in refused.stderr


_PREFIXES = """
name: prefixes
source:
  name: jsonl
  settings: {directory: data}
destination:
  name: infrahub
schema_mapping:
  - name: IpamPrefix
    mapping: prefixes
    identifiers: [prefix, ip_namespace]
    fields:
      - {name: prefix, mapping: prefix}
      - {name: ip_namespace, static: default, reference: IpamNamespace}
"""


def test_a_drill_compares_references_to_what_no_run_wrote_by_their_identity(cli: CommandLine) -> None:
    """The default namespace is the server's own: the target has one of the same name, under an id of its own."""
    cli.source()
    (cli.folder / "data" / "prefixes.jsonl").write_text('{"id": "1", "prefix": "198.18.7.0/24"}\n')
    (cli.folder / "config.yml").write_text(_PREFIXES)
    planned = cli.plan()
    assert cli.apply(planned).returncode == 0
    record = ("--url", cli.sandbox.url, "--record-branch", cli.branch)
    target = f"{cli.branch}-drill"
    cli.sandbox.store.create_branch(target)
    done = _documents(cli, "replay", "--onto", cli.sandbox.url, "--branch", target, *record)
    assert (done["asserted"], done["equal"], done["different"], done["not_rebuilt_total"]) == (1, 1, 0, 0)
    nothing = cli.run("replay", "--onto", cli.sandbox.url, "--branch", target, *record, "--at", "1")
    assert (nothing.returncode, "NothingToRebuildError" in nothing.stderr) == (1, True), nothing.stderr


def test_work_that_is_to_sign_checkpoints_needs_a_key_before_it_serves(here: CommandHere) -> None:
    done = here.run("work", APPLY_LEDGER_CHECKPOINT_EVENTS="100")
    assert (done.returncode, "NoSigningKeyError" in done.stderr) == (1, True), done.stderr


def test_work_publishes_a_checkpoint_of_what_it_applied(cli: CommandLine, here: CommandHere) -> None:
    cli.variables |= {"APPLY_LEDGER_CHECKPOINT_EVENTS": "1", "APPLY_LEDGER_CHECKPOINT_DIR": str(cli.folder / "notes")}
    cli.source({"name": "one"})
    assert here.run("checkpoint", "key", "new", "service").returncode == 0
    worker = cli.start("--verbose", "work")
    planned = json.loads(here.run("plan", "--config-file", "config.yml", "--output", "json").stdout)
    applied = here.run("apply", planned["run"], "--expected-checksum", planned["plan_checksum"], "--output", "json")
    assert applied.returncode == 0, applied.stderr
    assert worker.stderr is not None
    said: list[str] = []
    while "published a checkpoint" not in "".join(said):
        said.append(worker.stderr.readline())
        assert said[-1], "".join(said)
    notes = sorted((cli.folder / "notes").glob("*/*.note"))
    worker.send_signal(signal.SIGTERM)
    _, stderr = worker.communicate(timeout=60)
    assert worker.returncode == 0, stderr
    verified = here.run("verify", "--checkpoint", str(notes[-1]), "--url", cli.sandbox.url, "--branch", cli.branch)
    assert verified.returncode == 0, verified.stdout + verified.stderr
