"""A ledger that lacks disk, memory, connections or time: nothing false is recorded, and the service goes on later."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from consumers.infrahub.sandbox import RunningSandbox
from consumers.pauses import PausePoint
from ledger.audit import verify_binding
from ledger.exit_codes import ExitCode
from ledger.store import writer as store_writer
from ledger.store.connect import Limits
from ledger.store.errors import LedgerUnavailableError
from ledger.store.ledger import Ledger
from ledger.store.writer import WriterStore
from tests.support.database_trouble import refusing
from tests.support.inventory_operations import manufacturer
from tests.support.real_writer import RealWriter
from tests.support.small_database import SmallDatabase, small_database
from tests.support.store import claim, connection_to
from tests.support.waiting import until, until_true
from tests.support.writer_bench import Pauses

pytestmark = pytest.mark.integration

COUNT = 60


@pytest.fixture(scope="module")
def database() -> Iterator[SmallDatabase]:
    with small_database() as running:
        yield running


@pytest.fixture
async def small(
    database: SmallDatabase, sandbox: RunningSandbox, branch: str, tmp_path: Path
) -> AsyncIterator[RealWriter]:
    async with await Ledger.open(database.writer) as ledger:
        yield RealWriter(dsn=database.writer, ledger=ledger, sandbox=sandbox, branch=branch, root=tmp_path)


async def _is_applied(real: RealWriter) -> bool:
    return (await real.kinds("run-1"))[-1] == "run.applied"


async def _everything_once(real: RealWriter, count: int) -> None:
    """Each operation has one success, at most one was sent twice, and what is recorded is what is there."""
    successes = [ordinal for ordinal, outcome, _ in await real.outcomes("run-1") if outcome == "applied"]
    assert sorted(str(ordinal) for ordinal in successes) == sorted(str(ordinal) for ordinal in range(count))
    doubts = [outcome for _, outcome, _ in await real.outcomes("run-1") if outcome == "unknown"]
    assert len(doubts) <= 1
    assert count <= len(real.sent()) <= count + len(doubts)
    assert len(real.content()) == len({str(entry) for entry in real.content()})


def _at(point: PausePoint, occurrence: int, strike: Callable[[], Awaitable[None]]) -> Pauses:
    """A hook that does something when a point is reached for this time; no request is under way meanwhile."""
    passed = iter(range(1, 10_000))

    async def reached() -> None:
        if next(passed) == occurrence:
            await strike()

    return Pauses(actions={point: reached})


@pytest.mark.rules("G3", "G4", "G5", "G6", "G8")
@pytest.mark.parametrize("panic", [False, True], ids=["no room for rows", "no room for the log"])
async def test_g04_a_full_disk_under_the_database_bounds_the_doubt_and_passes(
    small: RealWriter, database: SmallDatabase, panic: bool
) -> None:
    await small.commit("run-1", [manufacturer(f"m-{number:03}") for number in range(COUNT)])

    async def run_out() -> None:
        await database.fill()
        if panic:
            await database.use_up_the_log()

    pauses = _at(PausePoint.BEFORE_DISPATCH, 3, run_out)
    stop = asyncio.Event()
    with capture_logs() as logs:
        serving = asyncio.create_task(small.writer(pause=pauses).run_until(stop))
        await until(lambda: any(entry["event"] == "not writing now" for entry in logs))
        sent = len(small.sent())
        await database.free()
        if panic:
            await asyncio.to_thread(database.start)
        await until_true(lambda: _is_applied(small))
        stop.set()
        await serving
    assert sent < COUNT
    await _everything_once(small, COUNT)
    assert (await verify_binding(small.ledger, small.binding)).holds


@pytest.mark.rules("G3", "G4", "G11")
@pytest.mark.parametrize("state", ["53100", "53200", "53300"])
async def test_g04_a_server_that_lacks_something_for_one_outcome_is_waited_for(
    real: RealWriter, postgres18_ledger_dsns: dict[str, str], state: str
) -> None:
    await real.commit("run-1", [manufacturer(f"m-{number}") for number in range(3)])
    stop = asyncio.Event()
    with capture_logs() as logs:
        async with refusing(postgres18_ledger_dsns["admin"], "new.kind = 'operation.applied'", state):
            serving = asyncio.create_task(real.writer().run_until(stop))
            if state == "53300":  # passes by itself: asked again until the lease is over
                await until(lambda: len(real.sent()) == 1)
            else:
                await until(lambda: any(entry["event"] == "not writing now" for entry in logs))
            assert "operation.applied" not in await real.kinds("run-1")
        await until_true(lambda: _is_applied(real))
        stop.set()
        await serving
    await _everything_once(real, 3)


@pytest.mark.rules("G10", "G11")
async def test_no_connection_left_is_said_with_a_code_and_waited_for(
    real: RealWriter, postgres18_ledger_dsns: dict[str, str]
) -> None:
    await real.commit("run-1", [manufacturer("first")])
    stop = asyncio.Event()
    database = real.dsn.split("@/")[1].split("?")[0]
    async with connection_to(postgres18_ledger_dsns["admin"]) as admin:
        await admin.execute(f'alter database "{database}" connection limit 0')
        with pytest.raises(LedgerUnavailableError, match="53300") as refused:
            await real.writer().drain("run-1", by="ada")
        assert refused.value.exit_code is ExitCode.BUSY
        with capture_logs() as logs:
            serving = asyncio.create_task(real.writer().run_until(stop))
            await until(lambda: any("53300" in entry.get("error", "") for entry in logs))
            await admin.execute(f'alter database "{database}" connection limit -1')
            await until_true(lambda: _is_applied(real))
            stop.set()
            await serving
    assert len(real.sent()) == 1


@pytest.mark.rules("G2", "G3", "G4")
@pytest.mark.parametrize("longer", [False, True], ids=["shorter than the lease", "longer than the lease"])
async def test_g04_a_paused_database_is_waited_for_and_nothing_is_written_unrecorded(
    small: RealWriter, database: SmallDatabase, longer: bool
) -> None:
    """The time of a lease is the database's: one that ran out is good for an append while nobody else claims."""
    await small.commit("run-1", [manufacturer(f"m-{number}") for number in range(4)])
    stop, frozen = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    with ExitStack() as pause:

        async def freeze() -> None:
            pause.enter_context(database.paused())
            frozen.set()

        pauses = _at(PausePoint.AFTER_WRITE_BEFORE_APPEND, 2, freeze)
        serving = asyncio.create_task(small.writer(pause=pauses).run_until(stop))
        await frozen.wait()
        frozen_until = loop.time() + (small.settings.lease_ttl + 0.3 if longer else 0.2)
        await until(lambda: loop.time() >= frozen_until)
        assert len(small.sent()) == 2  # the outcome of the second cannot be recorded, so no third leaves
    await until_true(lambda: _is_applied(small))
    stop.set()
    await serving
    await _everything_once(small, 4)


@pytest.mark.rules("G4")
async def test_giving_the_lease_back_to_a_silent_database_does_not_hold_up_an_end(
    small: RealWriter, database: SmallDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lease runs out by itself; whoever waits for the end of the process must not wait as for an outcome."""
    monkeypatch.setattr(store_writer, "_RELEASE_ASKED_FOR", 0.1)
    limits = Limits(connect=0.3, statement=0.2, grace=0.1)
    async with await WriterStore.open(database.writer, limits=limits, ask_again_for=300.0) as store:
        lease = await claim(store, await small.binding_id())
        with database.paused():
            async with asyncio.timeout(30):
                with pytest.raises(LedgerUnavailableError):
                    await store.release(lease)
