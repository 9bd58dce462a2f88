"""Answers that lie about what was written, and what the client says of them."""

from __future__ import annotations

import pytest

from consumers.infrahub import errors
from consumers.infrahub.own_ids import own_node_id
from consumers.infrahub.sandbox import RunningSandbox
from consumers.infrahub.sandbox.faults import FaultAnswer, FaultRule
from ledger.destination import OutcomeUnknownError, ProvenUnwrittenError
from ledger.plan.model import PlannedOperation
from tests.contract.write_surface.applying import apply, surface_of
from tests.contract.write_surface.conftest import Lab
from tests.support.operations import create, one, update
from tests.support.sandbox_schema import sandbox_schema
from tests.support.scripted_infrahub import RUN_ID

pytestmark = pytest.mark.contract

LYING = {
    FaultAnswer.DROP: errors.AnswerLostError,
    FaultAnswer.TRUNCATED: errors.AnswerLostError,
    FaultAnswer.TEXT_500: errors.DestinationFaultError,
    FaultAnswer.NOT_JSON: errors.UnreadableAnswerError,
    FaultAnswer.EMPTY_ERRORS: errors.ContradictoryAnswerError,
    FaultAnswer.NOT_OK: errors.UnconfirmedWriteError,
    FaultAnswer.OBJECT_NULL: errors.UnconfirmedWriteError,
    FaultAnswer.EMPTY_ID: errors.UnconfirmedWriteError,
    FaultAnswer.OTHER_ID: errors.OtherNodeError,
    FaultAnswer.DEFUNCT_CONNECTION: errors.DestinationFaultError,
    FaultAnswer.DATABASE_AWAY: errors.DestinationFaultError,
    FaultAnswer.SHED_429: errors.AdmissionShedError,
    FaultAnswer.UNAVAILABLE_503: errors.DestinationFaultError,
    FaultAnswer.UNAUTHORISED_401: errors.CredentialRejectedError,
    FaultAnswer.MERGE_IN_PROGRESS: errors.DestinationBusyError,
    FaultAnswer.MERGE_RECOVERY_REQUIRED: errors.DestinationBusyError,
}


def port() -> PlannedOperation:
    """A create of a kind keyed by a constraint alone."""
    identity = {"name": "p1", "device": {"peer_kind": "LabDevice", "identity": {"name": "sw1"}}}
    return create("LabPort", identity, {"name": "p1"}, one("device", "LabDevice", name="sw1"))


def with_device(lab: Lab) -> str:
    store = lab.sandbox.store
    return store.create("LabDevice", {"name": "sw1", "site": store.create("LabSite", {"name": "dc1"})})


def test_every_answer_that_the_sandbox_can_give_is_tried() -> None:
    assert set(LYING) == set(FaultAnswer) - {FaultAnswer.TRUE, FaultAnswer.TRUE_THEN_GONE}


@pytest.mark.rules("G5", "G6", "P127", "P128", "P130", "P131")
@pytest.mark.parametrize("written", [True, False], ids=["written", "not written"])
@pytest.mark.parametrize("answer", LYING, ids=str)
async def test_g05_an_answer_that_hides_what_happened_is_unknown(lab: Lab, answer: FaultAnswer, written: bool) -> None:
    node_id = lab.sandbox.store.create("LabSite", {"name": "dc1"})
    lab.sandbox.faults.add(FaultRule(answer=answer, write=written, count=None))
    operation = update("LabSite", {"name": "dc1"}, {"name": "dc1", "description": "new"}, destination_id=node_id)
    with pytest.raises(LYING[answer]) as caught:
        await apply(lab, operation, attempts=1)
    assert isinstance(caught.value, OutcomeUnknownError)
    assert not isinstance(caught.value, ProvenUnwrittenError)
    assert caught.value.sent is True
    (entry,) = lab.sandbox.journal.entries()
    assert entry.written is written


@pytest.mark.rules("G5")
async def test_g05_a_shed_request_is_sent_again_and_then_written_once(lab: Lab) -> None:
    lab.sandbox.faults.add(FaultRule(answer=FaultAnswer.SHED_429, count=2))
    (node_id,) = await apply(lab, create("LabSite", {"name": "dc1"}, {"name": "dc1"}), attempts=4)
    assert [entry.written for entry in lab.sandbox.journal.entries()] == [False, False, True]
    assert lab.sandbox.store.get(node_id) is not None


@pytest.mark.rules("G5")
async def test_g05_the_request_after_a_server_fault_is_not_lost(lab: Lab) -> None:
    lab.sandbox.faults.add(FaultRule(answer=FaultAnswer.TEXT_500))
    operation = create("LabSite", {"name": "dc1"}, {"name": "dc1"})
    async with surface_of(lab) as surface:
        peers = surface.new_peer_resolver()
        with pytest.raises(errors.DestinationFaultError):
            await surface.apply_planned_operation(operation=operation, peers=peers)
        await surface.apply_planned_operation(operation=operation, peers=peers)


@pytest.mark.rules("G5")
async def test_g05_the_operation_behind_a_large_one_is_not_lost(lab: Lab) -> None:
    """Behind such a write the server gives its connection up, and says so to nobody."""
    notes, device = "x" * 2_000_000, with_device(lab)
    large = update("LabDevice", {"name": "sw1"}, {"name": "sw1", "notes": notes}, destination_id=device)
    await apply(lab, large, create("LabSite", {"name": "b"}, {"name": "b", "asset": "b"}))
    assert [entry.written for entry in lab.sandbox.journal.entries()] == [True, True]


@pytest.mark.rules("G5")
async def test_g05_the_operation_behind_one_that_replaced_a_large_value_is_not_lost(lab: Lab) -> None:
    """The event of a write holds the old value too, whose size nobody here knows."""
    device = with_device(lab)
    lab.sandbox.faults.add(FaultRule(answer=FaultAnswer.TRUE_THEN_GONE))
    small = update("LabDevice", {"name": "sw1"}, {"name": "sw1", "notes": "small"}, destination_id=device)
    await apply(lab, small, create("LabSite", {"name": "b"}, {"name": "b", "asset": "b"}))
    assert [entry.written for entry in lab.sandbox.journal.entries()] == [True, True]


@pytest.mark.rules("G4", "G6", "G7", "P59")
async def test_g06_a_repeat_after_a_lost_answer_finds_its_own_create(lab: Lab) -> None:
    with_device(lab)
    operation = port()
    lab.sandbox.faults.add(FaultRule(answer=FaultAnswer.DROP, kind="LabPort"))
    with pytest.raises(errors.AnswerLostError):
        await apply(lab, operation)
    (node_id,) = await apply(lab, operation)
    expected = own_node_id(lab.settings().binding, run_id=RUN_ID, operation_id=operation.operation_id)
    assert node_id == expected
    assert lab.sandbox.store.count("LabPort") == 1


@pytest.mark.rules("P59", "G5")
async def test_g05_anothers_object_under_the_same_constraint_is_unknown(lab: Lab) -> None:
    lab.sandbox.store.create("LabPort", {"name": "p1", "device": with_device(lab)})
    operation = port()
    with pytest.raises(errors.UniquenessConflictError):
        await apply(lab, operation)
    with pytest.raises(errors.UniquenessConflictError):
        await apply(lab, operation, run_id="another-run")
    assert lab.sandbox.store.count("LabPort") == 1


@pytest.mark.rules("G5", "G6")
async def test_g05_an_own_create_that_was_deleted_since_is_not_called_applied(lab: Lab) -> None:
    with_device(lab)
    operation = port()
    (node_id,) = await apply(lab, operation)
    lab.sandbox.store.delete(node_id)
    with pytest.raises(errors.OwnIdElsewhereError):
        await apply(lab, operation)


@pytest.mark.rules("G5")
async def test_g05_a_wrong_token_and_an_unknown_branch_are_named(lab: Lab) -> None:
    operation = create("LabSite", {"name": "dc1"}, {"name": "dc1"})
    with pytest.raises(errors.DestinationReadError, match="token"):
        await apply(lab, operation, token="wrong")
    with pytest.raises(errors.DestinationReadError, match="branch"):
        await apply(lab, operation, branch="no-such-branch")


@pytest.mark.rules("G5", "G11", "P127", "P131")
async def test_g05_an_account_without_a_role_is_named_and_nothing_is_written() -> None:
    with RunningSandbox(sandbox_schema(), token="lab-token", reader_token="reader", seed="rights") as running:
        lab = Lab(running)
        with pytest.raises(errors.PermissionRefusedError, match="role"):
            await apply(lab, create("LabSite", {"name": "dc1"}, {"name": "dc1"}), token="reader")
        assert running.store.count("LabSite") == 0


@pytest.mark.rules("G5", "G11", "P127", "P131")
async def test_g05_a_merged_branch_is_named_and_takes_nothing(lab: Lab) -> None:
    lab.sandbox.store.create_branch("done")
    lab.sandbox.store.merge_branch("done")
    with pytest.raises(errors.BranchUnavailableError, match="merged branch"):
        await apply(lab, create("LabSite", {"name": "dc1"}, {"name": "dc1"}), branch="done")
    assert lab.sandbox.store.count("LabSite", branch="done") == 0


@pytest.mark.rules("P128")
async def test_a_server_that_works_on_behind_a_time_out_is_unknown(lab: Lab) -> None:
    fault = lab.sandbox.faults.add(FaultRule(hold="before-answer"))
    with pytest.raises(errors.AnswerLostError) as caught:
        await apply(lab, create("LabSite", {"name": "dc1"}, {"name": "dc1"}), request_timeout=0.5)
    fault.release()
    assert caught.value.sent is True
    assert lab.sandbox.store.count("LabSite") == 1
