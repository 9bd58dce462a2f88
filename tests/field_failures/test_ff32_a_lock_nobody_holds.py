"""FF32: who writes is a row with an epoch, not a session: one claims, a loser is told who, a lost holder is refused."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from consumers.errors import LeaseLostError
from consumers.infrahub.connection import InfrahubOpener, declared
from consumers.infrahub.sandbox import FaultRule
from consumers.lease import suspend_clock
from consumers.pauses import PausePoint
from ledger.audit.verify import verify_binding
from ledger.binding import DestinationBinding
from ledger.destination import DispatchGuard, OpenDestination
from ledger.exit_codes import ExitCode
from ledger.projections.errors import RebuildBusyError
from ledger.store.errors import ExchangedSessionError, FencedWriterError, LeaseHeldError
from ledger.store.migrate import migrate
from ledger.store.projection_rebuild import rebuild
from tests.faults.writer_process import Task, run
from tests.support.inventory_operations import manufacturer
from tests.support.processes import RealProcess
from tests.support.real_writer import TOKEN, RealWriter
from tests.support.store import connection_to, let_lease_run_out, until
from tests.support.transaction_pooler import pooler_to
from tests.support.writer_bench import Pauses

pytestmark = [pytest.mark.integration, pytest.mark.faults]


class CountedOpener:
    """The real opener, counting how often the destination was opened: its schema is read then."""

    def __init__(self, real: RealWriter) -> None:
        self._opener = InfrahubOpener(declared(real.destination))
        self.opened = 0

    @asynccontextmanager
    async def __call__(
        self, binding: DestinationBinding, *, run_id: str, guard: DispatchGuard
    ) -> AsyncIterator[OpenDestination]:
        self.opened += 1
        async with self._opener(binding, run_id=run_id, guard=guard) as opened:
            yield opened


async def three(real: RealWriter) -> None:
    await real.commit("run-1", [manufacturer(name) for name in ("first", "second", "third")])


async def claims(real: RealWriter) -> int:
    """How often the binding was claimed."""
    return [event.kind for event in await real.events()].count("writer.opened")


@pytest.mark.rules("G2", "G11")
async def test_ff32_one_claims_and_the_other_is_told_who_holds_it(real: RealWriter) -> None:
    real.changes.update(lease_ttl=30.0, request_timeout=20.0)
    await three(real)
    held = real.sandbox.faults.add(FaultRule(branch=real.branch, hold="before-answer"))
    first = asyncio.create_task(real.writer().drain("run-1", by="ada"))
    assert await asyncio.to_thread(held.wait_reached, 30.0)
    position, opener = await real.head(), CountedOpener(real)
    with pytest.raises(LeaseHeldError) as refused:
        await real.writer(opener).drain("run-1", by="grace")
    row = await real.ledger.binding(real.binding)
    assert row is not None
    assert refused.value.exit_code is ExitCode.BUSY
    assert refused.value.facts["owner"] == row.lease_owner
    assert refused.value.facts["host"] == row.lease_host
    assert str(row.lease_host) in str(refused.value)
    assert 0 < refused.value.facts["seconds"] <= 30.0
    assert (await real.head(), opener.opened, len(real.sent())) == (position, 0, 1)
    held.release()
    assert (await first).ending == "run.applied"
    assert (await claims(real), len(real.sent())) == (1, 3)


@pytest.mark.rules("G2", "G4", "G7")
async def test_ff32_the_lease_does_not_go_with_the_sessions_of_its_holder(
    real: RealWriter, postgres18_ledger_dsns: dict[str, str]
) -> None:
    """Every backend of the writer is ended before each request: it goes on under the same epoch, and nothing twice."""
    real.changes.update(lease_ttl=20.0)
    await three(real)
    pauses = Pauses()

    async def end_all() -> None:
        async with connection_to(postgres18_ledger_dsns["admin"]) as admin:
            ended = await admin.fetch(
                "select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'apply-ledger%'"
                " and datname = current_database()"
            )
        assert ended

    pauses.actions[PausePoint.BEFORE_DISPATCH] = end_all
    assert (await real.writer(pause=pauses).drain("run-1", by="ada")).ending == "run.applied"
    assert await real.outcomes("run-1") == [(ordinal, "applied", 1) for ordinal in range(3)]
    assert (await claims(real), len(real.sent())) == (1, 3)


@pytest.mark.rules("G2", "G3", "G5")
async def test_ff32_a_holder_that_was_frozen_appends_nothing_and_sends_nothing(real: RealWriter) -> None:
    await three(real)
    task = Task(
        dsn=real.dsn,
        url=real.sandbox.url,
        branch=real.branch,
        token=TOKEN,
        root=str(real.root),
        run_id="run-1",
        point=PausePoint.AFTER_WRITE_BEFORE_APPEND,
        occurrence=2,
        action="freeze",
        retake=False,
    )
    frozen = RealProcess(run, task)
    try:
        await frozen.frozen()
        await until(lambda: _drained(real), within=60.0)
        position, requests = await real.head(), len(real.sent())
        frozen.send_signal(signal.SIGCONT)
        status, word = await frozen.ended()
    finally:
        frozen.clean_up()
    assert (status, word in ("FencedWriterError", "LeaseLostError")) == (0, True)
    assert (await real.head(), len(real.sent())) == (position, requests)
    assert await real.outcomes("run-1") == [
        (0, "applied", 1),
        (1, "unknown", 1),
        (1, "applied", 2),
        (2, "applied", 1),
    ]
    assert await claims(real) == 2


async def _drained(real: RealWriter) -> bool:
    """Whether another writer could carry the run out now: the lease had to run out first."""
    try:
        return (await real.writer().drain("run-1", by="grace")).ending == "run.applied"
    except LeaseHeldError:
        return False


@pytest.mark.rules("G2", "G5")
async def test_ff32_no_request_is_begun_that_could_outlive_the_lease(
    real: RealWriter, postgres18_ledger_dsns: dict[str, str]
) -> None:
    """A machine that slept: its own clock has leapt, its lease has run out and is somebody else's."""
    real.changes.update(lease_ttl=600.0)
    await three(real)
    pauses, slept = Pauses(), [0.0]

    async def sleep_and_lose() -> None:
        if pauses.seen.count(PausePoint.BEFORE_DISPATCH) < 2:
            return
        slept[0] = 1000.0
        async with connection_to(postgres18_ledger_dsns["admin"]) as admin:
            await let_lease_run_out(admin, await real.binding_id())
        assert (await real.writer().drain("run-1", by="grace")).ending == "run.applied"

    pauses.actions[PausePoint.BEFORE_DISPATCH] = sleep_and_lose
    writer = real.writer(pause=pauses, clock=lambda: suspend_clock() + slept[0])
    with pytest.raises((FencedWriterError, LeaseLostError)):
        await writer.drain("run-1", by="ada")
    outcomes = await real.outcomes("run-1")
    assert outcomes == [(0, "applied", 1), (1, "unknown", 1), (1, "applied", 2), (2, "applied", 1)]
    assert len(real.sent()) == 3
    assert (await real.kinds("run-1"))[-1] == "run.applied"


@pytest.mark.rules("G2", "G8", "G9")
async def test_ff32_behind_a_pooler_that_exchanges_sessions_after_each_transaction(
    real: RealWriter, postgres18_ledger_dsns: dict[str, str]
) -> None:
    dsns = postgres18_ledger_dsns
    real.changes.update(lease_ttl=30.0, request_timeout=20.0)
    await three(real)
    held = real.sandbox.faults.add(FaultRule(branch=real.branch, hold="before-answer"))
    async with pooler_to(real.dsn, keeps_statements=True) as (pooler, dsn):
        first = asyncio.create_task(real.writer(dsn=dsn).drain("run-1", by="ada"))
        assert await asyncio.to_thread(held.wait_reached, 30.0)
        with pytest.raises(LeaseHeldError):
            await real.writer(dsn=dsn).drain("run-1", by="grace")
        held.release()
        assert (await first).ending == "run.applied"
        assert pooler.exchanged > 10
    assert (await claims(real), len(real.sent())) == (1, 3)
    (await verify_binding(real.ledger, real.binding)).require_intact()
    async with pooler_to(dsns["projector"], keeps_statements=True) as (_, dsn):
        await _one_rebuild_at_a_time(dsn, dsns["admin"])
    async with pooler_to(dsns["admin"], keeps_statements=True) as (_, dsn):
        assert await migrate(dsn) == []
        assert await migrate(dsn) == []


async def _one_rebuild_at_a_time(dsn: str, admin_dsn: str) -> None:
    """The first one stands before a locked table; the second is told; when the first has ended, a third may."""
    waiting = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
    async with connection_to(admin_dsn) as admin, connection_to(admin_dsn) as observer:
        lock = admin.transaction()
        await lock.start()
        await admin.execute("lock table ledger.projection_cursor")
        first = asyncio.create_task(rebuild(dsn, allow_unsafe_fsync=True))
        await until(lambda: observer.fetchval(waiting))
        with pytest.raises(RebuildBusyError):
            await rebuild(dsn, allow_unsafe_fsync=True)
        await lock.rollback()
        assert await first
    assert await rebuild(dsn, allow_unsafe_fsync=True)


@pytest.mark.rules("G2", "G4", "G11")
async def test_ff32_a_pooler_that_forgets_statements_is_named_before_anything_is_claimed(
    real: RealWriter, postgres18_ledger_dsns: dict[str, str]
) -> None:
    await three(real)
    position = await real.head()
    async with pooler_to(real.dsn, keeps_statements=False) as (_, dsn):
        with pytest.raises(ExchangedSessionError, match="session mode") as refused:
            await real.writer(dsn=dsn).drain("run-1", by="ada")
    assert "defect" not in str(refused.value)
    assert (await real.head(), len(real.sent())) == (position, 0)
    assert (await real.writer().drain("run-1", by="ada")).ending == "run.applied"


@pytest.mark.rules("G2")
async def test_ff32_a_check_at_the_start_is_not_what_protects(
    real: RealWriter, postgres18_ledger_dsns: dict[str, str]
) -> None:
    """The lease passes to another writer between two requests of its holder, who believes in it: the append refuses."""
    real.changes.update(lease_ttl=600.0)
    await three(real)
    pauses = Pauses()
    seen: dict[str, Any] = {}

    async def lose() -> None:
        if pauses.seen.count(PausePoint.AFTER_WRITE_BEFORE_APPEND) == 1:
            async with connection_to(postgres18_ledger_dsns["admin"]) as admin:
                await let_lease_run_out(admin, await real.binding_id())
            assert (await real.writer().drain("run-1", by="grace")).ending == "run.applied"
            seen.update(position=await real.head(), requests=len(real.sent()))

    pauses.actions[PausePoint.AFTER_WRITE_BEFORE_APPEND] = lose
    with pytest.raises(FencedWriterError):
        await real.writer(pause=pauses).drain("run-1", by="ada")
    assert {"position": await real.head(), "requests": len(real.sent())} == seen
