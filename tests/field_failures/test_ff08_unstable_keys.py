"""FF08: a key that is another one each time matches nothing, and a thing of the same name is not the thing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from consumers.infrahub.errors import PeerAmbiguousError
from ledger.commit import Policy
from ledger.exit_codes import ExitCode
from ledger.plan.model import PlannedOperation
from producers.errors import MappingRefusedError, PlanRefusedError
from tests.support.operations import create, one
from tests.support.planning import Rows, entry, mapped
from tests.support.whole_path import WholePath, names, operations

TAGS = entry("LabTag", "tags", ["name"], mapped("name"))
UNITS = entry("LabUnit", "units", ["number", "live"], mapped("number"), mapped("live"))
LEASES = entry("LabLease", "leases", ["slot"], mapped("slot"), mapped("name"))
STATES = entry("LabState", "states", ["name"], mapped("name"))
COUNTRIES = entry("LabCountry", "countries", ["name"], mapped("name"))
PLUGS = entry("LabPlug", "plugs", ["name"], mapped("name"), mapped("area", "area", "LabArea"))
FROM_POOL = {"from_pool": "a-pool"}


@pytest.mark.rules("P44", "P48", "P56", "G11")
@pytest.mark.parametrize(
    ("mapping", "rows", "found"),
    [
        (UNITS, {"units": [{"id": 1, "number": FROM_POOL, "live": True}]}, "a value from a pool"),
        (LEASES, {"leases": [{"id": 1, "slot": FROM_POOL}]}, "a value from a pool"),
        (LEASES, {"leases": [{"id": 1, "slot": 7}]}, "comes from a pool"),
        (
            entry("LabDerived", "rows", ["name"], mapped("name")),
            {"rows": [{"id": 1, "name": "x"}]},
            "slug__value is read-only",
        ),
    ],
    ids=["a part from a pool", "a pool attribute", "a number for a pool attribute", "a read-only part"],
)
async def test_ff08_a_key_that_no_create_can_supply_is_refused_when_planned(
    lab: WholePath, mapping: dict[str, Any], rows: Rows, found: str
) -> None:
    with pytest.raises(PlanRefusedError) as caught:
        await lab.plan(rows, [mapping])
    assert caught.value.exit_code is ExitCode.REFUSED
    assert set(names(caught.value)) <= {"UnkeyedCreateRefusedError", "SchemaMismatchError"}
    assert found in str(caught.value)
    assert lab.saved_plans() == []


@pytest.mark.rules("C31", "G11")
async def test_ff08_a_mapping_onto_a_computed_key_is_refused_before_anything_is_read(lab: WholePath) -> None:
    mapping = entry("LabDerived", "rows", ["slug"], mapped("slug"), mapped("name"))
    with pytest.raises(MappingRefusedError, match="read-only"):
        await lab.plan({"rows": [{"id": 1, "slug": "x"}]}, [mapping])
    assert lab.saved_plans() == []


def pooled(kind: str, identity: dict[str, Any]) -> PlannedOperation:
    return create(kind, identity, dict(identity))


HAND_MADE = {
    "a part from a pool": (pooled("LabUnit", {"number": FROM_POOL, "live": True}), "number__value comes from a pool"),
    "a pool attribute": (pooled("LabLease", {"slot": FROM_POOL}), "slot__value comes from a pool"),
    "a number for a pool attribute": (pooled("LabLease", {"slot": 7}), "slot__value comes from a pool"),
    "a read-only part": (pooled("LabDerived", {"slug": "x"}), "slug__value is read-only"),
}


@pytest.mark.rules("P44", "P48", "P52", "P60", "G11")
async def test_ff08_a_hand_made_plan_with_such_keys_is_refused_whole(lab: WholePath) -> None:
    outcome = await lab.apply(lab.hand_made(*(operation for operation, _ in HAND_MADE.values())))
    assert outcome.exit_code is ExitCode.REFUSED
    for operation, words in HAND_MADE.values():
        told = [finding for finding in outcome.findings if operation.operation_id in finding.checked]
        assert any(words in finding.found for finding in told), operation
    assert (lab.operation_events(), lab.mutations()) == ([], [])


@pytest.mark.rules("A49", "H30")
async def test_ff08_a_sibling_of_the_same_name_is_another_object(lab: WholePath) -> None:
    country = lab.add("LabCountry", name="Georgia")
    (planned,) = await lab.converge({"states": [{"id": 1, "name": "Georgia"}]}, [STATES])
    assert (planned.action, planned.kind) == ("create", "LabState")
    assert (lab.count("LabState"), lab.count("LabCountry"), lab.count("LabArea")) == (1, 1, 2)
    assert lab.mutations()[0].object_id != country


@pytest.mark.rules("A49", "A50", "A51", "G11")
async def test_ff08_a_reference_that_two_siblings_answer_to_is_refused_with_both(lab: WholePath) -> None:
    both: Rows = {name: [{"id": 1, "name": "Georgia"}] for name in ("states", "countries")}
    rows: Rows = {**both, "plugs": [{"id": 1, "name": "p", "area": "Georgia"}]}
    with pytest.raises(PlanRefusedError) as caught:
        await lab.plan(rows, [STATES, COUNTRIES, PLUGS])
    assert names(caught.value) == ["UnresolvedReferenceError"]
    assert all(f'{kind}(name="Georgia")' in str(caught.value) for kind in ("LabState", "LabCountry"))
    # of one of them alone the reference means that one, whatever else the destination has
    lab.add("LabCountry", name="Georgia")
    planned = await lab.converge({**rows, "countries": []}, [STATES, PLUGS])
    assert [operation.kind for operation in planned] == ["LabState", "LabPlug"]


@pytest.mark.rules("P79", "P81", "G5")
async def test_ff08_a_look_up_among_siblings_finds_exactly_one_or_says_how_many(lab: WholePath) -> None:
    plug = create("LabPlug", {"name": "p"}, {"name": "p"}, one("area", "LabArea", name="Georgia"))
    outcome = await lab.apply(lab.hand_made(plug))
    assert outcome.exit_code is ExitCode.REFUSED  # a generic is no kind of peer that a plan may name
    assert "a concrete kind of peer" in outcome.findings[0].expected
    async with lab.resolver() as resolver:
        wanted: dict[str, Any] = {"peer_kind": "LabArea", "identity": {"name": "Georgia"}}
        wanted["referring_operation_id"] = plug.operation_id
        state = lab.add("LabState", name="Georgia")
        assert await resolver.resolve(**wanted) == state
    lab.add("LabCountry", name="Georgia")
    async with lab.resolver() as resolver:
        with pytest.raises(PeerAmbiguousError, match=plug.operation_id):
            await resolver.resolve(**wanted)
    assert lab.mutations() == []


@pytest.mark.rules("A65", "P102", "G5")
async def test_ff08_a_plan_of_one_branch_is_not_applied_to_another(lab: WholePath, tmp_path: Path) -> None:
    run = await lab.plan({"tags": [{"id": 1, "name": "only here"}]}, [TAGS])
    lab.sandbox.store.create_branch(f"{lab.branch}-twin")
    twin = WholePath(tmp_path, lab.sandbox, f"{lab.branch}-twin")
    outcome = await twin.apply(run)
    assert outcome.exit_code is ExitCode.REFUSED
    assert [finding.name for finding in outcome.findings] == ["DestinationBindingMismatchError"]
    assert all(branch in str(outcome.findings[0]) for branch in (f"[{lab.branch}]", f"[{twin.branch}]"))
    assert (twin.operation_events(), twin.mutations()) == ([], [])
    # a person may say so by name
    again = WholePath(tmp_path, lab.sandbox, twin.branch)
    assert (await again.apply(run, policy=Policy(allow_destination_change=True))).exit_code is ExitCode.DONE
    assert (twin.count("LabTag"), lab.count("LabTag")) == (1, 0)
    assert len(operations(run)) == 1
