"""How work on orders ends early: stops, interrupted commands, processes that are told to end, waiting for a run."""

from __future__ import annotations

import asyncio

import pytest

from consumers.errors import ArtifactElsewhereError
from ledger.commit import Policy
from ledger.exit_codes import ExitCode
from ledger.plan.model import PlannedOperation
from tests.support.committed_plans import tag
from tests.support.scripted_destination import refused, unknown
from tests.support.writer_bench import Bench


@pytest.mark.rules("G3", "P127")
async def test_g03_a_stop_takes_effect_between_two_operations(bench: Bench) -> None:
    operations = bench.commit([tag("a"), tag("b"), tag("c")])

    async def order_stop(operation: PlannedOperation) -> str:
        bench.ledger.stop("run-1", by="grace", reason="change window closed")
        return bench.destination.write(operation)

    bench.destination.answers = {operations[0].operation_id: [order_stop]}
    outcome = await bench.drain()
    assert outcome.ending == "run.stopped"
    assert outcome.exit_code is ExitCode.INTERRUPTED
    assert len(bench.destination.received) < 3
    stopped = bench.ledger.body("run.stopped")
    assert (stopped["by"], stopped["reason"]) == ("grace", "change window closed")
    assert stopped["last_ordinal"] == len(bench.destination.received) - 1
    assert [order.state for order in bench.ledger.orders] == ["done", "done"]
    assert bench.ledger.in_flight is None


async def test_a_stop_that_is_there_is_obeyed_before_the_first_operation(bench: Bench) -> None:
    bench.commit([tag("a")])
    bench.ledger.stop("run-1")
    assert (await bench.drain()).ending == "run.stopped"
    assert bench.destination.received == []
    assert bench.ledger.body("run.stopped")["last_ordinal"] is None


async def test_a_stopped_run_is_resumed_where_it_stopped(bench: Bench) -> None:
    operations = bench.commit([tag("a"), tag("b")])
    bench.ledger.stop("run-1")
    await bench.drain()
    bench.ledger.resume("run-1")
    assert (await bench.drain()).ending == "run.applied"
    assert bench.destination.received == [operation.operation_id for operation in operations]


async def test_a_stop_while_an_operation_is_in_doubt_interrupts_the_run(bench: Bench) -> None:
    operations = bench.commit([tag("a")], policy=Policy(on_unknown="converge"))

    async def stop_and_fail(operation: PlannedOperation) -> str:
        bench.ledger.stop("run-1")
        raise unknown()

    bench.destination.answers = {operations[0].operation_id: [stop_and_fail]}
    assert (await bench.drain()).ending == "run.interrupted"
    ended = bench.ledger.body("run.interrupted")
    assert ended["failed_operation"] == operations[0].operation_id
    assert [order.state for order in bench.ledger.orders] == ["done", "done"]


async def test_a_stop_that_came_too_late_is_closed(bench: Bench) -> None:
    bench.commit([tag("a")])
    await bench.drain()
    late = bench.ledger.stop("run-1")
    bench.commit([tag("b")], run_id="run-2")
    assert (await bench.drain("run-2")).ending == "run.applied"
    assert bench.ledger.state_of(late) == "done"


async def test_later_commits_do_not_wait_for_a_stopped_run(bench: Bench) -> None:
    operations = bench.commit([tag("a")], run_id="run-1")
    bench.commit([tag("b")], run_id="run-2")
    bench.destination.answers = {operations[0].operation_id: [refused()]}
    assert (await bench.drain("run-2")).ending == "run.applied"


async def test_an_interrupted_command_stops_its_run_after_the_operation_in_flight(bench: Bench) -> None:
    operations = bench.commit([tag("a"), tag("b")])
    interrupted = asyncio.Event()

    async def interrupt(operation: PlannedOperation) -> str:
        interrupted.set()
        return bench.destination.write(operation)

    bench.destination.answers = {operations[0].operation_id: [interrupt]}
    outcome = await bench.drain(interrupted=interrupted)
    assert outcome.ending == "run.stopped"
    assert bench.ledger.kinds("run-1") == ["run.started", "operation.applied", "run.stopped"]
    assert bench.ledger.body("run.stopped")["by"] == "ada"


@pytest.mark.parametrize("signal", ["interrupted", "leave"])
async def test_a_command_that_is_told_to_end_leaves_the_run_of_somebody_else_open(bench: Bench, signal: str) -> None:
    operations = bench.commit([tag("a"), tag("b")], run_id="theirs")
    bench.commit([tag("c")], run_id="ours")
    told = asyncio.Event()

    async def tell(operation: PlannedOperation) -> str:
        told.set()
        return bench.destination.write(operation)

    bench.destination.answers = {operations[0].operation_id: [tell]}
    outcome = await bench.drain("ours", **{signal: told})
    assert outcome.ending == "left_open"
    assert bench.ledger.kinds("theirs") == ["run.started", "operation.applied"]
    assert bench.ledger.kinds("ours") == []


async def test_whoever_waits_for_a_run_refuses_nobody_elses_whose_files_are_on_another_host(bench: Bench) -> None:
    bench.commit([tag("a")], run_id="theirs")
    bench.commit([tag("b")], run_id="ours")
    (bench.root / "sync" / "theirs").rename(bench.root / "sync" / "moved")
    with pytest.raises(ArtifactElsewhereError, match="theirs"):
        await bench.drain("ours")
    assert bench.ledger.kinds("theirs") == bench.ledger.kinds("ours") == []
    (bench.root / "sync" / "moved").rename(bench.root / "sync" / "theirs")
    assert (await bench.drain("ours")).ending == "run.applied"
    assert bench.ledger.kinds("theirs")[-1] == "run.applied"


@pytest.mark.rules("G4")
async def test_a_process_told_to_end_finishes_its_operation_and_leaves_the_run_open(bench: Bench) -> None:
    operations = bench.commit([tag("a"), tag("b")])
    leave = asyncio.Event()

    async def end(operation: PlannedOperation) -> str:
        leave.set()
        return bench.destination.write(operation)

    bench.destination.answers = {operations[0].operation_id: [end]}
    assert (await bench.drain(leave=leave)).ending == "left_open"
    assert bench.ledger.kinds("run-1") == ["run.started", "operation.applied"]
    assert bench.ledger.in_flight is None
    assert bench.ledger.owner is None
    assert (await bench.drain()).ending == "run.applied"
    assert bench.destination.received == [operation.operation_id for operation in operations]


async def test_leaving_while_an_operation_settles_keeps_its_doubt_for_the_successor(bench: Bench) -> None:
    operations = bench.commit([tag("a")], policy=Policy(on_unknown="converge"))
    leave = asyncio.Event()

    async def end(operation: PlannedOperation) -> str:
        leave.set()
        raise unknown()

    bench.destination.answers = {operations[0].operation_id: [end]}
    assert (await bench.drain(leave=leave)).ending == "left_open"
    assert (await bench.drain()).ending == "run.applied"
    attempts = [e.attempt for e in bench.ledger.of_run("run-1") if e.operation_id]
    assert attempts == [1, 2]


async def test_draining_for_a_run_that_another_writer_finished_tells_how_it_ended(bench: Bench) -> None:
    bench.commit([tag("a")], run_id="run-1", commit={"config_version": "another"})
    await bench.drain("run-1")
    bench.commit([tag("b")], run_id="run-2")
    outcome = await bench.drain("run-1")
    assert (outcome.ending, outcome.repeated) == ("plan.refused", True)
    assert [finding.name for finding in outcome.findings] == ["config_version"]
    assert bench.ledger.kinds("run-2") == []


async def test_draining_for_a_run_that_nobody_ordered_is_a_defect_of_the_caller(bench: Bench) -> None:
    with pytest.raises(LookupError):
        await bench.drain("nobody")
