"""Both real inventories onto branches of a real server by the program itself, read back object by object."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from ledger.plan.model import PlannedOperation
from tests.live import inventories
from tests.live.infrahub import LiveInfrahub
from tests.live.program import LiveProgram
from tests.live.reading import BranchContent, ObjectKey, key_of

pytestmark = [pytest.mark.live, pytest.mark.timeout(3600)]
"""A whole inventory takes half an hour; what hangs is ended by the server's and the program's own limits."""

NOTHING = {"create": 0, "update": 0}


def apply(program: LiveProgram, planned: dict[str, Any], ids: dict[ObjectKey, str]) -> None:
    """Apply a plan completely; the ids of its objects are added to ``ids``, from what is recorded."""
    summary = program.apply(planned)
    assert summary["state"] == "applied"
    assert summary["applied"] + summary["skipped"] == summary["planned"]
    operations = {operation.operation_id: operation for operation in program.operations(planned)}
    for event in program.events(planned):
        if event["kind"] == "operation.applied":
            operation = operations[event["operation_id"]]
            ids[key_of(operation.kind, operation.identity)] = event["body"]["node_id"]


async def differences(
    program: LiveProgram, operations: Iterable[PlannedOperation], ids: dict[ObjectKey, str]
) -> list[str]:
    """What the branch holds otherwise than these operations say."""
    written = [operation for operation in operations if operation.action != "delete"]
    content = await BranchContent.read(program.branch, {operation.kind for operation in written})
    return [line for operation in written for line in content.differences(operation, ids)]


def changes(planned: dict[str, Any]) -> dict[str, int]:
    return {action: planned["counts"][action] for action in NOTHING}


@pytest.mark.rules("P17", "P19", "P20", "P28", "P32", "P59", "P71", "P93", "H30", "G3", "G6")
async def test_the_device_type_library_is_stored_as_planned_and_the_second_plan_is_empty(
    live_program: LiveProgram, tmp_path: Path
) -> None:
    configuration = inventories.library(tmp_path)
    planned = live_program.plan(configuration)
    operations = live_program.operations(planned)
    ids: dict[ObjectKey, str] = {}
    assert {"OrganizationManufacturer", "DcimDeviceType", "DcimInterfaceTemplate"} <= {op.kind for op in operations}
    apply(live_program, planned, ids)
    assert len(ids) == len(operations)
    assert await differences(live_program, operations, ids) == []
    assert changes(live_program.plan(configuration)) == NOTHING
    assert live_program.holds()


@pytest.mark.rules("P17", "P20", "P34", "P41", "P52", "P86", "P93", "P94", "H30", "G3", "G6")
async def test_the_demo_inventory_day_after_day_ends_in_exactly_the_second_day(
    live_program: LiveProgram, live_infrahub: LiveInfrahub, tmp_path: Path
) -> None:
    day0, day1 = (inventories.netbox(tmp_path, day) for day in ("day0", "day1"))
    untouched = LiveProgram(tmp_path, live_program.database, live_infrahub.new_branch("untouched"))
    ids: dict[ObjectKey, str] = {}

    first = live_program.plan(day0)
    apply(live_program, first, ids)
    assert await differences(live_program, live_program.operations(first), ids) == []

    second = live_program.plan(day1, "--allow-rowcount-drop")
    assert changes(second)["create"] > 0
    assert changes(second)["update"] > 0
    apply(live_program, second, ids)

    # a plan of the second day for a branch where nothing is yet names every field of every object of that day
    whole = live_program.operations(untouched.plan(day1))
    assert {operation.action for operation in whole} == {"create"}
    assert await differences(live_program, whole, ids) == []
    assert changes(live_program.plan(day1)) == NOTHING
    untouched.branch.discard()
