"""FF13: a field that the destination does not know is refused by name and never left out in silence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from consumers.infrahub.refusals import SchemaMismatchError
from consumers.infrahub.sandbox import RunningSandbox
from ledger.commit import Policy
from ledger.exit_codes import ExitCode
from ledger.plan.model import PlannedOperation
from producers.errors import MappingRefusedError
from tests.support.field_schema import field_schema
from tests.support.operations import create, many, one, update
from tests.support.planning import Rows, entry, mapped
from tests.support.real_writer import TOKEN
from tests.support.whole_path import WholePath

SITES = entry("LabSite", "sites", ["name"], *map(mapped, ("name", "description", "asset")))
ROWS: Rows = {"sites": [{"id": 1, "name": "dc1", "description": "x", "asset": "a"}]}


@pytest.mark.rules("C31", "G11")
async def test_ff13_all_faults_of_a_mapping_are_listed_by_entry_and_field_before_anything_is_read(
    lab: WholePath,
) -> None:
    misspelt = entry("LabSite", "sites", ["name"], *map(mapped, ("name", "descripton", "computed")))
    relations = entry(
        "LabDevice", "sites", ["name"], mapped("name"), mapped("sitee", "site", "LabSite"), mapped("Height", "height")
    )
    no_kind = entry("LabSiet", "sites", ["name"], mapped("name"))
    wrong_peer = entry("LabRoom", "sites", ["name"], mapped("name"), mapped("site", "site", "LabTag"))
    with pytest.raises(MappingRefusedError) as caught:
        await lab.plan(ROWS, [misspelt, relations, no_kind, wrong_peer])
    assert caught.value.exit_code is ExitCode.REFUSED
    told = sorted(finding.checked for finding in caught.value.findings)
    assert told == [
        "schema_mapping.0 (LabSite).computed",
        "schema_mapping.0 (LabSite).descripton",
        "schema_mapping.1 (LabDevice).Height",
        "schema_mapping.1 (LabDevice).sitee",
        "schema_mapping.2.name",
        "schema_mapping.3 (LabRoom).site",
    ]
    assert lab.saved_plans() == []


async def test_ff13_a_column_that_no_row_has_is_said(lab: WholePath) -> None:
    misspelt = entry("LabSite", "sites", ["name"], mapped("name"), mapped("description", "descripton"), mapped("asset"))
    run = await lab.plan(ROWS, [misspelt])
    assert [warning for warning in run.warnings if "descripton" in warning] == [
        "schema_mapping.0 (LabSite).description: no row of sites has descripton"
    ]


def site(**payload: Any) -> PlannedOperation:
    return create("LabSite", {"name": "dc1"}, {"name": "dc1", "asset": "a", **payload})


def device(name: str, *references: Any, **payload: Any) -> PlannedOperation:
    return create(
        "LabDevice", {"name": name}, {"name": name, **payload}, one("site", "LabSite", name="dc1"), *references
    )


FOREIGN: dict[str, tuple[PlannedOperation, str]] = {
    "misspelt": (site(descripton="x"), "descripton"),
    "read-only": (create("LabSite", {"name": "b"}, {"name": "b", "asset": "b", "computed": "x"}), "computed"),
    "unknown relationship": (device("d1", one("sites", "LabSite", name="dc1")), "sites"),
    "attribute as relationship": (device("d2", one("notes", "LabSite", name="dc1")), "notes"),
    "relationship as attribute": (device("d3", tags="a"), "tags"),
    "other cardinality": (device("d4", one("tags", "LabTag", name="a")), "tags"),
    "many where one is": (device("d5", many("backup_site", "LabSite", {"name": "dc1"})), "backup_site"),
    "peers of another kind": (device("d6", many("tags", "LabSite", {"name": "dc1"})), "tags"),
    "peers of no kind": (device("d7", many("tags", "LabTagg", {"name": "a"})), "tags"),
    "another case": (device("d8", Notes="x"), "Notes"),
    "what only GraphQL knows": (device("d9", __typename="LabDevice"), "__typename"),
    "an id": (device("d10", id="x"), "id"),
    "a key by another name": (device("d11", hfid=["x"]), "hfid"),
}


@pytest.mark.rules("C31", "P52", "G5", "G11")
async def test_ff13_a_hand_made_plan_is_refused_with_every_such_field_by_object(lab: WholePath) -> None:
    lab.add("LabSite", name="there", asset="t")
    before = lab.content()
    unknown_kind = create("LabSiet", {"name": "x"}, {"name": "x"})
    generic = create("LabPlace", {"name": "x"}, {"name": "x"})
    outcome = await lab.apply(lab.hand_made(*(item for item, _ in FOREIGN.values()), unknown_kind, generic))
    assert (outcome.ending, outcome.exit_code) == ("plan.refused", ExitCode.REFUSED)
    for operation, field in FOREIGN.values():
        told = [finding for finding in outcome.findings if operation.operation_id in finding.checked]
        assert [finding.name for finding in told] == ["SchemaMismatchError"], operation
        assert f'field "{field}"' in told[0].checked
    for operation in (unknown_kind, generic):
        (finding,) = (item for item in outcome.findings if operation.operation_id in item.checked)
        assert operation.kind in finding.found
    assert (lab.operation_events(), lab.mutations(), lab.content()) == ([], [], before)


@pytest.mark.rules("C31", "P132", "G5")
@pytest.mark.parametrize("case", FOREIGN)
async def test_ff13_the_write_surface_refuses_each_alone(lab: WholePath, case: str) -> None:
    operation, field = FOREIGN[case]
    with pytest.raises(SchemaMismatchError, match=f'field "{field}"') as caught:
        await lab.write_alone(operation)
    assert caught.value.exit_code is ExitCode.STOPPED_UNWRITTEN
    assert lab.mutations() == []


def renamed_schema(**changes: Any) -> dict[str, Any]:
    """The schema after somebody renamed the description of sites, or changed it otherwise."""
    document = field_schema()
    (kind,) = (kind for kind in document["nodes"] if kind["kind"] == "LabSite")
    for item in kind["attributes"]:
        if item["name"] == "description":
            item.update(changes)
    return document


@pytest.mark.rules("C31", "P52", "G5", "G11")
@pytest.mark.parametrize(
    "changes",
    [
        {"name": "summary"},
        {"read_only": True},
        {"kind": "Number"},
        {"kind": "Password"},
        {"regex": "^z$", "parameters": {"regex": "^z$"}},
        {"max_length": 0, "parameters": {"max_length": 0}},
        {"enum": ["y"]},
    ],
    ids=repr,
)
async def test_ff13_a_schema_that_changed_since_the_plan_refuses_it_before_its_first_write(
    lab: WholePath, tmp_path: Path, changes: dict[str, Any]
) -> None:
    run = await lab.plan(ROWS, [SITES])
    with RunningSandbox(renamed_schema(**changes), token=TOKEN, seed="renamed") as running:
        later = WholePath(tmp_path, running, "main")
        outcome = await later.apply(run, policy=Policy(allow_destination_change=True))
        assert outcome.exit_code is ExitCode.REFUSED
        (finding,) = outcome.findings
        assert finding.name == (
            "SecretValueRefusedError" if changes.get("kind") == "Password" else "SchemaMismatchError"
        )
        assert "description" in f"{finding.checked} {finding.found}"
        assert (later.operation_events(), later.mutations(), later.count("LabSite")) == ([], [], 0)


@pytest.mark.rules("C31", "G5", "G6")
async def test_ff13_an_update_with_a_field_that_went_is_refused_too(lab: WholePath) -> None:
    node_id = lab.add("LabSite", name="dc1", description="old", asset="a")
    change = update("LabSite", {"name": "dc1"}, {"name": "dc1", "summary": "new"}, destination_id=node_id)
    outcome = await lab.apply(lab.hand_made(change))
    assert outcome.exit_code is ExitCode.REFUSED
    assert names_of(outcome) == ["SchemaMismatchError"]
    assert lab.values("LabSite")["description"] == "old"


def names_of(outcome: Any) -> list[str]:
    return [finding.name for finding in outcome.findings]
