"""Lost COMMITs, lost connections, cancelled appends: ask again with the same ids, one row (G4, G7; FF26, FF33)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ledger.store.connect import Limits
from ledger.store.errors import FencedWriterError, LedgerBusyError, LedgerUnavailableError
from ledger.store.ledger import Ledger
from ledger.store.writer import InFlight, Lease, WriterStore
from tests.support.postgres_relay import PostgresRelay, relay_to
from tests.support.store import (
    BINDING,
    RUN,
    applied,
    chain_is_whole,
    claim,
    connection_to,
    let_lease_run_out,
    make_commit,
    open_writer,
    until,
)

pytestmark = pytest.mark.integration

WAITING = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and application_name = $1"


async def blocked(admin: Any, application_name: str = "apply-ledger writer") -> None:
    """Return when a session of ours waits for a lock."""

    async def condition() -> bool:
        return bool(await admin.fetchval(WAITING, application_name))

    await until(condition)


@pytest.mark.rules("G4", "G7")
async def test_g07_the_answer_to_a_commit_is_lost_and_asking_again_leaves_one_row(
    ledger_dsns: dict[str, str], binding_id: int, ledger: Ledger
) -> None:
    async with relay_to(ledger_dsns["writer"]) as (relay, dsn), open_writer(dsn) as writer:
        lease = await claim(writer, binding_id)
        await writer.append(lease, [applied(lease, 0)], in_flight=InFlight(RUN, 1, 1))
        relay.arm("lose answer")
        appended = await writer.append(lease, [applied(lease, 1)], in_flight=InFlight(RUN, 2, 1))
        assert relay.met.is_set()
        assert relay.accepted == 2
        assert (appended.first_position, appended.last_position) == (3, 3)
        await writer.append(lease, [applied(lease, 2)], in_flight=None)
    assert await chain_is_whole(ledger, binding_id) == 4
    assert [event.ordinal async for event in ledger.events(binding_id, run_id=RUN)] == [0, 1, 2]


@pytest.mark.rules("G4", "G7")
async def test_g07_a_request_that_never_arrived_is_asked_again(
    ledger_dsns: dict[str, str], binding_id: int, ledger: Ledger
) -> None:
    async with relay_to(ledger_dsns["writer"]) as (relay, dsn), open_writer(dsn) as writer:
        lease = await claim(writer, binding_id)
        await writer.append(lease, [applied(lease, 0)])
        relay.arm("lose request")
        await writer.append(lease, [applied(lease, 1)])
    assert await chain_is_whole(ledger, binding_id) == 3


@pytest.mark.parametrize("fault", ["lose answer", "lose request"])
@pytest.mark.rules("G2", "G7")
async def test_g07_a_claim_whose_answer_is_lost_is_one_claim(
    ledger_dsns: dict[str, str], binding_id: int, ledger: Ledger, fault: Any
) -> None:
    async with relay_to(ledger_dsns["writer"]) as (relay, dsn), open_writer(dsn) as writer:
        first = await claim(writer, binding_id)
        await writer.release(first)
        relay.arm(fault, after=1)  # one message reads the epoch, the next one claims
        second = await claim(writer, binding_id)
        assert relay.met.is_set()
        relay.arm(fault)
        await writer.renew(second)
        relay.arm(fault)
        await writer.release(second)
        assert relay.met.is_set()
    assert second.epoch == 2
    assert await chain_is_whole(ledger, binding_id) == 2
    row = await ledger.binding(BINDING)
    assert row is not None
    assert row.lease_owner is None


@pytest.mark.rules("G7")
async def test_g07_a_submitted_order_whose_answer_is_lost_is_one_order(
    ledger_dsns: dict[str, str], binding_id: int
) -> None:
    async with (
        relay_to(ledger_dsns["writer"]) as (relay, dsn),
        await Ledger.open(dsn, connections=1, allow_unsafe_fsync=True) as ledger,
    ):
        relay.arm("lose answer", after=1)  # one message reads the binding, the next one submits
        await ledger.submit_commit(binding_id, make_commit())
        assert relay.met.is_set()
        relay.arm("lose answer")
        await ledger.submit_stop(binding_id, run_id=RUN, by="me", reason="enough")
        assert relay.met.is_set()
        assert [order.kind for order in await ledger.open_orders(binding_id)] == ["commit", "stop"]
        assert await chain_is_whole(ledger, binding_id) == 1


@pytest.mark.rules("G4", "G7")
async def test_g07_the_backend_is_ended_inside_the_append_and_one_row_stands(
    writer: WriterStore, lease: Lease, ledger: Ledger, admin: Any, ledger_dsns: dict[str, str]
) -> None:
    async with connection_to(ledger_dsns["admin"]) as holder:
        lock = holder.transaction()
        await lock.start()
        await holder.execute("select from ledger.binding for update")
        append = asyncio.ensure_future(writer.append(lease, [applied(lease, 0)], in_flight=InFlight(RUN, 1, 1)))
        await blocked(admin)
        await admin.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'apply-ledger writer'"
        )
        await blocked(admin)
        await lock.rollback()
        appended = await append
    assert (appended.first_position, appended.last_position) == (2, 2)
    assert await chain_is_whole(ledger, lease.binding_id) == 2


@pytest.mark.rules("G4", "G7")
async def test_g04_a_cancelled_append_ends_first_and_is_recorded(
    writer: WriterStore, lease: Lease, ledger: Ledger, admin: Any, ledger_dsns: dict[str, str]
) -> None:
    async with connection_to(ledger_dsns["admin"]) as holder:
        lock = holder.transaction()
        await lock.start()
        await holder.execute("select from ledger.binding for update")
        append = asyncio.ensure_future(writer.append(lease, [applied(lease, 0)], in_flight=InFlight(RUN, 1, 1)))
        await blocked(admin)
        for _ in range(3):
            append.cancel()
            await asyncio.wait({append}, timeout=0.02)
            assert not append.done(), "the cancellation did not wait for the append"
        await lock.rollback()
        with pytest.raises(asyncio.CancelledError):
            await append
    assert [event.ordinal async for event in ledger.events(lease.binding_id, run_id=RUN)] == [0]
    await writer.append(lease, [applied(lease, 0)], in_flight=InFlight(RUN, 1, 1))
    assert await chain_is_whole(ledger, lease.binding_id) == 2


@pytest.mark.rules("G4")
async def test_g04_an_append_under_a_time_limit_of_the_caller_is_recorded_too(
    writer: WriterStore, lease: Lease, ledger: Ledger, admin: Any, ledger_dsns: dict[str, str]
) -> None:
    async with connection_to(ledger_dsns["admin"]) as holder:
        lock = holder.transaction()
        await lock.start()
        await holder.execute("select from ledger.binding for update")
        append = asyncio.ensure_future(asyncio.wait_for(writer.append(lease, [applied(lease, 0)]), timeout=0.05))
        await blocked(admin)
        await asyncio.wait({append}, timeout=0.1)
        await lock.rollback()
        with pytest.raises(TimeoutError):
            await append
    assert await chain_is_whole(ledger, lease.binding_id) == 2


@pytest.mark.rules("G2")
async def test_g02_fencing_is_told_at_once_and_never_asked_again(
    ledger_dsns: dict[str, str], binding_id: int, admin: Any
) -> None:
    async with relay_to(ledger_dsns["writer"]) as (relay, dsn), open_writer(dsn) as writer:
        lease = await claim(writer, binding_id)
        await let_lease_run_out(admin, binding_id)
        async with open_writer(ledger_dsns["writer"]) as other:
            await claim(other, binding_id, "writer-2")
        before = await admin.fetchval("select xact_rollback from pg_stat_database where datname = current_database()")
        with pytest.raises(FencedWriterError):
            await writer.append(lease, [applied(lease, 0)])
        await admin.execute("select pg_stat_clear_snapshot()")
        after = await admin.fetchval("select xact_rollback from pg_stat_database where datname = current_database()")
        assert after - before <= 1
        assert relay.accepted == 1


@pytest.mark.rules("G4")
async def test_g04_a_server_that_does_not_answer_costs_the_connection_within_its_limit(
    ledger_dsns: dict[str, str], binding_id: int, ledger: Ledger
) -> None:
    limits = Limits(connect=1.0, lock=0.2, statement=0.3, grace=0.2)
    async with (
        relay_to(ledger_dsns["writer"]) as (relay, dsn),
        open_writer(dsn, limits=limits, ask_again_for=5.0) as writer,
    ):
        lease = await claim(writer, binding_id)
        relay.arm("hold")
        await writer.append(lease, [applied(lease, 0)])
        assert relay.accepted == 2, "a third connection means that the driver's way to cancel was used"
    assert await chain_is_whole(ledger, binding_id) == 2


async def always(relay: PostgresRelay, fault: Any) -> None:
    """Let every message meet the fault, until cancelled."""
    while True:
        relay.arm(fault)
        await relay.met.wait()


async def test_a_server_that_stays_away_ends_in_a_named_error_within_the_deadline(
    ledger_dsns: dict[str, str], binding_id: int
) -> None:
    async with relay_to(ledger_dsns["writer"]) as (relay, dsn), open_writer(dsn, ask_again_for=0.3) as writer:
        lease = await claim(writer, binding_id)
        trouble = asyncio.ensure_future(always(relay, "lose request"))
        with pytest.raises(LedgerUnavailableError) as refused:
            async with asyncio.timeout(10):
                await writer.append(lease, [applied(lease, 0)])
        trouble.cancel()
        relay.disarm()
        assert refused.value.exit_code == 8
        await writer.append(lease, [applied(lease, 0)])


async def test_a_lock_that_stays_taken_ends_in_a_named_error_within_the_deadline(
    ledger_dsns: dict[str, str], binding_id: int
) -> None:
    limits = Limits(lock=0.05, statement=1.0)
    async with open_writer(ledger_dsns["writer"], limits=limits, ask_again_for=0.2) as writer:
        lease = await claim(writer, binding_id)
        async with connection_to(ledger_dsns["admin"]) as holder, holder.transaction():
            await holder.execute("select from ledger.binding for update")
            with pytest.raises(LedgerBusyError) as refused:
                await writer.append(lease, [applied(lease, 0)])
        assert refused.value.exit_code == 8
        await writer.append(lease, [applied(lease, 0)])


async def test_calls_of_two_tasks_on_one_writer_wait_for_each_other(
    writer: WriterStore, lease: Lease, ledger: Ledger
) -> None:
    await asyncio.gather(
        *(writer.append(lease, [applied(lease, ordinal)]) for ordinal in range(5)), writer.renew(lease)
    )
    assert await chain_is_whole(ledger, lease.binding_id) == 6


async def test_the_wait_for_a_pooled_connection_is_bounded(ledger_dsns: dict[str, str], binding_id: int) -> None:
    limits = Limits(acquire=0.05, lock=5.0)
    async with (
        await Ledger.open(
            ledger_dsns["writer"], limits=limits, connections=1, ask_again_for=0.1, allow_unsafe_fsync=True
        ) as ledger,
        connection_to(ledger_dsns["admin"]) as holder,
    ):
        lock = holder.transaction()
        await lock.start()
        await holder.execute("select from ledger.binding for update")
        waiting = asyncio.ensure_future(ledger.submit_commit(binding_id, make_commit()))
        await blocked(holder, "apply-ledger")
        with pytest.raises(LedgerUnavailableError):
            await ledger.bindings()
        await lock.rollback()
        assert (await waiting).first
