"""kill -9 of the writer at each named point, a restart, a take-over (issue: must show 6)."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from consumers.pauses import PausePoint
from tests.faults.conftest import Content, StartWriter
from tests.faults.evidence import commit_mixed, deaths, require_sound
from tests.faults.writer_process import WAITING
from tests.support.real_writer import RealWriter
from tests.support.waiting import until_true

pytestmark = [pytest.mark.faults, pytest.mark.integration]

POINTS = [
    (PausePoint.BEFORE_CLAIM, 1),
    (PausePoint.AFTER_CLAIM, 1),
    (PausePoint.BEFORE_GATE, 1),
    (PausePoint.BEFORE_PLAN_STORED, 1),
    (PausePoint.BEFORE_RUN_STARTED, 1),
    (PausePoint.AFTER_RUN_STARTED, 1),
    (PausePoint.BEFORE_DISPATCH, 1),
    (PausePoint.BEFORE_DISPATCH, 4),
    (PausePoint.AFTER_GUARD, 3),
    (PausePoint.AFTER_WRITE_BEFORE_APPEND, 1),
    (PausePoint.AFTER_WRITE_BEFORE_APPEND, 2),
    (PausePoint.AFTER_WRITE_BEFORE_APPEND, 4),
    (PausePoint.INSIDE_APPEND, 3),
    (PausePoint.INSIDE_APPEND, 6),
    (PausePoint.AFTER_APPEND, 3),
    (PausePoint.BEFORE_TERMINAL, 1),
    (PausePoint.AFTER_TERMINAL, 1),
    (PausePoint.BEFORE_RELEASE, 1),
]


@pytest.mark.rules("G3", "G4", "G5", "G6", "G7", "P124")
@pytest.mark.parametrize(("point", "occurrence"), POINTS, ids=lambda value: str(value))
async def test_g04_killed_at_a_named_point_the_successor_accounts_for_everything(
    disturbed: RealWriter, undisturbed: Content, start_writer: StartWriter, point: PausePoint, occurrence: int
) -> None:
    operations = await commit_mixed(disturbed, "run-1")
    killed = start_writer("run-1", point=point, occurrence=occurrence)
    assert await killed.ended() == (-signal.SIGKILL, "")

    if (await disturbed.kinds("run-1"))[-1] != "run.applied":
        assert await start_writer("run-1").ended() == (0, "run.applied")
    await require_sound(disturbed, "run-1", operations)
    assert disturbed.content() == undisturbed
    assert len(deaths(await disturbed.events("run-1"))) <= 1


@pytest.mark.rules("G3", "G4")
@pytest.mark.parametrize(
    "point",
    [PausePoint.AFTER_CLAIM, PausePoint.AT_TAKE_OVER, PausePoint.AFTER_TAKE_OVER, PausePoint.BEFORE_RUN_STARTED],
)
async def test_g04_killed_again_while_taking_over(
    disturbed: RealWriter, undisturbed: Content, start_writer: StartWriter, point: PausePoint
) -> None:
    operations = await commit_mixed(disturbed, "run-1")
    first = start_writer("run-1", point=PausePoint.AFTER_WRITE_BEFORE_APPEND, occurrence=2)
    assert (await first.ended())[0] == -signal.SIGKILL
    second = start_writer("run-1", point=point)
    assert (await second.ended())[0] == -signal.SIGKILL
    assert await start_writer("run-1").ended() == (0, "run.applied")
    await require_sound(disturbed, "run-1", operations)
    assert disturbed.content() == undisturbed
    assert len(deaths(await disturbed.events("run-1"))) == 1


_END_THE_LEASE = "update ledger.binding set lease_expires_at = clock_timestamp() where lease_owner is not null"


async def _is_recorded(real: RealWriter, operation_id: str) -> bool:
    return operation_id in [event.operation_id for event in await real.events("run-1")]


async def _until_an_append_waits(administrator: Any) -> None:
    """Until a statement that appends stands in the server and waits for a lock.

    In a transaction the server shows what it saw at the first look, unless it is told to look again.
    """
    waiting = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query like '%append_v1%'"

    async def waits() -> bool:
        await administrator.execute("select pg_stat_clear_snapshot()")
        return bool(await administrator.fetchval(waiting))

    await until_true(waits)


@pytest.mark.rules("G3", "G4", "G7", "G8")
async def test_g04_killed_while_the_server_holds_its_append(
    disturbed: RealWriter, undisturbed: Content, start_writer: StartWriter, administrator: Any
) -> None:
    """The statement is in the server when the writer dies, and commits after its death: nothing is recorded twice.

    The lease is long, so that no renewal comes between, and the administrator ends it when the writer is dead.
    """
    operations = await commit_mixed(disturbed, "run-1")
    writer = start_writer(
        "run-1", point=PausePoint.AFTER_WRITE_BEFORE_APPEND, occurrence=2, action="wait", lease_ttl=90.0
    )
    await writer.said(WAITING)
    async with administrator.transaction():
        await administrator.execute("select from ledger.binding for update")
        writer.go_on()
        await _until_an_append_waits(administrator)
        writer.send_signal(signal.SIGKILL)
        assert await writer.ended() == (-signal.SIGKILL, "")
    await until_true(lambda: _is_recorded(disturbed, operations[1].operation_id))
    await administrator.execute(_END_THE_LEASE)
    assert await start_writer("run-1").ended() == (0, "run.applied")
    await require_sound(disturbed, "run-1", operations)
    assert disturbed.content() == undisturbed
    second = [e.kind for e in await disturbed.events("run-1") if e.operation_id == operations[1].operation_id]
    assert second == ["operation.applied"]


@pytest.mark.rules("G3", "G4", "G5")
async def test_g04_sigterm_finishes_the_operation_in_flight_and_leaves_the_run_open(
    disturbed: RealWriter, undisturbed: Content, start_writer: StartWriter
) -> None:
    operations = await commit_mixed(disturbed, "run-1")
    writer = start_writer("run-1", point=PausePoint.BEFORE_DISPATCH, occurrence=2, action="wait")
    await writer.said(WAITING)
    await writer.takes(signal.SIGTERM)
    writer.go_on()
    assert await writer.ended() == (0, "left_open")
    assert await disturbed.kinds("run-1") == [
        "plan.committed",
        "run.started",
        "operation.applied",
        "operation.applied",
        "operation.skipped",
    ]
    row = await disturbed.ledger.binding(disturbed.binding)
    assert row is not None
    assert (row.in_flight, row.lease_owner) == (None, None)
    assert await start_writer("run-1").ended() == (0, "run.applied")
    await require_sound(disturbed, "run-1", operations)
    assert disturbed.content() == undisturbed
    assert deaths(await disturbed.events("run-1")) == []
