"""FF07: the source tells apart what the destination does not: one create would land on another object."""

from __future__ import annotations

from typing import Any

import pytest

from ledger.exit_codes import ExitCode
from ledger.plan.model import PlannedOperation
from producers.errors import PlanRefusedError
from tests.support.operations import create, one, update
from tests.support.planning import Rows, entry, mapped
from tests.support.whole_path import WholePath, names

SITES = entry("LabSite", "sites", ["name"], mapped("name"), mapped("asset"))
# the source knows a device by name and site, the destination by its name alone
DEVICES = entry(
    "LabDevice", "devices", ["name", "site"], *map(mapped, ("name", "notes")), mapped("site", "site", "LabSite")
)
SERVERS = entry("LabServer", "servers", ["name"], mapped("name"), mapped("serial"))
ROUTERS = entry("LabRouter", "routers", ["name"], mapped("name"), mapped("serial"))
RACKS = entry(
    "LabRack", "racks", ["name", "site"], mapped("name"), {"name": "site", "static": "dc1", "reference": "LabSite"}
)
HOSTS = entry("LabHost", "hosts", ["address"], mapped("address"), mapped("notes"))
BOTH_SITES = [{"id": 1, "name": "dc1", "asset": "1"}, {"id": 2, "name": "dc2", "asset": "2"}]


def devices(*rows: dict[str, Any]) -> Rows:
    return {"sites": BOTH_SITES, "devices": [{"id": n, "name": "r1", **row} for n, row in enumerate(rows)]}


def sites(lab: WholePath) -> dict[str, str]:
    return {name: lab.add("LabSite", name=name, asset=name[-1]) for name in ("dc1", "dc2")}


async def refused(lab: WholePath, rows: Rows, *mapping: dict[str, Any]) -> PlanRefusedError:
    """The plan is refused for collisions alone, and leaves the destination as it was."""
    before = lab.content()
    with pytest.raises(PlanRefusedError) as caught:
        await lab.plan(rows, mapping)
    assert caught.value.exit_code is ExitCode.REFUSED
    assert set(names(caught.value)) == {"DestinationIdentityCollisionError"}
    assert (lab.saved_plans(), lab.mutations(), lab.content()) == ([], [], before)
    return caught.value


def both_named(error: PlanRefusedError, *words: str) -> bool:
    return any(all(word in str(finding) for word in words) for finding in error.findings)


R1_AT_DC1 = 'LabDevice(name="r1", site=LabSite(name="dc1"))'
R1_AT_DC2 = 'LabDevice(name="r1", site=LabSite(name="dc2"))'


@pytest.mark.rules("P61", "G5", "G11")
async def test_ff07_two_creates_of_one_destination_key_are_refused_with_both_sides(lab: WholePath) -> None:
    error = await refused(lab, devices({"site": "dc1"}, {"site": "dc2"}), SITES, DEVICES)
    assert both_named(error, R1_AT_DC1, R1_AT_DC2, "created by this plan", "site does not count there")


@pytest.mark.rules("P61", "P62", "G5", "G11")
@pytest.mark.parametrize("other", ["unchanged", "updated by this plan", "only at the destination"])
async def test_ff07_a_create_on_the_object_of_another_record_is_refused_with_both_sides(
    lab: WholePath, other: str
) -> None:
    lab.add("LabDevice", name="r1", site=sites(lab)["dc1"], notes="as it is")
    held = {"unchanged": {"site": "dc1"}, "updated by this plan": {"site": "dc1", "notes": "new"}}
    rows = [held[other]] if other in held else []
    error = await refused(lab, devices(*rows, {"site": "dc2"}), SITES, DEVICES)
    assert both_named(error, R1_AT_DC1, f"[{other}]", R1_AT_DC2, "[created by this plan]", "site does not count there")


@pytest.mark.rules("P61", "G11")
async def test_ff07_left_out_on_demand_the_others_are_planned_and_the_object_stays(lab: WholePath) -> None:
    lab.add("LabDevice", name="r1", site=sites(lab)["dc1"])
    rows = devices({"site": "dc1"}, {"site": "dc2"}, {"site": "dc2", "name": "r2"})
    run = await lab.plan(rows, [SITES, DEVICES], continue_on_error=True)
    assert run.counts == {"create": 1, "update": 0, "remove": 0, "skip": 1, "none": 3}
    assert (await lab.apply(run)).exit_code is ExitCode.DONE
    assert lab.count("LabDevice") == 2


async def test_ff07_two_devices_of_two_names_are_two(lab: WholePath) -> None:
    await lab.converge(devices({"site": "dc1"}, {"site": "dc2", "name": "R1"}), [SITES, DEVICES])
    assert lab.count("LabDevice") == 2


SERIALS: dict[str, tuple[Rows, list[dict[str, Any]], list[tuple[str, str, str]], str]] = {
    "one kind": (
        {"servers": [{"id": n, "name": n, "serial": "S"} for n in "ab"]},
        [SERVERS],
        [],
        'LabServer(name="b")',
    ),
    "two kinds of one generic": (
        {"servers": [{"id": 1, "name": "a", "serial": "S"}], "routers": [{"id": 1, "name": "b", "serial": "S"}]},
        [SERVERS, ROUTERS],
        [],
        'LabRouter(name="b")',
    ),
    "an object of the sibling kind": (
        {"servers": [{"id": 1, "name": "a", "serial": "S"}], "routers": []},
        [SERVERS, ROUTERS],
        [("LabRouter", "there", "S")],
        'LabRouter(name="there")',
    ),
    "an object of a sibling kind that nobody maps": (
        {"servers": [{"id": 1, "name": "a", "serial": "S"}]},
        [SERVERS],
        [("LabRouter", "there", "S")],
        'LabRouter(name="there")',
    ),
    "null is a value too": (
        {"servers": [{"id": 1, "name": "a"}]},
        [SERVERS],
        [("LabServer", "there", "")],
        "null, which the destination stores and compares",
    ),
}


@pytest.mark.rules("P61", "G11")
@pytest.mark.parametrize("case", SERIALS)
async def test_ff07_an_attribute_that_must_be_unique_tells_apart_across_its_generic(lab: WholePath, case: str) -> None:
    rows, mapping, there, words = SERIALS[case]
    for kind, name, serial in there:
        lab.add(kind, name=name, serial=serial or None)
    error = await refused(lab, rows, *mapping)
    assert both_named(error, 'LabServer(name="a")', words, "serial__value")


@pytest.mark.rules("P61", "G11")
async def test_ff07_a_place_that_an_unmapped_kind_of_the_generic_holds_is_taken(lab: WholePath) -> None:
    lab.add("LabCabinet", name="c1", site=lab.add("LabSite", name="dc1"))
    error = await refused(lab, {"racks": [{"id": 1, "name": "c1"}]}, RACKS)
    assert both_named(error, "LabCabinet", "LabRack", "[only at the destination]")


@pytest.mark.rules("P61", "P70")
@pytest.mark.parametrize(
    "spellings",
    [("10.0.0.1", "10.0.0.1/32"), ("2001:DB8::1", "2001:db8:0::1/128"), ("10.0.0.1/24", "10.0.0.1/255.255.255.0")],
)
async def test_ff07_two_spellings_of_one_address_are_one_key_and_both_are_told(
    lab: WholePath, spellings: tuple[str, str]
) -> None:
    rows: Rows = {"hosts": [{"id": n, "address": address} for n, address in enumerate(spellings)]}
    error = await refused(lab, rows, HOSTS)
    assert both_named(error, *(f'"{spelling}"' for spelling in spellings), "id 0", "id 1")


def device(site: str, name: str = "r1", destination_id: str | None = None) -> PlannedOperation:
    identity = {"name": name, "site": {"identity": {"name": site}, "peer_kind": "LabSite"}}
    reference = one("site", "LabSite", name=site)
    if destination_id is None:
        return create("LabDevice", identity, {"name": name}, reference)
    return update("LabDevice", identity, {"name": name}, reference, destination_id=destination_id)


@pytest.mark.rules("P61", "P63", "P65", "G5", "G11")
@pytest.mark.parametrize("other", ["create", "update"])
async def test_ff07_a_hand_made_plan_is_refused_before_its_first_write(lab: WholePath, other: str) -> None:
    there = lab.add("LabDevice", name="r1", site=sites(lab)["dc1"])
    before = lab.content()
    harmless = create("LabTag", {"name": "first"}, {"name": "first"})
    held = device("dc1", destination_id=there if other == "update" else None)
    outcome = await lab.apply(lab.hand_made(harmless, held, device("dc2")))
    assert (outcome.ending, outcome.exit_code) == ("plan.refused", ExitCode.REFUSED)
    (finding,) = outcome.findings
    assert finding.name == "DestinationIdentityCollisionError"
    assert all(words in finding.found for words in (R1_AT_DC1, R1_AT_DC2, "site does not count there"))
    assert (lab.operation_events(), lab.mutations(), lab.content()) == ([], [], before)


@pytest.mark.rules("P61", "P70")
@pytest.mark.parametrize(
    ("first", "second"),
    [
        (create("LabHost", {"address": "10.0.0.1"}, {"address": "10.0.0.1"}), "10.0.0.1/32"),
        (create("LabHost", {"address": "2001:DB8::1"}, {"address": "2001:DB8::1"}), "2001:db8::1/128"),
    ],
    ids=repr,
)
async def test_ff07_the_gate_compares_the_destinations_spelling_and_not_the_plans(
    lab: WholePath, first: PlannedOperation, second: str
) -> None:
    other = create("LabHost", {"address": second}, {"address": second})
    outcome = await lab.apply(lab.hand_made(first, other))
    assert outcome.exit_code is ExitCode.REFUSED
    assert [finding.name for finding in outcome.findings] == ["DestinationIdentityCollisionError"]
    assert lab.mutations() == []
