"""List queries: filters, pages, generics, fragments, metadata."""

from __future__ import annotations

import re
from typing import Any

import pytest

from consumers.infrahub.sandbox import RunningSandbox
from tests.support.graphql_client import GraphQLClient, values

pytestmark = pytest.mark.contract

DECLARATIONS = ("$v: String", "$n: BigInt", "$b: Boolean", "$vs: [String]", "$ids: [ID]")


@pytest.fixture
def world(sandbox: RunningSandbox) -> dict[str, str]:
    store = sandbox.store
    ids = {"t1": store.create("LabTag", {"name": "t1"})}
    ids["s1"] = store.create("LabSite", {"name": "s1", "priority": 1, "tags": [ids["t1"]]})
    ids["s2"] = store.create("LabSite", {"name": "s2", "asset": "2"})
    ids["r1"] = store.create("LabRack", {"name": "r1", "site": ids["s1"]})
    ids["r2"] = store.create("LabRack", {"name": "r1", "site": ids["s2"]})
    ids["c1"] = store.create("LabCabinet", {"name": "c1", "site": ids["s1"]})
    return ids


def _ids(lab: GraphQLClient, kind: str, arguments: str, variables: dict[str, Any] | None = None) -> list[str]:
    declared = [text for text in DECLARATIONS if text.split(":")[0] in re.split(r"[^$\w]", arguments)]
    head = f"query Read({', '.join(declared)})" if declared else "query Read"
    data = lab.query(f"{head} {{ {kind}({arguments}) {{ edges {{ node {{ id }} }} }} }}", variables)
    return [edge["node"]["id"] for edge in data[kind]["edges"]]


@pytest.mark.parametrize(
    ("kind", "arguments", "variables", "names"),
    [
        ("LabSite", "name__value: $v", {"v": "s1"}, ["s1"]),
        ("LabSite", "name__value: $v", {"v": "$s1"}, []),
        ("LabSite", "name__values: $vs", {"vs": ["s1", "s2", "s3"]}, ["s1", "s2"]),
        ("LabSite", "priority__value: $n", {"n": 1}, ["s1"]),
        ("LabSite", "priority__isnull: $b", {"b": True}, ["s2"]),
        ("LabSite", "name__value: $v, priority__value: $n", {"v": "s2", "n": 1}, []),
        ("LabSite", "tags__name__value: $v", {"v": "t1"}, ["s1"]),
        ("LabSite", "tags__isnull: $b", {"b": True}, ["s2"]),
        ("LabRack", "site__name__value: $v", {"v": "s2"}, ["r2"]),
        ("LabRack", 'site__name__value: $v, name__value: "r1"', {"v": "s1"}, ["r1"]),
        ("LabPlace", "site__name__value: $v", {"v": "s1"}, ["r1", "c1"]),
        ("LabPlace", "name__value: $v", {"v": "c1"}, ["c1"]),
        ("LabSite", "name__value: $v, partial_match: true", {"v": "S"}, ["s1", "s2"]),
        ("LabSite", 'hfid: ["s2"]', {}, ["s2"]),
        ("LabRack", 'hfid: ["s2", "r1"]', {}, ["r2"]),
        ("LabSite", "offset: 1, limit: 5", {}, ["s2"]),
        ("LabSite", "limit: 1", {}, ["s1"]),
        ("LabSite", "limit: 0", {}, []),
        ("LabSite", "offset: 9", {}, []),
    ],
)
def test_filters(
    lab: GraphQLClient,
    world: dict[str, str],
    kind: str,
    arguments: str,
    variables: dict[str, Any],
    names: list[str],
) -> None:
    assert sorted(_ids(lab, kind, arguments, variables)) == sorted(world[name] for name in names)


def test_ids_of_the_kind_alone_are_found(lab: GraphQLClient, world: dict[str, str]) -> None:
    everything = list(world.values())
    assert _ids(lab, "LabTag", "ids: $ids", {"ids": everything}) == [world["t1"]]
    assert sorted(_ids(lab, "LabPlace", "ids: $ids", {"ids": everything})) == sorted(
        [world["r1"], world["r2"], world["c1"]]
    )
    assert _ids(lab, "LabRack", "site__ids: $ids", {"ids": [world["s1"]]}) == [world["r1"]]


@pytest.mark.parametrize("arguments", ["name__value: $v", "site__name__value: $v", "ids: $ids", "name__values: $vs"])
def test_a_filter_that_is_null_matches_everything(lab: GraphQLClient, world: dict[str, str], arguments: str) -> None:
    nothing = {"v": None, "ids": None, "vs": None}
    assert sorted(_ids(lab, "LabRack", arguments, nothing)) == sorted([world["r1"], world["r2"]])
    assert len(_ids(lab, "LabRack", arguments)) == 2


def test_false_and_zero_are_filters(lab: GraphQLClient, sandbox: RunningSandbox) -> None:
    site = sandbox.store.create("LabSite", {"name": "s"})
    off = sandbox.store.create("LabDevice", {"name": "off", "enabled": False, "height": 0, "site": site})
    sandbox.store.create("LabDevice", {"name": "on", "enabled": True, "height": 1, "site": site})
    assert _ids(lab, "LabDevice", "enabled__value: $b", {"b": False}) == [off]
    assert _ids(lab, "LabDevice", "height__value: $n", {"n": 0}) == [off]


def test_count_is_of_all_matches_not_of_the_page(lab: GraphQLClient, world: dict[str, str]) -> None:
    data = lab.query("{ LabPlace(limit: 1) { count edges { node { id } } } }")
    assert (data["LabPlace"]["count"], len(data["LabPlace"]["edges"])) == (len([*world]) - 3, 1)


def test_pages_of_every_size_hold_each_object_once(lab: GraphQLClient, sandbox: RunningSandbox) -> None:
    made = [sandbox.store.create("LabTag", {"name": f"t{number}"}) for number in range(23)]
    for size in (1, 5, 23, 50):
        pages = [_ids(lab, "LabTag", f"limit: {size}, offset: {offset}") for offset in range(0, 23, size)]
        assert [node_id for page in pages for node_id in page] == sorted(made)


def test_an_index_follows_updates_and_deletes(lab: GraphQLClient, world: dict[str, str]) -> None:
    assert _ids(lab, "LabSite", "name__value: $v", {"v": "s1"}) == [world["s1"]]
    lab.write("LabSiteUpsert", {"id": world["s1"], **values(name="new")})
    assert _ids(lab, "LabSite", "name__value: $v", {"v": "s1"}) == []
    assert _ids(lab, "LabSite", "name__value: $v", {"v": "new"}) == [world["s1"]]
    lab.mutate("LabSiteDelete", {"id": world["s1"]}, "ok")
    assert _ids(lab, "LabSite", "name__value: $v", {"v": "new"}) == []


def test_fragments_aliases_and_typenames(lab: GraphQLClient, world: dict[str, str]) -> None:
    text = """
      query Read($with: Boolean!) {
        places: LabPlace { edges { node { id kind: __typename ...Rack ... on LabCabinet { site { node { id } } } } } }
      }
      fragment Rack on LabRack { name { value } site @include(if: $with) { node { id hfid display_label } } }
    """
    edges = lab.query(text, {"with": True})["places"]["edges"]
    nodes = {edge["node"]["id"]: edge["node"] for edge in edges}
    assert nodes[world["r1"]] == {
        "id": world["r1"],
        "kind": "LabRack",
        "name": {"value": "r1"},
        "site": {"node": {"id": world["s1"], "hfid": ["s1"], "display_label": "s1"}},
    }
    assert nodes[world["c1"]] == {"id": world["c1"], "kind": "LabCabinet", "site": {"node": {"id": world["s1"]}}}
    without = lab.query(text, {"with": False})["places"]["edges"]
    assert all("site" not in edge["node"] for edge in without if edge["node"]["kind"] == "LabRack")


def test_selections_of_one_key_are_merged(lab: GraphQLClient, world: dict[str, str]) -> None:
    data = lab.query(
        '{ LabRack(name__value: "r1", limit: 1) { edges { node { site { node { id } } } } edges { node'
        " { site { node { name { value } } } } } } }"
    )
    assert data["LabRack"]["edges"][0]["node"]["site"]["node"] == {"id": world["s1"], "name": {"value": "s1"}}


def test_nested_lists_take_filters_and_pages(lab: GraphQLClient, world: dict[str, str]) -> None:
    text = (
        'query Read($v: String) { LabSite(name__value: "s1") { edges { node { racks(name__value: $v, limit: 1) {'
        " count edges { node { id } properties { updated_at is_protected } } } } } } }"
    )
    racks = lab.query(text, {"v": "r1"})["LabSite"]["edges"][0]["node"]["racks"]
    assert racks["count"] == 1
    assert racks["edges"][0]["node"] == {"id": world["r1"]}
    assert lab.query(text, {"v": "x"})["LabSite"]["edges"][0]["node"]["racks"] == {"count": 0, "edges": []}


def test_every_object_is_a_core_node(lab: GraphQLClient, world: dict[str, str]) -> None:
    assert lab.query("{ CoreNode { count } }") == {"CoreNode": {"count": len(world)}}


def test_parts_of_special_attributes(lab: GraphQLClient, sandbox: RunningSandbox) -> None:
    site = sandbox.store.create("LabSite", {"name": "s"})
    sandbox.store.create("LabDevice", {"name": "d", "address": "10.0.0.1/24", "site": site})
    data = lab.query(
        "{ LabDevice { edges { node { address { ip prefixlen version netmask } } } }"
        " LabSite { edges { node { status { value label color } } } } }"
    )
    address = {"ip": "10.0.0.1", "prefixlen": 24, "version": 4, "netmask": "255.255.255.0"}
    assert data["LabDevice"]["edges"] == [{"node": {"address": address}}]
    status = {"value": "active", "label": "Active", "color": "#ffffff"}
    assert data["LabSite"]["edges"] == [{"node": {"status": status}}]


def test_an_unknown_field_or_filter_is_a_validation_error(lab: GraphQLClient) -> None:
    for text in (
        "{ LabSite { edges { node { nope } } } }",
        "{ LabSite(nope__value: 1) { count } }",
        "{ LabNope { count } }",
    ):
        document = lab.post(text).json()
        assert document["data"] is None
        assert "nope" in document["errors"][0]["message"].lower()
