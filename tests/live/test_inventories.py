"""Both real inventories onto branches of a real server by the program itself, read back object by object."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from ledger.plan.model import PlannedOperation
from tests.live import inventories
from tests.live.infrahub import LiveInfrahub
from tests.live.program import LiveProgram
from tests.live.reading import BranchContent, ObjectKey, key_of, totals_of
from tests.live.rehearsing import differences_from_rehearsal

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


def kinds_of(operations: Iterable[PlannedOperation]) -> set[str]:
    return {operation.kind for operation in operations}


def differences(content: BranchContent, operations: Iterable[PlannedOperation], ids: dict[ObjectKey, str]) -> list[str]:
    """What the branch holds otherwise than these operations say."""
    return [
        line for operation in operations if operation.action != "delete" for line in content.differences(operation, ids)
    ]


def unexpected(program: LiveProgram, there: Mapping[str, int], ids: dict[ObjectKey, str]) -> dict[str, int]:
    """How many objects of each kind the branch holds beyond those that were there and those that were written."""
    written = Counter(kind for kind, _ in ids)
    return {
        kind: total - there[kind] - written[kind]
        for kind, total in totals_of(program.branch, there).items()
        if total != there[kind] + written[kind]
    }


def changes(planned: dict[str, Any]) -> dict[str, int]:
    return {action: planned["counts"][action] for action in NOTHING}


@pytest.mark.rules("P17", "P19", "P20", "P59", "H30", "G3", "G6")
async def test_the_device_type_library_is_stored_as_planned_and_the_second_plan_is_empty(
    live_program: LiveProgram, tmp_path: Path
) -> None:
    configuration = inventories.library(tmp_path)
    planned = live_program.plan(configuration)
    operations = live_program.operations(planned)
    ids: dict[ObjectKey, str] = {}
    assert {"OrganizationManufacturer", "DcimDeviceType", "DcimInterfaceTemplate"} <= kinds_of(operations)
    there = totals_of(live_program.branch, kinds_of(operations))
    apply(live_program, planned, ids)
    assert len(ids) == len(operations)
    content = await BranchContent.read(live_program.branch, kinds_of(operations))
    assert differences(content, operations, ids) == []
    assert unexpected(live_program, there, ids) == {}
    assert changes(live_program.plan(configuration)) == NOTHING
    assert live_program.holds()


def assert_peers_come_first(operations: Sequence[PlannedOperation]) -> None:
    """Each peer that the plan makes stands before whoever refers to it."""
    places = {key_of(operation.kind, operation.identity): place for place, operation in enumerate(operations)}
    for place, operation in enumerate(operations):
        for reference in operation.relationships or ():
            peers = [key_of(reference.peer_kind, identity) for identity in reference.peers]
            assert all(places.get(peer, -1) < place for peer in peers), operation


@pytest.mark.rules("P17", "P20", "P34", "P52", "P86", "P93", "H30", "G1", "G3", "G6")
async def test_the_demo_inventory_day_after_day_is_as_rehearsed_and_ends_in_exactly_the_second_day(
    live_program: LiveProgram, live_infrahub: LiveInfrahub, tmp_path: Path
) -> None:
    day0, day1 = (inventories.netbox(tmp_path, day) for day in ("day0", "day1"))
    untouched = LiveProgram(tmp_path, live_program.database, live_infrahub.new_branch("untouched"))
    # a plan of the second day for a branch where nothing is yet names every field of every object of that day
    whole = live_program.operations(untouched.plan(day1))
    assert {operation.action for operation in whole} == {"create"}
    assert_peers_come_first(whole)
    untouched.branch.discard()
    ids: dict[ObjectKey, str] = {}

    first = live_program.plan(day0)
    kinds = kinds_of(whole) | kinds_of(live_program.operations(first))
    there = totals_of(live_program.branch, kinds)
    rehearsed = live_program.rehearse(first)
    assert totals_of(live_program.branch, kinds) == there, "a rehearsal writes nothing"
    apply(live_program, first, ids)
    after_day0 = await BranchContent.read(live_program.branch, kinds)
    assert differences(after_day0, live_program.operations(first), ids) == []
    assert differences_from_rehearsal(rehearsed["effects"], live_program.events(first), after_day0) == []

    second = live_program.plan(day1, "--allow-rowcount-drop")
    assert changes(second)["create"] > 0
    assert changes(second)["update"] > 0
    updates = [operation for operation in live_program.operations(second) if operation.action == "update"]
    assert {operation.destination_id for operation in updates} <= set(ids.values())
    assert live_program.artifact(second).manifest.format_version == 3
    rehearsed = live_program.rehearse(second)
    apply(live_program, second, ids)

    content = await BranchContent.read(live_program.branch, kinds)
    assert differences(content, whole, ids) == []
    assert unexpected(live_program, there, ids) == {}
    assert differences_from_rehearsal(rehearsed["effects"], live_program.events(second), content, after_day0) == []
    assert changes(live_program.plan(day1)) == NOTHING
