"""The traps of two real inventories, met by the rules: what a change of the configuration would let through.

Rows come from the test data; the operations are made here by hand, so that the rules are tested without a plan maker.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from ledger.plan.attribute_values import value_faults
from ledger.plan.collision import CollisionIndex
from ledger.plan.gate import operation_findings
from ledger.plan.model import PlannedOperation
from ledger.plan.normal_form import normal_form
from tests.support.plan_rules import DATA, create, pair, real_schema, ref

SCHEMA = real_schema()
LIBRARY = "devicetype-library/day1"
NETBOX = "netbox-demo-data/day1"


def rows(inventory: str, endpoint: str) -> Iterator[dict[str, Any]]:
    with (DATA / inventory / f"{endpoint}.jsonl").open(encoding="utf-8") as file:
        for text in file:
            yield json.loads(text)


def device_type(row: dict[str, Any]) -> dict[str, Any]:
    return {"manufacturer": pair("OrganizationManufacturer", name=row["manufacturer"]["name"]), "name": row["model"]}


def template(row: dict[str, Any], types: dict[str, dict[str, Any]]) -> PlannedOperation:
    peer = types[row["device_type"]["id"]]
    identity = {"device_type": {"identity": peer, "peer_kind": "DcimDeviceType"}, "name": row["name"]}
    payload = {"port_type": row["type"]["value"]} | {
        name: row[name] for name in ("mgmt_only", "label", "description") if name in row
    }
    made: PlannedOperation = create(
        "DcimInterfaceTemplate", identity, payload, ref("device_type", "DcimDeviceType", peer)
    )
    return made


@pytest.mark.rules("P59", "P61", "C52")
def test_13_233_interface_templates_of_a_kind_without_human_friendly_id_pass_the_gate() -> None:
    types = {row["id"]: device_type(row) for row in rows(LIBRARY, "dcim.device-types")}
    operations = [template(row, types) for row in rows(LIBRARY, "dcim.interface-templates")]
    assert len(operations) == 13_233
    assert operation_findings(operations, SCHEMA) == []


@pytest.mark.rules("G11")
def test_the_two_tenants_without_customer_id_are_named_when_the_transform_is_dropped() -> None:
    operations = [
        create(
            "OrganizationTenant", {"name": row["name"]}, {"customer_id": (row["custom_fields"] or {}).get("cust_id")}
        )
        for row in rows(NETBOX, "tenancy.tenants")
    ]
    found = operation_findings(operations, SCHEMA)
    assert sorted(finding.checked.split('"')[3] for finding in found) == [
        "Jimbob's Banking & Trust",
        "NC State University",
    ]
    assert all("customer_id" in finding.checked for finding in found)


@pytest.mark.rules("G11")
def test_fractional_heights_are_refused_and_zero_heights_are_not() -> None:
    height = SCHEMA.kinds["DcimDeviceType"].attributes["height"]
    found = Counter(
        bool(value_faults(height, normal_form(height, value, kind="DcimDeviceType")))
        for row in rows(LIBRARY, "dcim.device-types")
        if isinstance(value := row["u_height"], (int, float)) and not (value and float(value).is_integer())
    )
    assert found == {True: 2, False: 389}


def typed(identity: dict[str, Any], **extra: Any) -> Any:
    maker = identity["manufacturer"]["identity"]
    return create("DcimDeviceType", identity, extra, ref("manufacturer", "OrganizationManufacturer", maker))


@pytest.mark.rules("P40", "P44", "P57")
def test_device_types_identified_by_name_alone_are_not_keyed() -> None:
    sold_by = [row["manufacturer"] for row in rows(LIBRARY, "dcim.device-types") if row["model"] == "MPUIQ-VMCHS"]
    assert sorted(maker["name"] for maker in sold_by) == ["Avocent", "Vertiv"]
    by_name = create(
        "DcimDeviceType",
        {"name": "MPUIQ-VMCHS"},
        {},
        ref("manufacturer", "OrganizationManufacturer", {"name": "Avocent"}),
    )
    (finding,) = operation_findings([by_name], SCHEMA)
    assert finding.name == "UnkeyedCreateRefusedError"
    assert "manufacturer__name__value is not in the identity" in finding.found


@pytest.mark.rules("P61")
def test_the_two_sources_keep_their_near_misses_apart_and_name_them() -> None:
    there = [device_type(row) for row in rows(NETBOX, "dcim.device-types")]
    index = CollisionIndex(SCHEMA)
    for identity in there:
        peers = {"manufacturer": identity["manufacturer"]}
        index.add("DcimDeviceType", identity, {"name": identity["name"]}, peers, "destination")
    for row in rows(LIBRARY, "dcim.device-types"):
        if device_type(row) not in there:
            index.add_operation(typed(device_type(row)))
    assert index.collisions() == []
    (warning,) = [text for text in index.near_misses() if "Flex" in text]
    assert 'name="Flex System"' in warning
    assert 'name="Flex system"' in warning


@pytest.mark.rules("H31", "H32")
def test_an_absent_boolean_under_a_default_is_no_change() -> None:
    only_management = SCHEMA.kinds["DcimInterfaceTemplate"].attributes
    defaults = [attribute for attribute in only_management.values() if attribute.default is not None]
    assert defaults
    for attribute in defaults:
        assert normal_form(attribute, None, kind="DcimInterfaceTemplate") == attribute.default
