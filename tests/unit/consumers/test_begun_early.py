"""An operation is begun while the database records its mark; what it sends waits for the mark (G4)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from consumers.lease import LeaseGuard, LeaseKeeper
from ledger.destination import PeerResolver
from ledger.plan.model import PlannedOperation
from ledger.store.errors import FencedWriterError, LedgerUnavailableError, QuietPeriodError, StoreError
from ledger.store.records import InFlight
from tests.support.committed_plans import tag
from tests.support.scripted_destination import ScriptedDestination, refused
from tests.support.writer_bench import Bench


def _error(kind: type[StoreError], **facts: Any) -> StoreError:
    return kind(checked="the append", expected="an answer", found="none", next_action="wait", facts=facts)


async def _guard(bench: Bench) -> LeaseGuard:
    lease = await bench.ledger.claim(1, owner="me", ttl=60, settle=0, body_host="here", body_process_id="me")
    clock = bench.ledger.clock
    return LeaseGuard(LeaseKeeper(bench.ledger, lease, bench.settings, claim_sent_at=clock(), clock=clock))


@pytest.mark.rules("G4")
async def test_g04_what_was_begun_without_a_mark_waits_until_it_may_go(bench: Bench) -> None:
    guard = await _guard(bench)
    guard.begin_unmarked()
    waiting = asyncio.create_task(guard.ready())
    for _ in range(5):
        await asyncio.sleep(0)
    assert not waiting.done()
    guard.go()
    await waiting


async def test_g04_an_attempt_whose_mark_is_durable_does_not_wait(bench: Bench) -> None:
    guard = await _guard(bench)
    guard.begin_unmarked()
    guard.begin()
    await asyncio.wait_for(guard.ready(), timeout=5)


@pytest.mark.rules("G4")
@pytest.mark.parametrize("kind", [LedgerUnavailableError, FencedWriterError])
async def test_g04_where_the_mark_is_not_made_nothing_of_what_was_begun_leaves(
    bench: Bench, kind: type[StoreError]
) -> None:
    (operation,) = bench.commit([tag("a")])
    bench.ledger.fail_next_append = [None, _error(kind)]  # run.started is recorded, the mark is not
    with pytest.raises(kind):
        await bench.drain()
    assert bench.destination.begun == [operation.operation_id]
    assert bench.destination.received == []
    assert [task for task in asyncio.all_tasks() if task.get_name() == "operation begun"] == []


@pytest.mark.rules("G4")
async def test_g04_a_mark_that_comes_too_early_for_the_destination_holds_back_what_was_begun(bench: Bench) -> None:
    (operation,) = bench.commit([tag("a")])
    marks: list[InFlight | None] = []

    async def look(written: PlannedOperation) -> str:
        marks.append(bench.ledger.in_flight)
        return bench.destination.write(written)

    bench.destination.answers = {operation.operation_id: [look]}
    bench.ledger.fail_next_append = [None, _error(QuietPeriodError, seconds=0.02)]
    assert (await bench.drain()).ending == "run.applied"
    assert marks == [InFlight("run-1", 0, 1)]
    assert bench.destination.begun == [operation.operation_id]


class _RefusesAtOnce(ScriptedDestination):
    """Finds what is wrong before it has anything to send."""

    async def apply_planned_operation(self, *, operation: PlannedOperation, peers: PeerResolver) -> str:
        self.begun.append(operation.operation_id)
        raise refused()


@pytest.mark.rules("G4", "P132")
async def test_g04_a_refusal_that_was_found_early_is_the_outcome_of_a_marked_attempt(bench: Bench) -> None:
    (operation,) = bench.commit([tag("a")])
    bench.destination = _RefusesAtOnce()
    assert (await bench.drain()).ending == "run.failed"
    assert bench.destination.begun == [operation.operation_id]
    assert ([], InFlight("run-1", 0, 1)) in bench.ledger.appends
    assert bench.ledger.kinds("run-1") == ["run.started", "operation.failed", "run.failed"]


@pytest.mark.rules("G4")
async def test_g04_a_destination_that_does_not_wait_for_the_guard_is_called_when_the_mark_stands(bench: Bench) -> None:
    operations = bench.commit([tag("a"), tag("b")])
    bench.destination.waits_for_guard = False
    bench.ledger.fail_next_append = [None, None, _error(LedgerUnavailableError)]
    with pytest.raises(LedgerUnavailableError):
        await bench.drain()
    assert bench.destination.begun == [operations[0].operation_id]
