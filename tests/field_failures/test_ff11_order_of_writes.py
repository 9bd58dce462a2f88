"""FF11: what refers comes after what it refers to, and the stored order is the order of the writes."""

from __future__ import annotations

from typing import Any

import pytest

from ledger.exit_codes import ExitCode
from ledger.plan.model import PlannedOperation
from ledger.plan.saved_plan import read_saved_plan
from producers.errors import PlanRefusedError
from tests.support.operations import create, one
from tests.support.planning import Rows, entry, mapped, small
from tests.support.whole_path import WholePath, names, operations

GROUPS = entry(
    "LabGroup", "groups", ["name"], mapped("name"), *(mapped(name, name, "LabGroup") for name in ("parent", "friend"))
)
CELLS = entry("LabCell", "cells", ["name"], mapped("name"), mapped("neighbour", "neighbour", "LabCell"))
SITES = entry("LabSite", "sites", ["name"], mapped("name"))
DEVICES = entry("LabDevice", "devices", ["name"], mapped("name"), mapped("site", "site", "LabSite"))
PORTS = entry("LabPort", "ports", ["name", "device"], mapped("name"), mapped("device", "device", "LabDevice"))


def groups(**links: dict[str, Any]) -> Rows:
    return {"groups": [{"id": name, "name": name, **fields} for name, fields in links.items()]}


def to(name: str) -> dict[str, str]:
    return {"id": name}


def written(lab: WholePath) -> list[Any]:
    """The names in the order in which the destination got them."""
    return [entry.data["name"]["value"] for entry in lab.mutations()]


@pytest.mark.rules("A30", "H1", "H23", "H24", "P120")
async def test_ff11_children_that_come_first_are_written_after_their_parents(lab: WholePath) -> None:
    rows = groups(c={"parent": to("b")}, b={"parent": to("a")}, a={}, lone={})
    planned = await lab.converge(rows, [GROUPS])
    tiers = {operation.identity["name"]: operation.tier for operation in planned}
    assert (tiers["a"], tiers["b"], tiers["c"], tiers["lone"]) == (0, 1, 2, 0)
    assert written(lab) == [operation.identity["name"] for operation in planned]
    assert written(lab).index("a") < written(lab).index("b") < written(lab).index("c")


@pytest.mark.rules("A30", "H23")
async def test_ff11_kinds_named_child_first_are_written_parent_first(lab: WholePath) -> None:
    rows: Rows = {
        "ports": [{"id": 1, "name": "p1", "device": to("sw1")}],
        "devices": [{"id": "sw1", "name": "sw1", "site": to("dc1")}],
        "sites": [{"id": "dc1", "name": "dc1"}],
    }
    await lab.converge(rows, [PORTS, DEVICES, SITES])
    assert written(lab) == ["dc1", "sw1", "p1"]


@pytest.mark.rules("P87", "H25", "H32")
@pytest.mark.parametrize(
    "links",
    [
        {"a": {"parent": to("b")}, "b": {"parent": to("a")}},
        {"a": {"parent": to("b")}, "b": {"friend": to("a")}},
        {"a": {"parent": to("b")}, "b": {"parent": to("c")}, "c": {"friend": to("a")}},
    ],
    ids=["one field", "two fields", "three objects"],
)
async def test_ff11_an_optional_circle_is_cut_and_told_and_closed_by_the_next_plan(
    lab: WholePath, links: dict[str, dict[str, Any]]
) -> None:
    rows = groups(**links)
    first = await lab.plan(rows, [GROUPS])
    told = [line for line in read_saved_plan(first.run_dir).coverage or () if line.reason]
    assert len(told) == 1
    assert any(field in (told[0].reason or "") for field in ("parent", "friend"))
    assert (await lab.apply(first)).exit_code is ExitCode.DONE
    (closing,) = await lab.converge(rows, [GROUPS])
    assert (closing.action, closing.operation_id[:3]) == ("update", "op_")
    assert closing.identity == told[0].identity


@pytest.mark.rules("P87", "H25", "G6")
async def test_ff11_an_object_that_is_to_be_its_own_peer_is_told_to_stay_without_one(lab: WholePath) -> None:
    rows = groups(a={"parent": to("a")})
    assert (await lab.apply(await lab.plan(rows, [GROUPS]))).exit_code is ExitCode.DONE
    for _ in range(2):
        again = await lab.plan(rows, [GROUPS])
        assert [operation.action for operation in operations(again)] == ["update"]
        assert any("LabGroup.parent: 1 objects are to be their own peer" in warning for warning in again.warnings)
        assert (await lab.apply(again)).exit_code is ExitCode.DONE


@pytest.mark.rules("P87", "G11")
async def test_ff11_a_mandatory_circle_fails_the_plan_and_names_it(lab: WholePath) -> None:
    cells: Rows = {"cells": [{"id": n, "name": n, "neighbour": to(other)} for n, other in ("ab", "bc", "ca")]}
    with pytest.raises(PlanRefusedError) as caught:
        await lab.plan(cells, [CELLS])
    assert names(caught.value) == ["MandatoryCycleError"] * 3
    assert all(f'LabCell(name="{name}")' in str(finding) for finding in caught.value.findings for name in "abc")
    assert lab.saved_plans() == []
    itself: Rows = {"cells": [{"id": "a", "name": "a", "neighbour": to("a")}]}
    with pytest.raises(PlanRefusedError, match="MandatoryCycleError"):
        await lab.plan(itself, [CELLS])


@pytest.mark.rules("A31", "P86", "P87", "P120", "P132", "H25")
async def test_ff11_an_explicit_order_with_children_first_is_executed_and_stops_with_the_peer_that_is_missing(
    lab: WholePath,
) -> None:
    rows: Rows = {
        "tags": [{"id": 1, "name": "t"}],
        "sites": [{"id": "dc1", "name": "dc1"}],
        "devices": [{"id": "sw1", "name": "sw1", "site": to("dc1")}],
    }
    tags = entry("LabTag", "tags", ["name"], mapped("name"))
    order = ["LabTag", "LabDevice", "LabSite"]
    run = await lab.plan_loaded(small(lab.folder, rows, [SITES, DEVICES, tags], order=order))
    planned = operations(run)
    assert [operation.kind for operation in planned] == order
    outcome = await lab.apply(run)
    assert outcome.exit_code is ExitCode.STOPPED_UNWRITTEN
    assert lab.operation_events() == ["operation.applied", "operation.failed"]
    (failed,) = lab.events("operation.failed")
    assert (failed["error"], failed["wrote"]) == ("PeerNotFoundError", False)
    assert planned[1].operation_id in failed["message"]
    assert 'LabSite(name="dc1")' in failed["message"]
    (ended,) = lab.events("run.failed")
    assert (ended["applied"], ended["not_attempted"]) == (1, 1)
    assert (ended["failed_operation"], ended["failed_operation_wrote"]) == (planned[1].operation_id, False)
    assert written(lab) == ["t"]


def group(name: str, parent: str | None = None) -> PlannedOperation:
    references = [] if parent is None else [one("parent", "LabGroup", name=parent)]
    return create("LabGroup", {"name": name}, {"name": name}, *references)


@pytest.mark.rules("A30", "P86", "P120", "P132")
@pytest.mark.parametrize("parent_first", [True, False])
async def test_ff11_two_operations_of_one_tier_go_in_stored_order_and_nothing_is_moved(
    lab: WholePath, parent_first: bool
) -> None:
    # within a tier the identifier orders, so the names decide which of the two comes first
    pairs = ((group(f"parent {n}"), group(f"child {n}", f"parent {n}")) for n in range(100))
    pair = next(p for p in pairs if (p[0].operation_id < p[1].operation_id) is parent_first)
    lines = b"".join(operation.line() for operation in sorted(pair, key=lambda item: item.operation_id))
    outcome = await lab.apply_lines(lines)
    if parent_first:
        assert outcome.exit_code is ExitCode.DONE
        assert lab.count("LabGroup") == 2
        return
    assert outcome.exit_code is ExitCode.STOPPED_UNWRITTEN
    assert lab.events("operation.failed")[0]["error"] == "PeerNotFoundError"
    assert (lab.mutations(), lab.count("LabGroup")) == ([], 0)


@pytest.mark.rules("A30", "C14", "G1")
async def test_ff11_an_order_that_is_not_the_stored_rule_is_refused_and_not_mended(lab: WholePath) -> None:
    child, parent = group("child", "parent"), group("parent")
    lines = child.model_copy(update={"tier": 1}).line() + parent.line()
    outcome = await lab.apply_lines(lines)
    assert outcome.exit_code is ExitCode.REFUSED
    assert "OperationOrderError" in {finding.name for finding in outcome.findings}
    assert lab.mutations() == []
