"""Checks, normal forms and error texts of attribute values."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.graphql_client import GraphQLClient, values

pytestmark = pytest.mark.contract


def _device(lab: GraphQLClient, **fields: Any) -> dict[str, Any]:
    return {**values(name="d", **fields), "site": {"id": lab.write("LabSiteUpsert", values(name="s"))}}


@pytest.mark.parametrize(
    ("name", "sent", "stored"),
    [
        ("address", "10.0.0.1", "10.0.0.1/32"),
        ("address", "2001:DB8::1", "2001:db8::1/128"),
        ("address", "2001:DB8::1/64", "2001:db8::1/64"),
        ("address", "::ffff:10.0.0.1", "::ffff:a00:1/128"),
        ("address", "fe80::1%eth0", "fe80::1/128"),
        ("network", "10.0.0.0", "10.0.0.0/32"),
        ("network", "10.0.0.0/255.255.255.0", "10.0.0.0/24"),
        ("network", "2001:DB8::/32", "2001:db8::/32"),
        ("mac", "00-11-22-aa-bb-cc", "00:11:22:AA:BB:CC"),
        ("mac", "0011.22aa.bbcc", "00:11:22:AA:BB:CC"),
        ("mac", "001122aabbcc", "00:11:22:AA:BB:CC"),
        ("since", "2026-01-01T10:00:00+02:00", "2026-01-01T10:00:00+02:00"),
        ("since", "5m", "5m"),
        ("since", "", ""),
        ("mail", "no mail at all", "no mail at all"),
        ("homepage", "https://lab.example/x", "https://lab.example/x"),
        ("height", "5", 5),
        ("height", "5.7", 5),
        ("height", 5.7, 5),
        ("height", True, 1),
        ("height", 2**63 - 1, 2**63 - 1),
        ("labels", ["a", 2, False], ["a", 2, False]),
        ("labels", '["a"]', '["a"]'),
        ("settings", {"auth-token": 1, "": 3}, {"auth-token": 1, "": 3}),
        ("settings", {"big": 2**53 + 1}, {"big": 2**53 + 1}),
        ("notes", "x" * 5000, "x" * 5000),
        ("mail", " a\tb\r\n ", " a\tb\r\n "),
        ("mail", "$core \u0000 \u200b 🙂", "$core \u0000 \u200b 🙂"),
        ("mail", "NULL", None),
        ("role", "leaf", "leaf"),
    ],
)
def test_a_value_reads_back_in_its_stored_form(lab: GraphQLClient, name: str, sent: Any, stored: Any) -> None:
    device = lab.write("LabDeviceUpsert", _device(lab, **{name: sent}))
    assert lab.node("LabDevice", device, f"{name} {{ value }}") == {name: {"value": stored}}


@pytest.mark.parametrize(
    ("name", "sent", "code", "message"),
    [
        ("address", " 10.0.0.1", "ATTRIBUTE_INVALID_TYPE", " 10.0.0.1 is not a valid IPHost at address"),
        ("address", "010.0.0.1", "ATTRIBUTE_INVALID_TYPE", "010.0.0.1 is not a valid IPHost at address"),
        ("address", "10.0.0.1/33", "ATTRIBUTE_INVALID_TYPE", "10.0.0.1/33 is not a valid IPHost at address"),
        ("network", "10.0.0.5/24", "ATTRIBUTE_INVALID_TYPE", "10.0.0.5/24 is not a valid IPNetwork at network"),
        ("mac", "00:11", "ATTRIBUTE_INVALID_TYPE", "00:11 is not a valid MacAddress at mac"),
        ("homepage", "lab", "ATTRIBUTE_INVALID_TYPE", "lab is not a valid URL at homepage"),
        ("since", "soon", "ATTRIBUTE_INVALID_TYPE", "soon is not a valid DateTime at since"),
        ("settings", 5, "ATTRIBUTE_INVALID_TYPE", "5 is not a valid JSON at settings"),
        ("short", "x", "ATTRIBUTE_CONSTRAINT_VIOLATION", "x must have a minimum length of 2 at short"),
        ("short", "", "ATTRIBUTE_CONSTRAINT_VIOLATION", " must have a minimum length of 2 at short"),
        ("short", "12345", "ATTRIBUTE_CONSTRAINT_VIOLATION", "12345 must have a maximum length of 4 at short"),
    ],
)
def test_a_bad_value_is_refused_naming_its_field(
    lab: GraphQLClient, name: str, sent: Any, code: str, message: str
) -> None:
    error = lab.refused("LabDeviceUpsert", _device(lab, **{name: sent}))
    assert (error["message"], error["extensions"]["code"]) == (message, code)
    assert error["path"] == ["LabDeviceUpsert"]
    assert error["extensions"]["data"]["field_name"] == name


@pytest.mark.parametrize(
    ("name", "sent", "status", "message"),
    [
        ("height", 2**63, 500, "Python int too large to convert to C long"),
        ("mail", "ä" * 2047, 422, "Text attribute length should be less than 4096 characters."),
    ],
)
def test_some_client_faults_are_labelled_as_the_servers(
    lab: GraphQLClient, name: str, sent: Any, status: int, message: str
) -> None:
    error = lab.refused("LabDeviceUpsert", _device(lab, **{name: sent}))
    assert (error["message"], error["path"]) == (message, ["LabDeviceUpsert"])
    assert error["extensions"] == {"code": "UNDEFINED_ERROR", "http_status": status, "data": {}}


def test_4092_bytes_of_text_are_taken(lab: GraphQLClient) -> None:
    assert lab.write("LabDeviceUpsert", _device(lab, mail="ä" * 2046))


@pytest.mark.parametrize(
    ("payload", "words"),
    [
        ({"name": {"value": 5}}, "String cannot represent a non string value: 5"),
        ({"enabled": {"value": "yes"}}, "Boolean cannot represent a non boolean value: 'yes'"),
        ({"height": {"value": "abc"}}, "Expected type 'BigInt'"),
        ({"nam": {"value": "x"}}, "Field 'nam' is not defined by type 'LabDeviceUpsertInput'"),
        ({"name": "x"}, "to be a mapping"),
    ],
)
def test_what_graphql_itself_refuses_has_no_path_and_ran_nothing(
    lab: GraphQLClient, payload: dict[str, Any], words: str
) -> None:
    document = lab.mutate("LabDeviceUpsert", payload)
    (error,) = document["errors"]
    assert document["data"] is None
    assert words in error["message"]
    assert "path" not in error
    assert error["extensions"] == {"code": "UNDEFINED_ERROR", "http_status": 500, "data": {}}


def test_a_read_only_field_is_not_in_the_input_type(lab: GraphQLClient) -> None:
    (error,) = lab.mutate("LabSiteUpsert", values(name="s", computed="x"))["errors"]
    assert "Field 'computed' is not defined by type 'LabSiteUpsertInput'" in error["message"]


def test_a_regex_is_searched_from_the_start_and_dollar_takes_a_newline(lab: GraphQLClient) -> None:
    assert lab.write("LabSiteUpsert", values(name="s", code="ABC\n"))
    error = lab.refused("LabSiteUpsert", values(name="t", code="abc"))
    assert error["message"] == "abc must conform with the regex: '^[A-Z0-9]+$' at code"


def test_a_dropdown_names_its_choices(lab: GraphQLClient) -> None:
    error = lab.refused("LabSiteUpsert", values(name="s", status="bogus"))
    assert error["message"] == "bogus must be one of 'active, drained' at status"


@pytest.mark.parametrize("number", [0, 10])
def test_a_number_out_of_range_is_refused(lab: GraphQLClient, number: int) -> None:
    error = lab.refused("LabSiteUpsert", values(name="s", priority=number))
    assert error["extensions"]["code"] == "ATTRIBUTE_CONSTRAINT_VIOLATION"


def test_several_bad_fields_are_several_errors_with_paths_of_their_own(lab: GraphQLClient) -> None:
    document = lab.mutate("LabSiteUpsert", values(name="s", code="x", status="bogus"))
    assert document["data"] == {"LabSiteUpsert": None}
    assert sorted(error["path"] for error in document["errors"]) == [
        ["LabSiteUpsert", "data", "code"],
        ["LabSiteUpsert", "data", "status"],
    ]
    assert all("locations" not in error for error in document["errors"])


def test_keys_differ_by_case_blank_and_composition(lab: GraphQLClient) -> None:
    names = ["é", "e\u0301", "É", "é "]
    assert len({lab.write("LabTagUpsert", values(name=name)) for name in names}) == len(names)


def test_a_name_of_the_letters_null_reads_as_null_and_keeps_its_key(lab: GraphQLClient) -> None:
    tag = lab.write("LabTagUpsert", values(name="NULL"))
    assert lab.node("LabTag", tag, "name { value } hfid") == {"name": {"value": None}, "hfid": ["NULL"]}


def test_a_big_number_in_a_literal_list_is_lost(lab: GraphQLClient) -> None:
    site = lab.write("LabSiteUpsert", values(name="s"))
    lab.query(
        "mutation Apply($site: String) { LabDeviceUpsert(data: "
        f'{{name: {{value: "d"}}, site: {{id: $site}}, labels: {{value: [1, {2**40}]}}}}) {{ ok }} }}',
        {"site": site},
    )
    assert lab.query("{ LabDevice { edges { node { labels { value } } } } }") == {
        "LabDevice": {"edges": [{"node": {"labels": {"value": [1, None]}}}]}
    }
