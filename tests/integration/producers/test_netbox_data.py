"""The NetBox demo inventory of two days, planned against a destination in memory."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from consumers.infrahub.observed import observed_in_snapshot
from consumers.infrahub.rehearsed import open_rehearsal
from consumers.rehearsal import Effect, Rehearsal
from ledger.plan.coverage_account import read_coverage
from ledger.plan.model import PlannedOperation
from ledger.plan.reader import read_raw_artifact
from ledger.plan.verify import verify_plan
from ledger.schema import parse_schema
from producers.errors import PlanRefusedError
from producers.planning import PlannedRun
from tests.support.fake_reader import FakeDestination
from tests.support.planning import NETBOX, edited, entries, netbox, operations, plan

pytestmark = pytest.mark.timeout(600)
"""Every test plans a whole inventory; a loaded machine is no failure."""

SCHEMA_DOCUMENT = json.loads((Path(__file__).parents[2] / "data" / "schema-api.json").read_text(encoding="utf-8"))
CREATED = {"create": 3291, "update": 0, "remove": 0, "skip": 0, "none": 1}


async def _refusal(folder: Path, edit: Any, *, day: str = "day0") -> PlanRefusedError:
    with pytest.raises(PlanRefusedError) as caught:
        await plan(edited(NETBOX, folder, edit, day=day), FakeDestination(), folder)
    assert not list(folder.glob("*/*/plan"))
    return caught.value


class Days:
    """The plans that most tests look at, made once: day0 on an empty destination, day1 after it, day1 again."""

    def __init__(self, folder: Path) -> None:
        destination = FakeDestination()
        self.day0 = asyncio.run(plan(netbox("day0"), destination, folder))
        destination.apply(operations(self.day0))
        self.after_day0 = destination.copy()
        self.day1 = asyncio.run(plan(netbox("day1"), destination, folder))
        destination.apply(operations(self.day1))
        self.after_day1 = destination
        self.again = asyncio.run(plan(netbox("day1"), destination, folder))


@pytest.fixture(scope="module")
def days(tmp_path_factory: pytest.TempPathFactory) -> Days:
    return Days(tmp_path_factory.mktemp("days"))


@pytest.mark.rules("A41", "A42", "A43", "H5", "H7", "H11")
async def test_day0_on_an_empty_destination_creates_every_selected_row(days: Days) -> None:
    run = days.day0
    assert run.counts == CREATED
    assert sum(item.row_count for item in run.manifest.source_snapshot) == 3291
    assert len(run.manifest.source_snapshot) == 43
    stored = operations(run)
    assert {op.action for op in stored} == {"create"}
    assert all(op.destination_id is None for op in stored)
    raw = read_raw_artifact(run.run_dir)
    assert verify_plan(artifact=raw, run_id=run.run_id, config_version=run.manifest.config_version) == []
    # applying raises where an operation comes before one that it needs
    assert await days.after_day0.counts(("LocationRegion",)) == {"LocationRegion": 67}


@pytest.mark.rules("H30", "H31", "H32", "A16")
async def test_a_second_plan_after_day0_is_empty(tmp_path: Path, days: Days) -> None:
    again = await plan(netbox("day0"), days.after_day0, tmp_path)
    assert again.counts == {"create": 0, "update": 0, "remove": 0, "skip": 0, "none": 3292}
    assert again.manifest.operations_count == 0


@pytest.mark.rules("A30", "H23")
def test_regions_come_level_by_level(days: Days) -> None:
    regions = [op for op in operations(days.day0) if op.kind == "LocationRegion"]
    assert Counter(op.tier for op in regions) == {0: 6, 1: 10, 2: 51}
    seen: set[str] = set()
    for op in regions:
        parents = [peer["slug"] for item in op.relationships or [] for peer in item.peers]
        assert set(parents) <= seen
        seen.add(op.identity["slug"])


def _by_identity(stored: tuple[PlannedOperation, ...], kind: str) -> dict[str, PlannedOperation]:
    return {str(op.identity.get("name", op.identity)): op for op in stored if op.kind == kind}


@pytest.mark.rules("A32", "A35", "P145", "C35", "H8", "H9", "H16")
def test_day1_after_day0_is_the_real_difference(days: Days) -> None:
    run = days.day1
    assert run.counts == {"create": 73, "update": 27, "remove": 9, "skip": 0, "none": 3256}
    stored = operations(run)
    assert Counter((op.action, op.kind) for op in stored if op.action != "create") == {
        ("update", "LocationSite"): 24,
        ("update", "DcimDeviceType"): 2,
        ("update", "OrganizationRIR"): 1,
        ("delete", "IpamASN"): 9,
    }
    sites = _by_identity(stored, "LocationSite")
    references = {name: {item.field: item for item in op.relationships or []} for name, op in sites.items()}
    assert sum(1 for fields in references.values() if fields["asns"].peers == []) == 24
    assert all(len(fields["tags"].peers) == 3 for fields in references.values())
    lines = read_coverage((run.run_dir / "plan" / "coverage.jsonl").read_bytes())
    differing = {
        line.identity["name"]: line.differences for line in lines if line.kind == "LocationSite" and line.differences
    }
    emptied = [item["asns"] for item in differing.values() if "asns" in item]
    assert (len(emptied), {len(item.desired) for item in emptied}) == (14, {0})
    assert sum("site_group" in item for item in differing.values()) == 20
    assert sum("tags" in item for item in differing.values()) == 24


def test_real_clears_are_updates_of_their_own(days: Days) -> None:
    stored = operations(days.day1)
    roles = {
        name: (op.payload or {})["subdevice_role"]
        for name, op in _by_identity(stored, "DcimDeviceType").items()
        if op.action == "update"
    }
    assert roles == {"EX9214": None, "MX480": None}
    rir = _by_identity(stored, "OrganizationRIR")["RFC 6996"].payload or {}
    assert (rir["description"], rir["is_private"]) == ("", True)


@pytest.mark.rules("C35", "H31")
def test_after_day1_only_the_recorded_deletes_remain(days: Days) -> None:
    again = days.again
    assert again.counts == {"create": 0, "update": 0, "remove": 9, "skip": 0, "none": 3356}
    assert {(op.action, op.kind) for op in operations(again)} == {("delete", "IpamASN")}


@pytest.mark.rules("C55")
async def test_ff02_the_vanished_asns_trip_the_guard_until_somebody_says_so(tmp_path: Path) -> None:
    baseline = {"IpamASN": 14, "LocationSite": 24}
    with pytest.raises(PlanRefusedError, match="IpamASN"):
        await plan(netbox("day1"), FakeDestination(), tmp_path, baseline=baseline)
    run = await plan(netbox("day1"), FakeDestination(), tmp_path, baseline=baseline, allow_rowcount_drop=True)
    assert run.counts["create"] == 3355


@pytest.mark.rules("A77", "A78", "A70", "H25")
async def test_two_plans_of_the_real_world_are_byte_identical(tmp_path: Path, days: Days) -> None:
    runs: list[PlannedRun] = [days.day1, await plan(netbox("day1"), days.after_day0, tmp_path)]
    for name in ("operations.jsonl", "coverage.jsonl"):
        assert len({(run.run_dir / "plan" / name).read_bytes() for run in runs}) == 1
    manifests = [json.loads((run.run_dir / "plan" / "manifest.json").read_bytes()) for run in runs]
    stripped = [
        {key: value for key, value in item.items() if key not in ("run_id", "created_at")} for item in manifests
    ]
    assert stripped[0] == stripped[1]


def test_the_constant_namespace_is_in_use_and_no_delete(days: Days) -> None:
    lines = read_coverage((days.day0.run_dir / "plan" / "coverage.jsonl").read_bytes())
    (line,) = (line for line in lines if line.kind == "IpamNamespace")
    assert (line.action, line.identity) == ("none", {"name": "default"})
    assert "IpamPrefix.ip_namespace" in str(line.reason)


@pytest.mark.rules("A47", "A49", "A50", "A52", "C17")
def test_vlans_have_groups_or_sites_and_devices_racks(days: Days) -> None:
    stored = operations(days.day0)
    domains = Counter(op.identity["vlan_group"]["peer_kind"] for op in stored if op.kind == "IpamVLAN")
    assert domains == {"LocationSite": 39, "IpamVLANGroup": 24}
    locations = Counter(
        item.peer_kind
        for op in stored
        if op.kind == "DcimDevice"
        for item in op.relationships or []
        if item.field == "location"
    )
    assert set(locations) == {"LocationRack"}
    prefixes = [
        item for op in stored if op.kind == "IpamPrefix" for item in op.relationships or [] if item.field == "vlan"
    ]
    assert len(prefixes) == 39
    assert all(item.peers[0]["vlan_group"]["peer_kind"] in ("LocationSite", "IpamVLANGroup") for item in prefixes)


@pytest.mark.rules("P61", "G11")
async def test_ff07_without_its_transform_three_panels_collide(tmp_path: Path) -> None:
    def edit(document: dict[str, Any]) -> None:
        for item in entries(document, "DcimDevice"):
            item.pop("transforms")
            next(field for field in item["fields"] if field["name"] == "name")["mapping"] = "name"

    refusal = await _refusal(tmp_path, edit)
    assert [finding.name for finding in refusal.findings] == ["DestinationIdentityCollisionError"] * 3
    assert all('DcimDevice(name="PP:MDF")' in finding.checked for finding in refusal.findings)
    assert all(node_id in str(refusal) for node_id in ("id 90", "id 91", "id 92"))
    run = await plan(edited(NETBOX, tmp_path, edit), FakeDestination(), tmp_path, continue_on_error=True)
    assert run.counts == {"create": 3141, "update": 0, "remove": 0, "skip": 150, "none": 1}


@pytest.mark.rules("A50", "A51", "G11")
@pytest.mark.parametrize(("kind", "day", "rows"), [("DcimFrontPort", "day0", 624), ("InterfacePhysical", "day1", 441)])
async def test_a_dropped_device_filter_is_loud_for_every_row(tmp_path: Path, kind: str, day: str, rows: int) -> None:
    def edit(document: dict[str, Any]) -> None:
        for item in entries(document, kind):
            item["filters"] = [rule for rule in item["filters"] if rule["field"] != "device.name"]

    refusal = await _refusal(tmp_path, edit, day=day)
    assert {finding.name for finding in refusal.findings} == {"UnresolvedReferenceError"}
    unresolved = [
        finding for finding in refusal.findings if finding.checked.startswith(f"the reference device of {kind}")
    ]
    assert len(unresolved) == rows


@pytest.mark.rules("G11")
@pytest.mark.parametrize("expression", [None, "{{ custom_fields.cust_id }}"])
async def test_without_its_transform_exactly_two_tenants_are_refused(tmp_path: Path, expression: str | None) -> None:
    def edit(document: dict[str, Any]) -> None:
        (tenants,) = entries(document, "OrganizationTenant")
        if expression is None:
            tenants.pop("transforms")
            next(item for item in tenants["fields"] if item["name"] == "customer_id")["mapping"] = (
                "custom_fields.cust_id"
            )
        else:
            tenants["transforms"][0]["expression"] = expression

    refusal = await _refusal(tmp_path, edit)
    assert [finding.name for finding in refusal.findings] == ["SchemaMismatchError"] * 2
    for tenant in ("Jimbob's Banking & Trust", "NC State University"):
        assert any(tenant in finding.checked and "customer_id" in finding.checked for finding in refusal.findings)


@pytest.mark.rules("P56", "A43", "C15")
async def test_ff06_prefixes_by_prefix_and_vrf_are_refused(tmp_path: Path) -> None:
    def edit(document: dict[str, Any]) -> None:
        for item in entries(document, "IpamPrefix"):
            item["identifiers"] = ["prefix", "vrf"]
            if all(field["name"] != "vrf" for field in item["fields"]):
                item["fields"].append({"name": "vrf", "mapping": "vrf", "reference": "IpamVRF"})

    refusal = await _refusal(tmp_path, edit)
    assert [finding.name for finding in refusal.findings] == ["UnkeyedCreateRefusedError"] * 68
    assert all("ip_namespace" in finding.expected for finding in refusal.findings)


@pytest.mark.rules("P60", "A43")
async def test_the_kind_without_any_key_is_refused(tmp_path: Path) -> None:
    def edit(document: dict[str, Any]) -> None:
        fields = {"status": "status.value", "cable_type": "type.value", "color": "color"}
        document["schema_mapping"].append(
            {
                "name": "DcimCable",
                "mapping": "dcim.cables",
                "identifiers": ["cable_type", "color"],
                "fields": [{"name": name, "mapping": path} for name, path in fields.items()],
            }
        )

    refusal = await _refusal(tmp_path, edit)
    assert "UnkeyedCreateRefusedError" in {finding.name for finding in refusal.findings}
    assert all("DcimCable" in finding.checked for finding in refusal.findings)


@pytest.mark.rules("P17", "P36", "P40", "P93", "A41")
async def test_the_second_day_rehearsed_on_what_was_observed_is_carried_out_whole(days: Days) -> None:
    """Every update changes what the plan says it changes, from the value that was observed; every create is one."""
    schema = parse_schema(SCHEMA_DOCUMENT)
    effects: list[Effect] = []
    observed = list(observed_in_snapshot(days.day1.run_dir, schema))
    async with open_rehearsal(SCHEMA_DOCUMENT, observed, run_id=days.day1.run_id, told=effects.append) as opened:
        binding = days.day1.manifest.destination_binding
        assert binding is not None
        rehearsal = Rehearsal(
            operations(days.day1),
            opened.destination,
            binding=binding,
            run_id=days.day1.run_id,
            skipped=opened.destination.skipped,
        )
        await rehearsal.run()
    assert opened.seeded.unknown == set()
    assert opened.seeded.dangling == {}
    assert opened.seeded.objects == len(observed) > 3000
    found = Counter(effect.outcome for effect in effects)
    counts = days.day1.counts
    assert found == {"created": counts["create"], "updated": counts["update"], "skipped": counts["remove"]}
    raw = read_raw_artifact(days.day1.run_dir)
    assert raw.coverage is not None
    lines = {line.operation_id: line for line in read_coverage(raw.coverage) if line.action == "update"}
    for effect in effects:
        if effect.outcome == "updated":
            assert {item.field for item in effect.fields} == set(lines[effect.operation.operation_id].differences)
