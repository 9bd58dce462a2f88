"""Rows to records: absent, null and empty; values in normal form; every fault named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from producers.errors import PlanRefusedError, RowShapeError
from producers.run_directory import read_run_record
from producers.source_side import ABSENT, value_or_absent
from tests.support.fake_reader import FakeDestination
from tests.support.planning import Rows, entry, mapped, operations, plan, small


@pytest.mark.parametrize(
    ("row", "path", "expected"),
    [
        ({"a": 1}, "a", 1),
        ({"a": None}, "a", None),
        ({"a": ""}, "a", ""),
        ({"a": 0}, "a", 0),
        ({}, "a", ABSENT),
        ({"a": {"b": 1}}, "a.b", 1),
        ({"a": {"b": None}}, "a.b", None),
        ({"a": {"c": 1}}, "a.b", ABSENT),
        ({"a": None}, "a.b", None),
        ({"a": {}}, "a.b", None),
        ({"a": ""}, "a.b", None),
        ({"a": []}, "a.b", None),
        ({}, "a.b", ABSENT),
        ({"a": {"b": None}}, "a.b.c", None),
    ],
)
def test_absent_is_not_null(row: dict[str, Any], path: str, expected: Any) -> None:
    assert (
        value_or_absent(row, tuple(path.split("."))) is expected
        or value_or_absent(row, tuple(path.split("."))) == expected
    )


def test_g11_a_path_that_goes_on_below_a_text_is_refused() -> None:
    with pytest.raises(RowShapeError, match=r"a\.b"):
        value_or_absent({"a": "text"}, ("a", "b"))


TAGS = entry("BuiltinTag", "tags", ["name"], mapped("name"), mapped("description"))
SITES = entry(
    "LocationSite", "sites", ["name"], mapped("name"), mapped("status"), mapped("facility"), mapped("description")
)


async def test_ff12_a_null_is_planned_on_create_and_on_update_and_an_absent_field_on_neither(tmp_path: Path) -> None:
    destination = FakeDestination(namespaces=())
    destination.add("BuiltinTag", name="cleared", description="old")
    destination.add("BuiltinTag", name="left", description="old")
    rows: Rows = {
        "tags": [
            {"id": 1, "name": "cleared", "description": None},
            {"id": 2, "name": "left"},
            {"id": 3, "name": "new", "description": None},
            {"id": 4, "name": "bare"},
        ]
    }
    run = await plan(small(tmp_path, rows, [TAGS]), destination, tmp_path)
    payloads = {op.identity["name"]: (op.action, op.payload) for op in operations(run)}
    assert payloads == {
        "cleared": ("update", {"name": "cleared", "description": None}),
        "new": ("create", {"name": "new", "description": None}),
        "bare": ("create", {"name": "bare"}),
    }
    destination.apply(operations(run))
    again = await plan(small(tmp_path, rows, [TAGS]), destination, tmp_path)
    assert again.manifest.operations_count == 0


async def test_null_and_empty_text_are_two_values(tmp_path: Path) -> None:
    destination = FakeDestination(namespaces=())
    for name, value in (("a", "x"), ("b", None), ("c", "")):
        destination.add("BuiltinTag", name=name, description=value)
    rows: Rows = {"tags": [{"id": n, "name": n, "description": v} for n, v in (("a", ""), ("b", ""), ("c", None))]}
    run = await plan(small(tmp_path, rows, [TAGS]), destination, tmp_path)
    assert run.counts["update"] == 3
    destination.apply(operations(run))
    assert (await plan(small(tmp_path, rows, [TAGS]), destination, tmp_path)).counts["none"] == 3


async def test_null_under_a_default_is_the_default(tmp_path: Path) -> None:
    destination = FakeDestination(namespaces=())
    rows: Rows = {"sites": [{"id": 1, "name": "s", "status": None, "facility": None, "description": None}]}
    run = await plan(small(tmp_path, rows, [SITES]), destination, tmp_path)
    assert operations(run)[0].payload == {"name": "s", "status": "active", "facility": None, "description": None}
    destination.apply(operations(run))
    assert (await plan(small(tmp_path, rows, [SITES]), destination, tmp_path)).manifest.operations_count == 0


@pytest.mark.parametrize(
    ("given", "stored"),
    [("10.0.0.1", "10.0.0.1/32"), ("2001:DB8::1", "2001:db8::1/128"), ("10.0.0.1/255.255.255.0", "10.0.0.1/24")],
)
async def test_ff15_one_normal_form_in_identity_payload_and_comparison(tmp_path: Path, given: str, stored: str) -> None:
    addresses = entry(
        "IpamIPAddress",
        "addresses",
        ["address", "ip_namespace"],
        mapped("address"),
        {"name": "ip_namespace", "static": "default", "reference": "IpamNamespace"},
    )
    destination = FakeDestination()
    rows: Rows = {"addresses": [{"id": 1, "address": given}]}
    run = await plan(small(tmp_path, rows, [addresses]), destination, tmp_path)
    create = operations(run)[0]
    assert (create.identity["address"], (create.payload or {})["address"]) == (stored, stored)
    destination.apply(operations(run))
    assert (await plan(small(tmp_path, rows, [addresses]), destination, tmp_path)).manifest.operations_count == 0


@pytest.mark.rules("G11", "A20")
@pytest.mark.parametrize(
    ("value", "found"),
    [
        (float("nan"), "float"),
        (float("inf"), "float"),
        ("a\u0000b", "U+0000"),
        (5, ""),
        ("NULL", "NULL"),
        ("x" * 5_000, ""),
    ],
)
async def test_a_value_that_cannot_be_planned_is_refused_by_kind_and_field(
    tmp_path: Path, value: Any, found: str
) -> None:
    rows: Rows = {"tags": [{"id": 1, "name": "ok"}, {"id": 2, "name": "bad", "description": value}]}
    with pytest.raises(PlanRefusedError) as caught:
        await plan(small(tmp_path, rows, [TAGS]), FakeDestination(namespaces=()), tmp_path)
    assert len(caught.value.findings) == 1
    text = str(caught.value.findings[0])
    assert "BuiltinTag" in text
    assert "description" in text
    assert found in text


@pytest.mark.rules("G11")
async def test_faults_of_filters_transforms_values_and_identities_are_listed_together(tmp_path: Path) -> None:
    tags = entry(
        "BuiltinTag",
        "tags",
        ["name"],
        mapped("name"),
        mapped("description", "text"),
        filters=[{"field": "rank", "operation": ">", "value": 0}],
        transforms=[{"field": "text", "expression": "{{ 'x' * (100 // divisor) }}"}],
    )
    rows: Rows = {
        "tags": [
            {"id": 1, "name": "filtered", "rank": 0, "divisor": 1},
            {"id": 2, "name": "unrankable", "rank": None, "divisor": 1},
            {"id": 3, "name": "undividable", "rank": 1, "divisor": 0},
            {"id": 4, "name": None, "rank": 1, "divisor": 1},
            {"id": 5, "name": " ", "rank": 1, "divisor": 1},
            {"id": 6, "name": "twice", "rank": 1, "divisor": 1},
            {"id": 7, "name": "twice", "rank": 1, "divisor": 1},
            {"id": 8, "name": "good", "rank": 1, "divisor": 1},
        ]
    }
    with pytest.raises(PlanRefusedError) as caught:
        await plan(small(tmp_path, rows, [tags]), FakeDestination(namespaces=()), tmp_path)
    assert [finding.name for finding in caught.value.findings] == [
        "FilterEvaluationError",
        "TransformEvaluationError",
        "UnkeyedCreateRefusedError",
        "UnkeyedCreateRefusedError",
        "DestinationIdentityCollisionError",
        "DestinationIdentityCollisionError",
    ]
    assert [f"id {number}" in str(finding) for number, finding in enumerate(caught.value.findings, 2)] == [True] * 6


async def test_a_missing_identifier_that_is_no_part_of_the_key_makes_a_nameless_object(tmp_path: Path) -> None:
    tags = entry("BuiltinTag", "tags", ["name", "description"], mapped("name"), mapped("description"))
    with pytest.raises(PlanRefusedError) as caught:
        await plan(small(tmp_path, {"tags": [{"id": 1, "name": "t"}]}, [tags]), FakeDestination(), tmp_path)
    (finding,) = caught.value.findings
    assert (finding.name, finding.found) == ("NamelessObjectError", "description is absent")


@pytest.mark.rules("H10", "H19", "C56")
async def test_rows_that_cannot_be_planned_are_skipped_with_their_reason_on_demand(tmp_path: Path) -> None:
    sites = entry("LocationSite", "sites", ["name"], mapped("name"), mapped("tags", "tags", "BuiltinTag"))
    rows: Rows = {
        "tags": [{"id": 1, "name": None}, {"id": 2, "name": "good"}, {"id": 3, "name": "NULL"}],
        "sites": [
            {"id": 1, "name": "on nameless", "tags": [{"id": 1}]},
            {"id": 2, "name": "on good", "tags": [{"id": 2}]},
            {"id": 3, "name": "on refused", "tags": [{"id": 3}]},
        ],
    }
    run = await plan(
        small(tmp_path, rows, [TAGS, sites]), FakeDestination(namespaces=()), tmp_path, continue_on_error=True
    )
    assert run.counts == {"create": 2, "update": 0, "remove": 0, "skip": 4, "none": 0}
    assert {op.identity["name"] for op in operations(run)} == {"good", "on good"}
    assert (run.run_dir / "errors.parquet").exists()


@pytest.mark.rules("P61", "P62", "G11")
async def test_ff07_a_create_that_lands_on_another_object_is_refused_and_can_be_left_out(tmp_path: Path) -> None:
    addresses = entry(
        "IpamIPAddress",
        "addresses",
        ["address", "ip_namespace", "fqdn"],
        mapped("address"),
        mapped("fqdn"),
        {"name": "ip_namespace", "static": "default", "reference": "IpamNamespace"},
    )
    destination = FakeDestination()
    namespace = destination.named("IpamNamespace", name="default")
    destination.add("IpamIPAddress", address="10.0.0.9/32", ip_namespace=namespace, fqdn="theirs")
    rows: Rows = {
        "addresses": [
            {"id": 1, "address": "10.0.0.1", "fqdn": "a"},
            {"id": 2, "address": "10.0.0.1/32", "fqdn": "b"},
            {"id": 3, "address": "10.0.0.2", "fqdn": "c"},
            {"id": 4, "address": "10.0.0.9", "fqdn": "ours"},
        ]
    }
    loaded = small(tmp_path, rows, [addresses])
    with pytest.raises(PlanRefusedError) as caught:
        await plan(loaded, destination, tmp_path)
    assert [finding.name for finding in caught.value.findings] == ["DestinationIdentityCollisionError"] * 2
    assert "fqdn does not count there" in str(caught.value)
    run = await plan(loaded, destination, tmp_path, continue_on_error=True)
    assert run.counts == {"create": 1, "update": 0, "remove": 1, "skip": 3, "none": 0}


async def test_a_skipped_row_whose_object_exists_keeps_its_dependants_and_is_no_delete(tmp_path: Path) -> None:
    destination = FakeDestination(namespaces=())
    destination.add("BuiltinTag", name="t", description="fine")
    sites = entry("LocationSite", "sites", ["name"], mapped("name"), mapped("tags", "tags", "BuiltinTag"))
    rows: Rows = {
        "tags": [{"id": 1, "name": "t", "description": "x" * 5_000}],
        "sites": [{"id": 1, "name": "s", "tags": [{"id": 1}]}],
    }
    run = await plan(small(tmp_path, rows, [TAGS, sites]), destination, tmp_path, continue_on_error=True)
    assert run.counts == {"create": 1, "update": 0, "remove": 0, "skip": 1, "none": 0}


@pytest.mark.rules("H18")
async def test_filtered_rows_are_counted_per_entry(tmp_path: Path) -> None:
    kept = entry(
        "BuiltinTag", "tags", ["name"], mapped("name"), filters=[{"field": "id", "operation": "<", "value": 3}]
    )
    rows: Rows = {"tags": [{"id": n, "name": f"t{n}"} for n in range(5)]}
    run = await plan(small(tmp_path, rows, [kept]), FakeDestination(namespaces=()), tmp_path)
    assert run.filtered_rows == {"0:tags": 2}
    assert run.manifest.source_snapshot[0].row_count == 3


@pytest.mark.rules("C8", "H18")
async def test_a_row_is_left_out_where_no_entry_of_its_endpoint_selects_it(tmp_path: Path) -> None:
    def selecting(operation: str, value: int) -> dict[str, Any]:
        condition = {"field": "id", "operation": operation, "value": value}
        return entry("BuiltinTag", "tags", ["name"], mapped("name"), filters=[condition])

    rows: Rows = {"tags": [{"id": n, "name": f"t{n}"} for n in range(10)], "sites": [{"id": 1, "name": "s"}]}
    mapping = [selecting("<", 3), selecting(">", 6), entry("LocationSite", "sites", ["name"], mapped("name"))]
    run = await plan(small(tmp_path, rows, mapping), FakeDestination(namespaces=()), tmp_path)
    assert run.filtered_rows == {"0:tags": 7, "1:tags": 7, "2:sites": 0}
    record = read_run_record(run.run_dir)
    assert record.source_rows == run.source_rows
    assert {name: (it.read, it.left_out) for name, it in record.source_rows.items()} == {
        "tags": (10, 4),
        "sites": (1, 0),
    }
    assert record.source_location == str(tmp_path / "rows")


async def test_a_column_that_no_row_has_is_a_warning(tmp_path: Path) -> None:
    tags = entry("BuiltinTag", "tags", ["name"], mapped("name"), mapped("description", "descripton"))
    run = await plan(
        small(tmp_path, {"tags": [{"id": 1, "name": "t"}]}, [tags]), FakeDestination(namespaces=()), tmp_path
    )
    assert any("descripton" in warning for warning in run.warnings)
