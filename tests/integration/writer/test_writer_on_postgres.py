"""The writer on a real ledger and a sandbox: what the destination answers, and what is recorded of it."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from consumers.infrahub.sandbox import RunningSandbox
from consumers.infrahub.sandbox.faults import FaultAnswer, FaultRule
from consumers.pauses import PausePoint
from consumers.worker import Worker
from ledger.commit import Policy
from ledger.exit_codes import ExitCode
from ledger.store.ledger import Ledger
from tests.faults.evidence import mixed_operations, require_sound
from tests.support.inventory_operations import (
    changed_manufacturer,
    device_type,
    gone_manufacturer,
    manufacturer,
)
from tests.support.real_writer import RealWriter
from tests.support.store import connection_to
from tests.support.waiting import until_true
from tests.support.writer_bench import Pauses

pytestmark = pytest.mark.integration


@pytest.fixture
async def both(
    ledger_dsns: dict[str, str], sandbox: RunningSandbox, branch: str, tmp_path: Path
) -> AsyncIterator[RealWriter]:
    """As ``real``, on both ends of the supported range of PostgreSQL."""
    dsn = ledger_dsns["writer"]
    async with await Ledger.open(dsn, allow_unsafe_fsync=True) as ledger:
        yield RealWriter(dsn=dsn, ledger=ledger, sandbox=sandbox, branch=branch, root=tmp_path)


@pytest.mark.rules("P17", "P110", "P113", "P146", "P147", "G3", "G6")
async def test_g03_a_run_with_every_shape_is_applied_and_accounted_for(both: RealWriter) -> None:
    known = both.sandbox.store.create("OrganizationManufacturer", {"name": "Known"}, branch=both.branch)
    operations = await both.commit("run-1", mixed_operations(known))
    assert (await both.writer().drain("run-1", by="ada")).ending == "run.applied"
    await require_sound(both, "run-1", operations)
    applied = {e.operation_id: json.loads(e.body) for e in await both.events("run-1") if e.kind == "operation.applied"}
    assert applied[operations[1].operation_id]["node_id"] == known
    ended = await both.body("run-1", "run.applied")
    assert (ended["applied"], ended["skipped"]) == (5, 1)


@pytest.mark.rules("G7")
async def test_g07_a_commit_delivered_twice_is_applied_once(both: RealWriter) -> None:
    await both.commit("run-1", [manufacturer("Juniper")])
    commit = await both.ledger.run_commit(await both.binding_id(), "run-1")
    assert commit is not None
    await both.submit(commit)
    assert (await both.writer().drain("run-1", by="ada")).ending == "run.applied"
    requests, position = len(both.sandbox.journal), await both.head()
    await both.submit(commit)
    outcome = await both.writer().drain("run-1", by="ada")
    assert (outcome.ending, outcome.repeated) == ("run.applied", True)
    assert len(both.sandbox.journal) == requests
    assert [e.kind for e in await both.events() if e.position > position] == ["writer.opened"]


ANSWERS_AFTER_A_WRITE = [
    FaultAnswer.DROP,
    FaultAnswer.TEXT_500,
    FaultAnswer.NOT_JSON,
    FaultAnswer.EMPTY_ERRORS,
    FaultAnswer.NOT_OK,
    FaultAnswer.OBJECT_NULL,
    FaultAnswer.EMPTY_ID,
    FaultAnswer.DEFUNCT_CONNECTION,
    FaultAnswer.TRUNCATED,
]


@pytest.mark.rules("P127", "P128", "P129", "P130", "P134", "G5", "G6")
@pytest.mark.parametrize("answer", ANSWERS_AFTER_A_WRITE, ids=lambda answer: str(answer))
async def test_ff22_an_answer_that_hides_a_write_is_unknown_and_stops_the_run(
    real: RealWriter, answer: FaultAnswer
) -> None:
    await real.commit("run-1", [manufacturer("Juniper"), manufacturer("Cisco"), manufacturer("Vertiv")])
    real.sandbox.faults.add(FaultRule(branch=real.branch, nth=2, answer=answer))
    outcome = await real.writer().drain("run-1", by="ada")
    assert outcome.ending == "run.interrupted"
    assert outcome.exit_code is ExitCode.STOPPED_MAYBE_WRITTEN
    assert await real.kinds("run-1") == [
        "plan.committed",
        "run.started",
        "operation.applied",
        "operation.unknown",
        "run.interrupted",
    ]
    body = await real.body("run-1", "operation.unknown")
    assert (body["wrote"], body["sent"]) == (None, True)
    names = {row["values"]["name"] for row in real.content() if row["kind"] == "OrganizationManufacturer"}
    assert {"Juniper", "Cisco"} <= names
    assert "Vertiv" not in names


@pytest.mark.rules("P27", "P133", "P136", "G5")
async def test_g05_a_stale_id_is_the_destinations_own_proof_that_nothing_was_written(real: RealWriter) -> None:
    gone = real.sandbox.store.create("OrganizationManufacturer", {"name": "Gone"}, branch=real.branch)
    operations = await real.commit("run-1", [changed_manufacturer("Gone", gone, description="x"), manufacturer("Next")])
    real.sandbox.store.delete(gone, branch=real.branch)
    outcome = await real.writer().drain("run-1", by="ada")
    assert (outcome.ending, outcome.exit_code) == ("run.failed", ExitCode.STOPPED_UNWRITTEN)
    body = await real.body("run-1", "operation.failed")
    assert (body["error"], body["wrote"]) == ("StaleDestinationIdError", False)
    ended = await real.body("run-1", "run.failed")
    assert ended["failed_operation"] == operations[0].operation_id
    assert ended["not_attempted"] == 1


@pytest.mark.rules("P80", "P83", "P132", "G5")
async def test_ff29_a_missing_peer_stops_the_run_and_resume_goes_on_when_it_is_there(real: RealWriter) -> None:
    operations = await real.commit(
        "run-1", [manufacturer("Juniper"), device_type("Cisco", "C9200"), gone_manufacturer("Old")]
    )
    assert (await real.writer().drain("run-1", by="ada")).ending == "run.failed"
    assert (await real.body("run-1", "operation.failed"))["error"] == "PeerNotFoundError"
    real.sandbox.store.create("OrganizationManufacturer", {"name": "Cisco"}, branch=real.branch)
    await real.ledger.submit_resume(
        await real.binding_id(), run_id="run-1", by="grace", reason="peer created", policy=Policy()
    )
    assert (await real.writer().drain("run-1", by="ada")).ending == "run.applied"
    resumed = await real.body("run-1", "run.resumed")
    assert (resumed["by"], resumed["from_ordinal"]) == ("grace", 1)
    outcomes = [(e.operation_id, e.kind, e.attempt) for e in await real.events("run-1") if e.operation_id]
    assert outcomes == [
        (operations[0].operation_id, "operation.applied", 1),
        (operations[1].operation_id, "operation.failed", 1),
        (operations[1].operation_id, "operation.applied", 2),
        (operations[2].operation_id, "operation.skipped", 1),
    ]


@pytest.mark.rules("G4", "G5", "P129")
async def test_converge_settles_and_repeats_until_the_answer_comes(real: RealWriter) -> None:
    operations = await real.commit(
        "run-1", [manufacturer("Juniper"), manufacturer("Cisco")], policy=Policy(on_unknown="converge")
    )
    real.sandbox.faults.add(FaultRule(branch=real.branch, nth=2, count=2, answer=FaultAnswer.DROP))
    assert (await real.writer().drain("run-1", by="ada")).ending == "run.applied"
    second = [e for e in await real.events("run-1") if e.operation_id == operations[1].operation_id]
    assert [(e.kind, e.attempt) for e in second] == [
        ("operation.unknown", 1),
        ("operation.unknown", 2),
        ("operation.applied", 3),
    ]
    for earlier, later in itertools.pairwise(second):
        assert (later.recorded_at - earlier.recorded_at).total_seconds() >= real.settings.settle_seconds


@pytest.mark.rules("G4")
async def test_a_request_that_takes_longer_than_its_time_out_is_unknown(real: RealWriter) -> None:
    await real.commit("run-1", [manufacturer("Juniper")])
    real.sandbox.faults.add(FaultRule(branch=real.branch, hold="before-answer"))
    assert (await real.writer().drain("run-1", by="ada")).ending == "run.interrupted"
    assert (await real.body("run-1", "operation.unknown"))["sent"] is True
    real.sandbox.faults.clear()


@pytest.mark.rules("G4", "G7")
async def test_ff26_a_connection_that_is_lost_before_an_append_costs_nothing(
    real: RealWriter, postgres18_ledger_dsns: dict[str, str]
) -> None:
    """The writer's database backend is ended after the write and before its record: asked again, recorded once."""
    operations = await real.commit("run-1", [manufacturer("Juniper"), manufacturer("Cisco")])
    pauses = Pauses()

    async def end_the_backend() -> None:
        async with connection_to(postgres18_ledger_dsns["admin"]) as administrator:
            ended = await administrator.fetch(
                "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'apply-ledger writer'"
            )
        assert ended

    pauses.actions[PausePoint.AFTER_WRITE_BEFORE_APPEND] = end_the_backend
    assert (await real.writer(pause=pauses).drain("run-1", by="ada")).ending == "run.applied"
    outcomes = [(e.operation_id, e.kind, e.attempt) for e in await real.events("run-1") if e.operation_id]
    assert outcomes == [(operation.operation_id, "operation.applied", 1) for operation in operations]


async def test_a_stop_order_reaches_a_running_worker(real: RealWriter) -> None:
    await real.commit("run-1", [manufacturer(f"maker-{number}") for number in range(4)])
    held = real.sandbox.faults.add(FaultRule(branch=real.branch, nth=2, hold="before-answer"))
    stop = asyncio.Event()
    real.changes["request_timeout"] = 5.0
    real.changes["lease_ttl"] = 20.0
    worker = asyncio.create_task(Worker([real.writer()]).run_until(stop))
    assert await asyncio.to_thread(held.wait_reached, 30.0)
    await real.ledger.submit_stop(await real.binding_id(), run_id="run-1", by="grace", reason="window closed")
    held.release()
    await until_true(lambda: _ended(real, "run.stopped"))
    stop.set()
    await worker
    stopped = await real.body("run-1", "run.stopped")
    assert stopped["by"] == "grace"
    assert stopped["last_ordinal"] < 3
    assert await real.ledger.open_orders(await real.binding_id()) == []


async def _ended(real: RealWriter, kind: str) -> bool:
    return kind in await real.kinds("run-1")


async def test_runs_committed_while_a_worker_runs_are_applied_in_order(real: RealWriter) -> None:
    stop = asyncio.Event()
    worker = asyncio.create_task(Worker([real.writer()]).run_until(stop))
    for number in range(3):
        await real.commit(f"run-{number}", [manufacturer(f"maker-{number}")], source=f"source-{number}")
    await until_true(lambda: _applied_all(real, 3))
    stop.set()
    await worker
    ended = [e.run_id for e in await real.events() if e.kind == "run.applied"]
    assert ended == ["run-0", "run-1", "run-2"]
    row = await real.ledger.binding(real.binding)
    assert row is not None
    assert row.lease_owner is None


async def _applied_all(real: RealWriter, count: int) -> bool:
    return [e.kind for e in await real.events()].count("run.applied") == count


@pytest.mark.rules("H27")
async def test_ff36_an_older_plan_after_a_newer_one_is_stale_unless_a_person_says_so(real: RealWriter) -> None:
    observed = await real.head()
    await real.commit("older", [manufacturer("Juniper", description="old")], position=observed)
    await real.commit("newer", [manufacturer("Juniper", description="new")], position=observed)
    binding_id = await real.binding_id()
    await real.ledger.submit_stop(binding_id, run_id="older", by="ada", reason="not yet")
    assert (await real.writer().drain("newer", by="ada")).ending == "run.applied"
    await real.ledger.submit_resume(binding_id, run_id="older", by="ada", reason="late", policy=Policy())
    outcome = await real.writer().drain("older", by="ada")
    assert [finding.name for finding in outcome.findings] == ["StalePlanError"]
    assert outcome.exit_code is ExitCode.STALE
    await real.ledger.submit_resume(
        binding_id, run_id="older", by="ada", reason="on purpose", policy=Policy(allow_stale=True)
    )
    assert (await real.writer().drain("older", by="ada")).ending == "run.applied"


@pytest.mark.rules("G1", "P102")
async def test_g01_what_is_stored_with_the_run_is_what_was_committed(real: RealWriter) -> None:
    operations = await real.commit("run-1", [manufacturer("Juniper"), gone_manufacturer("Old")])
    await real.writer().drain("run-1", by="ada")
    commit = await real.ledger.run_commit(await real.binding_id(), "run-1")
    assert commit is not None
    stored = [line async for line in real.ledger.stored_plan(commit.plan_checksum)]
    assert stored == [operation.line() for operation in operations]
    artifact = await real.ledger.stored_artifact(await real.binding_id(), "run-1")
    assert artifact is not None
    assert artifact.digest == commit.artifact_digest
    assert artifact.manifest == (real.root / "sync/run-1/plan/manifest.json").read_bytes()
