"""FF12: a null is sent and the value is gone before anybody calls it applied; what is absent is left alone."""

from __future__ import annotations

from typing import Any

import pytest

from consumers.infrahub import refusals
from consumers.infrahub.sandbox.faults import FaultAnswer, FaultRule
from ledger.exit_codes import ExitCode
from ledger.plan.model import PlannedOperation
from producers.errors import PlanRefusedError
from tests.support.operations import create, update
from tests.support.planning import Rows, entry, mapped
from tests.support.whole_path import WholePath, names

SITES = entry(
    "LabSite",
    "sites",
    ["name"],
    *map(mapped, ("name", "description", "status", "code", "priority", "asset")),
    mapped("parent", "parent", "LabSite"),
    mapped("tags", "tags", "LabTag"),
)
TAGS = entry("LabTag", "tags", ["name"], mapped("name"))
DEVICES = entry(
    "LabDevice",
    "devices",
    ["name"],
    *map(mapped, ("name", "settings", "labels", "address", "mac", "since", "notes", "height", "enabled", "role")),
    mapped("site", "site", "LabSite"),
)
FULL = {"description": "old", "code": "OLD", "priority": 3, "asset": "a"}
OF_EVERY_KIND: dict[str, Any] = {
    "settings": {"a": 1},
    "labels": ["a"],
    "address": "10.0.0.1/32",
    "mac": "00:11:22:AA:BB:CC",
    "since": "2026-01-01",
    "notes": "old",
    "height": 7,
    "role": "leaf",
}


def site(**fields: Any) -> Rows:
    return {"tags": [], "sites": [{"id": 1, "name": "dc1", **fields}]}


@pytest.mark.rules("P19", "P36", "G6")
async def test_ff12_both_nulls_are_on_the_wire_and_the_values_are_gone_before_it_is_applied(lab: WholePath) -> None:
    lab.add("LabSite", name="dc1", **FULL)
    (operation,) = await lab.converge(site(description=None, priority=None), [SITES])
    assert operation.payload == {"name": "dc1", "description": None, "priority": None}
    (sent,) = lab.mutations()
    assert (sent.data["description"], sent.data["priority"]) == ({"value": None}, {"value": None})
    assert lab.operation_events() == ["operation.applied"]
    stored = lab.values("LabSite", name="dc1")
    assert (stored["description"], stored["priority"]) == (None, None)
    assert (stored["code"], stored["asset"]) == ("OLD", "a")  # absent: neither compared nor sent
    assert set(sent.data) == {"id", "name", "description", "priority"}


@pytest.mark.rules("P19", "G6", "H30")
async def test_ff12_every_kind_of_attribute_can_be_cleared(lab: WholePath) -> None:
    lab.add("LabDevice", name="sw1", site=lab.add("LabSite", name="dc1"), **OF_EVERY_KIND)
    row = {"id": 1, "name": "sw1", "site": "dc1", **dict.fromkeys(OF_EVERY_KIND)}
    rows: Rows = {"tags": [], "sites": [{"id": 1, "name": "dc1"}], "devices": [row]}
    (operation,) = await lab.converge(rows, [SITES, DEVICES])
    assert operation.action == "update"
    assert {name: lab.values("LabDevice", name="sw1")[name] for name in OF_EVERY_KIND} == dict.fromkeys(OF_EVERY_KIND)


@pytest.mark.rules("P19", "G6")
async def test_ff12_nulls_of_a_create_are_sent_as_well_and_what_is_empty_is_no_null(lab: WholePath) -> None:
    await lab.converge(site(description=None, code=None, priority=None, asset=None, tags=[]), [TAGS, SITES])
    (sent,) = lab.mutations()
    cleared = ("description", "code", "priority", "asset")
    assert [sent.data[name] for name in cleared] == [{"value": None}] * 4
    assert sent.data["tags"] == []
    row = {"id": 1, "name": "sw1", "site": "dc1", "labels": [], "height": 0, "enabled": False, "notes": ""}
    await lab.converge({"tags": [], **site(), "devices": [row]}, [SITES, DEVICES])
    sent = lab.mutations()[-1]
    assert {name: sent.data[name]["value"] for name in ("labels", "height", "enabled", "notes")} == {
        "labels": [],
        "height": 0,
        "enabled": False,
        "notes": "",
    }


@pytest.mark.rules("H30", "P19")
async def test_ff12_null_under_a_default_is_the_default_and_rests(lab: WholePath) -> None:
    lab.add("LabSite", name="dc1", status="drained")
    (operation,) = await lab.converge(site(status=None), [SITES])
    assert (operation.payload or {})["status"] == "active"
    assert lab.values("LabSite", name="dc1")["status"] == "active"


@pytest.mark.rules("G11")
@pytest.mark.parametrize("there", [True, False], ids=["update", "create"])
async def test_ff12_a_null_for_a_mandatory_attribute_is_refused_by_name(lab: WholePath, there: bool) -> None:
    parts = entry("LabPart", "parts", ["first", "second"], mapped("first"), mapped("second"))
    servers = entry("LabServer", "servers", ["name", "serial"], mapped("name"), mapped("serial"))
    if there:
        lab.add("LabServer", name="s", serial="S")
    rows: Rows = {
        "parts": [{"id": 1, "first": "a", "second": None}],
        "servers": [{"id": 1, "name": None, "serial": "S"}],
    }
    with pytest.raises(PlanRefusedError) as caught:
        await lab.plan(rows, [parts, servers])
    assert names(caught.value) == ["UnkeyedCreateRefusedError"] * 2
    assert all(words in str(caught.value) for words in ("second is null", "name is null"))
    assert lab.saved_plans() == []


def mandatory(action: str, destination_id: str) -> PlannedOperation:
    """A device without the site that it must have, or a server without the name that it must have."""
    if action == "create":
        return create("LabDevice", {"name": "new"}, {"name": "new", "site": None})
    return update("LabServer", {"serial": "S"}, {"serial": "S", "name": None}, destination_id=destination_id)


@pytest.mark.rules("P92", "P132", "G5", "G11")
@pytest.mark.parametrize(
    ("action", "refusal", "field"),
    [("create", "NullRelationshipValueError", "site"), ("update", "SchemaMismatchError", "name")],
)
async def test_ff12_a_hand_made_null_for_something_mandatory_is_refused_by_gate_and_write_surface(
    lab: WholePath, action: str, refusal: str, field: str
) -> None:
    node_id = lab.add("LabServer", name="s", serial="S")
    operation = mandatory(action, node_id)
    outcome = await lab.apply(lab.hand_made(operation))
    assert outcome.exit_code is ExitCode.REFUSED
    (finding,) = outcome.findings
    assert (finding.name, f'field "{field}"' in finding.checked) == (refusal, True)
    with pytest.raises(getattr(refusals, refusal)) as caught:
        await lab.write_alone(operation)
    assert caught.value.exit_code is ExitCode.STOPPED_UNWRITTEN
    assert (lab.mutations(), lab.values("LabServer")["name"]) == ([], "s")


@pytest.mark.rules("G6")
@pytest.mark.parametrize("answer", [FaultAnswer.NOT_OK, FaultAnswer.OBJECT_NULL])
async def test_ff12_a_clearing_that_was_not_done_is_not_called_applied(lab: WholePath, answer: FaultAnswer) -> None:
    lab.add("LabSite", name="dc1", **FULL)
    run = await lab.plan(site(description=None), [SITES])
    lab.sandbox.faults.add(FaultRule(kind="LabSite", answer=answer, write=False))
    assert (await lab.apply(run)).exit_code is ExitCode.STOPPED_MAYBE_WRITTEN
    assert lab.operation_events() == ["operation.unknown"]
    assert lab.values("LabSite", name="dc1")["description"] == "old"


@pytest.mark.rules("A35", "P88", "P90", "P91")
async def test_ff12_a_peer_that_no_plan_can_take_away_stays_and_it_is_said(lab: WholePath) -> None:
    tag = lab.add("LabTag", name="t")
    top = lab.add("LabSite", name="top", asset="top")
    lab.add("LabSite", name="dc1", asset="a", parent=top, tags=[tag])
    rows: Rows = {
        "tags": [{"id": "t", "name": "t"}],
        "sites": [
            {"id": 1, "name": "dc1", "parent": None, "tags": None},
            {"id": 2, "name": "top", "parent": None, "tags": None},
        ],
    }
    run = await lab.plan(rows, [TAGS, SITES])
    assert run.counts == {"create": 0, "update": 0, "remove": 0, "skip": 0, "none": 3}
    told = [warning for warning in run.warnings if "is null in" in warning]
    assert [warning.split(" is null in ")[0] for warning in told] == ["LabSite.parent", "LabSite.tags"]
    assert all("1 rows of 1:sites" in warning and "they keep them" in warning for warning in told)
    # an empty list is the way to say it for a set; with another change the peer of a single one still stays
    rows["sites"][0] |= {"tags": [], "description": "new"}
    run = await lab.plan(rows, [TAGS, SITES])
    assert [warning.split(" is null in ")[0] for warning in run.warnings if "is null in" in warning] == [
        "LabSite.parent"
    ]
    await lab.apply(run)
    again = await lab.plan(rows, [TAGS, SITES])
    assert again.counts["none"] == 3
    (dc1,) = (row for row in lab.content() if row["name"] == ["LabSite", "dc1"])
    assert dc1["relationships"] == {"parent": [["LabSite", "top"]]}
