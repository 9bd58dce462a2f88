"""Null, absent and default, which the server keeps apart in its own way."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.graphql_client import GraphQLClient, values

pytestmark = pytest.mark.contract

BELOW = "description { value is_default } status { value is_default }"


def _read(lab: GraphQLClient, site: str) -> dict[str, tuple[Any, bool]]:
    node = lab.node("LabSite", site, BELOW)
    return {name: (field["value"], field["is_default"]) for name, field in node.items()}


@pytest.mark.parametrize(
    ("payload", "description"),
    [
        ({}, (None, True)),
        ({"description": None}, (None, True)),
        ({"description": {}}, (None, False)),
        ({"description": {"value": None}}, (None, False)),
        ({"description": {"value": "d"}}, ("d", False)),
    ],
)
def test_create_without_a_default(
    lab: GraphQLClient, payload: dict[str, Any], description: tuple[str | None, bool]
) -> None:
    assert _read(lab, lab.write("LabSiteUpsert", {**values(name="s"), **payload}))["description"] == description


@pytest.mark.parametrize("payload", [{}, {"status": None}, {"status": {"value": None}}])
def test_create_with_null_under_a_default_stores_the_default(lab: GraphQLClient, payload: dict[str, Any]) -> None:
    assert _read(lab, lab.write("LabSiteUpsert", {**values(name="s"), **payload}))["status"] == ("active", True)


def test_update_to_null_without_a_default_clears(lab: GraphQLClient) -> None:
    site = lab.write("LabSiteUpsert", values(name="s", description="d"))
    lab.write("LabSiteUpsert", {"id": site, **values(description=None)})
    assert _read(lab, site)["description"] == (None, False)


def test_update_to_null_under_a_default_answers_null_and_reads_as_the_default(lab: GraphQLClient) -> None:
    site = lab.write("LabSiteUpsert", values(name="s", status="drained"))
    document = lab.mutate("LabSiteUpsert", {"id": site, **values(status=None)}, f"object {{ {BELOW} }}")
    assert document["data"]["LabSiteUpsert"]["object"]["status"] == {"value": None, "is_default": False}
    assert _read(lab, site)["status"] == ("active", True)
    found = lab.query('{ a: LabSite(status__value: "active") { count } n: LabSite(status__isnull: true) { count } }')
    assert found == {"a": {"count": 0}, "n": {"count": 1}}


@pytest.mark.parametrize("whole", [None, {}])
def test_update_with_a_whole_attribute_null_or_empty_keeps_it(lab: GraphQLClient, whole: dict[str, Any] | None) -> None:
    site = lab.write("LabSiteUpsert", values(name="s", description="d"))
    lab.write("LabSiteUpsert", {"id": site, "description": whole, "name": whole})
    assert _read(lab, site)["description"] == ("d", False)


def test_is_default_goes_back_to_the_schemas_value(lab: GraphQLClient) -> None:
    site = lab.write("LabSiteUpsert", values(name="s", status="drained", description="d"))
    lab.write("LabSiteUpsert", {"id": site, "status": {"is_default": True}, "description": {"is_default": True}})
    assert _read(lab, site) == {"description": (None, True), "status": ("active", True)}


def test_a_value_equal_to_the_default_stays_default(lab: GraphQLClient) -> None:
    site = lab.write("LabSiteUpsert", values(name="s"))
    lab.write("LabSiteUpsert", {"id": site, **values(status="active")})
    assert _read(lab, site)["status"] == ("active", True)


@pytest.mark.parametrize("whole", [{"value": None}, None, {}])
def test_a_mandatory_attribute_without_a_value_is_refused_on_create(
    lab: GraphQLClient, whole: dict[str, Any] | None
) -> None:
    error = lab.refused("LabTagUpsert", {"name": whole})
    assert error["message"] == "A value must be provided for name at name"
    assert error["extensions"]["code"] == "ATTRIBUTE_CONSTRAINT_VIOLATION"


def test_an_absent_mandatory_attribute_is_required(lab: GraphQLClient) -> None:
    error = lab.refused("LabTagUpsert", {})
    assert error["extensions"]["code"] == "ATTRIBUTE_REQUIRED"
    assert error["extensions"]["data"] == {"node_kind": "LabTag", "field_name": "name"}


def test_a_mandatory_attribute_cannot_be_cleared(lab: GraphQLClient) -> None:
    tag = lab.write("LabTagUpsert", values(name="t"))
    assert (
        "A value must be provided for name" in lab.refused("LabTagUpsert", {"id": tag, **values(name=None)})["message"]
    )
