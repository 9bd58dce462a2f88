"""The order of a plan's operations: parents first, cycles cut and said so, deletes after what let go of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ledger.plan.coverage_account import read_coverage
from producers.errors import PlanRefusedError
from tests.support.fake_reader import FakeDestination
from tests.support.planning import Rows, entry, mapped, operations, plan, small

REGIONS = entry(
    "LocationRegion",
    "regions",
    ["slug"],
    mapped("slug"),
    mapped("name", "slug"),
    mapped("parent", "parent", "LocationRegion"),
)
GROUPS = entry(
    "OrganizationTenantGroup",
    "groups",
    ["name"],
    mapped("name"),
    mapped("parent_group", "parent", "OrganizationTenantGroup"),
)


@pytest.mark.rules("A30", "H1", "H23", "H24")
async def test_ff11_parents_of_a_self_referencing_kind_come_before_their_children(tmp_path: Path) -> None:
    rows: Rows = {
        "regions": [
            {"id": 1, "slug": "c", "parent": {"id": 2}},
            {"id": 2, "slug": "b", "parent": {"id": 3}},
            {"id": 3, "slug": "a", "parent": None},
        ]
    }
    destination = FakeDestination(namespaces=())
    run = await plan(small(tmp_path, rows, [REGIONS]), destination, tmp_path)
    stored = operations(run)
    assert [(op.identity["slug"], op.tier) for op in stored] == [("a", 0), ("b", 1), ("c", 2)]
    destination.apply(stored)


@pytest.mark.rules("P87")
async def test_ff11_an_optional_cycle_is_cut_said_so_and_carried_by_the_next_plan(tmp_path: Path) -> None:
    rows: Rows = {"groups": [{"id": 1, "name": "a", "parent": {"id": 2}}, {"id": 2, "name": "b", "parent": {"id": 1}}]}
    destination = FakeDestination(namespaces=())
    loaded = small(tmp_path, rows, [GROUPS])
    first = await plan(loaded, destination, tmp_path)
    cut = [op for op in operations(first) if op.relationships is None]
    assert len(cut) == 1
    lines = read_coverage((first.run_dir / "plan" / "coverage.jsonl").read_bytes())
    reasons = {line.operation_id: line.reason for line in lines if line.reason}
    assert list(reasons) == [cut[0].operation_id]
    assert "parent_group" in str(reasons[cut[0].operation_id])
    destination.apply(operations(first))
    second = await plan(loaded, destination, tmp_path)
    assert second.counts == {"create": 0, "update": 1, "remove": 0, "skip": 0, "none": 1}
    destination.apply(operations(second))
    assert (await plan(loaded, destination, tmp_path)).manifest.operations_count == 0


async def test_an_object_that_is_its_own_peer_is_created_first_and_linked_by_the_next_plan(tmp_path: Path) -> None:
    destination = FakeDestination(namespaces=())
    loaded = small(tmp_path, {"groups": [{"id": 1, "name": "a", "parent": {"id": 1}}]}, [GROUPS])
    destination.apply(operations(await plan(loaded, destination, tmp_path)))
    second = await plan(loaded, destination, tmp_path)
    assert second.counts["update"] == 1
    destination.apply(operations(second))
    assert (await plan(loaded, destination, tmp_path)).manifest.operations_count == 0


@pytest.mark.rules("A31", "P87")
async def test_an_explicit_order_is_the_tier_and_nothing_is_computed(tmp_path: Path) -> None:
    tags = entry("BuiltinTag", "tags", ["name"], mapped("name"))
    sites = entry("LocationSite", "sites", ["name"], mapped("name"), mapped("tags", "tags", "BuiltinTag"))
    rows: Rows = {
        "tags": [{"id": 1, "name": "t"}],
        "sites": [{"id": 1, "name": "s", "tags": [{"id": 1}]}],
        "groups": [{"id": 1, "name": "a", "parent": {"id": 2}}, {"id": 2, "name": "b", "parent": {"id": 1}}],
    }
    order = ["LocationSite", "OrganizationTenantGroup", "BuiltinTag"]
    destination = FakeDestination(namespaces=())
    destination.add("BuiltinTag", name="gone")
    run = await plan(small(tmp_path, rows, [tags, sites, GROUPS], order=order), destination, tmp_path)
    stored = operations(run)
    assert {(op.kind, op.tier) for op in stored} == {(kind, index) for index, kind in enumerate(order)}
    assert all(op.relationships for op in stored if op.kind == "OrganizationTenantGroup")
    assert [op.tier for op in stored] == sorted(op.tier for op in stored)


@pytest.mark.rules("G11", "H2")
async def test_ff11_a_mandatory_cycle_fails_the_plan_naming_the_circle(tmp_path: Path) -> None:
    device_types = entry(
        "DcimDeviceType",
        "types",
        ["manufacturer", "name"],
        mapped("name"),
        mapped("manufacturer", "maker", "OrganizationManufacturer"),
    )
    makers = entry("OrganizationManufacturer", "makers", ["name"], mapped("name"))
    rows: Rows = {
        "makers": [{"id": 1, "name": "m"}],
        "types": [{"id": 1, "name": "t", "maker": {"id": 1}}],
        "rows": [{"id": 1, "name": "r", "site": {"id": 1}}],
    }
    schema = FakeDestination()._schema
    manufacturer = schema.kinds["OrganizationManufacturer"]
    flagship = type(next(iter(manufacturer.relationships.values())))(
        name="flagship", peer="DcimDeviceType", cardinality="one", optional=False
    )
    changed = type(manufacturer)(
        kind=manufacturer.kind,
        human_friendly_id=manufacturer.human_friendly_id,
        uniqueness_constraints=manufacturer.uniqueness_constraints,
        attributes=manufacturer.attributes,
        relationships={**manufacturer.relationships, "flagship": flagship},
    )
    circular = type(schema)(kinds={**schema.kinds, manufacturer.kind: changed})
    makers["fields"].append(mapped("flagship", "flagship", "DcimDeviceType"))
    rows["makers"][0]["flagship"] = {"id": 1}
    loaded = small(tmp_path, rows, [makers, device_types])
    with pytest.raises(PlanRefusedError) as caught:
        await plan(loaded, FakeDestination(circular, namespaces=()), tmp_path)
    assert {finding.name for finding in caught.value.findings} == {"MandatoryCycleError"}
    assert len(caught.value.findings) == 2
    assert all("DcimDeviceType" in finding.found for finding in caught.value.findings)
    left = await plan(loaded, FakeDestination(circular, namespaces=()), tmp_path, continue_on_error=True)
    assert left.counts["skip"] == 2


@pytest.mark.rules("A30", "P145", "C35")
async def test_a_recorded_delete_stands_after_the_update_that_lets_go_of_it(tmp_path: Path) -> None:
    destination = FakeDestination(namespaces=())
    tag = destination.add("BuiltinTag", name="gone")
    destination.add("LocationSite", name="s", tags=[tag])
    tags = entry("BuiltinTag", "tags", ["name"], mapped("name"))
    sites = entry("LocationSite", "sites", ["name"], mapped("name"), mapped("tags", "tags", "BuiltinTag"))
    rows: Rows = {"tags": [], "sites": [{"id": 1, "name": "s", "tags": []}]}
    run = await plan(small(tmp_path, rows, [tags, sites]), destination, tmp_path)
    stored = [(op.action, op.kind, op.tier) for op in operations(run)]
    assert stored == [("update", "LocationSite", 0), ("delete", "BuiltinTag", 1)]


@pytest.mark.rules("H23", "H25", "A77")
async def test_the_order_of_rows_and_entries_decides_nothing(tmp_path: Path) -> None:
    rows: Rows = {
        "regions": [{"id": n, "slug": f"r{n}", "parent": {"id": n - 1} if n % 4 > 1 else None} for n in range(1, 20)],
        "groups": [{"id": n, "name": f"g{n}"} for n in range(9)],
    }
    turned: Rows = {endpoint: list(reversed(items)) for endpoint, items in rows.items()}
    first = await plan(small(tmp_path / "a", rows, [REGIONS, GROUPS]), FakeDestination(), tmp_path / "a")
    second = await plan(small(tmp_path / "b", turned, [GROUPS, REGIONS]), FakeDestination(), tmp_path / "b")
    plans = [(run.run_dir / "plan" / "operations.jsonl").read_bytes() for run in (first, second)]
    assert plans[0] == plans[1]
