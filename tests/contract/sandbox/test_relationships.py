"""Peers: replace-sets, both sides of an edge, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from consumers.infrahub.sandbox import RunningSandbox
from tests.support.graphql_client import GraphQLClient, values

pytestmark = pytest.mark.contract

NOBODY = "2ea9bd29-0000-4000-8000-000000000000"


@pytest.fixture
def tags(lab: GraphQLClient) -> list[str]:
    return [lab.write("LabTagUpsert", values(name=name)) for name in ("a", "b", "c")]


def _tags(lab: GraphQLClient, site: str) -> list[str]:
    edges = lab.node("LabSite", site, "tags { edges { node { id } } }")["tags"]["edges"]
    return [edge["node"]["id"] for edge in edges]


def _pointers(ids: list[str]) -> list[dict[str, str]]:
    return [{"id": node_id} for node_id in ids]


def test_many_replaces_the_whole_set_and_absent_keeps_it(lab: GraphQLClient, tags: list[str]) -> None:
    a, b, c = tags
    site = lab.write("LabSiteUpsert", {**values(name="s"), "tags": _pointers([a, b])})
    lab.write("LabSiteUpsert", {"id": site, "tags": _pointers([c, a, c])})
    assert sorted(_tags(lab, site)) == sorted([a, c])
    lab.write("LabSiteUpsert", {"id": site, **values(description="d")})
    assert sorted(_tags(lab, site)) == sorted([a, c])


@pytest.mark.parametrize("empty", [[], None, [None]])
def test_an_empty_list_null_and_a_list_of_null_clear(
    lab: GraphQLClient, tags: list[str], empty: list[None] | None
) -> None:
    site = lab.write("LabSiteUpsert", {**values(name="s"), "tags": _pointers(tags)})
    lab.write("LabSiteUpsert", {"id": site, "tags": empty})
    assert _tags(lab, site) == []


def test_a_null_beside_peers_is_dropped(lab: GraphQLClient, tags: list[str]) -> None:
    site = lab.write("LabSiteUpsert", {**values(name="s"), "tags": [{"id": tags[0]}, None]})
    assert _tags(lab, site) == [tags[0]]


def test_both_sides_of_an_edge_see_it(lab: GraphQLClient) -> None:
    site = lab.write("LabSiteUpsert", values(name="s"))
    rack = lab.write("LabRackUpsert", {**values(name="r"), "site": {"id": site}})
    read = lab.node("LabSite", site, "racks { count edges { node { id __typename } } }")
    assert read == {"racks": {"count": 1, "edges": [{"node": {"id": rack, "__typename": "LabRack"}}]}}
    other = lab.write("LabSiteUpsert", values(name="t", asset="1"))
    lab.write("LabRackUpsert", {"id": rack, "site": {"id": other}})
    assert lab.node("LabSite", site, "racks { count }") == {"racks": {"count": 0}}
    assert lab.node("LabSite", other, "racks { count }") == {"racks": {"count": 1}}


def test_directed_relationships_of_one_kind_keep_their_ends_apart(lab: GraphQLClient) -> None:
    parent = lab.write("LabSiteUpsert", values(name="p"))
    child = lab.write("LabSiteUpsert", {**values(name="c", asset="1"), "parent": {"id": parent}})
    below = "parent { node { id } } children { edges { node { id } } }"
    assert lab.node("LabSite", parent, below) == {
        "parent": {"node": None},
        "children": {"edges": [{"node": {"id": child}}]},
    }
    assert lab.node("LabSite", child, below) == {"parent": {"node": {"id": parent}}, "children": {"edges": []}}


def test_an_object_as_its_own_peer_is_taken_and_reads_as_if_it_had_none(lab: GraphQLClient) -> None:
    site = lab.write("LabSiteUpsert", values(name="s"))
    lab.write("LabSiteUpsert", {"id": site, "parent": {"id": site}})
    read = lab.node("LabSite", site, "parent { node { id } } children { count }")
    assert read == {"parent": {"node": None}, "children": {"count": 0}}
    lab.mutate("LabSiteDelete", {"id": site}, "ok")
    assert lab.node("LabSite", site, "id") is None


def test_one_null_clears_an_optional_peer(lab: GraphQLClient) -> None:
    parent = lab.write("LabSiteUpsert", values(name="p"))
    child = lab.write("LabSiteUpsert", {**values(name="c", asset="1"), "parent": {"id": parent}})
    lab.write("LabSiteUpsert", {"id": child, "parent": None})
    assert lab.node("LabSite", child, "parent { node { id } }") == {"parent": {"node": None}}


def test_a_mandatory_peer_cannot_be_cleared(lab: GraphQLClient) -> None:
    site = lab.write("LabSiteUpsert", values(name="s"))
    device = lab.write("LabDeviceUpsert", {**values(name="d"), "site": {"id": site}})
    error = lab.refused("LabDeviceUpsert", {"id": device, "site": None})
    assert error["message"] == "Too few relationships, min 1 at site"


def test_a_create_takes_an_explicit_null_for_a_mandatory_peer(lab: GraphQLClient) -> None:
    device = lab.write("LabDeviceUpsert", {**values(name="d"), "site": None})
    assert lab.node("LabDevice", device, "site { node { id } }") == {"site": {"node": None}}


@pytest.mark.parametrize(
    ("pointer", "identifier"), [({"id": NOBODY}, NOBODY), ({"id": "s"}, "s"), ({"hfid": ["zzz"]}, "zzz")]
)
def test_a_missing_peer_is_named_by_its_own_kind_and_id(
    lab: GraphQLClient, pointer: dict[str, Any], identifier: str
) -> None:
    error = lab.refused("LabDeviceUpsert", {**values(name="d"), "site": pointer})
    assert error["extensions"]["code"] == "NODE_NOT_FOUND"
    assert error["extensions"]["data"] == {"node_kind": "LabSite", "identifier": identifier}
    assert error["path"] == ["LabDeviceUpsert"]


def test_the_own_stale_id_is_reported_before_a_missing_peer(lab: GraphQLClient) -> None:
    error = lab.refused("LabDeviceUpsert", {"id": NOBODY, "site": {"id": "gone"}})
    assert error["extensions"]["data"] == {"node_kind": "LabDevice", "identifier": NOBODY}


def test_a_missing_peer_leaves_nothing_behind(lab: GraphQLClient, tags: list[str], sandbox: RunningSandbox) -> None:
    site = lab.write("LabSiteUpsert", {**values(name="s"), "tags": _pointers(tags[:1])})
    before = sandbox.store.content()
    lab.refused("LabSiteUpsert", {"id": site, **values(description="x"), "tags": _pointers([tags[1], NOBODY])})
    assert sandbox.store.content() == before


def test_a_peer_of_the_wrong_kind_is_refused(lab: GraphQLClient, tags: list[str]) -> None:
    error = lab.refused("LabDeviceUpsert", {**values(name="d"), "site": {"id": tags[0]}})
    assert error["extensions"]["code"] == "ATTRIBUTE_CONSTRAINT_VIOLATION"
    assert error["extensions"]["data"]["field_name"] == "site"


def test_a_generic_takes_each_of_its_kinds(lab: GraphQLClient) -> None:
    site = lab.write("LabSiteUpsert", values(name="s"))
    cabinet = lab.write("LabCabinetUpsert", {**values(name="c"), "site": {"id": site}})
    device = {**values(name="d"), "site": {"id": site}, "place": {"hfid": ["s", "c"]}}
    read = lab.node("LabDevice", lab.write("LabDeviceUpsert", device), "place { node { id __typename } }")
    assert read == {"place": {"node": {"id": cabinet, "__typename": "LabCabinet"}}}


def test_an_id_wins_over_an_hfid_beside_it(lab: GraphQLClient) -> None:
    first = lab.write("LabSiteUpsert", values(name="s"))
    lab.write("LabSiteUpsert", values(name="t", asset="1"))
    device = {**values(name="d"), "site": {"id": first, "hfid": ["t"]}}
    read = lab.node("LabDevice", lab.write("LabDeviceUpsert", device), "site { node { id } }")
    assert read == {"site": {"node": {"id": first}}}


@pytest.mark.parametrize("pointer", [{}, {"id": None}])
def test_a_peer_that_names_nothing_is_a_500_with_a_path(lab: GraphQLClient, pointer: dict[str, Any]) -> None:
    error = lab.refused("LabDeviceUpsert", {**values(name="d"), "site": pointer})
    assert error["extensions"] == {"code": "UNDEFINED_ERROR", "http_status": 500, "data": {}}
    assert error["path"] == ["LabDeviceUpsert"]


def test_taking_a_mandatory_peer_away_from_the_other_side_is_refused(lab: GraphQLClient) -> None:
    site = lab.write("LabSiteUpsert", values(name="s"))
    device = lab.write("LabDeviceUpsert", {**values(name="d"), "site": {"id": site}})
    error = lab.refused("LabSiteUpsert", {"id": site, "devices": []})
    assert error["message"] == f"Node {device} has 0 peers for site__device, no fewer than 1 allowed"
    assert error["extensions"]["http_status"] == 422


def test_giving_an_occupied_single_peer_a_second_one_is_refused(lab: GraphQLClient) -> None:
    site = lab.write("LabSiteUpsert", values(name="s"))
    device = lab.write("LabDeviceUpsert", {**values(name="d"), "site": {"id": site}})
    other = lab.write("LabSiteUpsert", values(name="t", asset="1"))
    error = lab.refused("LabSiteUpsert", {"id": other, "devices": [{"id": device}]})
    assert error["message"] == f"Node {device} has 2 peers for site__device, maximum of 1 allowed"


def test_a_key_follows_a_peer_that_came_from_the_other_side(lab: GraphQLClient) -> None:
    site = lab.write("LabSiteUpsert", values(name="s"))
    rack = lab.write("LabRackUpsert", {**values(name="r"), "site": None})
    lab.write("LabSiteUpsert", {"id": site, "racks": [{"id": rack}]})
    assert lab.write("LabRackUpsert", {**values(name="r"), "site": {"id": site}}) == rack


def test_a_change_of_peers_moves_the_time_of_the_object_that_was_written(lab: GraphQLClient, tags: list[str]) -> None:
    site = lab.write("LabSiteUpsert", values(name="s"))
    query = "{ LabSite { edges { node_metadata { updated_at } } } LabTag { edges { node_metadata { updated_at } } } }"
    before = lab.query(query)
    lab.write("LabSiteUpsert", {"id": site, "tags": _pointers(tags)})
    after = lab.query(query)
    assert after["LabSite"] != before["LabSite"]
    assert after["LabTag"] == before["LabTag"]


def test_a_renamed_parent_is_found_by_its_new_name(lab: GraphQLClient) -> None:
    site = lab.write("LabSiteUpsert", values(name="s"))
    rack = lab.write("LabRackUpsert", {**values(name="r"), "site": {"id": site}})
    lab.write("LabSiteUpsert", {"id": site, **values(name="n")})
    assert lab.query('{ LabRack(site__name__value: "n") { edges { node { id } } } }') == {
        "LabRack": {"edges": [{"node": {"id": rack}}]}
    }
