"""How an upsert finds its object, and what it answers when it does not."""

from __future__ import annotations

import uuid

import pytest

from consumers.infrahub.sandbox import RunningSandbox
from tests.support.graphql_client import GraphQLClient, values

pytestmark = pytest.mark.contract


def test_a_complete_key_creates_then_updates_under_one_id(lab: GraphQLClient, sandbox: RunningSandbox) -> None:
    first = lab.mutate("LabSiteUpsert", values(name="s1"))
    second = lab.mutate("LabSiteUpsert", values(name="s1", description="new"))
    assert first["data"]["LabSiteUpsert"] == second["data"]["LabSiteUpsert"]
    assert set(first["data"]["LabSiteUpsert"]) == {"ok", "object"}
    assert sandbox.store.count("LabSite") == 1


@pytest.mark.parametrize("stale", ["", "no-uuid", "2ea9bd29-0000-4000-8000-000000000000", "known-key"])
def test_an_unknown_id_never_creates_and_never_falls_back_to_the_key(
    lab: GraphQLClient, sandbox: RunningSandbox, stale: str
) -> None:
    lab.write("LabSiteUpsert", values(name="s1"))
    error = lab.refused("LabSiteUpsert", {"id": stale, **values(name="s1")})
    assert error["message"] == f"Unable to find the node {stale} / LabSite in the database."
    assert error["path"] == ["LabSiteUpsert"]
    assert error["extensions"] == {
        "code": "NODE_NOT_FOUND",
        "http_status": 404,
        "data": {"node_kind": "LabSite", "identifier": stale},
    }
    assert sandbox.store.count("LabSite") == 1


def test_the_id_of_a_deleted_object_is_as_unknown_as_any(lab: GraphQLClient) -> None:
    tag = lab.write("LabTagUpsert", values(name="t"))
    lab.mutate("LabTagDelete", {"id": tag}, "ok")
    assert lab.refused("LabTagUpsert", {"id": tag, **values(name="t")})["extensions"]["code"] == "NODE_NOT_FOUND"


def test_the_id_of_another_kind_differs_in_its_message_alone(lab: GraphQLClient) -> None:
    tag = lab.write("LabTagUpsert", values(name="t"))
    error = lab.refused("LabSiteUpsert", {"id": tag, **values(name="s")})
    assert error["message"] == f"Node with id {tag} exists, but it is a LabTag, not LabSite"
    assert error["extensions"]["data"] == {"node_kind": "LabSite", "identifier": tag}


def test_an_upper_case_id_is_another_id(lab: GraphQLClient) -> None:
    tag = lab.write("LabTagUpsert", values(name="t"))
    assert lab.refused("LabTagUpsert", {"id": tag.upper()})["extensions"]["data"]["identifier"] == tag.upper()


def test_a_null_id_is_a_plain_500_and_a_closed_connection(lab: GraphQLClient) -> None:
    response = lab.post(
        "mutation A($data: LabTagUpsertInput!) { LabTagUpsert(data: $data) { ok } }", {"data": {"id": None}}
    )
    assert (response.status_code, response.headers["content-type"]) == (500, "text/plain; charset=utf-8")


def test_by_id_a_partial_payload_is_enough_and_leaves_the_rest(lab: GraphQLClient) -> None:
    site = lab.write("LabSiteUpsert", values(name="s1", description="d"))
    assert lab.write("LabSiteUpsert", {"id": site, **values(code="X1")}) == site
    read = lab.node("LabSite", site, "name { value } description { value } code { value }")
    assert read == {"name": {"value": "s1"}, "description": {"value": "d"}, "code": {"value": "X1"}}


def test_a_create_carries_every_mandatory_field_even_where_the_object_exists(lab: GraphQLClient) -> None:
    site = lab.write("LabSiteUpsert", values(name="s1"))
    lab.write("LabDeviceUpsert", {**values(name="d1"), "site": {"id": site}})
    error = lab.refused("LabDeviceUpsert", values(name="d1"))
    assert error["message"] == "site is mandatory for LabDevice at site"
    assert error["extensions"]["code"] == "ATTRIBUTE_REQUIRED"
    assert error["extensions"]["data"] == {"node_kind": "LabDevice", "field_name": "site"}


def test_a_kind_without_any_key_gets_another_object_each_time(lab: GraphQLClient, sandbox: RunningSandbox) -> None:
    first = lab.write("LabLogUpsert", values(name="l"))
    assert lab.write("LabLogUpsert", values(name="l")) != first
    assert sandbox.store.count("LabLog") == 2


def test_a_kind_keyed_by_a_constraint_alone_refuses_the_second_upsert(lab: GraphQLClient) -> None:
    site = lab.write("LabSiteUpsert", values(name="s"))
    device = lab.write("LabDeviceUpsert", {**values(name="d"), "site": {"id": site}})
    port = {**values(name="p1"), "device": {"id": device}}
    lab.write("LabPortUpsert", port)
    error = lab.refused("LabPortUpsert", port)
    assert error["message"] == "Violates uniqueness constraint 'device-name'"
    assert error["extensions"] == {"code": "UNDEFINED_ERROR", "http_status": 422, "data": {}}


def test_a_key_of_one_object_and_a_unique_value_of_another_is_refused(lab: GraphQLClient) -> None:
    lab.write("LabSiteUpsert", values(name="a", asset="1"))
    lab.write("LabSiteUpsert", values(name="b", asset="2"))
    assert "Violates uniqueness constraint" in lab.refused("LabSiteUpsert", values(name="a", asset="2"))["message"]


def test_a_second_null_in_a_unique_attribute_collides(lab: GraphQLClient) -> None:
    lab.write("LabSiteUpsert", values(name="a"))
    assert lab.refused("LabSiteUpsert", values(name="b"))["message"] == "Violates uniqueness constraint 'asset'"


def test_hfid_of_the_right_length_without_a_match_is_dropped(lab: GraphQLClient, sandbox: RunningSandbox) -> None:
    tag = lab.write("LabTagUpsert", {"hfid": ["nope"], **values(name="other")})
    created = sandbox.store.get(tag)
    assert created is not None
    assert created.values["name"] == "other"


@pytest.mark.parametrize("hfid", [[], ["a", "b"]])
def test_hfid_of_another_length_is_not_found(lab: GraphQLClient, hfid: list[str]) -> None:
    assert lab.refused("LabTagUpsert", {"hfid": hfid, **values(name="t")})["extensions"]["code"] == "NODE_NOT_FOUND"


def test_hfid_is_ignored_beside_an_id(lab: GraphQLClient) -> None:
    tag = lab.write("LabTagUpsert", values(name="t"))
    assert lab.write("LabTagUpsert", {"id": tag, "hfid": ["a", "b", "c"]}) == tag


def test_by_id_a_key_that_another_object_holds_is_refused(lab: GraphQLClient) -> None:
    lab.write("LabTagUpsert", values(name="a"))
    second = lab.write("LabTagUpsert", values(name="b"))
    error = lab.refused("LabTagUpsert", {"id": second, **values(name="a")})
    assert error["message"] == "Violates uniqueness constraint 'name'"
    assert lab.node("LabTag", second, "name { value }") == {"name": {"value": "b"}}


def test_hfid_and_key_of_two_objects_disagree(lab: GraphQLClient) -> None:
    for name in "ab":
        lab.write("LabTagUpsert", values(name=name))
    error = lab.refused("LabTagUpsert", {"hfid": ["a"], **values(name="b")})
    assert error["message"] == "Violates uniqueness constraint 'name'"


def test_a_constraint_of_a_generic_spans_its_kinds(lab: GraphQLClient) -> None:
    site = lab.write("LabSiteUpsert", values(name="s"))
    place = {**values(name="p"), "site": {"id": site}}
    lab.write("LabRackUpsert", place)
    error = lab.refused("LabCabinetUpsert", place)
    assert (error["extensions"]["code"], error["message"][-31:]) == (
        "NODE_NOT_FOUND",
        "it is a LabRack, not LabCabinet",
    )
    assert lab.refused("LabCabinetCreate", place)["message"] == "Violates uniqueness constraint 'site-name'"


def test_a_key_that_a_generic_guards_too_converges_within_its_kind(lab: GraphQLClient) -> None:
    site = lab.write("LabSiteUpsert", values(name="s"))
    place = {**values(name="p"), "site": {"id": site}}
    assert lab.write("LabRackUpsert", place) == lab.write("LabRackUpsert", place)


def test_a_no_op_moves_no_time(lab: GraphQLClient) -> None:
    site = lab.write("LabSiteUpsert", values(name="s", description="d"))
    query = "query { LabSite { edges { node_metadata { updated_at created_at } } } }"
    before = lab.query(query)
    assert lab.write("LabSiteUpsert", values(name="s", description="d")) == site
    assert lab.query(query) == before
    lab.write("LabSiteUpsert", values(name="s", description="e"))
    after = lab.query(query)
    assert after["LabSite"]["edges"][0]["node_metadata"] != before["LabSite"]["edges"][0]["node_metadata"]


def test_the_answer_of_an_update_has_no_times_and_only_the_peers_that_were_sent(lab: GraphQLClient) -> None:
    site = lab.write("LabSiteUpsert", values(name="s"))
    device = {**values(name="d"), "site": {"id": site}}
    below = "object { site { node { id } } name { updated_at } }"
    created = lab.mutate("LabDeviceUpsert", device, below)["data"]["LabDeviceUpsert"]["object"]
    assert created["site"]["node"] == {"id": site}
    assert created["name"]["updated_at"] is not None
    node_id = lab.write("LabDeviceUpsert", device)
    updated = lab.mutate("LabDeviceUpsert", {"id": node_id, **values(height=4)}, below)
    assert updated["data"]["LabDeviceUpsert"]["object"] == {"site": {"node": None}, "name": {"updated_at": None}}


def test_update_wants_an_id_or_hfid(lab: GraphQLClient) -> None:
    error = lab.refused("LabTagUpdate", values(name="t"))
    assert error["message"] == "either id or hfid must be provided."
    assert error["extensions"]["http_status"] == 400


def test_aliased_mutations_run_each_for_itself(lab: GraphQLClient, sandbox: RunningSandbox) -> None:
    text = """mutation {
      a: LabTagUpsert(data: {name: {value: "a"}}) { ok }
      b: LabTagUpsert(data: {id: "%s"}) { ok }
      c: LabTagUpsert(data: {name: {value: "c"}}) { ok }
    }""" % uuid.UUID(int=1)  # noqa: UP031 - braces are GraphQL's here
    document = lab.post(text).json()
    assert document["data"] == {"a": {"ok": True}, "b": None, "c": {"ok": True}}
    assert [error["path"] for error in document["errors"]] == [["b"]]
    assert sandbox.store.count("LabTag") == 2
