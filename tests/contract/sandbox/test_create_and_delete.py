"""Creates under the client's own id, and deletes with what hangs on them."""

from __future__ import annotations

import pytest

from consumers.infrahub.sandbox import RunningSandbox
from tests.support.graphql_client import GraphQLClient, values

pytestmark = pytest.mark.contract

OURS = "0b5b4421-483e-5a3f-8804-9b6e10966101"


def test_create_takes_an_id_of_the_client(lab: GraphQLClient) -> None:
    assert lab.write("LabTagCreate", {"id": OURS, **values(name="t")}) == OURS


@pytest.mark.parametrize("absent", [None, ""])
def test_create_without_an_id_makes_one(lab: GraphQLClient, absent: str | None) -> None:
    assert lab.write("LabTagCreate", {"id": absent, **values(name="t")})


def test_create_with_an_id_that_is_no_uuid(lab: GraphQLClient) -> None:
    error = lab.refused("LabTagCreate", {"id": "mine", **values(name="t")})
    assert error["message"] == "mine is not a valid UUID at id"


@pytest.mark.parametrize("case", ["alive", "deleted", "another kind", "another branch"])
def test_an_id_in_use_is_refused_wherever_it_was_used(lab: GraphQLClient, sandbox: RunningSandbox, case: str) -> None:
    if case == "another branch":
        sandbox.store.create_branch("lab1")
        with GraphQLClient(sandbox, branch="lab1") as other:
            other.write("LabTagCreate", {"id": OURS, **values(name="t")})
    else:
        kind = "LabLog" if case == "another kind" else "LabTag"
        lab.write(f"{kind}Create", {"id": OURS, **values(name="t")})
    if case == "deleted":
        lab.mutate("LabTagDelete", {"id": OURS}, "ok")
    error = lab.refused("LabTagCreate", {"id": OURS, **values(name="t")})
    assert error["message"] == f"{OURS} is already in use at id"
    assert error["extensions"] == {
        "code": "ATTRIBUTE_CONSTRAINT_VIOLATION",
        "http_status": 422,
        "data": {
            "node_kind": "LabTag",
            "field_name": "id",
            "constraint": f"{OURS} is already in use",
            "detail": None,
        },
    }


def test_create_of_a_held_key_is_refused(lab: GraphQLClient) -> None:
    lab.write("LabTagCreate", values(name="t"))
    error = lab.refused("LabTagCreate", values(name="t"))
    assert error["message"] == "Violates uniqueness constraint 'name'"
    assert error["extensions"]["http_status"] == 422


def test_a_refused_create_does_not_use_up_its_id(lab: GraphQLClient) -> None:
    lab.write("LabTagCreate", values(name="t"))
    lab.refused("LabTagCreate", {"id": OURS, **values(name="t")})
    assert lab.write("LabTagCreate", {"id": OURS, **values(name="u")}) == OURS


def test_delete_of_an_unknown_object_is_not_found(lab: GraphQLClient) -> None:
    error = lab.refused("LabTagDelete", {"id": OURS})
    assert error["extensions"]["data"] == {"node_kind": "LabTag", "identifier": OURS}


def test_delete_by_hfid(lab: GraphQLClient, sandbox: RunningSandbox) -> None:
    lab.write("LabTagCreate", values(name="t"))
    assert lab.mutate("LabTagDelete", {"hfid": ["t"]}, "ok") == {"data": {"LabTagDelete": {"ok": True}}}
    assert sandbox.store.count("LabTag") == 0


def test_delete_of_a_mandatory_peer_names_the_dependant(lab: GraphQLClient, sandbox: RunningSandbox) -> None:
    site = lab.write("LabSiteCreate", values(name="s"))
    device = lab.write("LabDeviceCreate", {**values(name="d"), "site": {"id": site}})
    error = lab.refused("LabSiteDelete", {"id": site})
    assert error["message"] == (
        f"Cannot delete LabSite '{site}'. It is linked to mandatory relationship site on node LabDevice '{device}'"
        " at LabDevice.site"
    )
    assert error["extensions"]["code"] == "ATTRIBUTE_CONSTRAINT_VIOLATION"
    assert sandbox.store.get(site) is not None


def test_delete_names_every_dependant_with_a_path_of_its_own(lab: GraphQLClient) -> None:
    site = lab.write("LabSiteCreate", values(name="s"))
    for name in ("d1", "d2"):
        lab.write("LabDeviceCreate", {**values(name=name), "site": {"id": site}})
    errors = lab.mutate("LabSiteDelete", {"id": site}, "ok")["errors"]
    assert [error["path"] for error in errors] == [["LabSiteDelete", "data", "LabDevice.site"]] * 2


def test_delete_takes_components_along_without_a_word(lab: GraphQLClient, sandbox: RunningSandbox) -> None:
    site = lab.write("LabSiteCreate", values(name="s"))
    lab.write("LabRackCreate", {**values(name="r"), "site": {"id": site}})
    assert lab.mutate("LabSiteDelete", {"id": site}, "ok") == {"data": {"LabSiteDelete": {"ok": True}}}
    assert sandbox.store.count("LabRack") == 0


def test_delete_of_an_optional_peer_lets_the_edge_vanish(lab: GraphQLClient) -> None:
    tag = lab.write("LabTagCreate", values(name="t"))
    site = lab.write("LabSiteCreate", {**values(name="s"), "tags": [{"id": tag}]})
    lab.mutate("LabTagDelete", {"id": tag}, "ok")
    assert lab.node("LabSite", site, "tags { count edges { node { id } } }") == {"tags": {"count": 0, "edges": []}}
