"""Full disks: what could not be written is said, nothing half-written is a plan, and what waits goes on with room."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from ledger.plan import private_copy
from tests.resources.program import Limits, call, plan
from tests.support.command_line import CommandLine
from tests.support.inventory_operations import manufacturer
from tests.support.real_writer import RealWriter
from tests.support.small_disk import SmallDisk, small_disk
from tests.support.waiting import until, until_true

pytestmark = pytest.mark.integration

ROWS = tuple({"name": f"tag-{number:03}", "description": "x" * 400} for number in range(60))


def _few_pages(disk: SmallDisk) -> None:
    """Room for a part of the plan: the folder has 64 KiB."""


def _no_room(disk: SmallDisk) -> None:
    disk.fill()


def _no_inodes(disk: SmallDisk) -> None:
    disk.use_up_inodes()


def _read_only(disk: SmallDisk) -> None:
    disk.forbid_writing()


@pytest.mark.rules("A5", "C32", "G11")
@pytest.mark.parametrize("trouble", [_few_pages, _no_room, _no_inodes, _read_only], ids=lambda f: f.__name__[1:])
async def test_planning_without_room_says_so_and_leaves_no_plan(cli: CommandLine, trouble: object) -> None:
    cli.source(*ROWS)
    with small_disk(kibibytes=64, inodes=40) as disk:
        assert callable(trouble)
        trouble(disk)
        planned = await call(
            cli,
            "plan",
            "--config-file",
            "config.yml",
            limits=None if disk.mounted else Limits(file_size=8192),
            INFRAHUB_SYNC_CACHE_DIR=str(disk.folder),
        )
        assert planned.code in (1, 3), planned.stderr
        assert any(word in planned.stderr for word in ("space", "too large", "Read-only")), planned.stderr
        assert not list(disk.folder.rglob("manifest.json"))
    assert cli.mutations() == 0


@pytest.mark.rules("G3", "G11")
async def test_a_run_whose_files_cannot_be_completed_is_recorded_all_the_same(cli: CommandLine) -> None:
    """The ledger has the run; run.json stays as it was, whole, and the command warns."""
    cli.source({"name": "a"})
    with small_disk(kibibytes=512) as disk:
        cli.variables["INFRAHUB_SYNC_CACHE_DIR"] = str(disk.folder)
        planned = await plan(cli)
        disk.fill()
        done = await call(
            cli,
            "apply",
            planned["run"],
            "--expected-checksum",
            planned["plan_checksum"],
            limits=None if disk.mounted else Limits(file_size=256),
            stdout="/dev/null",
            stderr=None if disk.mounted else "/dev/null",
        )
        assert done.code == 0, done.stderr
        assert "were not completed" in done.stderr or not disk.mounted
        record = json.loads((disk.folder / planned["run"] / "run.json").read_text(encoding="utf-8"))
        assert record["status"] == "planned"
        shown = await call(cli, "runs", "show", planned["run_id"], "--output", "json")
    assert json.loads(shown.stdout)["state"] == "applied"
    assert cli.mutations() == 1


@pytest.mark.rules("G3", "G11")
async def test_a_run_goes_to_its_end_although_nothing_can_be_said_about_it(cli: CommandLine) -> None:
    """A full disk under the log or a closed terminal must not decide what becomes of an operation."""
    cli.source(*ROWS)
    planned = await plan(cli)
    checksum = planned["plan_checksum"]
    done = await call(
        cli, "-v", "apply", planned["run"], "--expected-checksum", checksum, stdout="/dev/full", stderr="/dev/full"
    )
    assert done.code == 1
    assert cli.mutations() == len(ROWS)
    again = await call(cli, "apply", planned["run"], "--expected-checksum", checksum, stdout="/dev/full")
    assert again.code == 1
    assert "the output could not be written" in again.stderr
    silent = await call(
        cli, "apply", planned["run"], "--expected-checksum", checksum, "--output", "json", stderr="/dev/full"
    )
    assert (silent.code, json.loads(silent.stdout)["state"]) == (0, "applied")
    assert cli.mutations() == len(ROWS)


@pytest.mark.rules("G3", "G10", "G11")
async def test_an_order_waits_for_room_for_its_private_copy(
    real: RealWriter, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The plan has no fault: it is not refused, it is said once what is missing, and it goes on by itself."""
    monkeypatch.setattr(private_copy, "HELD_IN_MEMORY", 64)
    await real.commit("run-1", [manufacturer("first"), manufacturer("second")])
    stop = asyncio.Event()
    with small_disk(kibibytes=16) as disk, capture_logs() as logs:
        disk.fill()
        monkeypatch.setenv("TMPDIR", str(disk.folder if disk.mounted else disk.folder / "nowhere"))
        serving = asyncio.create_task(real.writer().run_until(stop))
        await until(lambda: any(entry["event"] == "orders wait" for entry in logs))
        assert await real.kinds("run-1") == ["plan.committed"]
        monkeypatch.setenv("TMPDIR", str(tmp_path))
        disk.free()

        async def applied() -> bool:
            return (await real.kinds("run-1"))[-1] == "run.applied"

        await until_true(applied)
        stop.set()
        await serving
    (told,) = [entry for entry in logs if entry["event"] == "orders wait"]
    assert "private copy" in told["error"]
    assert len(real.sent()) == 2


@pytest.mark.rules("G11")
async def test_no_room_for_the_embedded_database_is_said_and_leaves_none(cli: CommandLine) -> None:
    cli.source({"name": "a"})
    planned = await plan(cli)
    apply = ("apply", planned["run"], "--expected-checksum", planned["plan_checksum"])
    with small_disk(kibibytes=1024) as disk:
        folder = disk.folder / "ledger"
        limits = None if disk.mounted else Limits(file_size=65536)
        ended = await call(cli, *apply, limits=limits, APPLY_LEDGER_DATA_DIR=str(folder))
        assert ended.code == 1, ended.stderr
        assert any(word in ended.stderr for word in ("ServerStartError", "MachineShortageError")), ended.stderr
        assert not (folder / "data").exists()
    assert cli.mutations() == 0
