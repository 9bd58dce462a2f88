"""Who is named in ``run.resumed``: the person whose order is begun, or the writer that goes on after a death."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from consumers.pauses import PausePoint
from ledger.commit import Policy
from ledger.plan.model import PlannedOperation
from ledger.store.records import Order
from tests.support.committed_plans import tag
from tests.support.scripted_destination import refused
from tests.support.writer_bench import Bench

TAKE_OVER = ("writer", "take-over after the writer's end")


class Died(BaseException):
    """The process is gone: nothing after this may run."""


def _resumed(bench: Bench, index: int = -1) -> tuple[Any, Any]:
    body = bench.ledger.body("run.resumed", index)
    return body["by"], body["reason"]


async def _die_in(bench: Bench, operation: PlannedOperation) -> None:
    """Drain until the writer dies while the request of ``operation`` is under way."""

    async def die(_: PlannedOperation) -> str:
        bench.ledger.epoch += 1
        raise Died

    bench.destination.answers[operation.operation_id] = [die]
    with pytest.raises(Died):
        await bench.drain()
    bench.ledger.expire()


@pytest.mark.rules("G3")
async def test_a_person_who_resumes_a_run_that_a_death_interrupted_is_named(bench: Bench) -> None:
    operations = bench.commit([tag("a")], policy=Policy(on_crash="stop"))
    await _die_in(bench, operations[0])
    assert bench.ledger.in_flight is not None
    assert (await bench.drain()).ending == "run.interrupted"
    bench.ledger.resume("run-1", by="grace", reason="looked at it")
    assert (await bench.drain()).ending == "run.applied"
    assert _resumed(bench) == ("grace", "looked at it")


@pytest.mark.rules("G3")
async def test_a_writer_that_goes_on_with_a_resumption_names_itself(bench: Bench) -> None:
    operations = bench.commit([tag("a"), tag("b")])
    bench.destination.answers[operations[0].operation_id] = [refused()]
    await bench.drain()
    bench.ledger.resume("run-1", by="grace", reason="fixed")
    await _die_in(bench, operations[0])
    assert (await bench.drain()).ending == "run.applied"
    assert [_resumed(bench, 0), _resumed(bench, 1)] == [("grace", "fixed"), TAKE_OVER]


@pytest.mark.rules("G3")
async def test_a_resumption_that_had_not_begun_is_still_its_orderers(bench: Bench) -> None:
    operations = bench.commit([tag("a")])
    bench.destination.answers[operations[0].operation_id] = [refused()]
    await bench.drain()
    order: Order = bench.ledger.resume("run-1", by="grace", reason="fixed")

    async def die() -> None:
        bench.ledger.epoch += 1
        raise Died

    bench.pauses.actions[PausePoint.BEFORE_RUN_STARTED] = die
    with pytest.raises(Died):
        await bench.drain()
    bench.ledger.expire()
    bench.pauses.actions.clear()
    assert (await bench.drain()).ending == "run.applied"
    assert _resumed(bench) == ("grace", "fixed")
    assert bench.ledger.state_of(order) == "done"


@pytest.mark.rules("G4", "G10")
async def test_g10_an_order_that_the_successor_cannot_read_does_not_keep_it_from_taking_over(bench: Bench) -> None:
    """As after a return to an older program: what was in flight is recorded, the order refused, the next one runs."""
    operations = bench.commit([tag("a")])
    bench.destination.answers[operations[0].operation_id] = [refused()]
    await bench.drain()
    order = bench.ledger.resume("run-1")
    await _die_in(bench, operations[0])
    newer = replace(order, body={**order.body, "policy": {"on_crash": "ask"}})
    bench.ledger.orders[order.inbox_id - 1] = newer
    bench.commit([tag("b")], run_id="run-2")
    assert (await bench.drain("run-2")).ending == "run.applied"
    assert bench.ledger.kinds("run-1")[-3:] == ["operation.unknown", "run.interrupted", "plan.refused"]
    assert bench.ledger.state_of(order) == "refused"
