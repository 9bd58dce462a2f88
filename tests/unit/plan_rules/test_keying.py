"""Whether the destination can match a create: coverage and values, two mechanisms (P21, P22, P40 to P60, FF06)."""

from __future__ import annotations

from typing import Any

import pytest

from ledger.plan.errors import UnaccountedIdentityComponentError, UnkeyedCreateRefusedError
from ledger.plan.keying import check_key_coverage, check_key_values, prove_create_key, usable
from ledger.schema import Attribute, Relationship
from tests.support.plan_rules import create, kind, operation, pair, real_schema, ref, update

NAME = Attribute(name="name", kind="Text", optional=False)
ADDRESS = Attribute(name="address", kind="IPHost", optional=False)
NAMESPACE = Relationship(name="ip_namespace", peer="IpamNamespace", cardinality="one")

SITE = kind("LocationSite", hfid=["name__value"], attributes=[NAME, Attribute(name="region", kind="Text")])
IP = kind(
    "IpamIPAddress",
    hfid=["address__value", "ip_namespace__name__value"],
    unique=[["ip_namespace", "address__value"]],
    attributes=[ADDRESS],
    relationships=[NAMESPACE],
)
VLAN = kind(
    "IpamVLAN",
    unique=[["vlan_group", "vlan_id__value"], ["serial__value"]],
    attributes=[Attribute(name="vlan_id", kind="Number"), Attribute(name="serial", kind="Text"), NAME],
    relationships=[Relationship(name="vlan_group", peer="IpamVLANGroup", cardinality="one")],
)
CABLE = kind("DcimCable", attributes=[Attribute(name="label", kind="Text")])

DEFAULT = {"name": "default"}


def address(namespace: Any = DEFAULT, value: Any = "10.0.0.1/32", **extra: Any) -> Any:
    """A create of an address with the whole key."""
    identity = {"address": value, "ip_namespace": pair("IpamNamespace", **namespace)}
    return create("IpamIPAddress", identity, extra, ref("ip_namespace", "IpamNamespace", namespace))


def both(planned: Any, of: Any) -> None:
    check_key_coverage(planned, of)
    check_key_values(planned, of)


@pytest.mark.rules("P44", "P46", "P48", "A40", "A41")
def test_a_create_with_its_whole_key_passes_both_checks() -> None:
    both(address(), IP)
    both(create("LocationSite", {"name": "dc1"}), SITE)


@pytest.mark.rules("P21", "P44", "P56", "P57", "A38", "A43", "G5")
def test_g05_a_component_in_the_payload_but_not_in_the_identity_still_refuses() -> None:
    planned = create(
        "IpamIPAddress", {"address": "10.0.0.1/32"}, {}, ref("ip_namespace", "IpamNamespace", {"name": "default"})
    )
    check_key_values(planned, IP)  # the value is there; the proof of the key is not
    with pytest.raises(UnkeyedCreateRefusedError) as refusal:
        check_key_coverage(planned, IP)
    assert "ip_namespace__name__value is not in the identity" in refusal.value.found
    assert "IpamIPAddress" in refusal.value.checked
    assert planned.operation_id in refusal.value.checked


@pytest.mark.rules("P30", "P44")
def test_coverage_is_answered_before_any_value_is_looked_at() -> None:
    blank = address(namespace={"name": "   "})
    check_key_coverage(blank, IP)
    with pytest.raises(UnaccountedIdentityComponentError):
        check_key_values(blank, IP)


@pytest.mark.rules("P22", "P46", "P47", "P50", "G5", "A43")
@pytest.mark.parametrize(
    ("value", "word"),
    [
        (None, "is null"),
        ("", "is empty"),
        ("   ", "is blank"),
        ("\u00a0\t\n", "is blank"),
        ([], "is empty"),
        ({}, "is empty"),
        ({"from_pool": {"id": "p"}}, "comes from a pool"),
    ],
)
def test_g05_an_unusable_direct_component_is_refused_naming_kind_and_component(value: Any, word: str) -> None:
    with pytest.raises(UnaccountedIdentityComponentError) as refusal:
        check_key_values(create("LocationSite", {"name": value}), SITE)
    assert f"name__value {word}" in refusal.value.found
    assert "LocationSite" in refusal.value.checked


@pytest.mark.rules("P47")
@pytest.mark.parametrize("value", [0, False, 0.0, "0", "x", "\u200b", "NULL"])
def test_zero_and_false_and_a_zero_width_character_are_usable(value: Any) -> None:
    assert usable(value)
    check_key_values(create("LocationSite", {"name": value}), SITE)


@pytest.mark.rules("P48", "P49", "P58", "A40")
@pytest.mark.parametrize("value", [None, "", "  ", {"from_pool": "x"}])
def test_a_crossing_component_takes_its_value_from_the_peers_own_identity(value: Any) -> None:
    with pytest.raises(UnaccountedIdentityComponentError) as refusal:
        check_key_values(address(namespace={"name": value}), IP)
    assert "ip_namespace__name__value" in refusal.value.found


@pytest.mark.rules("P48", "P58")
def test_a_peer_identity_without_the_crossed_attribute_is_refused() -> None:
    with pytest.raises(UnaccountedIdentityComponentError, match="IpamNamespace has no name"):
        check_key_values(address(namespace={"label": "default"}), IP)


@pytest.mark.rules("P48", "P50")
def test_every_component_without_a_value_is_named_at_once() -> None:
    planned = create("IpamIPAddress", {"address": "  "})
    with pytest.raises(UnaccountedIdentityComponentError) as refusal:
        check_key_values(planned, IP)
    assert "address__value is blank" in refusal.value.found
    assert "ip_namespace__name__value has no peer" in refusal.value.found


@pytest.mark.rules("P48")
def test_a_crossing_component_given_as_many_peers_is_refused() -> None:
    planned = create(
        "IpamIPAddress",
        {"address": "10.0.0.1/32", "ip_namespace": [pair("IpamNamespace", name="default")]},
        {},
        ref("ip_namespace", "IpamNamespace", {"name": "default"}, many=True),
    )
    with pytest.raises(UnaccountedIdentityComponentError, match="given as many"):
        check_key_values(planned, IP)


@pytest.mark.rules("P31", "P34", "P41", "P53", "P54", "A44")
@pytest.mark.parametrize("of", [IP, SITE, VLAN, CABLE])
def test_an_update_may_omit_or_blank_any_component(of: Any) -> None:
    both(update(of.kind, {"address": "  "}), of)
    both(update(of.kind, {"label": "x"}), of)


def test_a_recorded_delete_is_not_checked() -> None:
    both(operation("delete", "DcimCable", {"label": ""}), CABLE)


@pytest.mark.rules("P45", "P59", "A42")
def test_a_kind_without_human_friendly_id_needs_one_covered_constraint() -> None:
    group = {"name": "g"}
    planned = create(
        "IpamVLAN",
        {"vlan_id": 0, "vlan_group": pair("IpamVLANGroup", **group)},
        {},
        ref("vlan_group", "IpamVLANGroup", group),
    )
    both(planned, VLAN)
    both(create("IpamVLAN", {"serial": "s1"}), VLAN)


@pytest.mark.rules("P45", "P60", "A42")
def test_a_half_covered_constraint_is_no_cover_and_every_way_out_is_named() -> None:
    with pytest.raises(UnkeyedCreateRefusedError) as refusal:
        check_key_coverage(create("IpamVLAN", {"vlan_id": 10}), VLAN)
    assert "vlan_group is not in the identity" in refusal.value.found
    assert "serial__value is not in the identity" in refusal.value.found


@pytest.mark.rules("P59", "P50")
def test_a_covered_constraint_with_a_blank_value_is_refused_unless_another_one_holds() -> None:
    group = {"name": "g"}
    identity = {"vlan_id": None, "vlan_group": pair("IpamVLANGroup", **group)}
    with pytest.raises(UnaccountedIdentityComponentError, match="vlan_id__value is null"):
        check_key_values(create("IpamVLAN", identity, {}, ref("vlan_group", "IpamVLANGroup", group)), VLAN)
    with_serial = identity | {"serial": "s1"}
    check_key_values(create("IpamVLAN", with_serial, {}, ref("vlan_group", "IpamVLANGroup", group)), VLAN)


@pytest.mark.rules("P59")
def test_a_bare_relationship_in_a_constraint_needs_a_peer_with_something_in_it() -> None:
    group = {"name": " "}
    identity = {"vlan_id": 1, "vlan_group": pair("IpamVLANGroup", **group)}
    with pytest.raises(UnaccountedIdentityComponentError, match="without any usable value"):
        check_key_values(create("IpamVLAN", identity, {}, ref("vlan_group", "IpamVLANGroup", group)), VLAN)


@pytest.mark.rules("P60", "A42")
def test_a_kind_with_neither_key_nor_constraint_is_refused() -> None:
    cable = real_schema().kinds["DcimCable"]
    for of in (CABLE, cable):
        with pytest.raises(UnkeyedCreateRefusedError, match="one more object"):
            check_key_coverage(create("DcimCable", {"label": "c1"}), of)


@pytest.mark.rules("P44", "P59", "G5")
@pytest.mark.parametrize(
    "attribute",
    [
        Attribute(name="name", kind="Text", read_only=True),
        Attribute(name="name", kind="NumberPool"),
        Attribute(name="other", kind="Text"),
    ],
)
def test_g05_a_key_part_that_no_create_can_supply_is_refused(attribute: Attribute) -> None:
    for keyed in (kind("X", hfid=["name__value"], attributes=[attribute]), kind("X", unique=[["name__value"]])):
        with pytest.raises(UnkeyedCreateRefusedError, match=r"name__value (is read-only|comes from a pool|is not in)"):
            check_key_coverage(create("X", {"name": "a"}), keyed)


@pytest.mark.rules("P59")
@pytest.mark.parametrize(
    ("relationship", "word"),
    [
        (Relationship(name="site", peer="S", cardinality="one", read_only=True), "is read-only"),
        (Relationship(name="site", peer="S", cardinality="many"), "has many peers"),
    ],
)
def test_a_relationship_that_cannot_key_is_refused(relationship: Relationship, word: str) -> None:
    keyed = kind("X", hfid=["site__name__value"], relationships=[relationship])
    planned = create("X", {"site": pair("S", name="a")}, {}, ref("site", "S", {"name": "a"}))
    with pytest.raises(UnkeyedCreateRefusedError, match=word):
        check_key_coverage(planned, keyed)


@pytest.mark.rules("P40", "P43")
def test_the_key_is_read_from_the_destination_schema_not_from_the_identifiers() -> None:
    schema = real_schema()
    crossing = {
        name
        for name, item in schema.kinds.items()
        if item.is_node and any(path.relationship for path in item.human_friendly_id)
    }
    assert {"InterfacePhysical", "InterfaceVirtual", "InterfaceLag", "IpamPrefix", "IpamIPAddress"} <= crossing
    prefix = create(
        "IpamPrefix",
        {"prefix": "10.0.0.0/8", "vrf": pair("IpamVRF", name="v")},
        {},
        ref("vrf", "IpamVRF", {"name": "v"}),
    )
    with pytest.raises(UnkeyedCreateRefusedError, match="ip_namespace__name__value is not in the identity"):
        check_key_coverage(prefix, schema.kinds["IpamPrefix"])


@pytest.mark.rules("P56", "P63")
@pytest.mark.parametrize("name", ["", "   ", None])
def test_planning_refuses_an_unusable_value_as_an_unkeyed_create(name: Any) -> None:
    with pytest.raises(UnkeyedCreateRefusedError) as refusal:
        prove_create_key(address(namespace={"name": name}), IP)
    assert isinstance(refusal.value.__cause__, UnaccountedIdentityComponentError)
    assert refusal.value.found == refusal.value.__cause__.found


@pytest.mark.rules("P56")
def test_planning_passes_a_proven_key() -> None:
    prove_create_key(address(), IP)


@pytest.mark.rules("G12")
def test_g12_a_secret_key_part_is_named_and_not_shown() -> None:
    secret = kind("X", hfid=["code__value", "name__value"], attributes=[Attribute(name="code", kind="Password"), NAME])
    with pytest.raises(UnkeyedCreateRefusedError) as refusal:
        check_key_coverage(create("X", {"code": "hunter2"}), secret)
    assert "hunter2" not in str(refusal.value)
    assert "(sensitive)" in str(refusal.value)
