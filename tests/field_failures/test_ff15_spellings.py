"""FF15: an address has one spelling, the destination's, wherever it is compared, looked up, written or read."""

from __future__ import annotations

from typing import Any

import pytest

from consumers.infrahub.errors import PeerNotFoundError
from ledger.exit_codes import ExitCode
from producers.errors import PlanRefusedError
from tests.support.operations import create, one
from tests.support.planning import Rows, entry, mapped
from tests.support.whole_path import WholePath, names

HOSTS = entry("LabHost", "hosts", ["address"], mapped("address"), mapped("notes"))
PLUGS = entry("LabPlug", "plugs", ["name"], mapped("name"), mapped("host", "host", "LabHost"))
DEVICES = entry(
    "LabDevice",
    "devices",
    ["name"],
    *map(mapped, ("name", "address", "network", "mac")),
    {"name": "site", "static": "dc1", "reference": "LabSite"},
)

HOST_SPELLINGS = {
    "10.0.0.1/32": ["10.0.0.1", "10.0.0.1/32", "10.0.0.1/255.255.255.255"],
    "10.0.0.5/24": ["10.0.0.5/24", "10.0.0.5/255.255.255.0"],
    "2001:db8::1/128": ["2001:DB8::1", "2001:db8:0:0:0:0:0:1", "2001:0DB8::0001/128"],
    "fe80::1/128": ["fe80::1%eth0", "FE80::1"],
    "::ffff:a00:1/128": ["::ffff:10.0.0.1", "::FFFF:0a00:0001"],
}
MAC_SPELLINGS = ["00:11:22:aa:bb:cc", "00-11-22-AA-BB-CC", "0011.22aa.bbcc", "001122AABBCC", "0:11:22:aa:bb:cc"]


@pytest.mark.rules("P70", "P80", "H30", "H32")
async def test_ff15_what_is_stored_is_found_by_each_of_its_spellings(lab: WholePath) -> None:
    ids = {address: lab.add("LabHost", address=address) for address in HOST_SPELLINGS}
    plugs: list[dict[str, Any]] = []
    for turn in range(max(map(len, HOST_SPELLINGS.values()))):
        spelled = {address: spellings[turn % len(spellings)] for address, spellings in HOST_SPELLINGS.items()}
        plugs += [{"id": f"{a} {turn}", "name": f"{a} {turn}", "host": {"id": a}} for a in spelled]
        rows: Rows = {"hosts": [{"id": a, "address": text} for a, text in spelled.items()], "plugs": plugs}
        planned = await lab.converge(rows, [HOSTS, PLUGS])
        assert {operation.kind for operation in planned} == {"LabPlug"}
        assert len(planned) == len(ids)
    bound = {entry.data["name"]["value"]: entry.data["host"]["id"] for entry in lab.mutations()}
    assert bound == {plug["name"]: ids[plug["host"]["id"]] for plug in plugs}
    assert lab.count("LabHost") == len(ids)


@pytest.mark.rules("P70", "P77", "P80")
async def test_ff15_a_hand_made_plan_finds_and_writes_by_any_spelling(lab: WholePath) -> None:
    stored = {lab.add("LabHost", address=address): address for address in HOST_SPELLINGS}
    plugs = [
        create("LabPlug", {"name": spelling}, {"name": spelling}, one("host", "LabHost", address=spelling))
        for spellings in HOST_SPELLINGS.values()
        for spelling in spellings
    ]
    # what this run itself wrote is found by another spelling as well
    own = create("LabHost", {"address": "192.0.2.1"}, {"address": "192.0.2.1"})
    plugs.append(create("LabPlug", {"name": "own"}, {"name": "own"}, one("host", "LabHost", address="192.0.2.1/32")))
    assert (await lab.apply(lab.hand_made(own, *plugs))).exit_code is ExitCode.DONE
    bound = {entry.data["name"]["value"]: entry.data["host"]["id"] for entry in lab.mutations()[1:]}
    for address, spellings in HOST_SPELLINGS.items():
        assert {stored[bound[spelling]] for spelling in spellings} == {address}
    assert lab.count("LabHost") == len(HOST_SPELLINGS) + 1


@pytest.mark.rules("H30", "H32")
async def test_ff15_macs_and_networks_are_compared_in_the_destinations_spelling(lab: WholePath) -> None:
    lab.add("LabSite", name="dc1")
    spelled: list[tuple[str, str, str]] = [("mac", text, "00:11:22:AA:BB:CC") for text in MAC_SPELLINGS]
    spelled += [("network", text, "10.0.0.0/24") for text in ("10.0.0.0/24", "10.0.0.0/255.255.255.0")]
    spelled += [("network", text, "2001:db8::/32") for text in ("2001:DB8::/32", "2001:0db8:0::/32")]
    rows: Rows = {"devices": [{"id": n, "name": str(n), field: text} for n, (field, text, _) in enumerate(spelled)]}
    await lab.converge(rows, [DEVICES])
    for number, (field, _, stored) in enumerate(spelled):
        assert lab.values("LabDevice", name=str(number))[field] == stored
        assert lab.mutations()[number] is not None
    sent = {entry.data["name"]["value"]: entry.data for entry in lab.mutations()}
    assert all(sent[str(n)][field]["value"] == stored for n, (field, _, stored) in enumerate(spelled))


@pytest.mark.rules("G11")
async def test_ff15_what_has_no_normal_form_is_refused_by_object_and_field(lab: WholePath) -> None:
    lab.add("LabSite", name="dc1")
    wrong = [
        ("network", "10.0.0.5/24"),
        ("network", "2001:db8::1/64"),
        ("address", "010.0.0.1"),
        ("address", "10.0.0.1/33"),
        ("address", " 10.0.0.1"),
        ("address", "10.0.0"),
        ("mac", "00:11:22:aa:bb"),
        ("mac", "00:11:22:aa:bb:cg"),
        ("mac", "00:11:22:aa:bb:cc\n"),
    ]
    rows: Rows = {"devices": [{"id": n, "name": str(n), field: text} for n, (field, text) in enumerate(wrong)]}
    with pytest.raises(PlanRefusedError) as caught:
        await lab.plan(rows, [DEVICES])
    assert caught.value.exit_code is ExitCode.REFUSED
    assert names(caught.value) == ["SchemaMismatchError"] * len(wrong)
    for number, (field, _) in enumerate(wrong):
        assert any(f'LabDevice(name="{number}")' in f.checked and field in f.checked for f in caught.value.findings)
    assert lab.saved_plans() == []


@pytest.mark.rules("P80", "P83", "P132", "G5")
@pytest.mark.parametrize("spelling", ["010.0.0.1", "10.0.0.1/33", "host.example", "10.0.0.1 "])
async def test_ff15_a_peer_that_cannot_be_normalised_is_a_loud_miss_and_no_second_object(
    lab: WholePath, spelling: str
) -> None:
    lab.add("LabHost", address="10.0.0.1/32")
    plug = create("LabPlug", {"name": "p"}, {"name": "p"}, one("host", "LabHost", address=spelling))
    outcome = await lab.apply(lab.hand_made(plug))
    assert outcome.exit_code is ExitCode.STOPPED_UNWRITTEN
    (failed,) = lab.events("operation.failed")
    assert (failed["error"], failed["wrote"]) == ("PeerNotFoundError", False)
    assert plug.operation_id in failed["message"]
    with pytest.raises(PeerNotFoundError):
        await lab.write_alone(plug)
    assert (lab.mutations(), lab.count("LabHost")) == ([], 1)


@pytest.mark.rules("P61", "P70")
async def test_ff15_creates_that_become_one_are_refused_and_both_spellings_told(lab: WholePath) -> None:
    rows: Rows = {"hosts": [{"id": 1, "address": "10.0.0.1"}, {"id": 2, "address": "10.0.0.1/32"}]}
    with pytest.raises(PlanRefusedError) as caught:
        await lab.plan(rows, [HOSTS])
    assert names(caught.value) == ["DestinationIdentityCollisionError"] * 2
    assert all('address given as str "10.0.0.1"' in str(finding) for finding in caught.value.findings)
    assert all('address given as str "10.0.0.1/32"' in str(finding) for finding in caught.value.findings)
