"""Writers that die, freeze or lose their lease: what the next one records, and what the old one may no longer do."""

from __future__ import annotations

import asyncio
import json

import pytest

from consumers.errors import LeaseLostError
from consumers.pauses import PausePoint
from consumers.takeover import UnknownMarkError
from ledger.commit import Policy
from ledger.plan.model import PlannedOperation
from ledger.store.errors import FencedWriterError, LeaseHeldError, LedgerUnavailableError
from ledger.store.records import InFlight
from tests.support.committed_plans import tag
from tests.support.writer_bench import Bench


class Died(BaseException):
    """Stands for kill -9: nothing of the program runs after it."""


async def _die_while_writing(bench: Bench, operation: PlannedOperation) -> None:
    """A writer that is killed after the destination wrote and before the outcome is appended."""

    async def write_and_die(op: PlannedOperation) -> str:
        bench.destination.write(op)
        bench.ledger.fail_next_append = [Died() for _ in range(5)]
        raise Died

    bench.destination.answers[operation.operation_id] = [write_and_die]
    with pytest.raises(Died):
        await bench.drain()
    bench.ledger.fail_next_append = []
    bench.ledger.expire()


@pytest.mark.rules("G3", "G4", "P124", "P128", "P130")
async def test_g04_the_successor_records_the_operation_in_flight_and_repeats_it(bench: Bench) -> None:
    operations = bench.commit([tag("a"), tag("b"), tag("c")])
    await _die_while_writing(bench, operations[1])
    assert bench.ledger.in_flight == InFlight("run-1", 1, 1)
    assert (await bench.drain()).ending == "run.applied"
    assert bench.ledger.kinds("run-1") == [
        "run.started",
        "operation.applied",
        "operation.unknown",
        "run.interrupted",
        "run.resumed",
        "operation.applied",
        "operation.applied",
        "run.applied",
    ]
    unknown = bench.ledger.body("operation.unknown")
    assert (unknown["error"], unknown["wrote"], unknown["sent"]) == ("WriterDiedError", None, True)
    interrupted = bench.ledger.body("run.interrupted")
    assert interrupted["failed_operation"] == operations[1].operation_id
    assert (interrupted["applied"], interrupted["not_attempted"]) == (1, 1)
    resumed = bench.ledger.body("run.resumed")
    assert (resumed["by"], resumed["from_ordinal"]) == ("writer", 1)
    attempts = [e.attempt for e in bench.ledger.of_run("run-1") if e.operation_id == operations[1].operation_id]
    assert attempts == [1, 2]
    assert len(bench.destination.store) == 3


@pytest.mark.rules("G4")
async def test_g04_nobody_dispatches_before_the_destination_has_settled(bench: Bench) -> None:
    operations = bench.commit([tag("a")])
    await _die_while_writing(bench, operations[0])
    claimed = bench.ledger.clock.now
    times: list[float] = []

    async def note(operation: PlannedOperation) -> str:
        times.append(bench.ledger.clock.now)
        return bench.destination.write(operation)

    bench.destination.answers[operations[0].operation_id] = [note]
    await bench.drain()
    assert times[0] - claimed >= 30


async def test_on_crash_stop_leaves_the_run_interrupted_and_closes_its_order(bench: Bench) -> None:
    operations = bench.commit([tag("a"), tag("b")], policy=Policy(on_crash="stop"))
    await _die_while_writing(bench, operations[0])
    bench.commit([tag("later")], run_id="run-2")
    assert (await bench.drain("run-2")).ending == "run.applied"
    assert bench.ledger.kinds("run-1") == ["run.started", "operation.unknown", "run.interrupted"]
    assert bench.ledger.state_of(bench.ledger.orders[0]) == "done"


@pytest.mark.rules("G4")
@pytest.mark.parametrize("point", [PausePoint.AT_TAKE_OVER, PausePoint.AFTER_TAKE_OVER, PausePoint.BEFORE_RUN_STARTED])
async def test_g04_a_second_death_while_taking_over_changes_nothing(bench: Bench, point: PausePoint) -> None:
    operations = bench.commit([tag("a"), tag("b")])
    await _die_while_writing(bench, operations[0])

    async def die() -> None:
        raise Died

    bench.pauses.actions[point] = die
    with pytest.raises(Died):
        await bench.drain()
    bench.ledger.expire()
    bench.pauses.actions.clear()
    assert (await bench.drain()).ending == "run.applied"
    assert bench.ledger.kinds("run-1").count("operation.unknown") == 1
    assert bench.ledger.kinds("run-1").count("run.resumed") == 1
    assert bench.ledger.kinds("run-1").count("operation.applied") == 2


async def test_an_open_run_without_an_operation_in_flight_just_goes_on(bench: Bench) -> None:
    bench.commit([tag("a"), tag("b")])

    async def die() -> None:
        raise Died

    bench.pauses.actions[PausePoint.AFTER_RUN_STARTED] = die
    with pytest.raises(Died):
        await bench.drain()
    bench.ledger.expire()
    bench.pauses.actions.clear()
    assert (await bench.drain()).ending == "run.applied"
    assert bench.ledger.kinds("run-1") == ["run.started", "operation.applied", "operation.applied", "run.applied"]


@pytest.mark.rules("G2")
async def test_g02_a_writer_whose_lease_was_taken_appends_nothing_and_starts_no_request(bench: Bench) -> None:
    operations = bench.commit([tag("a"), tag("b")])
    at_loss: list[int] = []

    async def lose_the_lease(operation: PlannedOperation) -> str:
        bench.ledger.expire()
        await bench.ledger.claim(1, owner="other", ttl=60, settle=0, body_host="there", body_process_id="other")
        at_loss.append(len(bench.ledger.log))
        return bench.destination.write(operation)

    bench.destination.answers = {operations[0].operation_id: [lose_the_lease]}
    with pytest.raises(FencedWriterError):
        await bench.drain()
    assert bench.destination.received == [operations[0].operation_id]
    assert len(bench.ledger.log) == at_loss[0]
    assert bench.ledger.owner == "other"


@pytest.mark.rules("G2")
async def test_g02_a_thawed_writer_is_held_back_by_the_guard_before_it_sends(bench: Bench) -> None:
    """Frozen between the mark and the request until another process holds the binding: nothing is sent."""
    bench.commit([tag("a")])
    at_thaw: list[int] = []

    async def freeze() -> None:
        bench.ledger.expire()
        await bench.ledger.claim(1, owner="other", ttl=60, settle=0, body_host="there", body_process_id="other")
        at_thaw.append(len(bench.ledger.log))

    bench.pauses.actions[PausePoint.BEFORE_DISPATCH] = freeze
    with pytest.raises(FencedWriterError):
        await bench.drain()
    assert bench.destination.received == []
    assert len(bench.ledger.log) == at_thaw[0]


@pytest.mark.rules("G2")
async def test_g02_a_request_that_could_outlive_the_lease_waits_for_a_renewal(bench: Bench) -> None:
    """Slow, but nobody else came: the lease is renewed and the same attempt goes on; nothing is in doubt."""
    operations = bench.commit([tag("a")])

    async def dawdle() -> None:
        bench.ledger.clock.now += 50  # of 60; a request may take 20 and needs 5 more

    bench.pauses.actions[PausePoint.BEFORE_DISPATCH] = dawdle
    assert (await bench.drain()).ending == "run.applied"
    assert bench.ledger.renewals >= 1
    assert bench.destination.received == [operations[0].operation_id]
    assert "operation.unknown" not in bench.ledger.kinds("run-1")


@pytest.mark.rules("G2", "G5")
async def test_g05_an_operation_begins_with_room_for_all_its_requests(bench: Bench) -> None:
    """The lease is renewed before the mark, so that nothing is held back between two requests of one operation."""
    operations = bench.commit([tag("a"), tag("b")])

    async def slow(operation: PlannedOperation) -> str:
        bench.ledger.clock.now += 34  # of 60: enough is left for one request (25), not for a second one 6 s later
        return bench.destination.write(operation)

    async def look_up_then_write(operation: PlannedOperation) -> str:
        bench.ledger.clock.now += 6
        assert bench.destination.guard is not None
        bench.destination.guard.before_send()
        return bench.destination.write(operation)

    bench.destination.answers = {operations[0].operation_id: [slow], operations[1].operation_id: [look_up_then_write]}
    assert (await bench.drain()).ending == "run.applied"


@pytest.mark.rules("G2", "G5")
async def test_g05_a_later_request_that_was_held_back_leaves_the_operation_unknown(bench: Bench) -> None:
    """What the first request of the attempt was, the writer cannot know; so nothing is claimed."""
    operations = bench.commit([tag("a")])

    async def stall(operation: PlannedOperation) -> str:
        bench.ledger.clock.now += 50
        assert bench.destination.guard is not None
        bench.destination.guard.before_send()
        raise AssertionError

    bench.destination.answers = {operations[0].operation_id: [stall]}
    assert (await bench.drain()).ending == "run.interrupted"
    body = bench.ledger.body("operation.unknown")
    assert (body["error"], body["sent"]) == ("DispatchRefusedError", True)


@pytest.mark.rules("G2", "G5")
async def test_g05_an_attempt_that_only_read_before_it_was_held_back_is_begun_again(bench: Bench) -> None:
    """A look-up of a peer changes nothing: what was held back behind it was provably not written."""
    (operation,) = bench.commit([tag("a")])
    bench.destination.reads_first = True

    async def stall(operation: PlannedOperation) -> str:
        bench.ledger.clock.now += 50
        assert bench.destination.guard is not None
        bench.destination.guard.before_send()
        raise AssertionError

    bench.destination.answers = {operation.operation_id: [stall]}
    assert (await bench.drain()).ending == "run.applied"
    assert bench.destination.received == [operation.operation_id] * 2
    assert "operation.unknown" not in bench.ledger.kinds(bench.ledger.orders[0].run_id)


@pytest.mark.rules("G2", "G5")
async def test_g05_a_look_up_that_left_is_no_write_that_may_have(bench: Bench) -> None:
    """Held back again and again: the outcome is unknown, and nothing has to settle, because nothing was sent."""
    (operation,) = bench.commit([tag("a")])
    bench.destination.reads_first = True

    async def stall(operation: PlannedOperation) -> str:
        bench.ledger.clock.now += 50
        assert bench.destination.guard is not None
        bench.destination.guard.before_send()
        raise AssertionError

    bench.destination.answers = {operation.operation_id: [stall] * 3}
    assert (await bench.drain()).ending == "run.interrupted"
    body = bench.ledger.body("operation.unknown")
    assert (body["error"], body["sent"]) == ("DispatchRefusedError", False)
    assert "may have written" not in body["message"]
    assert bench.ledger.quiet_until <= bench.ledger.clock.now


@pytest.mark.rules("G2")
async def test_g02_no_request_is_begun_when_the_lease_cannot_be_renewed_in_time(bench: Bench) -> None:
    bench.commit([tag("a"), tag("b")])

    async def ledger_goes_away() -> None:
        bench.ledger.clock.now += 50
        bench.ledger.fail_renewals = LedgerUnavailableError(
            checked="the ledger", expected="an answer", found="none", next_action="wait"
        )

    bench.pauses.actions[PausePoint.BEFORE_DISPATCH] = ledger_goes_away
    with pytest.raises(LeaseLostError):
        await bench.drain()
    assert bench.destination.received == []


@pytest.mark.rules("G4", "G5")
async def test_g05_a_failed_append_leaves_the_operation_in_doubt_for_the_successor(bench: Bench) -> None:
    operations = bench.commit([tag("a"), tag("b")])
    gone = LedgerUnavailableError(checked="the ledger", expected="an answer", found="none", next_action="wait")

    async def write_then_lose_the_ledger(operation: PlannedOperation) -> str:
        bench.ledger.fail_next_append = [gone]
        return bench.destination.write(operation)

    bench.destination.answers = {operations[0].operation_id: [write_then_lose_the_ledger]}
    with pytest.raises(LedgerUnavailableError):
        await bench.drain()
    assert bench.destination.received == [operations[0].operation_id]
    assert (await bench.drain()).ending == "run.applied"
    kinds = [e.kind for e in bench.ledger.of_run("run-1") if e.operation_id == operations[0].operation_id]
    assert kinds == ["operation.unknown", "operation.applied"]


@pytest.mark.rules("P143", "G3", "G4")
async def test_g04_a_cancelled_writer_records_the_operation_that_was_under_way(bench: Bench) -> None:
    operations = bench.commit([tag("a"), tag("b"), tag("c")])
    under_way = asyncio.Event()

    async def hang(operation: PlannedOperation) -> str:
        under_way.set()
        await asyncio.Event().wait()
        raise AssertionError

    bench.destination.answers = {operations[1].operation_id: [hang]}
    task = asyncio.create_task(bench.drain())
    await under_way.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert bench.ledger.kinds("run-1")[-2:] == ["operation.unknown", "run.interrupted"]
    assert bench.ledger.body("operation.unknown")["error"] == "WriterCancelledError"
    assert bench.ledger.owner is None
    assert bench.ledger.in_flight is None
    assert (await bench.drain()).ending == "run.applied"
    assert bench.destination.received.count(operations[1].operation_id) == 2


async def test_a_writer_cancelled_before_its_request_says_that_nothing_was_sent(bench: Bench) -> None:
    bench.commit([tag("a")])
    reached = asyncio.Event()

    async def wait_for_ever() -> None:
        reached.set()
        await asyncio.Event().wait()

    bench.pauses.actions[PausePoint.BEFORE_DISPATCH] = wait_for_ever
    task = asyncio.create_task(bench.drain())
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    body = bench.ledger.body("operation.unknown")
    assert body["sent"] is False
    assert "may have written" not in body["message"]
    assert bench.destination.received == []


async def test_cancelled_in_the_middle_of_an_append_the_append_is_finished(bench: Bench) -> None:
    bench.commit([tag("a")])
    reached = asyncio.Event()
    release = asyncio.Event()

    async def hold() -> None:
        if bench.pauses.seen.count(PausePoint.INSIDE_APPEND) == 3:  # started, mark, outcome with the end
            reached.set()
            await release.wait()

    bench.pauses.actions[PausePoint.INSIDE_APPEND] = hold
    task = asyncio.create_task(bench.drain())
    await reached.wait()
    task.cancel()
    await asyncio.sleep(0)
    release.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert bench.ledger.kinds("run-1") == ["run.started", "operation.applied", "run.applied"]


async def test_a_mark_that_names_nothing_known_is_an_alarm(bench: Bench) -> None:
    bench.commit([tag("a")])
    bench.ledger.in_flight = InFlight("no-such-run", 0, 1)
    with pytest.raises(UnknownMarkError):
        await bench.drain()


@pytest.mark.rules("G2")
async def test_g02_a_live_lease_of_another_process_is_respected(bench: Bench) -> None:
    bench.commit([tag("a")])
    await bench.ledger.claim(1, owner="other", ttl=60, settle=0, body_host="there", body_process_id="other")
    events = len(bench.ledger.log)
    with pytest.raises(LeaseHeldError):
        await bench.drain()
    assert len(bench.ledger.log) == events
    assert bench.destination.opened == 0


async def test_every_claim_has_a_name_of_its_own(bench: Bench) -> None:
    bench.commit([tag("a")])
    bench.commit([tag("b")], run_id="run-2")
    await bench.drain("run-1")
    await bench.drain("run-2")
    opened = [json.loads(event.body) for event in bench.ledger.log if event.kind == "writer.opened"]
    assert [body["epoch"] for body in opened] == [1, 2]
    assert len({body["process_id"] for body in opened}) == 2
