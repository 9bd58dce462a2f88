"""What an audit says of outcomes that a writer of ours would not have recorded: each is found by its level (G3)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ledger.audit import Level
from tests.support.audit_reports import audited, failed
from tests.support.recorded_runs import Recorder, make_plan

pytestmark = pytest.mark.integration


@pytest.mark.rules("G3", "P114", "P147")
async def test_g03_an_applied_run_that_is_not_whole_is_found(recording: Recorder, ledger_dsns: dict[str, str]) -> None:
    plan = make_plan("run-5", creates=3, deletes=0)
    await recording.commit(plan)
    await recording.started(plan)
    await recording.outcome(plan, 0, "applied")
    await recording.ended(plan, "run.applied")

    report = await audited(ledger_dsns)
    assert failed(report) == {Level.OUTCOMES}
    assert (report.findings[0].expected, report.findings[0].found) == ("3 operations applied or skipped", "1")


@pytest.mark.rules("P111", "P145", "G3")
async def test_g03_a_recorded_delete_that_was_applied_is_found(
    recording: Recorder, ledger_dsns: dict[str, str]
) -> None:
    plan = make_plan("run-5", creates=0, deletes=1)
    await recording.commit(plan)
    await recording.started(plan)
    await recording.outcome(plan, 0, "applied")

    assert failed(await audited(ledger_dsns)) == {Level.OUTCOMES}


@pytest.mark.rules("P112", "P120", "P127", "G3")
@pytest.mark.parametrize("ordinals", [(1, 0), (0, 2), (1,)], ids=["backwards", "one passed over", "not the first"])
async def test_g03_outcomes_out_of_the_stored_order_are_found(
    recording: Recorder, ledger_dsns: dict[str, str], ordinals: tuple[int, ...]
) -> None:
    plan = make_plan("run-5", creates=3, deletes=0)
    await recording.commit(plan)
    await recording.started(plan)
    for ordinal in ordinals:
        await recording.outcome(plan, ordinal, "applied")

    assert failed(await audited(ledger_dsns)) == {Level.OUTCOMES}


@pytest.mark.rules("P112", "P127", "G3")
async def test_g03_going_on_behind_a_failed_operation_is_found(
    recording: Recorder, ledger_dsns: dict[str, str]
) -> None:
    plan = make_plan("run-5", creates=3, deletes=0)
    await recording.commit(plan)
    await recording.started(plan)
    await recording.outcome(plan, 0, "failed")
    await recording.outcome(plan, 1, "applied")

    assert failed(await audited(ledger_dsns)) == {Level.OUTCOMES}


@pytest.mark.rules("G3")
async def test_g03_an_outcome_of_an_operation_that_is_not_the_plans_is_found(
    recording: Recorder, ledger_dsns: dict[str, str]
) -> None:
    plan, other = make_plan("run-5", creates=1, deletes=0), make_plan("run-5", creates=4, deletes=0)
    await recording.commit(plan)
    await recording.started(plan)
    await recording.outcome(plan, 0, "applied")
    await recording.outcome(other, 3, "applied")

    assert failed(await audited(ledger_dsns)) == {Level.OUTCOMES}


@pytest.mark.rules("P120", "G3")
async def test_g03_outcomes_that_changed_their_operations_are_found(
    recording: Recorder, ledger_dsns: dict[str, str]
) -> None:
    plan = make_plan("run-5", creates=2, deletes=0)
    swapped = replace(plan, operations=tuple(reversed(plan.operations)))
    await recording.commit(plan)
    await recording.started(plan)
    await recording.outcome(swapped, 0, "applied")
    await recording.outcome(swapped, 1, "applied")

    assert failed(await audited(ledger_dsns)) == {Level.OUTCOMES}


@pytest.mark.rules("G3", "G7")
async def test_g03_an_outcome_behind_a_success_is_found(recording: Recorder, ledger_dsns: dict[str, str]) -> None:
    plan = make_plan("run-5", creates=1, deletes=0)
    await recording.commit(plan)
    await recording.started(plan)
    await recording.outcome(plan, 0, "applied")
    await recording.outcome(plan, 0, "failed", attempt=2)

    assert failed(await audited(ledger_dsns)) == {Level.OUTCOMES}


@pytest.mark.rules("G1", "G8")
async def test_g01_another_manifest_than_the_committed_one_is_found(
    recording: Recorder, ledger_dsns: dict[str, str]
) -> None:
    plan = make_plan("run-5", creates=1, deletes=0)
    await recording.commit(plan, store=False)
    # The same plan and checksum; only the raw bytes, which the commit's digest covers, are others.
    await recording.store(replace(plan, manifest=plan.manifest + b" "))

    assert failed(await audited(ledger_dsns)) == {Level.PLANS}


async def test_a_run_that_was_never_verified_is_told_as_not_checked(
    recording: Recorder, ledger_dsns: dict[str, str]
) -> None:
    await recording.commit(make_plan("run-5"), store=False)

    report = await audited(ledger_dsns)
    assert report.holds
    assert report.level(Level.PLANS).unchecked == ["run run-5: never verified, so no plan was stored"]


@pytest.mark.rules("G8")
async def test_g08_a_run_with_outcomes_and_without_its_plan_is_found(
    recording: Recorder, ledger_dsns: dict[str, str]
) -> None:
    plan = make_plan("run-5", creates=9)
    await recording.commit(plan, store=False)
    await recording.started(plan)

    assert failed(await audited(ledger_dsns)) == {Level.PLANS}
