"""What the source tells apart and the destination does not (P61, P62, FF07, FF09)."""

from __future__ import annotations

import time
from typing import Any

import pytest

from ledger.plan.collision import CollisionIndex
from ledger.schema import Attribute, Relationship
from tests.support.plan_rules import create, kind, operation, pair, real_schema, ref, schema, update

NAME = Attribute(name="name", kind="Text")
SITE = Relationship(name="site", peer="LocationSite", cardinality="one")
RACK = kind("LocationRack", hfid=["name__value"], attributes=[NAME], relationships=[SITE])
PORT = kind(
    "DcimPort",
    hfid=["device__name__value", "name__value"],
    unique=[["device", "name__value"]],
    attributes=[NAME],
    relationships=[Relationship(name="device", peer="DcimDevice", cardinality="one")],
)
SERIAL = Attribute(name="serial", kind="Text", unique=True)
PARTY = kind("Party", is_node=False, unique=[["serial__value"]], attributes=[SERIAL])
TENANT = kind("Tenant", hfid=["name__value"], attributes=[NAME, SERIAL], inherit_from=("Party",))
PROVIDER = kind("Provider", hfid=["name__value"], attributes=[NAME, SERIAL], inherit_from=("Party", "Unknown"))
HOST = kind("Host", hfid=["address__value"], attributes=[Attribute(name="address", kind="IPHost")])
SCHEMA = schema(RACK, PORT, PARTY, TENANT, PROVIDER, HOST)


def index(*operations: Any) -> CollisionIndex:
    found = CollisionIndex(SCHEMA)
    for planned in operations:
        found.add_operation(planned)
    return found


def rack(action: Any, name: str, site: str) -> Any:
    identity = {"name": name, "site": pair("LocationSite", name=site)}
    return operation(action, "LocationRack", identity, {}, [ref("site", "LocationSite", {"name": site})])


@pytest.mark.rules("P61", "P56", "G5")
def test_g05_two_creates_of_one_human_friendly_id_are_refused_naming_both_and_what_does_not_count() -> None:
    (refusal,) = index(rack("create", "R1", "A"), rack("create", "R1", "B"), rack("create", "R2", "A")).collisions()
    assert 'LocationRack(name="R1", site=LocationSite(name="A"))' in refusal.found
    assert 'LocationRack(name="R1", site=LocationSite(name="B"))' in refusal.found
    assert "site does not count there" in refusal.found
    assert "human-friendly id (name__value) of LocationRack" in refusal.expected
    assert "R2" not in refusal.found


@pytest.mark.rules("P61", "P62")
@pytest.mark.parametrize("origin", ["update", "unchanged", "destination"])
def test_a_create_that_would_land_on_any_other_object_is_refused(origin: Any) -> None:
    found = index(rack("create", "R1", "B"))
    found.add(
        "LocationRack",
        {"name": "R1", "site": pair("LocationSite", name="A")},
        {"name": "R1"},
        {"site": pair("LocationSite", name="A")},
        origin,
    )
    assert len(found.collisions()) == 1


@pytest.mark.rules("P62")
def test_updates_alone_never_collide_because_an_id_keys_them() -> None:
    assert index(rack("update", "R1", "A"), rack("update", "R1", "B")).collisions() == []


@pytest.mark.rules("P61")
def test_an_update_counts_with_the_values_that_it_will_have() -> None:
    renamed = update("Tenant", {"name": "old"}, {"serial": "s1"})
    assert len(index(create("Tenant", {"name": "new"}, {"serial": "s1"}), renamed).collisions()) == 1
    untouched = update("Tenant", {"name": "old"}, {})
    assert index(create("Tenant", {"name": "new"}, {"serial": "s1"}), untouched).collisions() == []


@pytest.mark.rules("P61", "C35")
def test_a_recorded_delete_leaves_its_object_in_place_so_that_a_create_would_land_on_it() -> None:
    (refusal,) = index(rack("create", "R1", "B"), operation("delete", "LocationRack", {"name": "R1"})).collisions()
    assert 'LocationRack(name="R1") [only at the destination]' in refusal.found
    assert len(
        index(port({"name": "sw1"}), operation("delete", "DcimPort", port({"name": "sw1"}).identity)).collisions()
    )
    assert index(rack("create", "R1", "A"), operation("delete", "LocationRack", {"name": "R2"})).collisions() == []


@pytest.mark.rules("P61")
def test_an_inherited_uniqueness_rule_reaches_across_the_kinds_of_its_generic() -> None:
    tenant = create("Tenant", {"name": "a"}, {"serial": "s1"})
    provider = create("Provider", {"name": "b"}, {"serial": "s1"})
    (refusal,) = index(tenant, provider).collisions()
    assert "uniqueness rule (serial__value) of Party" in refusal.expected
    assert "name does not count there" in refusal.found
    same_name = index(
        create("Tenant", {"name": "a"}, {"serial": "1"}), create("Provider", {"name": "a"}, {"serial": "2"})
    )
    assert same_name.collisions() == []


@pytest.mark.rules("P61")
def test_a_create_reaches_its_own_kind_and_all_kinds_that_share_a_rule_and_no_other() -> None:
    reached = index(create("Tenant", {"name": "a"}, {"serial": "s1"}), rack("update", "R1", "A"))
    assert [name for name in (*SCHEMA.kinds, "Unheard") if reached.reaches(name)] == ["Tenant", "Provider"]
    assert not any(map(index(rack("update", "R1", "A")).reaches, SCHEMA.kinds))
    keyless = kind("Note", attributes=[NAME])  # near misses are looked for in kinds without any rule as well
    found = CollisionIndex(schema(keyless))
    found.add_operation(create("Note", {"name": "a"}))
    assert found.reaches("Note")


@pytest.mark.rules("P61")
def test_a_second_null_under_a_unique_optional_attribute_is_named() -> None:
    both_null = index(create("Tenant", {"name": "a"}), create("Tenant", {"name": "b"}, {"serial": None}))
    (refusal,) = both_null.collisions()
    assert "the same (null, which the destination stores and compares" in refusal.found
    assert index(create("Tenant", {"name": "a"})).collisions() == []


def test_a_field_that_was_not_read_takes_an_object_out_of_the_rule() -> None:
    found = index(create("Tenant", {"name": "a"}))
    found.add("Tenant", {"name": "b"}, {"name": "b"}, {}, "destination")
    assert found.collisions() == []
    found.add("Tenant", {"name": "c"}, {"name": "c", "serial": None}, {}, "destination")
    assert len(found.collisions()) == 1


@pytest.mark.rules("P61", "P70")
def test_values_are_compared_in_the_destinations_normal_form() -> None:
    assert (
        len(index(create("Host", {"address": "10.0.0.1"}), create("Host", {"address": "10.0.0.1/32"})).collisions())
        == 1
    )
    assert index(create("Host", {"address": "10.0.0.1/24"}), create("Host", {"address": "10.0.0.1"})).collisions() == []


@pytest.mark.rules("P61", "A46")
def test_values_are_compared_by_type_not_by_python_equality() -> None:
    assert (
        index(
            *(create("Tenant", {"name": value}, {"serial": f"{value!r}"}) for value in (1, 1.0, True, "1"))
        ).collisions()
        == []
    )


def port(device: dict[str, Any], name: str = "eth0") -> Any:
    identity = {"device": pair("DcimDevice", **device), "name": name}
    return create("DcimPort", identity, {}, ref("device", "DcimDevice", device))


@pytest.mark.rules("P61")
def test_crossing_parts_are_compared_by_the_peers_identity() -> None:
    found = index(port({"name": "sw1"}), port({"name": "sw2"}))
    assert found.collisions() == []
    one_rule = index(port({"name": "sw1"}), port({"name": "sw1"}, "eth1"))
    one_rule.add("DcimPort", {"id": 2}, {"name": "eth0"}, {"device": pair("DcimDevice", name="sw1")}, "destination")
    (refusal,) = one_rule.collisions()  # human-friendly id and constraint are one rule, reported once
    assert refusal.expected.count("device") == 1


def test_peers_that_only_read_alike_are_a_warning_because_the_server_compares_the_peer() -> None:
    found = index(port({"name": "sw1", "site": "A"}), port({"name": "sw1", "site": "B"}))
    assert found.collisions() == []
    assert len(found.near_misses()) == 1


def test_an_object_without_the_peer_is_out_of_a_rule_that_crosses() -> None:
    found = index(port({"name": "sw1"}))
    found.add("DcimPort", {"name": "eth0"}, {"name": "eth0"}, {"device": None}, "destination")
    found.add("DcimPort", {"name": "eth0"}, {"name": "eth0"}, {}, "destination")
    assert found.collisions() == []


def test_a_kind_that_the_schema_does_not_have_is_left_to_the_value_check() -> None:
    assert index(create("Nope", {"name": "a"}), create("Nope", {"name": "b"})).collisions() == []


@pytest.mark.rules("A48", "P70")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("x__y", "z"), ("x", "y__z")),
        (("a", None), ("a", "None")),
        (("a", 1), ("a", "1")),
        (("a", "b"), ("b", "a")),
        ((1, 23), (12, 3)),
    ],
)
def test_joined_texts_never_collide(one: tuple[Any, Any], other: tuple[Any, Any]) -> None:
    first, second = Attribute(name="first", kind="Any"), Attribute(name="second", kind="Any")
    keyed = kind("Pair", unique=[["first__value", "second__value"]], attributes=[first, second])
    found = CollisionIndex(schema(keyed))
    for values in (one, other):
        found.add_operation(create("Pair", dict(zip(("first", "second"), values, strict=True))))
    assert found.collisions() == []


@pytest.mark.rules("H23", "H25")
def test_the_refusals_do_not_depend_on_the_order_of_the_objects() -> None:
    operations = [rack("create", name, site) for name in ("R1", "R2") for site in ("B", "A", "C")]
    forward, backward = index(*operations).collisions(), index(*reversed(operations)).collisions()
    assert [str(refusal) for refusal in forward] == [str(refusal) for refusal in backward]
    assert len(forward) == 2


@pytest.mark.rules("G11")
def test_g11_a_crowd_is_cut_and_the_cut_is_said() -> None:
    (refusal,) = index(*(rack("create", "Data", f"s{number:02}") for number in range(24))).collisions()
    assert "24 objects" in refusal.checked
    assert "and 4 more" in refusal.found


@pytest.mark.rules("G12")
def test_g12_a_secret_in_an_identity_is_not_shown() -> None:
    keyed = kind("X", hfid=["name__value"], attributes=[NAME, Attribute(name="pin", kind="HashedPassword")])
    found = CollisionIndex(schema(keyed))
    found.add_operation(create("X", {"name": "a", "pin": "1234"}))
    found.add_operation(create("X", {"name": "a", "pin": "5678"}))
    (refusal,) = found.collisions()
    assert "1234" not in str(refusal)
    assert "(sensitive)" in str(refusal)


class TestNearMisses:
    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("Flex system", "Flex System"),
            ("é", "e\u0301"),
            ("rack", "ra\u200bck"),
            ("STRASSE", "straße"),
        ],
    )
    def test_identities_that_read_alike_are_a_warning_and_no_refusal(self, one: str, other: str) -> None:
        found = index(
            create("Tenant", {"name": one}, {"serial": "1"}), create("Tenant", {"name": other}, {"serial": "2"})
        )
        assert found.collisions() == []
        (warning,) = found.near_misses()
        assert "stay 2 objects" in warning

    def test_objects_that_differ_or_that_exist_already_are_no_warning(self) -> None:
        apart = index(create("Tenant", {"name": "Extreme"}), create("Tenant", {"name": "Extreme Networks"}))
        assert apart.near_misses() == []
        existing = CollisionIndex(SCHEMA)
        for name in ("a", "A"):
            existing.add("Tenant", {"name": name}, {"name": name}, {}, "unchanged")
        assert existing.near_misses() == []


@pytest.mark.rules("P61")
def test_three_devices_of_one_name_at_three_sites_are_refused_by_the_real_schema() -> None:
    found = CollisionIndex(real_schema())
    for site in ("ncsu-117", "ncsu-118", "ncsu-128"):
        identity = {"location": pair("LocationSite", name=site), "name": "PP:MDF"}
        found.add_operation(create("DcimDevice", identity, {}, ref("location", "LocationSite", {"name": site})))
    (refusal,) = found.collisions()
    assert "3 objects of DcimDevice" in refusal.checked
    assert "location does not count there" in refusal.found


def test_25_000_objects_take_seconds_not_minutes() -> None:
    found = CollisionIndex(real_schema())
    operations = [
        create(
            "InterfacePhysical",
            {"device": pair("DcimDevice", name=f"sw{number % 300}"), "name": f"eth{number}"},
            {},
            ref("device", "DcimDevice", {"name": f"sw{number % 300}"}),
        )
        for number in range(25_000)
    ]
    start = time.process_time()
    for planned in operations:
        found.add_operation(planned)
    assert found.collisions() == []
    assert found.near_misses() == []
    assert time.process_time() - start < 10
