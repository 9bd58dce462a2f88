"""FF38: what was done is known by run and operation with a recorded success, never by the operation's id alone."""

from __future__ import annotations

import asyncio

import pytest

from consumers.infrahub.sandbox import FaultAnswer, FaultRule
from ledger.store.errors import LeaseHeldError
from tests.support.inventory_operations import changed_manufacturer, device_type, manufacturer
from tests.support.real_writer import RealWriter

pytestmark = pytest.mark.integration

MAKER = "OrganizationManufacturer"


def described(real: RealWriter, name: str) -> str | None:
    """The description of a maker at the destination."""
    [values] = [row["values"] for row in real.content() if row["kind"] == MAKER and row["values"]["name"] == name]
    text: str | None = values["description"]
    return text


async def apply(real: RealWriter, run_id: str) -> str:
    return (await real.writer().drain(run_id, by="ada")).ending


@pytest.mark.rules("G7", "A54", "P112")
async def test_ff38_what_failed_before_runs_in_a_fresh_plan(real: RealWriter) -> None:
    [first] = await real.commit("run-1", [device_type("Juniper", "EX")])
    assert await apply(real, "run-1") == "run.failed"
    real.sandbox.store.create(MAKER, {"name": "Juniper"}, branch=real.branch)
    [again] = await real.commit("run-2", [device_type("Juniper", "EX")], position=await real.head())
    assert again.operation_id == first.operation_id
    assert await apply(real, "run-2") == "run.applied"
    assert len(real.sent()) == 1
    assert real.sandbox.store.count("DcimDeviceType", branch=real.branch) == 1


@pytest.mark.rules("G5", "G7", "A54")
@pytest.mark.parametrize("wrote", [True, False], ids=["written", "not written"])
async def test_ff38_what_was_in_doubt_before_runs_in_a_fresh_plan(real: RealWriter, wrote: bool) -> None:
    real.sandbox.faults.add(FaultRule(branch=real.branch, answer=FaultAnswer.DROP, write=wrote))
    await real.commit("run-1", [manufacturer("Juniper", description="text")])
    assert await apply(real, "run-1") == "run.interrupted"
    await real.commit("run-2", [manufacturer("Juniper", description="text")], position=await real.head())
    assert await apply(real, "run-2") == "run.applied"
    assert len(real.sent()) == 2
    assert real.sandbox.store.count(MAKER, branch=real.branch) == 1


@pytest.mark.rules("G7", "A54")
async def test_ff38_applied_then_edited_by_hand_then_planned_again(real: RealWriter) -> None:
    """The third run is the first one again, to the byte: the same plan checksum, and it runs."""
    node = real.sandbox.store.create(MAKER, {"name": "Juniper", "description": "before"}, branch=real.branch)
    checksums = []
    for number, text in enumerate(("wanted", "other", "wanted"), start=1):
        planned = changed_manufacturer("Juniper", node, description=text)
        await real.commit(f"run-{number}", [planned], position=await real.head())
        commit = await real.ledger.run_commit(await real.binding_id(), f"run-{number}")
        assert commit is not None
        checksums.append(commit.plan_checksum)
        assert await apply(real, f"run-{number}") == "run.applied"
        assert described(real, "Juniper") == text
        real.sandbox.store.update(node, {"description": "by hand"}, branch=real.branch)
    assert checksums[0] == checksums[2] != checksums[1]
    assert len(real.sent()) == 3
    operations = {event.operation_id for event in await real.events() if event.operation_id}
    assert len(operations) == 1


@pytest.mark.rules("G7")
async def test_ff38_delivered_twice_runs_once(real: RealWriter) -> None:
    """While it waits, while it runs, and when it is over."""
    real.changes.update(lease_ttl=30.0, request_timeout=20.0)
    await real.commit("run-1", [manufacturer("Juniper"), manufacturer("Cisco")])
    commit = await real.ledger.run_commit(await real.binding_id(), "run-1")
    assert commit is not None
    await asyncio.gather(*(real.submit(commit) for _ in range(5)))
    held = real.sandbox.faults.add(FaultRule(branch=real.branch, hold="before-answer"))
    running = asyncio.create_task(real.writer().drain("run-1", by="ada"))
    assert await asyncio.to_thread(held.wait_reached, 30.0)
    await real.submit(commit)
    with pytest.raises(LeaseHeldError):
        await real.writer().drain("run-1", by="grace")
    held.release()
    assert (await running).ending == "run.applied"
    for _ in range(2):
        await real.submit(commit)
        outcome = await real.writer().drain("run-1", by="ada")
        assert (outcome.ending, outcome.repeated) == ("run.applied", True)
    assert len(real.sent()) == 2
    assert (await real.kinds("run-1")).count("plan.committed") == 1
    assert await real.outcomes("run-1") == [(0, "applied", 1), (1, "applied", 1)]


@pytest.mark.rules("G7", "G5")
async def test_ff38_delivered_again_after_a_failure_is_not_sent_again_by_itself(real: RealWriter) -> None:
    """A repeated message is no decision of a person; a resume is one."""
    await real.commit("run-1", [manufacturer("Juniper"), manufacturer("Cisco")])
    real.sandbox.faults.add(FaultRule(branch=real.branch, answer=FaultAnswer.TEXT_500))
    assert await apply(real, "run-1") == "run.interrupted"
    commit = await real.ledger.run_commit(await real.binding_id(), "run-1")
    assert commit is not None
    await real.submit(commit)
    outcome = await real.writer().drain("run-1", by="ada")
    assert (outcome.ending, outcome.repeated, len(real.sent())) == ("run.interrupted", True, 1)
    await real.resume("run-1")
    assert await apply(real, "run-1") == "run.applied"
    assert len(real.sent()) == 3
