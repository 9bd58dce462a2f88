"""One normal form per attribute kind, equal to what the destination stores (design 4.8, FF03, FF15, FF16)."""

from __future__ import annotations

import ipaddress
import unicodedata
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.plan.attribute_values import value_faults
from ledger.plan.canonical import canonical_json_bytes, object_key
from ledger.plan.errors import UnserializablePayloadValueError
from ledger.plan.normal_form import normal_form, normalise_peer_identity
from ledger.schema import Attribute, Relationship
from tests.support.plan_rules import kind, pair, schema

KINDS = ["Text", "TextArea", "Number", "Boolean", "Dropdown", "DateTime", "URL", "Email", "List", "JSON", "Any"]
RESPELLED = ["IPHost", "IPNetwork", "IPAddress", "MacAddress"]


def form(attribute_kind: str, value: Any, default: Any = None) -> Any:
    return normal_form(Attribute(name="field", kind=attribute_kind, default=default), value, kind="TestKind")


@pytest.mark.rules("P70")
@pytest.mark.parametrize(
    ("attribute_kind", "value", "stored"),
    [
        ("IPHost", "10.0.0.1", "10.0.0.1/32"),
        ("IPHost", "10.0.0.1/24", "10.0.0.1/24"),
        ("IPHost", "10.0.0.1/255.255.255.0", "10.0.0.1/24"),
        ("IPHost", "2001:DB8::1", "2001:db8::1/128"),
        ("IPHost", "2001:0db8:0000:0000:0000:0000:0000:0001/64", "2001:db8::1/64"),
        ("IPHost", "::ffff:10.0.0.1", "::ffff:a00:1/128"),
        ("IPHost", "::FFFF:0:0/96", "::ffff:0:0/96"),
        ("IPHost", "fe80::1%eth0", "fe80::1/128"),
        ("IPHost", "192.168.1.0/22", "192.168.1.0/22"),
        ("IPNetwork", "10.0.0.0", "10.0.0.0/32"),
        ("IPNetwork", "10.0.0.0/255.255.255.0", "10.0.0.0/24"),
        ("IPNetwork", "2001:DB8::/32", "2001:db8::/32"),
        ("IPNetwork", "::ffff:10.0.0.0/104", "::ffff:a00:0/104"),
        ("IPNetwork", "FE80::%eth0/64", "fe80::%eth0/64"),
        ("IPAddress", "2001:DB8::1", "2001:db8::1"),
        ("IPAddress", "FE80::1%eth0", "fe80::1%eth0"),
        ("MacAddress", "00-11-22-aa-bb-cc", "00:11:22:AA:BB:CC"),
        ("MacAddress", "00:11:22:aa:bb:cc", "00:11:22:AA:BB:CC"),
        ("MacAddress", "0011.22aa.bbcc", "00:11:22:AA:BB:CC"),
        ("MacAddress", "001122aabbcc", "00:11:22:AA:BB:CC"),
        ("MacAddress", "001122-aabbcc", "00:11:22:AA:BB:CC"),
        ("MacAddress", "0:11:22:a:b:c", "00:11:22:0A:0B:0C"),
    ],
)
def test_two_spellings_of_one_value_have_the_spelling_that_the_destination_stores(
    attribute_kind: str, value: str, stored: str
) -> None:
    assert form(attribute_kind, value) == stored


@pytest.mark.rules("G11")
@pytest.mark.parametrize(
    ("attribute_kind", "value"),
    [
        ("IPNetwork", "10.0.0.5/24"),
        ("IPHost", " 10.0.0.1"),
        ("IPHost", "010.0.0.1"),
        ("IPHost", "10.0.0.1/33"),
        ("IPHost", ""),
        ("IPAddress", "10.0.0.1/32"),
        ("MacAddress", "00:11:22:aa:bb"),
        ("MacAddress", "00:11-22:aa:bb:cc"),
        ("MacAddress", "00:11:22:aa:bb:cc\n"),
    ],
)
def test_a_value_without_normal_form_stays_as_it_is_and_is_a_named_fault(attribute_kind: str, value: str) -> None:
    assert form(attribute_kind, value) == value
    assert len(value_faults(Attribute(name="field", kind=attribute_kind), value)) == 1


@pytest.mark.rules("H31", "H32", "A77")
@given(attribute_kind=st.sampled_from(KINDS + RESPELLED), value=st.text() | st.ip_addresses().map(str))
def test_the_normal_form_of_a_normal_form_is_itself(attribute_kind: str, value: str) -> None:
    if "\x00" in value:
        return
    once = form(attribute_kind, value)
    assert form(attribute_kind, once) == once


@pytest.mark.rules("H32")
@given(value=st.ip_addresses(v=6))
def test_ipv6_has_one_spelling_on_every_python(value: Any) -> None:
    assert form("IPHost", value.exploded) == form("IPHost", value.compressed)
    assert "." not in form("IPHost", value.compressed)


@pytest.mark.rules("H32")
def test_ipv4_mapped_addresses_do_not_follow_the_interpreters_spelling(monkeypatch: pytest.MonkeyPatch) -> None:
    # Python 3.13 prints ::ffff:10.0.0.1 where 3.11 prints ::ffff:a00:1; the destination stores the second.
    monkeypatch.setattr(ipaddress.IPv6Address, "__str__", lambda _: "the interpreter's")
    assert form("IPHost", "::ffff:10.0.0.1") == "::ffff:a00:1/128"
    assert form("IPHost", "2001:db8::1") == "the interpreter's/128"


@pytest.mark.rules("H31", "H32")
@pytest.mark.parametrize(
    ("attribute_kind", "default", "stored"),
    [("Boolean", False, False), ("Number", 42, 42), ("Dropdown", "active", "active"), ("IPHost", "::1", "::1/128")],
)
def test_null_under_a_default_is_the_default(attribute_kind: str, default: Any, stored: Any) -> None:
    assert form(attribute_kind, None, default) == stored
    assert form(attribute_kind, stored, default) == stored


def test_null_without_a_default_stays_null() -> None:
    assert form("Text", None) is None


@pytest.mark.rules("H31")
def test_empty_text_and_null_are_two_values_so_that_neither_update_vanishes() -> None:
    assert form("Text", "") == ""
    assert form("Text", None) is None
    # What was sent is what is stored, and then what is read: the second plan compares equal forms.
    assert form("Text", form("Text", "")) == form("Text", "")
    assert form("Text", "", default="n/a") == ""


@pytest.mark.rules("P70")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        (unicodedata.normalize("NFC", "é"), unicodedata.normalize("NFD", "é")),
        ("Flex system", "Flex System"),
        ("a", "a "),
        ("a", "a\u200b"),
        ("a\r\nb", "a\nb"),
    ],
)
def test_text_is_byte_exact_as_it_is_at_the_destination(one: str, other: str) -> None:
    assert form("Text", one) == one
    assert form("Text", one) != form("Text", other)


@pytest.mark.rules("A46", "A53")
def test_one_and_one_point_zero_and_true_stay_three_values() -> None:
    forms = {canonical_json_bytes(form("Any", value)) for value in (1, 1.0, True, "1")}
    assert len(forms) == 4


@pytest.mark.rules("A22")
def test_list_attributes_keep_their_order() -> None:
    assert form("List", [2, 1]) == [2, 1]


@pytest.mark.rules("A18")
def test_dates_are_their_iso_text_and_are_not_rewritten() -> None:
    assert form("DateTime", datetime(2026, 1, 1, tzinfo=UTC)) == "2026-01-01T00:00:00+00:00"
    assert form("DateTime", "2026-01-01T02:00:00+02:00") == "2026-01-01T02:00:00+02:00"


@pytest.mark.rules("A20")
@pytest.mark.parametrize(
    ("value", "type_name"),
    [
        (float("nan"), "float"),
        (float("inf"), "float"),
        (Decimal("NaN"), "Decimal"),
        (object(), "object"),
        ({1: "a"}, "int"),
        ("a\x00", "str"),
        ("\ud800", "str"),
    ],
)
def test_a_value_without_canonical_form_is_refused_naming_kind_field_and_type(value: Any, type_name: str) -> None:
    with pytest.raises(UnserializablePayloadValueError) as refusal:
        form("Any", value)
    assert "TestKind.field" in refusal.value.checked
    assert type_name in refusal.value.found


PREFIX = kind(
    "IpamPrefix",
    attributes=[Attribute(name="prefix", kind="IPNetwork")],
    relationships=[Relationship(name="scope", peer="IpamAddress", cardinality="one")],
)
ADDRESS = kind("IpamAddress", attributes=[Attribute(name="address", kind="IPHost")])


@pytest.mark.rules("P70", "A47", "C17")
def test_a_peer_identity_is_normalised_to_any_depth() -> None:
    known = schema(PREFIX, ADDRESS)
    given_elsewhere = {"prefix": "2001:DB8::/32", "scope": pair("IpamAddress", address="10.0.0.1"), "free": "X"}
    ours = {"prefix": "2001:db8::/32", "scope": pair("IpamAddress", address="10.0.0.1/32"), "free": "X"}
    found = normalise_peer_identity(known, "IpamPrefix", given_elsewhere)
    assert found == ours
    assert object_key("IpamPrefix", found) == object_key("IpamPrefix", ours)


def test_lists_of_references_and_unknown_kinds_pass_through() -> None:
    identity = {"scope": [pair("IpamAddress", address="10.0.0.1"), "text"], "prefix": None}
    found = normalise_peer_identity(schema(PREFIX, ADDRESS), "IpamPrefix", identity)
    assert found == {"scope": [pair("IpamAddress", address="10.0.0.1/32"), "text"], "prefix": None}
    assert normalise_peer_identity(schema(), "Unknown", {"b": 1, "a": "x"}) == {"a": "x", "b": 1}
