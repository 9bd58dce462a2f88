"""A mapping is checked against the schema before any row is read; all faults are named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ledger.schema import DestinationSchema, parse_key_path
from producers.errors import MappingRefusedError
from producers.mapping import compile_mapping
from tests.support.fake_reader import FakeDestination, real_schema
from tests.support.planning import entry, mapped, netbox, plan, small


def _with_attribute(kind: str, name: str, attribute_kind: str) -> DestinationSchema:
    schema = real_schema()
    known = schema.kinds[kind]
    attribute = replace(
        next(iter(known.attributes.values())), name=name, kind=attribute_kind, optional=True, unique=False
    )
    changed = replace(known, attributes={**known.attributes, name: attribute})
    return replace(schema, kinds={**schema.kinds, kind: changed})


@pytest.mark.rules("G11")
async def test_ff13_every_fault_of_the_mapping_is_named_before_anything_is_read(tmp_path: Path) -> None:
    mapping = [
        entry("NoSuchKind", "a", ["name"], mapped("name")),
        entry("LocationHosting", "a", ["name"], mapped("name")),
        entry("BuiltinTags", "a", ["name"], mapped("name")),
        entry("BuiltinTag", "a", ["name"], mapped("descripton")),
        entry(
            "IpamPrefix",
            "a",
            ["prefix"],
            mapped("prefix", reference="BuiltinTag"),
            mapped("utilization"),
            mapped("parent", reference="IpamPrefix"),
            mapped("vrf"),
            mapped("site", reference="BuiltinTag"),
        ),
    ]
    destination = FakeDestination()
    with pytest.raises(MappingRefusedError) as caught:
        await plan(small(tmp_path, {}, mapping), destination, tmp_path)
    found = [(finding.checked, finding.found) for finding in caught.value.findings]
    assert found == [
        ("schema_mapping.0.name", "NoSuchKind: no such kind"),
        ("schema_mapping.1.name", "LocationHosting: a generic"),
        ("schema_mapping.2.name", "BuiltinTags (did you mean BuiltinTag?): no such kind"),
        (
            "schema_mapping.3 (BuiltinTag).descripton",
            "an unknown field: descripton (did you mean description?)",
        ),
        ("schema_mapping.3 (BuiltinTag).fields", "none for name"),
        ("schema_mapping.4 (IpamPrefix).prefix", "reference BuiltinTag"),
        ("schema_mapping.4 (IpamPrefix).utilization", "a read-only field"),
        ("schema_mapping.4 (IpamPrefix).parent", "a read-only field"),
        ("schema_mapping.4 (IpamPrefix).vrf", "none"),
        ("schema_mapping.4 (IpamPrefix).site", "to BuiltinTag"),
    ]
    assert destination.requested == {}


@pytest.mark.rules("G12", "G11")
@pytest.mark.parametrize("attribute_kind", ["Password", "HashedPassword"])
async def test_g12_a_field_that_goes_to_a_password_kind_is_refused(tmp_path: Path, attribute_kind: str) -> None:
    schema = _with_attribute("BuiltinTag", "door_code", attribute_kind)
    mapping = [entry("BuiltinTag", "tags", ["name"], mapped("name"), mapped("door_code", "code"))]
    loaded = small(tmp_path, {"tags": [{"id": 1, "name": "t", "code": "4711"}]}, mapping)
    with pytest.raises(MappingRefusedError) as caught:
        await plan(loaded, FakeDestination(schema), tmp_path)
    assert [finding.name for finding in caught.value.findings] == ["SecretValueRefusedError"]
    run_dir = next(path for path in (tmp_path / "small").iterdir() if path.is_dir())
    assert all(b"4711" not in path.read_bytes() for path in run_dir.rglob("*") if path.is_file())


async def test_g12_secret_attributes_are_not_even_read(tmp_path: Path) -> None:
    schema = _with_attribute("BuiltinTag", "door_code", "Password")
    known = schema.kinds["BuiltinTag"]
    constraint = (parse_key_path("door_code__value", known.relationships),)
    schema = replace(schema, kinds={**schema.kinds, "BuiltinTag": replace(known, uniqueness_constraints=(constraint,))})
    config = small(tmp_path, {}, [entry("BuiltinTag", "tags", ["name"], mapped("name"))]).config
    assert compile_mapping(config, schema).selection("BuiltinTag").attributes == ("name",)


async def test_identifiers_come_from_the_first_entry_that_has_any(tmp_path: Path) -> None:
    mapping = [
        entry("BuiltinTag", "a", [], mapped("name")),
        entry("BuiltinTag", "b", ["name"], mapped("name")),
        entry("BuiltinTag", "c", ["description"], mapped("name"), mapped("description")),
    ]
    config = small(tmp_path, {}, mapping).config
    assert compile_mapping(config, real_schema()).kinds["BuiltinTag"].identifiers == ("name",)


async def test_without_identifiers_the_unique_attributes_that_are_mapped_are_used(tmp_path: Path) -> None:
    mapping = [entry("IpamRouteTarget", "a", [], mapped("name"), mapped("description"))]
    schema = real_schema()
    known = schema.kinds["IpamRouteTarget"]
    unique = replace(known, attributes={**known.attributes, "name": replace(known.attributes["name"], unique=True)})
    schema = replace(schema, kinds={**schema.kinds, "IpamRouteTarget": unique})
    assert compile_mapping(small(tmp_path, {}, mapping).config, schema).kinds["IpamRouteTarget"].identifiers == (
        "name",
    )
    neither = [entry("IpamRouteTarget", "a", [], mapped("description"))]
    with pytest.raises(MappingRefusedError, match="the identifiers of IpamRouteTarget"):
        compile_mapping(small(tmp_path, {}, neither).config, schema)


@pytest.mark.rules("A49")
def test_candidates_of_a_reference_are_those_of_all_entries_of_the_kind() -> None:
    kinds = compile_mapping(netbox().config, real_schema()).kinds
    assert kinds["DcimDevice"].candidates["location"] == ("LocationRack", "LocationSite")
    assert kinds["IpamVLAN"].candidates["vlan_group"] == ("IpamVLANGroup", "LocationSite")
    assert kinds["IpamPrefix"].candidates["ip_namespace"] == ("IpamNamespace",)


@pytest.mark.rules("P61")
def test_key_parts_are_read_even_when_nobody_maps_them(tmp_path: Path) -> None:
    config = small(tmp_path, {}, [entry("DcimDeviceType", "types", ["slug"], mapped("slug"))]).config
    mapping = compile_mapping(config, real_schema())
    selection = mapping.selection("DcimDeviceType")
    assert (selection.attributes, selection.one) == (("name", "slug"), ("manufacturer",))
    # of a kind that is only somebody's peer, what identifies it is enough
    assert mapping.selection("OrganizationManufacturer").attributes == ("name",)
