"""Each exit code through a real process (design 9), and what a person reads with it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from pathlib import Path

import asyncpg
import pytest

from consumers.infrahub.sandbox.faults import FaultAnswer, FaultRule
from ledger.binding import DestinationBinding
from ledger.store.embedded import EmbeddedPostgres
from ledger.store.ledger import Ledger
from ledger.store.writer import WriterStore
from tests.support.command_line import TOKEN, CommandLine

pytestmark = pytest.mark.integration

TWO = ({"name": "prod", "description": "Production"}, {"name": "lab", "description": None})


@pytest.mark.rules("C48", "C50", "C51", "P125", "P126", "P122", "H30", "H31")
def test_0_plan_apply_and_an_empty_second_plan(cli: CommandLine) -> None:
    cli.source(*TWO)
    planned = cli.plan()
    assert planned["counts"] == {"create": 2, "update": 0, "remove": 0, "skip": 0, "none": 0}
    done = cli.apply(planned, "--reason", "first import")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert (summary["state"], summary["applied"], summary["failed_operation"]) == ("applied", 2, None)
    run_file = json.loads((cli.folder / "runs" / planned["run"] / "run.json").read_text())
    assert run_file["status"] == "applied"
    assert set(run_file["summary"]) == {
        "applied_operations",
        "skipped_delete_operations",
        "skipped_delete_count",
        "failed_operation",
        "failed_operation_wrote",
        "may_have_partially_written",
    }
    again = cli.plan()
    assert again["counts"] == {"create": 0, "update": 0, "remove": 0, "skip": 0, "none": 2}
    before = cli.mutations()
    assert cli.apply(again).returncode == 0
    assert cli.mutations() == before


def test_2_changes_are_present(cli: CommandLine) -> None:
    cli.source(*TWO)
    assert cli.run("plan", "--config-file", "config.yml", "--detailed-exitcode").returncode == 2


@pytest.mark.rules("G1", "P103", "C52")
def test_g01_3_a_changed_byte_is_refused_before_any_write(cli: CommandLine) -> None:
    cli.source(*TWO)
    planned = cli.plan()
    operations = cli.folder / "runs" / planned["run"] / "plan" / "operations.jsonl"
    operations.write_bytes(operations.read_bytes().replace(b"Production", b"Producti0n"))
    done = cli.apply(planned)
    assert done.returncode == 3, done.stderr
    assert "checksum" in done.stderr
    assert cli.sandbox.store.count("BuiltinTag", branch=cli.branch) == 0


@pytest.mark.rules("P27", "P38", "P55", "P123", "P136", "P139")
def test_4_a_stale_id_is_proven_unwritten(cli: CommandLine) -> None:
    tag = cli.sandbox.store.create("BuiltinTag", {"name": "prod"}, branch=cli.branch)
    cli.source(TWO[0])
    planned = cli.plan()
    assert planned["counts"]["update"] == 1
    cli.sandbox.store.delete(tag, branch=cli.branch)
    done = cli.apply(planned)
    assert done.returncode == 4, done.stderr
    summary = json.loads(done.stdout)
    assert (summary["state"], summary["failed_operation_wrote"]) == ("failed", False)
    run_file = json.loads((cli.folder / "runs" / planned["run"] / "run.json").read_text())
    assert run_file["status"] == "failed"
    assert run_file["summary"] == {key: summary[key] for key in run_file["summary"]}
    assert run_file["summary"]["failed_operation"] == summary["failed_operation"] is not None
    assert cli.sandbox.store.count("BuiltinTag", branch=cli.branch) == 0


@pytest.mark.rules("G5", "P128", "P129", "P130")
def test_g05_5_a_lost_answer_may_have_written_and_resume_goes_on(cli: CommandLine) -> None:
    cli.source(*TWO)
    planned = cli.plan()
    cli.sandbox.faults.add(FaultRule(kind="BuiltinTag", branch=cli.branch, answer=FaultAnswer.DROP, write=True))
    done = cli.apply(planned)
    assert done.returncode == 5, done.stderr
    summary = json.loads(done.stdout)
    assert summary["failed_operation_wrote"] is None
    assert summary["may_have_partially_written"] is True
    assert (summary["applied"], summary["unknown"], summary["not_attempted"]) == (0, 1, 1)
    assert "apply-ledger resume" in done.stderr
    resumed = cli.run("resume", planned["run"], "--reason", "looked at it", "--output", "json")
    assert resumed.returncode == 0, resumed.stderr
    assert json.loads(resumed.stdout)["applied"] == 2
    assert cli.sandbox.store.count("BuiltinTag", branch=cli.branch) == 2


def test_6_an_older_plan_of_the_same_source_is_stale(cli: CommandLine) -> None:
    cli.source(TWO[0])
    older = cli.plan()
    cli.source(*TWO)
    newer = cli.plan()
    assert cli.apply(newer).returncode == 0
    assert "This plan is stale" in cli.run("show", older["run"]).stdout
    refused = cli.apply(older)
    assert refused.returncode == 6, refused.stderr
    assert "allow" in refused.stderr
    allowed = cli.run("resume", older["run"], "--allow-stale", "--reason", "as a person decided")
    assert allowed.returncode == 0, allowed.stderr
    assert "This plan is stale" not in cli.run("show", older["run"]).stdout  # it is no plan to apply any more


def _dsns(cli: CommandLine) -> tuple[str, str]:
    dsns = asyncio.run(EmbeddedPostgres(cli.data_dir).ensure_running())
    return dsns.writer, dsns.admin


def test_8_somebody_else_holds_the_lease(cli: CommandLine) -> None:
    cli.source(*TWO)
    planned = cli.plan()
    writer_dsn, _ = _dsns(cli)

    async def hold() -> None:
        async with await Ledger.open(writer_dsn) as ledger, await WriterStore.open(writer_dsn) as store:
            binding_id = await ledger.register_binding(DestinationBinding(url=cli.sandbox.url, branch=cli.branch))
            await store.claim(
                binding_id, owner="other", ttl=60.0, settle=0.0, body_host="other-host", body_process_id="other"
            )

    asyncio.run(hold())
    done = cli.apply(planned, "--wait-timeout", "3")
    assert done.returncode == 8, done.stderr
    assert "other-host" in done.stderr
    assert cli.sandbox.store.count("BuiltinTag", branch=cli.branch) == 0


@pytest.mark.rules("G8")
def test_g08_9_an_edited_event_is_found(cli: CommandLine) -> None:
    cli.source(*TWO)
    assert cli.apply(cli.plan()).returncode == 0
    assert cli.run("verify", "--branch", cli.branch).returncode == 0
    _, admin_dsn = _dsns(cli)

    async def tamper() -> None:
        connection = await asyncpg.connect(admin_dsn)
        triggers = await connection.fetch(
            "select tgname from pg_trigger where tgrelid = 'ledger.event'::regclass and not tgisinternal"
        )
        await connection.execute("alter table ledger.event disable trigger user")
        changed = await connection.execute(
            "update ledger.event e set writer_epoch = e.writer_epoch + 1"
            " from ledger.binding b where b.id = e.binding_id and b.branch = $1 and e.kind = 'operation.applied'",
            cli.branch,
        )
        for trigger in triggers:
            await connection.execute(f'alter table ledger.event enable always trigger "{trigger["tgname"]}"')
        await connection.close()
        assert changed == "UPDATE 2"

    asyncio.run(tamper())
    done = cli.run("verify", "--branch", cli.branch)
    assert done.returncode == 9
    assert "chain" in done.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ("plan",),
        ("plan", "--name", "x", "--config-file", "y"),
        ("plan", "--config-file", "config.yml", "--source-setting", "directory"),
        ("plan", "--no-such-option"),
        ("no-such-command",),
        ("apply", "../../etc/passwd"),
        ("runs", "show"),
        ("replay", "--limit", "0"),
        ("apply", "x/20261129T1200-00000000", "--wait-timeout", "-1"),
        ("apply", "x/20261129T1200-00000000", "--wait-timeout", "nan"),
    ],
)
def test_64_wrong_usage(cli: CommandLine, arguments: tuple[str, ...]) -> None:
    cli.source(*TWO)
    done = cli.run(*arguments)
    assert done.returncode == 64 or ("passwd" in str(arguments) and done.returncode == 3), done.stderr
    assert done.stderr.strip()
    assert done.stdout == ""


def test_1_nothing_has_the_given_name(cli: CommandLine) -> None:
    cli.source(*TWO)
    planned = cli.plan()
    assert cli.apply(planned).returncode == 0
    mistyped = planned["run_id"][:-1] + ("0" if planned["run_id"][-1] != "0" else "1")
    for arguments in (
        ("apply", "no/such"),
        ("show", mistyped),
        ("runs", "show", mistyped),
        ("stop", mistyped),
        ("replay", "--run", mistyped),
    ):
        done = cli.run(*arguments)
        assert done.returncode == 1, arguments
        assert mistyped not in arguments or f"did you mean {planned['run_id']}?" in done.stderr, done.stderr


@pytest.mark.rules("G1")
def test_g01_64_a_script_must_name_the_checksum(cli: CommandLine) -> None:
    cli.source(*TWO)
    planned = cli.plan()
    done = cli.run("apply", planned["run"])
    assert done.returncode == 64
    assert "--expected-checksum" in done.stderr


def test_6_another_checksum_than_the_reviewed_one(cli: CommandLine) -> None:
    cli.source(*TWO)
    planned = cli.plan()
    done = cli.run("commit", planned["run"], "--expected-checksum", "0" * 64)
    assert done.returncode == 6
    assert planned["plan_checksum"] in done.stderr


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("config.yml", "{", "config.yml"),
        ("config.yml", "name: tags\n", "schema_mapping"),
        ("apply-ledger.toml", "nonsense = 1\n", "nonsense"),
        ("apply-ledger.toml", "[writer]\npoll_interval = 0\n", "poll_interval"),
        ("apply-ledger.toml", "=", "apply-ledger.toml"),
    ],
)
def test_1_a_file_that_cannot_be_used(cli: CommandLine, name: str, text: str, told: str) -> None:
    cli.source(*TWO)
    (cli.folder / name).write_text(text, encoding="utf-8")
    done = cli.run("plan", "--config-file", "config.yml")
    assert done.returncode in (1, 3, 64), done.stderr
    assert told in done.stderr


def test_1_reading_a_ledger_that_is_not_there(cli: CommandLine, tmp_path: Path) -> None:
    for command in (("runs",), ("verify",), ("replay",), ("rebuild",), ("runs", "show", "20261129T1200-00000000")):
        done = cli.run(*command, APPLY_LEDGER_DATA_DIR=str(tmp_path / "mistyped"))
        assert done.returncode == 1, command
        assert "mistyped" in done.stderr
    assert not (tmp_path / "mistyped").exists()


@pytest.mark.rules("G12")
def test_g12_a_token_in_the_syncs_file_serves_planning_alone_and_is_never_seen(cli: CommandLine) -> None:
    cli.source(*TWO)
    config = cli.folder / "config.yml"
    text = config.read_text(encoding="utf-8")
    named = text.replace("  name: infrahub\n", f"  name: infrahub\n  settings: {{token: {TOKEN}}}\n")
    config.write_text(named, encoding="utf-8")
    planned = cli.run("plan", "--config-file", "config.yml", "--output", "json", INFRAHUB_API_TOKEN="")
    assert planned.returncode == 0, planned.stderr
    assert "INFRAHUB_API_TOKEN" in planned.stderr
    written = [path.read_bytes() for path in (cli.folder / "runs").rglob("*") if path.is_file()]
    assert written
    assert not any(TOKEN.encode() in data for data in written)
    config.write_text(text, encoding="utf-8")
    refused = cli.run("plan", "--config-file", "config.yml", INFRAHUB_API_TOKEN="")
    assert refused.returncode == 1
    assert "INFRAHUB_API_TOKEN" in refused.stderr


def test_1_down_does_not_speak_of_a_folder_that_it_cannot_read(cli: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "something").write_text("else", encoding="utf-8")
    done = cli.run("down", APPLY_LEDGER_DATA_DIR=str(tmp_path / "foreign"))
    assert done.returncode == 1
    assert "not running" not in done.stderr


def test_1_a_folder_of_runs_that_cannot_be_made(cli: CommandLine) -> None:
    cli.source(*TWO)
    (cli.folder / "a-file").write_text("", encoding="utf-8")
    done = cli.run("plan", "--config-file", "config.yml", INFRAHUB_SYNC_CACHE_DIR=str(cli.folder / "a-file"))
    assert done.returncode == 1
    assert "INFRAHUB_SYNC_CACHE_DIR" in done.stderr


@pytest.mark.rules("G1", "C30")
def test_g01_3_an_edited_manifest_is_named_before_it_is_believed(cli: CommandLine) -> None:
    cli.source(*TWO)
    planned = cli.plan()
    manifest = cli.folder / "runs" / planned["run"] / "plan" / "manifest.json"
    manifest.write_bytes(manifest.read_bytes().replace(cli.branch.encode(), cli.branch[:-1].encode() + b"x"))
    done = cli.apply(planned)
    assert done.returncode == 3
    assert "AlteredPlanError" in done.stderr


def test_the_reason_of_a_failure_is_told_and_a_refused_run_says_how_it_goes_on(cli: CommandLine) -> None:
    cli.source(TWO[0])
    older = cli.plan()
    cli.source(*TWO)
    cli.sandbox.faults.add(FaultRule(kind="BuiltinTag", branch=cli.branch, answer=FaultAnswer.TEXT_500))
    planned = cli.plan()
    assert cli.apply(planned).returncode == 5
    shown = cli.run("runs", "show", planned["run_id"])
    assert "500" in shown.stdout
    assert cli.run("resume", planned["run"], "--reason", "again").returncode == 0
    assert cli.apply(older).returncode == 6
    again = cli.apply(older, "--allow-stale")
    assert again.returncode == 6
    assert f"apply-ledger resume {older['run']}" in again.stderr


def test_1_an_undeclared_destination(cli: CommandLine) -> None:
    cli.source(*TWO)
    done = cli.run("plan", "--config-file", "config.yml", "--branch", "another")
    assert done.returncode == 1
    assert "declare" in done.stderr


@pytest.mark.rules("P143")
def test_130_ctrl_c_stops_the_run_and_leaves_nothing_in_doubt(cli: CommandLine) -> None:
    cli.source(*({"name": f"tag-{number:03}", "description": None} for number in range(200)))
    planned = cli.plan()
    cli.sandbox.faults.add(FaultRule(kind="BuiltinTag", branch=cli.branch, delay_before_write=0.05, count=None))
    process = cli.start("apply", planned["run"], "--expected-checksum", planned["plan_checksum"], "--output", "json")
    deadline = time.monotonic() + 60
    while cli.sandbox.store.count("BuiltinTag", branch=cli.branch) < 3 and time.monotonic() < deadline:
        os.sched_yield()
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    summary = json.loads(stdout)
    assert summary["state"] == "stopped"
    assert summary["unknown"] == summary["failed"] == 0
    assert summary["applied"] == cli.sandbox.store.count("BuiltinTag", branch=cli.branch)
    assert summary["applied"] + summary["not_attempted"] == 200
