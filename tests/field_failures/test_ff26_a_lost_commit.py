"""FF26: a COMMIT without an answer is asked again with the same ids: one row, and the first error is the one told."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from consumers.infrahub.sandbox import FaultRule
from consumers.worker import Worker
from ledger.exit_codes import ExitCode
from ledger.store.errors import AlarmError, DuplicateFactError, EventConflictError, LedgerUnavailableError
from ledger.store.writer import WriterStore
from tests.support.database_trouble import held_commits, lease_has_run_out, refusing
from tests.support.inventory_operations import gone_manufacturer, manufacturer
from tests.support.postgres_relay import PostgresRelay, relay_to
from tests.support.real_writer import RealWriter
from tests.support.store import applied, chain_is_whole, claim, connection_to, open_writer
from tests.support.waiting import until_true

pytestmark = pytest.mark.integration

ONCE = [(0, "applied", 1), (1, "applied", 1), (2, "skipped", 1)]


async def three(real: RealWriter, run_id: str) -> None:
    operations = [manufacturer(f"{run_id}-a"), manufacturer(f"{run_id}-b"), gone_manufacturer(run_id)]
    await real.commit(run_id, operations, source=f"source-of-{run_id}")


async def require_once(real: RealWriter, run_id: str) -> None:
    """Every outcome once, every request once, and nothing in doubt."""
    assert await real.outcomes(run_id) == ONCE
    kinds = await real.kinds(run_id)
    assert (kinds[:2], kinds[-1], len(kinds)) == (["plan.committed", "run.started"], "run.applied", 6)


@pytest.mark.rules("G4", "G7", "G8")
@pytest.mark.parametrize("fault", ["lose answer", "lose request"])
async def test_ff26_wherever_an_answer_of_the_ledger_is_lost_in_a_run(real: RealWriter, fault: Any) -> None:
    """The fault meets another message of the writer in each run, through all that a run asks of the ledger."""
    real.changes.update(settle_seconds=0.0, lease_ttl=20.0)
    met = 0
    async with relay_to(real.dsn) as (relay, dsn):
        for number in range(3, 40, 6):
            run_id = f"run-{number}"
            await three(real, run_id)
            relay.arm(fault, after=number)
            assert (await real.writer(dsn=dsn).drain(run_id, by="ada")).ending == "run.applied"
            met += relay.met.is_set()
            relay.disarm()
            await require_once(real, run_id)
    assert met >= 3
    requests = Counter(entry.data["name"]["value"] for entry in real.sent())
    assert set(requests.values()) == {1}
    await chain_is_whole(real.ledger, await real.binding_id())


@pytest.mark.rules("G4", "G7", "G8")
async def test_ff26_the_backend_is_ended_inside_the_commit_of_an_outcome(
    real: RealWriter, postgres18_ledger_dsns: dict[str, str]
) -> None:
    real.changes.update(lease_ttl=20.0)
    await three(real, "run-1")
    async with held_commits(postgres18_ledger_dsns["admin"], "new.kind = 'operation.applied'") as held:
        draining = asyncio.create_task(real.writer().drain("run-1", by="ada"))
        await held.end(await held.one_waits())
        await held.one_waits()  # asked again, over a new connection, with the same ids
        await held.open()
        assert (await draining).ending == "run.applied"
    await require_once(real, "run-1")
    assert len(real.sent()) == 2
    await chain_is_whole(real.ledger, await real.binding_id())


@pytest.mark.rules("G7", "G8")
async def test_ff26_one_event_twice_in_one_transaction_is_refused_by_its_first_error(
    real: RealWriter, postgres18_ledger_dsns: dict[str, str]
) -> None:
    """Not by "current transaction is aborted"; and the connection is good for the next append."""
    async with open_writer(real.dsn) as writer:
        lease = await claim(writer, await real.binding_id())
        event = applied(lease, 0)
        with pytest.raises(DuplicateFactError, match="duplicate key") as refused:
            await writer.append(lease, [event, event])
        assert isinstance(refused.value, AlarmError)
        first = await writer.append(lease, [event])
        assert await writer.append(lease, [event]) == first
        for batch in ([applied(lease, 0, node_id="other")], [event, applied(lease, 1)]):
            with pytest.raises(EventConflictError, match="a known event id came with other content") as conflict:
                await writer.append(lease, batch)
            assert isinstance(conflict.value, AlarmError)
        assert await real.head() == first.last_position
    await chain_is_whole(real.ledger, await real.binding_id())


@pytest.mark.rules("G7", "G11")
async def test_ff26_the_reason_of_a_failed_plan_is_not_hidden_by_its_rollback(
    real: RealWriter, postgres18_ledger_dsns: dict[str, str]
) -> None:
    """A plan is stored in one transaction of several statements; what refused it is told, and nothing of it stays."""
    await three(real, "run-1")
    async with connection_to(postgres18_ledger_dsns["admin"]) as admin:
        await admin.execute(
            "create function public.full() returns trigger language plpgsql as $$ begin"
            " raise exception using errcode = '53100', message = 'no room on the disk'; end $$;"
            " create trigger full_disk before insert on ledger.plan_seal for each row execute function public.full()"
        )
        with pytest.raises(LedgerUnavailableError, match="no room on the disk") as refused:
            await real.writer().drain("run-1", by="ada")
        assert refused.value.exit_code is ExitCode.BUSY
        assert await admin.fetchval("select count(*) from ledger.plan_operation") == 0
        await admin.execute("drop trigger full_disk on ledger.plan_seal")
    assert real.sent() == []
    assert (await real.writer().drain("run-1", by="ada")).ending == "run.applied"


async def _away(relay: PostgresRelay) -> None:
    """Every request to the ledger is lost, until cancelled."""
    while True:
        relay.arm("lose request")
        await relay.met.wait()


@pytest.mark.rules("G2", "G3", "G4", "G7")
async def test_ff26_the_ledger_stays_away_for_longer_than_the_lease(
    real: RealWriter, postgres18_ledger_dsns: dict[str, str]
) -> None:
    """Forty seconds in the field; here the lease is two. The service goes on by itself, with one doubt at most."""
    await three(real, "run-1")
    stop, trouble = asyncio.Event(), None
    async with relay_to(real.dsn) as (relay, dsn), connection_to(postgres18_ledger_dsns["admin"]) as admin:
        held = real.sandbox.faults.add(FaultRule(branch=real.branch, hold="before-answer"))
        serving = asyncio.create_task(Worker([real.writer(dsn=dsn)], pause_after_defect=0.05).run_until(stop))
        assert await asyncio.to_thread(held.wait_reached, 30.0)
        trouble = asyncio.create_task(_away(relay))
        held.release()
        await lease_has_run_out(admin)
        assert len(real.sent()) == 1
        trouble.cancel()
        relay.disarm()
        await until_true(lambda: _applied(real))
        stop.set()
        await serving
    outcomes = await real.outcomes("run-1")
    assert [outcome for outcome in outcomes if outcome[1] != "unknown"] in (ONCE, [(0, "applied", 2), *ONCE[1:]])
    assert len(outcomes) - len(ONCE) == len(real.sent()) - 2 <= 1
    await chain_is_whole(real.ledger, await real.binding_id())


async def _applied(real: RealWriter) -> bool:
    return (await real.kinds("run-1"))[-1] == "run.applied"


@pytest.mark.rules("G7")
async def test_ff26_a_refusal_is_told_once_and_asked_once(
    real: RealWriter, postgres18_ledger_dsns: dict[str, str]
) -> None:
    """What the server refused for good is not repeated until the lease is gone."""
    async with open_writer(real.dsn, ask_again_for=30.0) as writer:
        lease = await claim(writer, await real.binding_id())
        async with refusing(postgres18_ledger_dsns["admin"], "new.kind = 'operation.applied'", "23514"):
            assert isinstance(writer, WriterStore)
            async with asyncio.timeout(10):
                with pytest.raises(Exception, match="made by the test"):
                    await writer.append(lease, [applied(lease, 0)])
