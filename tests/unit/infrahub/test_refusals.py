"""What the write surface refuses before it sends anything, and that each refusal is a proof."""

from __future__ import annotations

from typing import Any

import pytest

from consumers.infrahub import refusals
from consumers.infrahub.operation_checks import refuse_faults
from consumers.infrahub.refusals import OperationRefusedError, refusal
from ledger.destination import ProvenUnwrittenError
from ledger.errors import ApplyLedgerError
from ledger.exit_codes import ExitCode
from ledger.plan import errors as planning
from ledger.plan.keying import check_key_coverage, check_key_values
from ledger.plan.model import PlannedOperation
from tests.support.lab_schema import lab_schema
from tests.support.operations import create, delete, one, update
from tests.support.scripted_infrahub import ScriptedInfrahub, applied, open_surface


def device(**payload: Any) -> PlannedOperation:
    return update("LabDevice", {"name": "sw1"}, {"name": "sw1", **payload}, destination_id="d-1")


def unchecked(**payload: Any) -> PlannedOperation:
    """An operation that went around its model's own checks."""
    return device().model_copy(update={"payload": {"name": "sw1", **payload}})


REFUSED: list[tuple[PlannedOperation, type[ApplyLedgerError]]] = [
    (create("LabRack", {"name": "r1"}, {"name": "r1"}), planning.UnkeyedCreateRefusedError),
    (
        create("LabRack", {"name": "r1"}, {"name": "r1"}, one("site", "LabSite", name="dc1")),
        planning.UnkeyedCreateRefusedError,
    ),
    (create("LabNote", {"text": "a"}, {"text": "a"}), planning.UnkeyedCreateRefusedError),
    (
        create("LabVlan", {"vid": 7}, {"vid": 7}, one("place", "LabSite", name="dc1")),
        planning.UnkeyedCreateRefusedError,
    ),
    (create("LabSite", {"name": ""}, {"name": ""}), planning.UnaccountedIdentityComponentError),
    (create("LabSite", {"name": " "}, {"name": " "}), planning.UnaccountedIdentityComponentError),
    (
        create(
            "LabRack",
            {"name": "r1", "site": {"peer_kind": "LabSite", "identity": {"name": ""}}},
            {"name": "r1"},
            one("site", "LabSite", name=""),
        ),
        planning.UnaccountedIdentityComponentError,
    ),
    (device(site=None), planning.NullRelationshipValueError),
    (create("LabDevice", {"name": "a"}, {"name": "a", "site": None}), planning.NullRelationshipValueError),
    (device(descripton="x"), planning.SchemaMismatchError),
    (device(serial="x"), planning.SchemaMismatchError),
    (device(mtu="9000"), planning.SchemaMismatchError),
    (device(mtu=True), planning.SchemaMismatchError),
    (device(mtu=1.0), planning.SchemaMismatchError),
    (device(mtu=2**63), planning.SchemaMismatchError),
    (device(description="NULL"), planning.SchemaMismatchError),
    (device(description={"from_pool": {"id": "p"}}), planning.SchemaMismatchError),
    (
        update("LabVlan", {"name": "a"}, {"name": "a", "vid": None}, destination_id="v-1"),
        planning.SchemaMismatchError,
    ),
    (device(rack="r-1"), planning.SchemaMismatchError),
    (unchecked(extra={"x": float("nan")}), planning.UnserializablePayloadValueError),
    (unchecked(description="a\x00b"), planning.UnserializablePayloadValueError),
    (unchecked(description="\ud800"), planning.UnserializablePayloadValueError),
    (device(secret="pa55word"), planning.SecretValueRefusedError),
    (update("LabGone", {"name": "a"}, {"name": "a"}, destination_id="x"), planning.SchemaMismatchError),
    (create("LabPlace", {"name": "a"}, {"name": "a"}), planning.SchemaMismatchError),
    (update("LabSite", {"name": "a"}, {"name": "a"}, destination_id=None), refusals.UnkeyedUpdateRefusedError),
    (delete("LabSite", {"name": "a"}), refusals.ActionNeverDispatchedError),
]


@pytest.mark.rules("P21", "P22", "P29", "P63", "P65", "P66", "P92", "P105", "P132", "P145", "G5", "G11")
@pytest.mark.parametrize(("operation", "expected"), REFUSED, ids=lambda value: getattr(value, "__name__", None))
async def test_g05_a_refusal_sends_nothing_and_is_both_its_own_class_and_a_proof(
    operation: PlannedOperation, expected: type[ApplyLedgerError]
) -> None:
    server = ScriptedInfrahub()
    async with open_surface(server) as surface:
        with pytest.raises(expected) as caught:
            await surface.apply_planned_operation(operation=operation, peers=surface.new_peer_resolver())
    assert server.sent == []
    assert isinstance(caught.value, ProvenUnwrittenError)
    assert type(caught.value).__name__ == expected.__name__
    assert caught.value.exit_code is ExitCode.STOPPED_UNWRITTEN
    assert all((caught.value.checked, caught.value.expected, caught.value.found, caught.value.next_action))
    assert operation.operation_id in caught.value.checked
    assert "pa55word" not in str(caught.value)


@pytest.mark.rules("P63", "P30")
@pytest.mark.parametrize(
    "operation",
    [
        operation
        for operation, expected in REFUSED
        if expected in (planning.UnkeyedCreateRefusedError, planning.UnaccountedIdentityComponentError)
    ],
)
def test_planning_refuses_for_the_same_reason_in_the_same_words(operation: PlannedOperation) -> None:
    schema = lab_schema()
    kind = schema.kinds[operation.kind]
    with pytest.raises(planning.PlanArtifactError) as planned:
        check_key_coverage(operation, kind)
        check_key_values(operation, kind)
    with pytest.raises(OperationRefusedError) as written:
        refuse_faults(operation, kind, schema)
    assert isinstance(written.value, type(planned.value))
    assert written.value.findings[0] == planned.value.findings[0]


@pytest.mark.rules("G11")
async def test_g11_every_fault_of_an_operation_is_named() -> None:
    async with open_surface(ScriptedInfrahub()) as surface:
        with pytest.raises(OperationRefusedError) as caught:
            await surface.apply_planned_operation(
                operation=device(mtu="x", serial="y", colour="z"), peers=surface.new_peer_resolver()
            )
    assert len(caught.value.findings) == 3
    assert all(name in caught.value.found + caught.value.checked for name in ("mtu", "serial", "colour"))


@pytest.mark.rules("P31")
async def test_an_update_may_leave_out_its_key() -> None:
    server = ScriptedInfrahub()
    server.will_answer(applied("LabRackUpsert", "r-1"))
    async with open_surface(server) as surface:
        operation = update("LabRack", {"name": "r1"}, {"name": "r1"}, destination_id="r-1")
        await surface.apply_planned_operation(operation=operation, peers=surface.new_peer_resolver())
    assert len(server.mutations) == 1


@pytest.mark.rules("P132")
def test_a_fault_without_a_form_of_its_own_keeps_its_name() -> None:
    class NewFault(ApplyLedgerError):
        """A refusal that planning may get later."""

    raised = refusal([NewFault(checked="a", expected="b", found="c", next_action="d")], operation_id="a")
    assert isinstance(raised, ProvenUnwrittenError)
    assert [finding.name for finding in raised.findings] == ["NewFault"]


@pytest.mark.rules("P132", "P63")
def test_every_form_is_named_like_the_planning_error_it_is() -> None:
    forms = [
        form
        for form in vars(refusals).values()
        if isinstance(form, type) and issubclass(form, planning.PlanArtifactError)
    ]
    assert len(forms) == 7
    for form in forms:
        planned = getattr(planning, form.__name__)
        assert issubclass(form, planned)
        assert issubclass(form, ProvenUnwrittenError)
        fault = planned(checked="a", expected="b", found="c", next_action="d")
        raised: object = refusal([fault], operation_id="a")
        assert type(raised) is form
