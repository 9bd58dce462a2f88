"""FF14: what is data stays data: each value comes back as it was sent, from writes and from look-ups alike."""

from __future__ import annotations

from typing import Any

import pytest
from graphql import OperationDefinitionNode, ValueNode, parse, visit
from graphql.language import Visitor

from ledger.exit_codes import ExitCode
from tests.support.planning import Rows, entry, mapped
from tests.support.whole_path import WholePath

TAGS = entry("LabTag", "tags", ["name"], mapped("name"))
SITES = entry("LabSite", "sites", ["name"], mapped("name"))
DEVICES = entry(
    "LabDevice",
    "devices",
    ["name"],
    *map(mapped, ("name", "settings", "labels", "notes")),
    mapped("site", "site", "LabSite"),
    mapped("tags", "tags", "LabTag"),
)
AWKWARD = [
    "$core",
    "$v0",
    "$data",
    'a"b',
    "it's",
    "two\nlines",
    "two\r\nlines",
    "\\\\",
    "\\",
    "\\u0041",
    "Ünï",
    "\U0001f600",
    "{ __typename }",
    '"}) { id } #',
    '""" block """',
    "%s {0} {{ x }} ${HOME}",
    "null",
    "true",
    "0",
    "a__b",
    "-",
    "<b>&amp;</b>",
    "a\u2028\u2029\u0085\u000bb",
    "\u202eabc",
    "'; DROP TABLE x; --",
]
JSON_VALUES: list[Any] = [
    {"auth-token": 1, "1a": 2, "": 3, "$x": "$y", 'q"': "\\", "a b": None},
    {"__typename": "x", "id": "y", "value": {"value": 1}, "is_default": True},
    [{"$data": ["$x", 2**40, -1, 1.5, True, None, {}]}, [], ""],
    {"from": {"query": "mutation { x }"}, "n\nl": "t\tb"},
]
LISTS: list[Any] = [["$x"], ["$data", 'a"b', "two\nlines", 1, True, None], [[]], [{"auth-token": "$t"}]]


def rows_of_everything() -> Rows:
    names = dict(enumerate(AWKWARD))
    devices = [
        {
            "id": n,
            "name": f"device {n} {name}",
            "notes": name,
            "settings": JSON_VALUES[n % len(JSON_VALUES)],
            "labels": LISTS[n % len(LISTS)],
            "site": {"id": f"s{n}"},
            "tags": [{"id": f"t{n}"}, {"id": "t0"}],
        }
        for n, name in names.items()
    ]
    return {
        "tags": [{"id": f"t{n}", "name": name} for n, name in names.items()],
        "sites": [{"id": f"s{n}", "name": name, "asset": name} for n, name in names.items()],
        "devices": devices,
    }


SITES_WITH_ASSET = {**SITES, "fields": [*SITES["fields"], mapped("asset")]}


@pytest.mark.rules("P17", "P99", "G6", "H30")
async def test_ff14_every_value_comes_back_as_it_was_sent_and_is_found_again(lab: WholePath) -> None:
    rows = rows_of_everything()
    planned = await lab.converge(rows, [TAGS, SITES_WITH_ASSET, DEVICES])
    assert len(planned) == 3 * len(AWKWARD)
    assert {node["values"]["name"] for node in lab.content() if node["kind"] == "LabTag"} == set(AWKWARD)
    for row in rows["devices"]:
        stored = lab.values("LabDevice", name=row["name"])
        assert {name: stored[name] for name in ("notes", "settings", "labels")} == {
            name: row[name] for name in ("notes", "settings", "labels")
        }


@pytest.mark.rules("P77", "P79", "P84", "G6")
async def test_ff14_peers_with_awkward_names_are_looked_up_and_bound(lab: WholePath) -> None:
    """The peers are there already, so that the writer has to ask for each of them."""
    rows = rows_of_everything()
    ids = {name: lab.add("LabSite", name=name, asset=name) for name in AWKWARD}
    tags = {name: lab.add("LabTag", name=name) for name in AWKWARD}
    await lab.converge(rows, [TAGS, SITES_WITH_ASSET, DEVICES])
    by_name = {entry.data["name"]["value"]: entry.data for entry in lab.mutations()}
    for number, name in enumerate(AWKWARD):
        sent = by_name[f"device {number} {name}"]
        assert sent["site"] == {"id": ids[name]}
        assert {peer["id"] for peer in sent["tags"]} == {tags[name], tags[AWKWARD[0]]}


@pytest.mark.rules("P77")
async def test_ff14_one_query_text_a_kind_and_every_value_in_a_variable(lab: WholePath) -> None:
    rows = rows_of_everything()
    for name in AWKWARD[:3]:
        lab.add("LabSite", name=name, asset=name)
    assert (await lab.apply(await lab.plan(rows, [TAGS, SITES_WITH_ASSET, DEVICES]))).exit_code is ExitCode.DONE
    texts = {body["query"] for body in lab.sent}
    assert len(lab.sent) == 3 * len(AWKWARD), "three objects are there already and are looked up once each"
    assert {text.split("(")[0] for text in texts} == {"mutation Upsert", "query Peer"}
    assert len(texts) == 4, "three kinds are written, and one is looked up"
    assert {literal for text in texts for literal in literals(text)} <= {"2"}, "the limit of a look-up"


def literals(text: str) -> list[str]:
    """The values that stand in a document itself."""
    found: list[str] = []

    class Literals(Visitor):
        def enter(self, node: Any, *_: Any) -> None:
            if isinstance(node, ValueNode) and node.kind not in ("variable", "object_value", "list_value"):
                found.append(str(getattr(node, "value", node)))

    document = parse(text)
    assert all(isinstance(item, OperationDefinitionNode) for item in document.definitions)
    visit(document, Literals())
    return found
