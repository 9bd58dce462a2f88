"""Little memory, few open files, no processes: a named end with a code, no half of a plan, no false record."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

import asyncpg
import pytest
from structlog.testing import capture_logs

from consumers.outcomes import defect_verdict
from consumers.pauses import PausePoint
from consumers.worker import Worker
from ledger.cli.main import main
from ledger.errors import ApplyLedgerError, ConfigurationError
from ledger.exit_codes import ExitCode
from ledger.plan.model import PlannedOperation
from ledger.plan.snapshot_process import read_apart
from ledger.shortage import MachineShortageError, shortage_of
from ledger.store.sqlstates import translated
from tests.resources.program import Ended, Limits, call, plan
from tests.support.command_line import CommandLine
from tests.support.operations import create
from tests.support.plans import tags, write_plan
from tests.support.processes import RealProcess
from tests.support.waiting import until
from tests.support.writer_bench import Bench

pytestmark = pytest.mark.integration

MIB = 1024 * 1024


def tag(name: str) -> PlannedOperation:
    return create("BuiltinTag", {"name": name}, {"name": name})


def _named(ended: Ended) -> None:
    """Done, or an end by the name of what was missing. Some libraries end the whole process where memory is out."""
    if ended.code in (-signal.SIGABRT, -signal.SIGSEGV):
        return
    assert ended.code in (ExitCode.DONE, ExitCode.ERROR), ended.stderr
    if ended.code:
        assert "MachineShortageError" in ended.stderr, ended.stderr


@pytest.mark.rules("A5", "C32", "G3", "G11")
@pytest.mark.parametrize(
    "tight",
    [*(Limits(memory=mib * MIB) for mib in (2, 10, 20)), *(Limits(open_files=count) for count in (1, 5))],
    ids=lambda limits: f"{limits.memory // MIB} MiB" if limits.memory else f"{limits.open_files} files",
)
async def test_commands_in_a_small_machine_end_by_name(cli: CommandLine, tight: Limits) -> None:
    cli.source(*({"name": f"tag-{number:04}", "description": "x" * 900} for number in range(150)))
    planned = await plan(cli)
    apply = ("apply", planned["run"], "--expected-checksum", planned["plan_checksum"])
    folder = cli.folder / "runs" / "tags"
    before = {path.name for path in folder.iterdir()}
    ended = await call(cli, "plan", "--config-file", "config.yml", limits=tight)
    _named(ended)
    for new in {path.name for path in folder.iterdir() if path.is_dir()} - before:
        assert (folder / new / "plan" / "manifest.json").exists() == (ended.code == ExitCode.DONE)
    for arguments in (
        ("show", planned["run"], "--output", "json"),
        ("verify",),
        ("replay", "--output", "ndjson"),
    ):
        _named(await call(cli, *arguments, limits=tight))
    _named(await call(cli, *apply, limits=tight))
    done = await call(cli, *apply)
    if done.code != ExitCode.DONE:  # it ran short in the middle, and the record says so
        assert done.code in (ExitCode.STOPPED_MAYBE_WRITTEN, ExitCode.INTERRUPTED), done.stderr
        assert (await call(cli, "resume", planned["run"])).code == ExitCode.DONE
    assert 150 <= cli.mutations() <= 151


@pytest.mark.rules("G3", "G4", "G5")
async def test_g04_no_memory_in_the_middle_of_an_apply_is_recorded_and_is_no_defect(bench: Bench) -> None:
    """What was sent is in doubt, the run has an end, and it goes on with memory."""
    operations = bench.commit([tag("a"), tag("b"), tag("c")])
    bench.destination.answers[operations[1].operation_id] = [MemoryError()]
    with pytest.raises(MemoryError) as ended:
        await bench.drain()
    assert bench.ledger.kinds("run-1")[-2:] == ["operation.unknown", "run.interrupted"]
    body = bench.ledger.log[-2].body.decode()
    assert "MachineShortageError" in body
    assert "defect" not in body
    assert shortage_of(ended.value) is not None


@pytest.mark.rules("G3", "G10")
@pytest.mark.parametrize("missing", [MemoryError(), OSError(24, "Too many open files"), OSError(28, "No space left")])
async def test_g10_what_the_gate_lacks_refuses_no_plan_and_is_said_once(bench: Bench, missing: Exception) -> None:
    bench.commit([tag("a")])
    tries: list[int] = []

    def lacking() -> None:
        tries.append(1)
        if len(tries) < 4:
            raise missing

    bench.destination.before_open = lacking
    stop = asyncio.Event()
    with capture_logs() as logs:
        serving = asyncio.create_task(Worker([bench.writer()]).run_until(stop))
        await until(lambda: "run.applied" in bench.ledger.kinds("run-1"))
        stop.set()
        await serving
    assert "plan.refused" not in bench.ledger.kinds("run-1")
    assert [entry["event"] for entry in logs if entry["log_level"] == "error"] == ["orders wait"]


@pytest.mark.rules("G3", "G11")
async def test_g03_a_service_that_ran_short_between_two_operations_says_so_and_starts_again(bench: Bench) -> None:
    bench.commit([tag("a")])
    stop = asyncio.Event()

    async def lacking() -> None:
        bench.pauses.actions.clear()
        raise OSError(12, "Cannot allocate memory")

    bench.pauses.actions[PausePoint.AFTER_RUN_STARTED] = lacking
    with capture_logs() as logs:
        serving = asyncio.create_task(Worker([bench.writer()], pause_after_defect=0.001).run_until(stop))
        await until(lambda: "run.applied" in bench.ledger.kinds("run-1"))
        stop.set()
        await serving
    (told,) = [entry for entry in logs if entry["log_level"] == "error"]
    assert "Cannot allocate memory" in told["error"]
    assert "exc_info" not in told


# --- in a process that may start neither processes nor threads


def _alone(run_dir: str, connection: Connection) -> None:
    """Say what an attempt at a process and one at a thread are called."""
    if os.geteuid() == 0:
        os.setuid(65534)
    resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
    named: list[str] = []
    attempts: list[Callable[[], object]] = [
        lambda: read_apart([Path(run_dir) / "A" / "BuiltinTag.parquet"]),
        lambda: asyncio.run(asyncio.to_thread(os.getpid)),
    ]
    for attempt in attempts:
        try:
            attempt()
        except Exception as exc:  # noqa: BLE001 - what it is called is the question
            shortage = shortage_of(exc)
            named.append(repr(exc) if shortage is None else f"{type(shortage).__name__}: {shortage.expected}")
    connection.send(" | ".join(named))


@pytest.mark.rules("G11")
async def test_no_process_and_no_thread_left_is_a_shortage_and_no_verdict_about_the_plan(tmp_path: Path) -> None:
    run_dir, _ = write_plan(tmp_path, tags("a"))
    process = RealProcess(_alone, str(run_dir))
    _, named = await process.ended()
    process.clean_up()
    assert named == " | ".join(["MachineShortageError: another process or thread"] * 2)


def _narrow(paths: list[str], connection: Connection) -> None:
    """Read snapshots where processes may have little memory."""
    resource.setrlimit(resource.RLIMIT_AS, (600 * MIB, 600 * MIB))
    try:
        connection.send(str([reading.problem for reading in read_apart([Path(path) for path in paths])]))
    except MachineShortageError as short:
        connection.send(f"{type(short).__name__}: {short.found}")


@pytest.mark.rules("G11")
async def test_a_snapshot_that_little_memory_cannot_judge_is_no_fault_of_the_plan(tmp_path: Path) -> None:
    """With less memory than promised a reading counts where it succeeds, and proves nothing where it does not."""
    run_dir, _ = write_plan(tmp_path, tags("a"))
    good = run_dir / "A" / "BuiltinTag.parquet"
    bad = tmp_path / "bad.parquet"
    bad.write_bytes(b"PAR1")
    said = []
    for paths in ([str(good)], [str(good), str(bad)]):
        process = RealProcess(_narrow, paths)
        _, word = await process.ended()
        process.clean_up()
        said.append(word)
    assert said[0] == "['']"
    assert said[1].startswith("MachineShortageError: a limit of 600 MiB")


# --- what counts as a shortage


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OSError(28, "No space left on device", "/somewhere/file"),
        OSError(30, "Read-only file system"),
        BlockingIOError(11, "Resource temporarily unavailable"),
        RuntimeError("can't start new thread"),
        ImportError("libarrow.so: failed to map segment from shared object"),
        ExceptionGroup("both sides", [MemoryError(), OSError(24, "Too many open files")]),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_shortage_is_told_from_everything_else_whatever_library_met_it(error: Exception) -> None:
    shortage = shortage_of(error)
    assert shortage is not None
    assert shortage.next_action
    refusal = ConfigurationError(checked="a plan", expected="bytes", found="none", next_action="look")
    refusal.__cause__ = error
    assert shortage_of(refusal) is not None


def _because(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


def test_a_connection_that_broke_for_want_of_memory_is_told_from_one_that_the_other_end_broke() -> None:
    """The driver says the same of both; asyncio had closed the connection whose answer found no memory."""
    lost = asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation")
    assert shortage_of(translated(lost, doing="an append")) is None
    refusal = _because(translated(lost, doing="an append"), _because(lost, MemoryError()))
    assert shortage_of(refusal) is not None
    circle = RuntimeError("one")
    assert shortage_of(_because(circle, _because(RuntimeError("two"), circle))) is None


@pytest.mark.rules("G11")
@pytest.mark.parametrize(
    ("cause", "named", "code"),
    [
        (MemoryError(), "MachineShortageError", ExitCode.ERROR),
        (ConnectionResetError(104, "Connection reset by peer"), "LedgerUnavailableError", ExitCode.BUSY),
    ],
    ids=["memory", "the other end"],
)
def test_g11_a_command_that_lost_its_ledger_says_whose_fault_that_was(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], cause: Exception, named: str, code: ExitCode
) -> None:
    lost = asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation")

    def broken(**_: object) -> object:
        raise translated(lost, doing="the list of runs") from _because(lost, cause)

    monkeypatch.setattr("ledger.cli.main.application", lambda _: broken)
    assert main(["runs"]) == code
    assert named in capfd.readouterr().err


@pytest.mark.parametrize(
    "error",
    [
        ValueError("no"),
        PermissionError(13, "Permission denied"),
        RuntimeError("dictionary changed size"),
        ImportError("No module named 'pyarrow'"),
        BlockingIOError(11, "write could not complete without blocking", 0),
        ExceptionGroup("both sides", [MemoryError(), ValueError("no")]),
        ConfigurationError(checked="a plan", expected="bytes", found="none", next_action="look"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_defect_or_a_refusal_is_never_taken_for_a_shortage(error: Exception) -> None:
    assert shortage_of(error) is None
    if not isinstance(error, ApplyLedgerError):
        assert "defect of the program" in str(defect_verdict(error, sent=True).body)
