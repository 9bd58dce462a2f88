"""The device-type library: volume, half units, two makers of one model, and what it shares with NetBox."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ledger.plan.gate import operation_findings
from producers.errors import PlanRefusedError
from tests.support.fake_reader import FakeDestination, real_schema
from tests.support.planning import LIBRARY, edited, entries, library, netbox, operations, plan

CPU_SECONDS = 20.0
"""What planning the whole library may cost; it takes about a third of it."""


pytestmark = pytest.mark.timeout(600)
"""Every test plans a whole inventory; a loaded machine is no failure."""


def _without_templates(document: dict[str, Any]) -> None:
    """What the volume test has shown once needs no port templates to be shown again."""
    document["schema_mapping"] = [item for item in document["schema_mapping"] if "Template" not in item["name"]]


async def _refusal(folder: Path, edit: Callable[[dict[str, Any]], None]) -> PlanRefusedError:
    def smaller(document: dict[str, Any]) -> None:
        _without_templates(document)
        edit(document)

    with pytest.raises(PlanRefusedError) as caught:
        await plan(edited(LIBRARY, folder, smaller), FakeDestination(), folder)
    return caught.value


@pytest.mark.rules("H11", "A41", "A42")
async def test_every_row_of_the_library_is_created_in_bounded_time_and_then_nothing(tmp_path: Path) -> None:
    destination = FakeDestination()
    started = time.process_time()
    run = await plan(library(), destination, tmp_path)
    assert time.process_time() - started < CPU_SECONDS
    assert run.counts == {"create": 17486, "update": 0, "remove": 0, "skip": 0, "none": 0}
    assert sum(item.row_count for item in run.manifest.source_snapshot) == 17486
    stored = operations(run)
    assert Counter((op.tier, op.kind) for op in stored) == {
        (0, "OrganizationManufacturer"): 114,
        (1, "DcimDeviceType"): 2881,
        (2, "DcimInterfaceTemplate"): 13233,
        (2, "DcimConsolePortTemplate"): 686,
        (2, "DcimPowerPortTemplate"): 572,
    }
    assert operation_findings(stored, real_schema()) == []
    absent = [op for op in stored if op.kind == "DcimInterfaceTemplate" and "mgmt_only" not in (op.payload or {})]
    assert len(absent) == 12709
    destination.apply(stored)
    again = await plan(library(), destination, tmp_path)
    assert again.counts == {"create": 0, "update": 0, "remove": 0, "skip": 0, "none": 17486}


@pytest.mark.rules("P44", "A43")
@pytest.mark.parametrize("identifiers", [["slug"], ["name"]])
async def test_device_types_by_slug_or_name_alone_are_refused(tmp_path: Path, identifiers: list[str]) -> None:
    def edit(document: dict[str, Any]) -> None:
        entries(document, "DcimDeviceType")[0]["identifiers"] = identifiers

    refusal = await _refusal(tmp_path, edit)
    names = Counter(finding.name for finding in refusal.findings)
    assert names["UnkeyedCreateRefusedError"] >= 2880
    if identifiers == ["name"]:
        assert "MPUIQ-VMCHS" in " ".join(f.checked for f in refusal.findings if "Collision" in f.name)


@pytest.mark.rules("G11")
async def test_without_int_every_height_and_weight_is_named(tmp_path: Path) -> None:
    def edit(document: dict[str, Any]) -> None:
        for transform in entries(document, "DcimDeviceType")[0]["transforms"]:
            transform["expression"] = transform["expression"].replace(" | int", "")

    refusal = await _refusal(tmp_path, edit)
    fields = Counter(finding.checked.split(" ")[1].strip('"') for finding in refusal.findings)
    assert fields["height"] == 2881
    assert fields["weight"] > 606
    assert {finding.name for finding in refusal.findings} == {"SchemaMismatchError"}


@pytest.mark.rules("P148", "C35")
async def test_a_second_source_updates_what_both_have_and_records_the_rest_as_deletes(tmp_path: Path) -> None:
    destination = FakeDestination()
    types = edited(LIBRARY, tmp_path, _without_templates)
    destination.apply(operations(await plan(types, destination, tmp_path)))
    run = await plan(netbox("day1"), destination, tmp_path)
    kinds = Counter((op.action, op.kind) for op in operations(run))
    assert kinds["update", "DcimDeviceType"] == 8
    assert kinds["delete", "DcimDeviceType"] == 2881 - 8
    assert kinds["delete", "OrganizationManufacturer"] == 114 - 13
    assert kinds["delete", "DcimConsolePortTemplate"] == 0
    assert run.manifest.delete_operations_computed is True
