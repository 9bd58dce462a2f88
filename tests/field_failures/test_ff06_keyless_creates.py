"""FF06: a create without its whole key reaches no wire: planner, gate and write surface each refuse it alone."""

from __future__ import annotations

from typing import Any

import pytest

from consumers.infrahub.refusals import UnaccountedIdentityComponentError, UnkeyedCreateRefusedError
from ledger.destination import ProvenUnwrittenError
from ledger.exit_codes import ExitCode
from ledger.plan.model import PlannedOperation
from producers.errors import PlanRefusedError
from tests.support.operations import create, one
from tests.support.planning import Rows, entry, mapped
from tests.support.whole_path import WholePath, names, operations

SITES = entry("LabSite", "sites", ["name"], mapped("name"), mapped("asset"))
ROOMS = entry("LabRoom", "rooms", ["name", "site"], mapped("name"), mapped("site", "site", "LabSite"))
UNITS = entry("LabUnit", "units", ["number", "live"], mapped("number"), mapped("live"), mapped("notes"))
DC1 = {"identity": {"name": "dc1"}, "peer_kind": "LabSite"}


def rooms(*rows: dict[str, Any]) -> Rows:
    return {
        "sites": [{"id": 1, "name": "dc1", "asset": "1"}],
        "rooms": [{"id": number, **row} for number, row in enumerate(rows)],
    }


def room(name: Any, /, **peer: Any) -> PlannedOperation:
    """A create of a room as a stranger's plan may have it."""
    identity = {"name": name, "site": {"identity": peer, "peer_kind": "LabSite"}}
    return create("LabRoom", identity, {"name": name}, one("site", "LabSite", **peer))


KEYLESS: dict[str, tuple[PlannedOperation, type[ProvenUnwrittenError], str]] = {
    "absent": (create("LabRoom", {"name": "r"}, {"name": "r"}), UnkeyedCreateRefusedError, "site__name__value"),
    "empty": (room("", name="dc1"), UnaccountedIdentityComponentError, "name__value is empty"),
    "blank": (room(" \t ", name="dc1"), UnaccountedIdentityComponentError, "name__value is blank"),
    "null": (room(None, name="dc1"), UnaccountedIdentityComponentError, "name__value is null"),
    "empty peer": (room("r1", name=""), UnaccountedIdentityComponentError, "site__name__value is empty"),
    "blank peer": (room("r2", name="\u2003"), UnaccountedIdentityComponentError, "site__name__value is blank"),
    "null peer": (room("r3", name=None), UnaccountedIdentityComponentError, "site__name__value is null"),
    "peer without the part": (room("r4", asset="1"), UnaccountedIdentityComponentError, "has no name"),
    "no key at all": (create("LabLog", {"name": "x"}, {"name": "x"}), UnkeyedCreateRefusedError, "neither"),
}


@pytest.mark.rules("P21", "P56", "P58", "G5", "G11")
async def test_ff06_planning_refuses_each_row_that_lacks_a_part_and_names_the_part(lab: WholePath) -> None:
    lacking: list[tuple[dict[str, Any], str]] = [
        ({"name": "r"}, "site is absent"),
        ({"name": "r", "site": None}, "site is null"),
        ({"site": "dc1"}, "name is absent"),
        ({"name": None, "site": "dc1"}, "name is null"),
        ({"name": "", "site": "dc1"}, "name is blank"),
        ({"name": "   ", "site": "dc1"}, "name is blank"),
        ({"name": None}, "name is null, site is absent"),
    ]
    with pytest.raises(PlanRefusedError) as caught:
        await lab.plan(rooms(*(row for row, _ in lacking)), [SITES, ROOMS])
    assert caught.value.exit_code is ExitCode.REFUSED
    assert names(caught.value) == ["UnkeyedCreateRefusedError"] * len(lacking)
    assert [finding.found for finding in caught.value.findings] == [part for _, part in lacking]
    assert all(f"id {number}" in f.checked for number, f in enumerate(caught.value.findings))
    assert lab.saved_plans() == []


@pytest.mark.rules("P21", "P45", "P57", "G11")
@pytest.mark.parametrize(
    ("mapping", "rows", "found"),
    [
        (entry("LabRoom", "rooms", ["name"], mapped("name")), rooms({"name": "r"}), "site__name__value"),
        (entry("LabLog", "rooms", ["name"], mapped("name")), rooms({"name": "r"}), "neither"),
        (entry("LabPort", "rooms", ["name"], mapped("name")), rooms({"name": "r"}), "device"),
    ],
    ids=["identifiers that leave a part out", "a kind without any key", "a constraint that is not covered"],
)
async def test_ff06_planning_refuses_identifiers_that_cover_no_key(
    lab: WholePath, mapping: dict[str, Any], rows: Rows, found: str
) -> None:
    with pytest.raises(PlanRefusedError) as caught:
        await lab.plan(rows, [mapping])
    assert "UnkeyedCreateRefusedError" in names(caught.value)
    assert found in str(caught.value)
    assert lab.saved_plans() == []


@pytest.mark.rules("P22", "P46", "P50", "P52", "P60", "G5", "G11")
async def test_ff06_the_gate_names_every_such_operation_and_part_and_nothing_is_written(lab: WholePath) -> None:
    lab.add("LabSite", name="dc1")
    before = lab.content()
    good = room("good", name="dc1")
    outcome = await lab.apply(lab.hand_made(good, *(operation for operation, _, _ in KEYLESS.values())))
    assert (outcome.ending, outcome.exit_code) == ("plan.refused", ExitCode.REFUSED)
    for operation, refusal, words in KEYLESS.values():
        told = [f for f in outcome.findings if operation.operation_id in f.checked and f.name == refusal.__name__]
        assert len(told) == 1, operation
        assert words in told[0].found
    assert not any(good.operation_id in finding.checked for finding in outcome.findings)
    assert (lab.operation_events(), lab.mutations(), lab.content()) == ([], [], before)


@pytest.mark.rules("P22", "P46", "P65", "P132", "G5")
@pytest.mark.parametrize("case", KEYLESS)
async def test_ff06_the_write_surface_refuses_it_alone_and_proves_that_nothing_was_written(
    lab: WholePath, case: str
) -> None:
    lab.add("LabSite", name="dc1")
    operation, refusal, words = KEYLESS[case]
    with pytest.raises(refusal) as caught:
        await lab.write_alone(operation)
    assert isinstance(caught.value, ProvenUnwrittenError)
    assert words in caught.value.found
    assert lab.mutations() == []


@pytest.mark.rules("P47", "P36", "H30")
async def test_ff06_zero_and_false_are_values_and_a_second_apply_adds_nothing(lab: WholePath) -> None:
    keys = [(0, False), (0, True), (7, False)]
    rows: Rows = {"units": [{"id": n, "number": number, "live": live} for n, (number, live) in enumerate(keys)]}
    planned = await lab.converge(rows, [UNITS])
    assert {operation.action for operation in planned} == {"create"}
    # the same operations as another run: the destination matches each of them
    assert (await lab.apply(lab.hand_made(*planned))).exit_code is ExitCode.DONE
    assert (lab.count("LabUnit"), len(lab.mutations())) == (3, 6)


@pytest.mark.rules("P36", "P47")
async def test_ff06_a_name_that_cannot_be_seen_is_a_name_and_is_matched_again(lab: WholePath) -> None:
    given = ["\u200b", "r\u200b", "\ufeff", "0", "false", "None"]
    planned = await lab.converge(rooms(*({"name": name, "site": "dc1"} for name in given)), [SITES, ROOMS])
    assert (await lab.apply(lab.hand_made(*planned))).exit_code is ExitCode.DONE
    assert (lab.count("LabRoom"), lab.count("LabSite")) == (len(given), 1)
    assert all(lab.values("LabRoom", name=name)["name"] == name for name in given)


@pytest.mark.rules("P59", "G7")
async def test_ff06_a_kind_that_the_destination_cannot_match_is_not_doubled_either(lab: WholePath) -> None:
    lab.add("LabDevice", name="sw1", site=lab.add("LabSite", name="dc1"))
    identity = {"name": "p1", "device": {"identity": {"name": "sw1"}, "peer_kind": "LabDevice"}}
    port = create("LabPort", identity, {"name": "p1"}, one("device", "LabDevice", name="sw1"))
    first = lab.hand_made(port)
    assert (await lab.apply(first)).exit_code is ExitCode.DONE
    assert (await lab.apply(first)).repeated
    another = await lab.apply(lab.hand_made(port))
    assert another.exit_code is ExitCode.STOPPED_MAYBE_WRITTEN
    assert lab.events("operation.unknown")[0]["error"] == "UniquenessConflictError"
    assert lab.count("LabPort") == 1


async def test_ff06_operations_of_the_planner_are_those_that_the_gate_admits(lab: WholePath) -> None:
    run = await lab.plan(rooms({"name": "r", "site": "dc1"}), [SITES, ROOMS])
    assert [operation.kind for operation in operations(run)] == ["LabSite", "LabRoom"]
    assert (await lab.apply(run)).exit_code is ExitCode.DONE
