"""Branches: copies that go their own way, and what main did since the fork."""

from __future__ import annotations

import pytest

from consumers.infrahub.sandbox import RunningSandbox
from tests.support.graphql_client import GraphQLClient, values

pytestmark = pytest.mark.contract

CREATE = (
    "mutation Make($name: String!) { BranchCreate(data: {name: $name}) { ok object { id name is_default status } } }"
)


def test_a_branch_starts_as_a_copy_and_then_keeps_to_itself(lab: GraphQLClient, sandbox: RunningSandbox) -> None:
    site = lab.write("LabSiteUpsert", values(name="s"))
    made = lab.query(CREATE, {"name": "lab1"})["BranchCreate"]
    assert made["ok"] is True
    assert {key: made["object"][key] for key in ("name", "is_default", "status")} == {
        "name": "lab1",
        "is_default": False,
        "status": "OPEN",
    }
    with GraphQLClient(sandbox, branch="lab1") as branch:
        assert branch.write("LabSiteUpsert", values(name="s", description="there")) == site
        branch.write("LabTagUpsert", values(name="t"))
        branch.write("LabRackUpsert", {**values(name="r"), "site": {"id": site}})
    assert lab.node("LabSite", site, "description { value } racks { count }") == {
        "description": {"value": None},
        "racks": {"count": 0},
    }
    assert (sandbox.store.count("LabTag"), sandbox.store.count("LabTag", branch="lab1")) == (0, 1)


def test_branches_are_listed_and_thrown_away(lab: GraphQLClient) -> None:
    lab.query(CREATE, {"name": "lab1"})
    assert lab.query("{ Branch { name } }") == {"Branch": [{"name": "main"}, {"name": "lab1"}]}
    found = lab.query('{ Branch(name: "lab1") { name origin_branch } }')
    assert found == {"Branch": [{"name": "lab1", "origin_branch": "main"}]}
    assert lab.query('mutation { BranchDelete(data: {name: "lab1"}) { ok } }') == {"BranchDelete": {"ok": True}}
    assert lab.query("{ Branch { name } }") == {"Branch": [{"name": "main"}]}


@pytest.mark.parametrize("name", ["ab", "main", "lab1"])
def test_a_short_or_taken_name_is_refused(lab: GraphQLClient, name: str) -> None:
    lab.query(CREATE, {"name": "lab1"})
    document = lab.post(CREATE, {"name": name}).json()
    assert document["data"] == {"BranchCreate": None}
    assert document["errors"][0]["extensions"]["http_status"] == 422


def test_the_default_branch_stays(lab: GraphQLClient) -> None:
    document = lab.post('mutation { BranchDelete(data: {name: "main"}) { ok } }').json()
    assert document["data"] == {"BranchDelete": None}


def test_an_unknown_branch_is_a_404_of_plain_strings(sandbox: RunningSandbox) -> None:
    with GraphQLClient(sandbox, branch="nope") as client:
        response = client.post("{ LabTag { count } }")
    assert (response.status_code, response.json()) == (404, {"errors": ["Branch: nope not found."]})


def test_a_branch_name_with_a_slash_is_a_path(lab: GraphQLClient, sandbox: RunningSandbox) -> None:
    lab.query(CREATE, {"name": "team/lab"})
    for spelling in ("team/lab", "team%2Flab"):
        with GraphQLClient(sandbox, branch=spelling) as client:
            assert client.query("{ LabTag { count } }") == {"LabTag": {"count": 0}}


def test_a_branch_in_the_query_string_is_ignored(lab: GraphQLClient, sandbox: RunningSandbox) -> None:
    lab.query(CREATE, {"name": "lab1"})
    mutation = {"query": 'mutation { LabTagUpsert(data: {name: {value: "t"}}) { ok } }'}
    assert lab.http.post("/graphql?branch=lab1", json=mutation).json()["data"]["LabTagUpsert"] == {"ok": True}
    assert (sandbox.store.count("LabTag"), sandbox.store.count("LabTag", branch="lab1")) == (1, 0)


def test_what_main_made_after_the_fork_is_no_object_of_the_branch(lab: GraphQLClient, sandbox: RunningSandbox) -> None:
    lab.query(CREATE, {"name": "lab1"})
    there = lab.write("LabTagUpsert", values(name="t"))
    with GraphQLClient(sandbox, branch="lab1") as branch:
        by_id = branch.refused("LabTagUpsert", {"id": there})
        by_key = branch.refused("LabTagUpsert", values(name="t"))
        create = branch.refused("LabTagCreate", values(name="t"))
    assert by_id["extensions"]["data"] == {"node_kind": "LabTag", "identifier": there}
    assert "Please rebase this branch" in by_key["message"]
    assert by_key["extensions"]["data"] == {"node_kind": "LabTag", "identifier": there}
    assert create["message"] == "Violates uniqueness constraint 'name'"


def test_what_a_branch_deleted_it_may_make_again(lab: GraphQLClient, sandbox: RunningSandbox) -> None:
    before = lab.write("LabTagUpsert", values(name="t"))
    lab.query(CREATE, {"name": "lab1"})
    with GraphQLClient(sandbox, branch="lab1") as branch:
        branch.mutate("LabTagDelete", {"id": before}, "ok")
        assert branch.write("LabTagUpsert", values(name="t")) != before
    assert lab.node("LabTag", before, "id") == {"id": before}


def test_main_may_make_what_a_branch_made(lab: GraphQLClient, sandbox: RunningSandbox) -> None:
    lab.query(CREATE, {"name": "lab1"})
    with GraphQLClient(sandbox, branch="lab1") as branch:
        there = branch.write("LabTagUpsert", values(name="t"))
    assert lab.write("LabTagUpsert", values(name="t")) != there
