"""The service: serving a binding until it is told to stop, and many bindings in one process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from structlog.testing import capture_logs

from consumers.errors import WriterNotSetUpError
from consumers.worker import Worker
from ledger.errors import ConfigurationError
from ledger.plan.model import PlannedOperation
from ledger.store.errors import LedgerUnavailableError
from tests.support.committed_plans import tag
from tests.support.scripted_destination import refused
from tests.support.waiting import until
from tests.support.writer_bench import Bench


async def _serve(bench: Bench, condition: Callable[[], bool]) -> None:
    """Serve until something holds, then tell the writer to stop and wait for its end."""
    stop = asyncio.Event()
    task = asyncio.create_task(bench.writer().run_until(stop))
    await until(condition)
    stop.set()
    await task


async def test_orders_are_worked_as_they_come_and_the_lease_is_released_at_the_end(bench: Bench) -> None:
    stop = asyncio.Event()
    task = asyncio.create_task(bench.writer().run_until(stop))
    bench.commit([tag("a")], run_id="run-1")
    await until(lambda: "run.applied" in bench.ledger.kinds("run-1"))
    bench.commit([tag("b")], run_id="run-2")
    await until(lambda: "run.applied" in bench.ledger.kinds("run-2"))
    holders = [bench.ledger.owner]
    stop.set()
    await task
    holders.append(bench.ledger.owner)
    assert [holder is not None for holder in holders] == [True, False]
    assert [event.kind for event in bench.ledger.log].count("writer.opened") == 1


async def test_a_writer_that_finds_the_binding_held_waits_and_says_so(bench: Bench) -> None:
    bench.commit([tag("a")])
    held = await bench.ledger.claim(1, owner="other", ttl=60, settle=0, body_host="there", body_process_id="other")
    stop = asyncio.Event()
    task = asyncio.create_task(bench.writer().run_until(stop))
    await until(lambda: any(p.phase == "claiming" and p.seconds > 0 for p in bench.shown))
    assert bench.destination.opened == 0
    await bench.ledger.release(held)
    await until(lambda: "run.applied" in bench.ledger.kinds("run-1"))
    stop.set()
    await task


async def test_a_writer_in_reserve_tells_once_who_holds_the_binding(bench: Bench) -> None:
    await bench.ledger.claim(1, owner="other", ttl=60, settle=0, body_host="there", body_process_id="other")
    stop = asyncio.Event()

    def looked(times: int) -> bool:
        bench.ledger.clock.now += 0.001
        return sum(progress.phase == "claiming" for progress in bench.shown) >= times

    with capture_logs() as logs:
        task = asyncio.create_task(bench.writer().run_until(stop))
        await until(lambda: looked(3))
        bench.ledger.owner = "another"
        await until(lambda: looked(6))
        stop.set()
        await task
    # as a standby should be: nothing that anybody has to look at
    assert [(entry["event"], entry["log_level"]) for entry in logs] == [("not writing now", "info")] * 2


@pytest.mark.rules("G11")
async def test_g11_the_log_tells_what_a_person_has_to_look_at_and_what_went_well_one_level_below(bench: Bench) -> None:
    failing = bench.commit([tag("a")], run_id="run-1")
    bench.commit([tag("b")], run_id="run-2", commit={"config_version": "another"})
    bench.commit([tag("c")], run_id="run-3")
    bench.destination.answers = {failing[0].operation_id: [refused()]}
    with capture_logs() as logs:
        await _serve(bench, lambda: "run.applied" in bench.ledger.kinds("run-3"))
    ends = [entry for entry in logs if entry["event"] == "a run has ended"]
    assert [(entry["run_id"], entry["ending"], entry["log_level"]) for entry in ends] == [
        ("run-1", "run.failed", "warning"),
        ("run-2", "plan.refused", "warning"),
        ("run-3", "run.applied", "info"),
    ]
    assert ends[1]["findings"].startswith("config_version: ")


@pytest.mark.rules("G4")
async def test_g04_a_writer_that_lost_its_ledger_claims_again_and_resumes(bench: Bench) -> None:
    operations = bench.commit([tag("a"), tag("b")])
    gone = LedgerUnavailableError(checked="the ledger", expected="an answer", found="none", next_action="wait")

    async def lose_the_ledger(operation: PlannedOperation) -> str:
        bench.ledger.fail_next_append = [gone]
        return bench.destination.write(operation)

    bench.destination.answers = {operations[0].operation_id: [lose_the_ledger]}
    await _serve(bench, lambda: "run.applied" in bench.ledger.kinds("run-1"))
    assert bench.ledger.kinds("run-1").count("operation.unknown") == 1
    assert len(bench.destination.store) == 2


@pytest.mark.rules("P142")
async def test_a_defect_ends_one_run_and_the_service_goes_on_with_the_next(bench: Bench) -> None:
    operations = bench.commit([tag("a")], run_id="run-1")
    bench.commit([tag("b")], run_id="run-2")
    bench.destination.answers = {operations[0].operation_id: [TypeError("a defect")]}
    stop = asyncio.Event()
    with capture_logs() as logs:
        task = asyncio.create_task(Worker([bench.writer()], pause_after_defect=0.0).run_until(stop))
        await until(lambda: "run.applied" in bench.ledger.kinds("run-2"))
        stop.set()
        await task
    assert bench.ledger.kinds("run-1")[-1] == "run.interrupted"
    (logged,) = [entry for entry in logs if entry["log_level"] == "error"]
    assert "defect" in logged["event"]
    assert logged["exc_info"]


async def test_bindings_are_served_independently_of_each_other(
    bench: Bench, tmp_path_factory: pytest.TempPathFactory
) -> None:
    broken = Bench(root=tmp_path_factory.mktemp("other"))
    held = broken.commit([tag("x")])
    hangs, never = asyncio.Event(), asyncio.Event()

    async def hang(operation: PlannedOperation) -> str:
        hangs.set()
        await never.wait()
        return broken.destination.write(operation)

    broken.destination.answers = {held[0].operation_id: [hang]}
    bench.commit([tag("a")])
    stop = asyncio.Event()
    task = asyncio.create_task(Worker([broken.writer(), bench.writer()]).run_until(stop))
    await until(lambda: hangs.is_set() and "run.applied" in bench.ledger.kinds("run-1"))
    assert broken.ledger.kinds("run-1") == ["run.started"]
    stop.set()
    never.set()
    await task
    assert broken.ledger.owner is None


async def test_an_idle_writer_that_lost_its_lease_claims_again(bench: Bench) -> None:
    bench.changes |= {"lease_ttl": 0.03, "request_timeout": 0.01, "margin": 0.0}
    stop = asyncio.Event()
    task = asyncio.create_task(bench.writer().run_until(stop))
    await until(lambda: bench.ledger.epoch == 1)
    bench.ledger.epoch, bench.ledger.owner = 2, None
    await until(lambda: bench.ledger.epoch == 3)
    stop.set()
    await task


def _not_set_up() -> None:
    raise ConfigurationError(checked="the token", expected="one", found="no variable", next_action="export it")


@pytest.mark.rules("G10", "G11")
async def test_g10_a_writer_that_is_not_set_up_refuses_nobodys_plan(bench: Bench) -> None:
    """A missing token is this process's trouble: the orders wait for it, or for another writer."""
    bench.commit([tag("a")])
    bench.destination.before_open = _not_set_up
    stop = asyncio.Event()
    with capture_logs() as logs:
        task = asyncio.create_task(bench.writer().run_until(stop))
        await until(lambda: any(entry["log_level"] == "error" for entry in logs))
        assert bench.ledger.kinds("run-1") == []
        bench.destination.before_open = None
        await until(lambda: "run.applied" in bench.ledger.kinds("run-1"))
        stop.set()
        await task
    (told,) = [entry for entry in logs if entry["log_level"] == "error"]
    assert "no variable" in told["error"]
    assert [event.kind for event in bench.ledger.log].count("writer.opened") == 1


@pytest.mark.rules("G10", "G11")
async def test_g10_a_command_that_is_not_set_up_leaves_the_orders_open(bench: Bench) -> None:
    bench.commit([tag("a")], run_id="theirs")
    bench.commit([tag("b")], run_id="ours")
    bench.destination.before_open = _not_set_up
    with pytest.raises(WriterNotSetUpError, match="export it"):
        await bench.drain("ours")
    assert [order.state for order in bench.ledger.orders] == ["open", "open"]
    assert bench.ledger.owner is None
