"""When the writer repeats an operation by itself, and how long it waits before it does."""

from __future__ import annotations

import itertools

import pytest

from ledger.commit import Policy
from ledger.plan.model import PlannedOperation
from tests.support.committed_plans import tag
from tests.support.scripted_destination import unknown
from tests.support.writer_bench import Bench

CONVERGE = Policy(on_unknown="converge")


@pytest.mark.rules("G5")
async def test_g05_what_only_another_plan_can_end_is_not_sent_again(bench: Bench) -> None:
    operations = bench.commit([tag("a"), tag("b")], policy=CONVERGE)
    bench.destination.answers = {operations[0].operation_id: [unknown(final=True)]}
    assert (await bench.drain()).ending == "run.interrupted"
    assert bench.destination.received == [operations[0].operation_id]
    assert bench.ledger.body("operation.unknown")["next_action"] == "look"


@pytest.mark.rules("G5")
async def test_g05_what_was_never_sent_is_begun_again_after_a_wait_that_grows(bench: Bench) -> None:
    """Whatever kept it back is still there a millisecond later: a server needs half a minute for a restart."""
    operations = bench.commit([tag("a")], policy=CONVERGE)
    begun_at: list[float] = []

    async def away(operation: PlannedOperation) -> str:
        begun_at.append(bench.ledger.clock.now)
        raise unknown(sent=False)

    async def back(operation: PlannedOperation) -> str:
        begun_at.append(bench.ledger.clock.now)
        return bench.destination.write(operation)

    bench.destination.answers = {operations[0].operation_id: [away, away, back]}
    bench.changes["converge_wait"] = 12.0
    assert (await bench.drain()).ending == "run.applied"
    waits = [later - earlier for earlier, later in itertools.pairwise(begun_at)]
    assert [round(wait) for wait in waits] == [12, 24]
    assert bench.ledger.quiet_until == 0, "nothing has to settle for anybody else"
    assert any(progress.phase == "settling" for progress in bench.shown)
