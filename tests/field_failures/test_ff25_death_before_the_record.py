"""FF25: killed, cancelled or refused between write and record: one operation in doubt, sent again, converged."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Callable, Iterator

import pytest

from consumers.infrahub.sandbox import FaultRule
from consumers.pauses import PausePoint
from ledger.audit import verify_binding
from ledger.commit import Policy
from ledger.errors import ApplyLedgerError
from ledger.exit_codes import ExitCode
from ledger.plan.model import PlannedOperation
from ledger.store.errors import StoreError
from ledger.store.ledger import Ledger
from ledger.store.records import InFlight
from tests.faults.writer_process import WAITING, Action, Task, run
from tests.support.database_trouble import refusing
from tests.support.inventory_operations import gone_manufacturer, manufacturer
from tests.support.postgres import run_apart
from tests.support.processes import RealProcess
from tests.support.real_writer import TOKEN, RealWriter
from tests.support.writer_bench import Pauses

pytestmark = [pytest.mark.integration, pytest.mark.faults]

MAKER = "OrganizationManufacturer"
Start = Callable[..., RealProcess]


@pytest.fixture
def start(real: RealWriter) -> Iterator[Start]:
    """Starts writer processes; none is left behind."""
    started: list[RealProcess] = []

    def started_with(point: PausePoint | None = None, action: Action = "kill", occurrence: int = 2) -> RealProcess:
        task = Task(
            dsn=real.dsn,
            url=real.sandbox.url,
            branch=real.branch,
            token=TOKEN,
            root=str(real.root),
            run_id="run-1",
            point=point,
            action=action,
            occurrence=occurrence,
        )
        started.append(RealProcess(run, task))
        return started[-1]

    yield started_with
    for process in started:
        process.clean_up()


async def four(real: RealWriter, **policy: str) -> list[PlannedOperation]:
    """Three creates and a recorded delete, committed."""
    operations = [*(manufacturer(name) for name in ("first", "second", "third")), gone_manufacturer("gone")]
    return await real.commit("run-1", operations, policy=Policy.model_validate(policy))


async def mark(real: RealWriter) -> InFlight | None:
    """What the ledger says is in flight."""
    row = await real.ledger.binding(real.binding)
    assert row is not None
    return row.in_flight


async def require_audited(real: RealWriter) -> None:
    """The inbox, too, is as the log says: an order that waits for whoever goes on is no tampered one."""
    assert (await verify_binding(real.ledger, real.binding)).findings == ()


async def require_converged(real: RealWriter) -> None:
    """The second operation was in doubt once and was sent again; every object is there once, every sum adds up."""
    assert await real.outcomes("run-1") == [
        (0, "applied", 1),
        (1, "unknown", 1),
        (1, "applied", 2),
        (2, "applied", 1),
        (3, "skipped", 1),
    ]
    unknown = await real.body("run-1", "operation.unknown")
    assert (unknown["wrote"], unknown["sent"]) == (None, True)
    assert (await real.body("run-1", "run.resumed"))["from_ordinal"] == 1
    ended = await real.body("run-1", "run.applied")
    assert (ended["applied"], ended["skipped"], ended["not_attempted"]) == (3, 1, 0)
    assert real.sandbox.store.count(MAKER, branch=real.branch) == 3
    assert len(real.sent()) == 4
    assert await mark(real) is None
    await require_audited(real)


@pytest.mark.rules("G3", "G4", "P124")
async def test_ff25_kill_9_after_the_write_and_before_its_record(real: RealWriter, start: Start) -> None:
    await four(real)
    assert await start(PausePoint.AFTER_WRITE_BEFORE_APPEND).ended() == (-signal.SIGKILL, "")
    assert len(real.sent()) == 2
    assert await real.outcomes("run-1") == [(0, "applied", 1)]
    assert await mark(real) == InFlight("run-1", 1, 1)
    await require_audited(real)
    assert await start().ended() == (0, "run.applied")
    assert (await real.body("run-1", "operation.unknown"))["error"] == "WriterDiedError"
    await require_converged(real)


@pytest.mark.rules("G3", "G4", "P143")
async def test_ff25_sigterm_in_that_moment_records_what_was_written(real: RealWriter, start: Start) -> None:
    await four(real)
    writer = start(PausePoint.AFTER_WRITE_BEFORE_APPEND, "wait")
    await writer.said(WAITING)
    await writer.takes(signal.SIGTERM)
    writer.go_on()
    assert await writer.ended() == (0, "left_open")
    assert await real.outcomes("run-1") == [(0, "applied", 1), (1, "applied", 1)]
    assert await mark(real) is None
    assert await start().ended() == (0, "run.applied")
    assert len(real.sent()) == 3


@pytest.mark.rules("G4")
async def test_ff25_what_is_in_flight_is_durable_before_its_request_arrives(real: RealWriter) -> None:
    """Asked by the destination itself, over a connection of its own, at the arrival of each request."""
    await four(real)
    seen: list[InFlight | None] = []

    async def look() -> InFlight | None:
        async with await Ledger.open(real.dsn, allow_unsafe_fsync=True) as ledger:
            row = await ledger.binding(real.binding)
            return None if row is None else row.in_flight

    real.sandbox.faults.add(FaultRule(branch=real.branch, count=None), before=lambda: seen.append(run_apart(look())))
    assert (await real.writer().drain("run-1", by="ada")).ending == "run.applied"
    assert seen == [InFlight("run-1", ordinal, 1) for ordinal in range(3)]


@pytest.mark.rules("G3", "G4", "P143")
@pytest.mark.parametrize("on_crash", ["resume", "stop"])
@pytest.mark.parametrize("point", [PausePoint.AFTER_WRITE_BEFORE_APPEND, "answer under way"], ids=str)
async def test_ff25_a_cancelled_writer_leaves_a_trace(real: RealWriter, point: PausePoint | str, on_crash: str) -> None:
    """``except Exception`` does not see a cancellation; here it is recorded before it goes on."""
    await four(real, on_crash=on_crash)
    drained = await _cancelled(real, point)
    with pytest.raises(asyncio.CancelledError):
        await drained
    assert await real.outcomes("run-1") == [(0, "applied", 1), (1, "unknown", 1)]
    assert (await real.body("run-1", "operation.unknown"))["error"] == "WriterCancelledError"
    ended = await real.body("run-1", "run.interrupted")
    assert (ended["applied"], ended["failed_operation_wrote"], ended["not_attempted"]) == (1, None, 2)
    await require_audited(real)
    if on_crash == "stop":
        assert await real.ledger.open_orders(await real.binding_id()) == []
        await real.resume("run-1")
    assert (await real.writer().drain("run-1", by="ada")).ending == "run.applied"
    await require_converged(real)


async def _cancelled(real: RealWriter, point: PausePoint | str) -> asyncio.Task[object]:
    """A writer that was cancelled at its second operation."""
    pauses, reached = Pauses(), asyncio.Event()

    async def hold() -> None:
        if pauses.seen.count(PausePoint.AFTER_WRITE_BEFORE_APPEND) == 2:
            reached.set()
            await asyncio.Event().wait()

    if isinstance(point, PausePoint):
        pauses.actions[point] = hold
        draining: asyncio.Task[object] = asyncio.create_task(real.writer(pause=pauses).drain("run-1", by="ada"))
        await reached.wait()
        draining.cancel()
        return draining
    held = real.sandbox.faults.add(FaultRule(branch=real.branch, nth=2, hold="before-answer"))
    draining = asyncio.create_task(real.writer().drain("run-1", by="ada"))
    assert await asyncio.to_thread(held.wait_reached, 30.0)
    draining.cancel()
    await asyncio.wait({draining})
    held.release()
    return draining


@pytest.mark.rules("G3", "G4")
async def test_ff25_a_time_limit_of_the_caller_is_recorded_like_a_cancellation(real: RealWriter) -> None:
    await four(real)
    held = real.sandbox.faults.add(FaultRule(branch=real.branch, nth=2, hold="before-answer"))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(None) as limit:
            draining = asyncio.ensure_future(real.writer().drain("run-1", by="ada"))
            assert await asyncio.to_thread(held.wait_reached, 30.0)
            limit.reschedule(asyncio.get_running_loop().time())
            await draining
    held.release()
    assert await real.outcomes("run-1") == [(0, "applied", 1), (1, "unknown", 1)]
    assert (await real.writer().drain("run-1", by="ada")).ending == "run.applied"
    await require_converged(real)


FAILING = {
    "disk full": "53100",
    "input or output": "58030",
    "internal": "XX000",
    "a check": "23514",
}


@pytest.mark.rules("G3", "G4", "G5")
@pytest.mark.parametrize("state", FAILING.values(), ids=FAILING)
async def test_ff25_an_append_that_fails_leaves_the_operation_in_doubt(
    real: RealWriter, postgres18_ledger_dsns: dict[str, str], state: str
) -> None:
    await four(real)
    condition = "new.kind = 'operation.applied' and new.ordinal = 1"
    async with refusing(postgres18_ledger_dsns["admin"], condition, state):
        with pytest.raises(StoreError) as refused:
            await real.writer().drain("run-1", by="ada")
        assert refused.value.exit_code in (ExitCode.BUSY, ExitCode.ERROR)
        assert len(real.sent()) == 2
        assert await mark(real) == InFlight("run-1", 1, 1)
        assert await real.outcomes("run-1") == [(0, "applied", 1)]
    if state.startswith(("53", "58")):
        assert refused.value.exit_code is ExitCode.BUSY, "the server is in trouble, not the program"
        assert "defect" not in _advice(refused.value)
    assert (await real.writer().drain("run-1", by="ada")).ending == "run.applied"
    await require_converged(real)


def _advice(error: ApplyLedgerError) -> str:
    return json.dumps([finding.next_action for finding in error.findings])
