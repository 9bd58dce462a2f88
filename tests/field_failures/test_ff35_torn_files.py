"""FF35: what a death, a full disk or a hand leaves behind is never a plan, and four states have four names."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from unittest import mock

import pytest

from ledger.errors import ApplyLedgerError
from ledger.exit_codes import ExitCode
from ledger.plan.errors import PlanArtifactAbsentError, TornPlanArtifactError
from ledger.plan.layout import MANIFEST_FILE, OPERATIONS_FILE
from ledger.plan.reader import load_plan_artifact
from tests.support.command_line import PROGRAM, CommandLine
from tests.support.inventory_operations import manufacturer
from tests.support.plans import tags, write_plan
from tests.support.processes import RealProcess
from tests.support.real_writer import RealWriter

pytestmark = pytest.mark.integration

Damage = Callable[[Path], None]


def _empty(run_dir: Path) -> None:
    (run_dir / MANIFEST_FILE).write_bytes(b"")


def _half_a_manifest(run_dir: Path) -> None:
    data = (run_dir / MANIFEST_FILE).read_bytes()
    (run_dir / MANIFEST_FILE).write_bytes(data[: len(data) // 2])


def _zeros(run_dir: Path) -> None:
    """What some file systems show after a power loss without a flush: the size is there, the content is not."""
    (run_dir / MANIFEST_FILE).write_bytes(bytes((run_dir / MANIFEST_FILE).stat().st_size))


def _without(name: str) -> Damage:
    def damage(run_dir: Path) -> None:
        (run_dir / name).unlink()

    return damage


def _cut(run_dir: Path) -> None:
    data = (run_dir / OPERATIONS_FILE).read_bytes()
    (run_dir / OPERATIONS_FILE).write_bytes(data[:-7])


def _last_line_gone(run_dir: Path) -> None:
    lines = (run_dir / OPERATIONS_FILE).read_bytes().splitlines(keepends=True)
    (run_dir / OPERATIONS_FILE).write_bytes(b"".join(lines[:-1]))


def _another_version(run_dir: Path) -> None:
    document = json.loads((run_dir / MANIFEST_FILE).read_bytes())
    (run_dir / MANIFEST_FILE).write_text(json.dumps({**document, "format_version": 4}))


def _a_file_in_its_place(run_dir: Path) -> None:
    shutil.rmtree(run_dir / "plan")
    (run_dir / "plan").write_bytes(b"")


def _a_folder_in_place_of(name: str) -> Damage:
    def damage(run_dir: Path) -> None:
        (run_dir / name).unlink()
        (run_dir / name).mkdir()

    return damage


def _older_format(run_dir: Path) -> None:
    shutil.rmtree(run_dir / "plan")
    (run_dir / "plan.parquet").write_bytes(b"PAR1")


DAMAGES: dict[str, tuple[Damage, str]] = {
    "an empty manifest": (_empty, "TornPlanArtifactError"),
    "half a manifest": (_half_a_manifest, "TornPlanArtifactError"),
    "a manifest of zeros": (_zeros, "TornPlanArtifactError"),
    "no manifest": (_without(MANIFEST_FILE), "TornPlanArtifactError"),
    "no operations": (_without(OPERATIONS_FILE), "TornPlanArtifactError"),
    "a cut last line": (_cut, "TornPlanArtifactError"),
    "a last line less": (_last_line_gone, "TornPlanArtifactError"),
    "another version": (_another_version, "UnrecognisedPlanFormatError"),
    "plan is a file": (_a_file_in_its_place, "PlanArtifactUnreadableError"),
    "a folder for a manifest": (_a_folder_in_place_of(MANIFEST_FILE), "PlanArtifactUnreadableError"),
    "a folder for operations": (_a_folder_in_place_of(OPERATIONS_FILE), "PlanArtifactUnreadableError"),
    "the older format": (_older_format, "PlanArtifactAbsentError"),
}


@pytest.mark.rules("A7", "A8", "A9", "A10", "A11", "A12", "C33", "C34", "P101", "P104")
async def test_ff35_a_damaged_run_is_refused_by_its_own_name_and_a_whole_one_goes_on(real: RealWriter) -> None:
    await real.commit("run-1", [manufacturer("first"), manufacturer("second")])
    run_dir = real.root / "sync" / "run-1"
    whole = shutil.copytree(run_dir, real.root / "whole")
    for number, (what, (damage, verdict)) in enumerate(DAMAGES.items()):
        damage(run_dir)
        with pytest.raises(ApplyLedgerError) as refused:
            load_plan_artifact(run_dir)
        assert type(refused.value).__name__ == verdict, what
        if number:
            await real.resume("run-1")
        outcome = await real.writer().drain("run-1", by="ada")
        assert outcome.exit_code is ExitCode.REFUSED, what
        shutil.rmtree(run_dir)
        shutil.copytree(whole, run_dir)
    assert real.sent() == []
    for name in (".manifest.json.0123456789abcdef.tmp", ".operations.jsonl.0123456789abcdef.tmp"):
        (run_dir / "plan" / name).write_bytes(b"half")
    await real.resume("run-1")
    assert (await real.writer().drain("run-1", by="ada")).ending == "run.applied"
    assert len(real.sent()) == 2


# --- death, in a process of its own


def _dies(root: str, at: int, connection: Connection) -> None:
    """Write a plan, and die at the given one of its flushes."""
    original, flushes = os.fsync, iter(range(1, 1000))

    def fsync(descriptor: int) -> None:
        if next(flushes) == at:
            os.kill(os.getpid(), signal.SIGKILL)
        original(descriptor)

    with mock.patch.object(os, "fsync", fsync):
        write_plan(Path(root), tags("a", "b", "c"))
    connection.send("written")


@pytest.mark.rules("A5", "A6", "A8", "C32")
async def test_ff35_killed_at_any_flush_there_is_a_whole_plan_or_none(tmp_path: Path) -> None:
    verdicts: list[str] = []
    for at in range(1, 30):
        process = RealProcess(_dies, str(tmp_path / str(at)), at)
        status, word = await process.ended()
        process.clean_up()
        [run_dir] = (tmp_path / str(at)).iterdir()
        try:
            assert len(load_plan_artifact(run_dir).operations) == 3
            verdicts.append("whole")
        except (PlanArtifactAbsentError, TornPlanArtifactError) as refused:
            assert status == -signal.SIGKILL
            verdicts.append(type(refused).__name__)
        if word == "written":
            break
    assert verdicts[-1] == "whole"
    assert verdicts == sorted(verdicts)  # absent, then torn, then whole; never back
    assert set(verdicts) == {"PlanArtifactAbsentError", "TornPlanArtifactError", "whole"}


@pytest.mark.rules("A5", "C32")
def test_ff35_content_is_flushed_before_its_name_and_the_name_before_the_next_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    original: dict[str, Callable[..., None]] = {
        "fsync": os.fsync,
        "link": os.link,
        "rename": os.rename,
        "replace": os.replace,
    }

    def fsync(descriptor: int) -> None:
        calls.append(f"flush {Path(os.readlink(f'/proc/self/fd/{descriptor}')).name.split('.tmp')[0]}")
        original["fsync"](descriptor)

    def naming(name: str) -> Callable[..., None]:
        def call(source: str, target: str, **more: object) -> None:
            calls.append(f"name {Path(target).name}")
            original[name](source, target, **more)

        return call

    monkeypatch.setattr(os, "fsync", fsync)
    for name in ("link", "rename", "replace"):
        monkeypatch.setattr(os, name, naming(name))
    write_plan(tmp_path, tags("a"))
    simple = ["flush" if call.startswith("flush .") else call for call in calls]
    tail = simple[simple.index("name operations.jsonl") - 1 :]
    assert tail == ["flush", "name operations.jsonl", "flush plan", "flush", "name manifest.json", "flush plan"]


def _without_room(root: str, limit: int, connection: Connection) -> None:
    """Write a plan where no file may grow beyond ``limit`` bytes, as on a disk that is full."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    try:
        write_plan(Path(root), tags(*(f"tag-{number:04}" for number in range(200))))
    except ApplyLedgerError as refused:
        connection.send(type(refused).__name__)


@pytest.mark.rules("A5", "A13", "C32", "G11")
@pytest.mark.parametrize("limit", [0, 4096, 16384])
async def test_ff35_a_full_disk_fails_the_plan_and_leaves_no_manifest(tmp_path: Path, limit: int) -> None:
    process = RealProcess(_without_room, str(tmp_path), limit)
    status, word = await process.ended()
    process.clean_up()
    assert (status, word in ("PlanWriteFailedError", "SnapshotWriteFailedError")) == (0, True), word
    assert not list(tmp_path.rglob("manifest.json"))
    assert not list(tmp_path.rglob("*.tmp"))


def _as_nobody(run_dir: str, connection: Connection) -> None:
    """Read a plan as a user who may not."""
    if os.geteuid() == 0:
        os.setuid(65534)
    try:
        connection.send(f"{len(load_plan_artifact(Path(run_dir)).operations)} operations")
    except ApplyLedgerError as refused:
        connection.send(f"{type(refused).__name__}: {refused.found}")


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """A folder that every user may pass through."""
    folder = Path(tempfile.mkdtemp(prefix="apply-ledger-ff35-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.rules("A12", "A13")
@pytest.mark.parametrize("closed", [MANIFEST_FILE, OPERATIONS_FILE, "plan", None])
async def test_ff35_no_permission_is_said_as_such(public_folder: Path, closed: str | None) -> None:
    run_dir, _ = write_plan(public_folder, tags("a"))
    if closed is not None:
        (run_dir / closed).chmod(0)
    process = RealProcess(_as_nobody, str(run_dir))
    _, word = await process.ended()
    process.clean_up()
    with contextlib.suppress(OSError):
        (run_dir / "plan").chmod(0o700)
    assert word == ("1 operations" if closed is None else "PlanArtifactUnreadableError: Permission denied")


@pytest.mark.rules("A5", "C32", "C34", "P101", "G11")
def test_ff35_a_failed_plan_run_leaves_nothing_to_apply_and_the_next_one_works(cli: CommandLine) -> None:
    cli.source(*({"name": f"tag-{number:03}", "description": "x" * 400} for number in range(60)))
    planned = cli.plan()  # it starts the ledger too, which must not inherit the limit
    failed = subprocess.run(
        ["/bin/sh", "-c", 'ulimit -f 8; exec "$@"', "sh", *PROGRAM, "plan", "--config-file", "config.yml"],
        cwd=cli.folder,
        env=cli.environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=90,
    )
    assert failed.returncode in (1, 3), failed.stderr
    assert "Traceback" not in failed.stderr
    assert "space" in failed.stderr
    folders = [path for path in (cli.folder / "runs" / "tags").iterdir() if path.is_dir()]
    [other] = [path for path in folders if path.name != planned["run_id"]]
    assert not (other / "plan" / "manifest.json").exists()
    done = cli.run("apply", f"tags/{other.name}", "--expected-checksum", planned["plan_checksum"])
    assert done.returncode == 3, done.stderr
    assert cli.mutations() == 0
