"""The example of docs/concepts/mapping.md makes the plan that the page describes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args

import yaml

from producers.config import load_configuration
from producers.config_model import FilterOperation
from producers.planning import PlannedRun
from tests.support.fake_reader import FakeDestination
from tests.support.planning import operations, plan

PAGE = Path(__file__).resolve().parents[3] / "docs" / "concepts" / "mapping.md"
TEXT = PAGE.read_text(encoding="utf-8")


def _written(folder: Path) -> dict[str, Any]:
    """The page's files in a folder; the configuration is returned as it stands on the page."""
    (folder / "data").mkdir()
    for name, lines in re.findall(r"^```jsonl (\w+)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL):
        (folder / "data" / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    (configuration,) = re.findall(r"^```yaml\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    document: dict[str, Any] = yaml.safe_load(configuration)
    document["destination"]["settings"] = {"url": "http://infrahub.example:8000"}
    (folder / "sync.yml").write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    return document


async def _planned(folder: Path) -> PlannedRun:
    return await plan(load_configuration(folder / "sync.yml"), FakeDestination(), folder)


async def test_the_example_of_the_page_is_planned_as_it_says(tmp_path: Path) -> None:
    _written(tmp_path)
    run = await _planned(tmp_path)
    made = {(operation.kind, operation.identity["name"]): operation for operation in operations(run)}
    assert {name for kind, name in made if kind == "LocationSite"} == {"Berlin", "Paris"}
    berlin, r1 = made["LocationSite", "Berlin"], made["LocationRack", "R1"]
    assert berlin.payload == {"facility": "Berlin", "name": "Berlin", "status": "active"}
    [tags] = berlin.relationships or []
    assert [peer["name"] for peer in tags.peers] == ["core", "edge"]
    assert (r1.payload or {})["facility_id"] == "r1"
    assert {item.field: [peer["name"] for peer in item.peers] for item in r1.relationships or ()} == {
        "site": ["Berlin"],
        "tenant": ["acme"],
    }
    assert [item.field for item in made["LocationRack", "R2"].relationships or ()] == ["site"]
    assert run.warnings == ()
    rows = run.source_rows["sites"]
    assert (rows.read, rows.left_out) == (3, 1)


async def test_a_constant_peer_needs_no_entry(tmp_path: Path) -> None:
    document = _written(tmp_path)
    (field,) = re.findall(r"`(\{name: tenant, static[^`]*)`", TEXT)
    document["schema_mapping"] = [item for item in document["schema_mapping"] if item["name"] != "OrganizationTenant"]
    document["schema_mapping"][1]["fields"][-1] = yaml.safe_load(field)
    (tmp_path / "sync.yml").write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    destination = FakeDestination(namespaces=())
    destination.add("OrganizationTenant", name="acme")
    run = await plan(load_configuration(tmp_path / "sync.yml"), destination, tmp_path)
    assert run.counts["create"] == 6


def test_every_operation_of_a_filter_is_on_the_page() -> None:
    table = TEXT[TEXT.index("| operation |") : TEXT.index("Rows that no entry selects")]
    named = {name for row in table.splitlines()[2:] for name in re.findall(r"`([^`]+)`", row.split(" | ")[0])}
    assert named == set(get_args(FilterOperation))
