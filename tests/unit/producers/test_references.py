"""References: by source key or unique id, probed over the candidate kinds, never guessed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ledger.plan.model import PlannedOperation
from producers.config import LoadedConfiguration
from producers.errors import PlanRefusedError
from tests.support.fake_reader import FakeDestination
from tests.support.planning import Rows, entry, mapped, operations, plan, small

SITES = entry("LocationSite", "sites", ["name"], mapped("name"))
GROUPS = entry("IpamVLANGroup", "groups", ["name"], mapped("name"))


def _vlans(*filters: dict[str, Any], reference: str, path: str) -> dict[str, Any]:
    return entry(
        "IpamVLAN",
        "vlans",
        ["vlan_group", "vlan_id"],
        mapped("vlan_id", "vid"),
        mapped("name"),
        mapped("vlan_group", path, reference),
        filters=list(filters),
    )


VLANS = [
    _vlans({"field": "group", "operation": "is_not_empty"}, reference="IpamVLANGroup", path="group"),
    _vlans({"field": "group", "operation": "is_empty"}, reference="LocationSite", path="site"),
]


async def _plan(loaded: LoadedConfiguration, folder: Path) -> dict[tuple[str, str], PlannedOperation]:
    run = await plan(loaded, FakeDestination(), folder)
    return {(item.kind, str(item.identity.get("name", item.payload))): item for item in operations(run)}


async def _refused(loaded: LoadedConfiguration, folder: Path) -> list[str]:
    with pytest.raises(PlanRefusedError) as caught:
        await plan(loaded, FakeDestination(), folder)
    assert not list(folder.glob("*/*/plan"))
    return [str(finding) for finding in caught.value.findings]


@pytest.mark.rules("A40", "A47", "A49", "A52", "C17", "C19")
async def test_one_field_of_two_entries_means_two_kinds_and_peers_are_nested_pairs(tmp_path: Path) -> None:
    rows: Rows = {
        "sites": [{"id": 1, "name": "s1"}],
        "groups": [{"id": 1, "name": "g1"}],
        "vlans": [
            {"id": 1, "vid": 10, "name": "a", "group": {"id": 1}, "site": {"id": 1}},
            {"id": 2, "vid": 10, "name": "b", "group": None, "site": {"id": 1}},
        ],
    }
    run = await plan(small(tmp_path, rows, [SITES, GROUPS, *VLANS]), FakeDestination(), tmp_path)
    vlans = {op.payload["name"]: op for op in operations(run) if op.kind == "IpamVLAN" and op.payload}
    assert vlans["a"].identity["vlan_group"] == {"identity": {"name": "g1"}, "peer_kind": "IpamVLANGroup"}
    assert vlans["b"].identity["vlan_group"] == {"identity": {"name": "s1"}, "peer_kind": "LocationSite"}
    references = vlans["b"].relationships or []
    assert [(item.peer_kind, item.peers) for item in references] == [("LocationSite", [{"name": "s1"}])]
    assert {op.tier for op in vlans.values()} == {1}


@pytest.mark.rules("A49", "A50", "A51", "G11")
async def test_an_identity_that_two_candidate_kinds_have_is_refused_with_all_four_names(tmp_path: Path) -> None:
    rows: Rows = {
        "sites": [{"id": 1, "name": "same"}],
        "groups": [{"id": 1, "name": "same"}],
        "vlans": [{"id": 1, "vid": 10, "name": "a", "group": {"id": 1}}],
    }
    findings = await _refused(small(tmp_path, rows, [SITES, GROUPS, *VLANS]), tmp_path)
    assert len(findings) == 1
    for part in ("IpamVLAN", "vlan_group", "'1'", "IpamVLANGroup or LocationSite", 'LocationSite(name="same")'):
        assert part in findings[0]


async def test_an_object_whose_row_cannot_be_planned_is_wanted_and_no_delete(tmp_path: Path) -> None:
    destination = FakeDestination()
    group = destination.add("IpamVLANGroup", name="same")
    destination.add("LocationSite", name="same")
    destination.add("IpamVLAN", vlan_id=10, name="a", vlan_group=group)
    rows: Rows = {
        "sites": [{"id": 1, "name": "same"}],
        "groups": [{"id": 1, "name": "same"}],
        "vlans": [{"id": 1, "vid": 10, "name": "a", "group": {"id": 1}}],
    }
    loaded = small(tmp_path, rows, [SITES, GROUPS, *VLANS])
    run = await plan(loaded, destination, tmp_path, continue_on_error=True)
    assert run.counts == {"create": 0, "update": 0, "remove": 0, "skip": 1, "none": 2}


@pytest.mark.rules("A50", "A51", "G11")
async def test_references_that_resolve_to_nothing_are_all_listed(tmp_path: Path) -> None:
    rows: Rows = {
        "sites": [{"id": 1, "name": "s1"}],
        "groups": [],
        "vlans": [{"id": n, "vid": n, "name": f"v{n}", "group": None, "site": {"id": n}} for n in range(1, 4)],
    }
    findings = await _refused(small(tmp_path, rows, [SITES, GROUPS, *VLANS]), tmp_path)
    assert len(findings) == 2
    assert all("UnresolvedReferenceError" in text and "vlan_group" in text for text in findings)
    assert all("add the peer to its endpoint" in text for text in findings)


@pytest.mark.rules("G11")
async def test_g11_a_peer_of_a_kind_that_this_configuration_does_not_map_is_told_as_that(tmp_path: Path) -> None:
    rows: Rows = {"racks": [{"id": 1, "name": "r1", "site": {"id": 7}}, {"id": 2, "name": "r2", "site": "dc1"}]}
    racks = entry("LocationRack", "racks", ["name"], mapped("name"), mapped("site", "site", "LocationSite"))
    found = await _refused(small(tmp_path, rows, [racks]), tmp_path)
    findings = [text for text in found if text.startswith("UnresolvedReferenceError")]
    assert len(findings) == 2
    assert all("no entry of this configuration is for LocationSite" in text for text in findings)
    assert all("add an entry for LocationSite" in text for text in findings)


@pytest.mark.rules("A48")
async def test_ff09_a_unique_id_is_looked_up_whole_and_a_clash_of_joined_texts_is_refused(tmp_path: Path) -> None:
    racks = entry("LocationRack", "racks", ["site", "name"], mapped("name"), mapped("site", "site", "LocationSite"))
    types = entry(
        "DcimDeviceType",
        "types",
        ["manufacturer", "name"],
        mapped("name"),
        mapped("manufacturer", "maker", "OrganizationManufacturer"),
    )
    makers = entry("OrganizationManufacturer", "makers", ["name"], mapped("name"))
    devices = entry(
        "DcimDevice",
        "devices",
        ["name"],
        mapped("name"),
        mapped("location", "rack", "LocationRack"),
        mapped("device_type", "type", "DcimDeviceType"),
    )
    rows: Rows = {
        "sites": [{"id": 1, "name": "x__y"}, {"id": 2, "name": "x"}],
        "racks": [{"id": 1, "name": "z", "site": "x__y"}, {"id": 2, "name": "r__1", "site": "x"}],
        "makers": [{"id": 1, "name": "m"}],
        "types": [{"id": 1, "name": "t", "maker": "m"}],
        "devices": [
            {"id": 1, "name": "d1", "rack": "x__y__z", "type": "m__t"},
            {"id": 2, "name": "d2", "rack": "x__r__1", "type": "m__t"},
        ],
    }
    mapping = [SITES, racks, makers, types, devices]
    found = await _plan(small(tmp_path, rows, mapping), tmp_path)
    location = next(item for item in found["DcimDevice", "d1"].relationships or [] if item.field == "location")
    assert location.peers == [{"name": "z", "site": {"identity": {"name": "x__y"}, "peer_kind": "LocationSite"}}]

    rows["racks"].append({"id": 3, "name": "y__z", "site": "x"})
    findings = await _refused(small(tmp_path / "clash", rows, mapping), tmp_path / "clash")
    assert len(findings) == 1
    assert "'x__y__z'" in findings[0]


async def test_ff16_source_keys_1_and_true_are_two_keys(tmp_path: Path) -> None:
    rows: Rows = {
        "sites": [{"id": 1, "name": "one"}, {"id": True, "name": "true"}, {"id": "a", "name": "text"}],
        "groups": [{"id": n, "name": f"g{n}", "scope": {"id": key}} for n, key in enumerate([1, True, "a"])],
    }
    groups = entry("IpamVLANGroup", "groups", ["name"], mapped("name"), mapped("scope", "scope", "LocationSite"))
    found = await _plan(small(tmp_path, rows, [SITES, groups]), tmp_path)
    scopes = [(found["IpamVLANGroup", f"g{n}"].relationships or [])[0].peers[0]["name"] for n in range(3)]
    assert scopes == ["one", "true", "text"]


@pytest.mark.rules("A21", "A32")
async def test_ff03_peer_lists_are_sorted_and_each_peer_stands_once(tmp_path: Path) -> None:
    tags = entry("BuiltinTag", "tags", ["name"], mapped("name"))
    sites = entry("LocationSite", "sites", ["name"], mapped("name"), mapped("tags", "tags", "BuiltinTag"))
    rows: Rows = {
        "tags": [{"id": 1, "name": "b"}, {"id": 2, "name": "a"}],
        "sites": [
            {"id": 1, "name": "s1", "tags": [{"id": 1}, {"id": 2}, {"id": 1}]},
            {"id": 2, "name": "s2", "tags": []},
            {"id": 3, "name": "s3"},
            {"id": 4, "name": "s4", "tags": None},
        ],
    }
    found = await _plan(small(tmp_path, rows, [tags, sites]), tmp_path)
    peers = {name: found["LocationSite", name].relationships for name in ("s1", "s2", "s3", "s4")}
    assert (peers["s1"] or [])[0].peers == [{"name": "a"}, {"name": "b"}]
    assert [(item.cardinality, item.peer_kind, item.peers) for item in peers["s2"] or []] == [
        ("many", "BuiltinTag", [])
    ]
    assert peers["s3"] is None
    assert peers["s4"] is None


@pytest.mark.parametrize("value", [5, {"name": "s1"}, {"id": None}, {"id": ""}, [{"id": 1}], True])
async def test_g11_a_reference_of_another_shape_is_a_fault_of_its_row(tmp_path: Path, value: Any) -> None:
    groups = entry("IpamVLANGroup", "groups", ["name"], mapped("name"), mapped("scope", "scope", "LocationSite"))
    rows: Rows = {"sites": [{"id": 1, "name": "s1"}], "groups": [{"id": 1, "name": "g", "scope": value}]}
    findings = await _refused(small(tmp_path, rows, [SITES, groups]), tmp_path)
    assert len(findings) == 1
    assert "RowShapeError" in findings[0]
    assert "scope" in findings[0]


@pytest.mark.rules("A52")
async def test_a_constant_peer_may_exist_at_the_destination_alone_and_is_no_delete(tmp_path: Path) -> None:
    prefixes = entry(
        "IpamPrefix",
        "prefixes",
        ["prefix", "ip_namespace"],
        mapped("prefix"),
        {"name": "ip_namespace", "static": "default", "reference": "IpamNamespace"},
    )
    namespaces = entry("IpamNamespace", "vrfs", ["name"], mapped("name"))
    rows: Rows = {"prefixes": [{"id": 1, "prefix": "10.0.0.0/8"}], "vrfs": []}
    run = await plan(
        small(tmp_path, rows, [namespaces, prefixes]), FakeDestination(namespaces=["default", "old"]), tmp_path
    )
    assert run.counts == {"create": 1, "update": 0, "remove": 1, "skip": 0, "none": 1}
    assert [op.identity for op in operations(run) if op.action == "delete"] == [{"name": "old"}]
    unmapped = await plan(small(tmp_path / "u", rows, [prefixes]), FakeDestination(), tmp_path / "u")
    assert unmapped.counts["create"] == 1
    findings = []
    with pytest.raises(PlanRefusedError) as caught:
        await plan(small(tmp_path / "n", rows, [prefixes]), FakeDestination(namespaces=[]), tmp_path / "n")
    findings = [str(finding) for finding in caught.value.findings]
    assert "at the destination" in findings[0]


async def test_g11_peers_of_several_kinds_in_one_relationship_are_refused(tmp_path: Path) -> None:
    rows: Rows = {
        "devices": [{"id": 1, "name": "d", "type": "m__t", "site": {"id": 1}}],
        "makers": [{"id": 1, "name": "m"}],
        "types": [{"id": 1, "name": "t", "maker": {"id": 1}}],
        "sites": [{"id": 1, "name": "s"}],
        "lags": [{"id": 1, "name": "l", "device": {"id": 1}}],
        "ports": [{"id": 2, "name": "p", "device": {"id": 1}}],
        "addresses": [{"id": 1, "address": "10.0.0.1", "interfaces": ["d__l", "d__p"]}],
    }
    device = mapped("device", "device", "DcimDevice")
    mapping = [
        SITES,
        entry("OrganizationManufacturer", "makers", ["name"], mapped("name")),
        entry(
            "DcimDeviceType",
            "types",
            ["manufacturer", "name"],
            mapped("name"),
            mapped("manufacturer", "maker", "OrganizationManufacturer"),
        ),
        entry(
            "DcimDevice",
            "devices",
            ["name"],
            mapped("name"),
            mapped("device_type", "type", "DcimDeviceType"),
            mapped("location", "site", "LocationSite"),
        ),
        entry("DcimConsolePort", "lags", ["device", "name"], mapped("name"), device),
        entry("InterfacePhysical", "ports", ["device", "name"], mapped("name"), device),
        entry(
            "DcimCable",
            "addresses",
            ["cable_type"],
            mapped("cable_type", "address"),
            mapped("terminations", "interfaces", "DcimCableEnd"),
        ),
    ]
    findings = await _refused(small(tmp_path, rows, mapping), tmp_path)
    assert any("MixedPeerKindsError" in text and "DcimConsolePort, InterfacePhysical" in text for text in findings)


@pytest.mark.rules("G11")
async def test_an_identity_that_needs_itself_is_refused(tmp_path: Path) -> None:
    groups = entry(
        "OrganizationTenantGroup",
        "groups",
        ["name", "parent_group"],
        mapped("name"),
        mapped("parent_group", "parent", "OrganizationTenantGroup"),
    )
    by_key = {"groups": [{"id": 1, "name": "a", "parent": {"id": 2}}, {"id": 2, "name": "b", "parent": {"id": 1}}]}
    findings = await _refused(small(tmp_path, by_key, [groups]), tmp_path)
    assert sorted(text.split(":")[0] for text in findings) == ["IdentityCycleError", "IdentityCycleError"]
    by_text = {"groups": [{"id": 1, "name": "a", "parent": "nobody"}]}
    findings = await _refused(small(tmp_path / "t", by_text, [groups]), tmp_path / "t")
    assert [text.split(":")[0] for text in findings] == ["UnresolvedReferenceError"]
