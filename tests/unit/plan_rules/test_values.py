"""Fields and values against the destination's schema: every fault by object and field (design 4.6, FF12, FF13)."""

from __future__ import annotations

from typing import Any

import pytest

from ledger.plan.attribute_values import MAX_TEXT_BYTES, value_faults
from ledger.plan.errors import (
    NullRelationshipValueError,
    SchemaMismatchError,
    SecretValueRefusedError,
)
from ledger.plan.gate import unsent_nulls
from ledger.plan.values import check_operation_values, require_known_kind
from ledger.schema import Attribute, Relationship
from tests.support.plan_rules import create, kind, operation, pair, ref, schema, update

DEVICE = kind(
    "DcimDevice",
    hfid=["name__value"],
    attributes=[
        Attribute(name="name", kind="Text", optional=False),
        Attribute(name="description", kind="Text"),
        Attribute(name="height", kind="Number", optional=False, default=1),
        Attribute(name="label", kind="Text", optional=False, read_only=True),
        Attribute(name="serial", kind="Text", optional=False),
        Attribute(name="password", kind="Password"),
    ],
    relationships=[
        Relationship(name="site", peer="LocationSite", cardinality="one", optional=False, max_count=1),
        Relationship(name="parent", peer="LocationHosting", cardinality="one", max_count=1),
        Relationship(name="tags", peer="BuiltinTag", cardinality="many"),
        Relationship(name="ends", peer="DcimEnd", cardinality="many", optional=False, min_count=2, max_count=2),
        Relationship(name="children", peer="DcimDevice", cardinality="many", read_only=True),
    ],
)
SITE = kind("LocationSite", attributes=[Attribute(name="name", kind="Text")], inherit_from=("LocationHosting",))
HOSTING = kind("LocationHosting", is_node=False)
TAG = kind("BuiltinTag", attributes=[Attribute(name="name", kind="Text"), Attribute(name="pin", kind="HashedPassword")])
END = kind("DcimEnd", attributes=[Attribute(name="name", kind="Text")])
SCHEMA = schema(DEVICE, SITE, HOSTING, TAG, END)
AT_DC1 = ref("site", "LocationSite", {"name": "dc1"})
ENDS = ref("ends", "DcimEnd", {"name": "a"}, {"name": "b"}, many=True)


def faults(planned: Any) -> list[str]:
    return [
        f"{type(fault).__name__} {fault.checked}: {fault.expected}; {fault.found}"
        for fault in check_operation_values(planned, DEVICE, schema=SCHEMA)
    ]


def device(payload: dict[str, Any] | None = None, *references: Any) -> Any:
    return create("DcimDevice", {"name": "sw1"}, {"serial": "s", **(payload or {})}, AT_DC1, ENDS, *references)


def value_fault(attribute_kind: str, value: Any, **fields: Any) -> str:
    found = value_faults(Attribute(name="field", kind=attribute_kind, **fields), value)
    return "; ".join(f"{fault.expected} / {fault.found}" for fault in found)


def test_a_complete_create_has_no_fault() -> None:
    assert faults(device()) == []


@pytest.mark.rules("G11")
def test_g11_every_fault_of_one_operation_is_named_with_object_and_field() -> None:
    planned = create("DcimDevice", {"name": 5}, {"descripton": "x", "label": "x"})
    found = faults(planned)
    for field in ("name", "descripton", "label", "serial", "site", "ends"):
        assert len([fault for fault in found if f'field "{field}" of create DcimDevice(name=5)' in fault]) == 1
    assert len(found) == 6
    assert all(planned.operation_id in fault for fault in found)


@pytest.mark.rules("G11")
def test_a_field_that_the_schema_does_not_have_is_refused_by_name() -> None:
    assert "'descripton', which the schema does not have" in faults(device({"descripton": "x"}))[0]
    assert "'id', which the schema does not have" in faults(device({"id": "18d5"}))[0]
    unknown = ref("owner", "LocationSite", {"name": "a"})
    assert "'owner', which the schema does not have" in faults(device({}, unknown))[0]


def test_a_read_only_field_is_refused() -> None:
    assert "a read-only attribute" in faults(device({"label": "x"}))[0]
    assert "a read-only relationship" in faults(device({}, ref("children", "DcimDevice", many=True)))[0]


@pytest.mark.rules("A37", "A39")
def test_a_field_in_the_wrong_place_is_refused() -> None:
    assert "a plain value" in faults(device({"tags": ["t"]}))[0]
    assert "a plain value" in faults(device({"tags": None}))[0]
    assert "an attribute" in faults(device({}, ref("description", "BuiltinTag", {"name": "x"})))[0]


class TestMandatory:
    def test_a_create_names_every_mandatory_field_that_is_missing(self) -> None:
        found = check_operation_values(create("DcimDevice", {"name": "sw1"}), DEVICE)
        assert all(isinstance(fault, SchemaMismatchError) for fault in found)
        assert [fault.checked.split('"')[1] for fault in found] == ["serial", "site", "ends"]

    def test_a_default_makes_an_attribute_optional(self) -> None:
        assert not [fault for fault in faults(device()) if "height" in fault]

    def test_an_update_sends_what_it_changes_only(self) -> None:
        assert faults(update("DcimDevice", {"name": "sw1"}, {"description": None})) == []

    @pytest.mark.rules("G6")
    def test_g06_null_clears_an_optional_attribute_and_is_refused_for_a_mandatory_one(self) -> None:
        assert faults(device({"description": None})) == []
        for planned in (device({"serial": None}), update("DcimDevice", {"name": "sw1"}, {"serial": None})):
            assert "the attribute is mandatory; null" in faults(planned)[0]


class TestRelationships:
    @pytest.mark.rules("P92", "G5")
    def test_g05_a_null_mandatory_relationship_has_a_refusal_of_its_own(self) -> None:
        for planned in (
            create("DcimDevice", {"name": "sw1"}, {"serial": "s", "site": None}, ENDS),
            update("DcimDevice", {"name": "sw1"}, {"site": None}),
        ):
            found = check_operation_values(planned, DEVICE, schema=SCHEMA)
            assert [type(fault) for fault in found] == [NullRelationshipValueError]
            assert '"site"' in found[0].checked

    @pytest.mark.rules("P88", "P89", "P90", "A34", "A36")
    def test_a_null_optional_relationship_is_no_fault_and_is_named_as_unsent(self) -> None:
        for planned in (device({"parent": None}), update("DcimDevice", {"name": "sw1"}, {"parent": None})):
            assert faults(planned) == []
            assert unsent_nulls(planned, DEVICE) == ("parent",)
        assert unsent_nulls(device({"description": None}), DEVICE) == ()

    def test_cardinality_is_the_schemas(self) -> None:
        assert "cardinality many; one" in faults(device({}, ref("tags", "BuiltinTag", {"name": "t"})))[0]
        many = update("DcimDevice", {"name": "a"}, {}, ref("parent", "LocationSite", {"name": "x"}, many=True))
        assert "cardinality one; many" in faults(many)[0]

    @pytest.mark.rules("A32")
    def test_an_emptied_set_is_a_value_where_the_relationship_is_optional(self) -> None:
        assert faults(device({}, ref("tags", "BuiltinTag", many=True))) == []
        emptied = update("DcimDevice", {"name": "sw1"}, {}, ref("ends", "DcimEnd", many=True))
        assert "at least 2 peers; 0" in faults(emptied)[0]

    def test_more_peers_than_the_schema_allows_are_refused(self) -> None:
        three = ref("ends", "DcimEnd", {"name": "a"}, {"name": "b"}, {"name": "c"}, many=True)
        assert "at most 2 peers; 3" in faults(update("DcimDevice", {"name": "sw1"}, {}, three))[0]

    @pytest.mark.rules("P70")
    def test_one_and_true_are_two_peers(self) -> None:
        typed = ref("tags", "BuiltinTag", {"name": 1}, {"name": True}, {"name": 1.0}, many=True)
        assert len(typed.peers) == 3
        assert faults(update("DcimDevice", {"name": "sw1"}, {}, typed)) == []

    @pytest.mark.rules("A49", "A51")
    def test_the_peers_kind_is_a_concrete_one_that_may_stand_there(self) -> None:
        assert faults(device({}, ref("parent", "LocationSite", {"name": "x"}))) == []
        assert (
            "'LocationHosting', which is not one"
            in faults(device({}, ref("parent", "LocationHosting", {"name": "x"})))[0]
        )
        assert "'Nope', which is not one" in faults(device({}, ref("parent", "Nope", {"name": "x"})))[0]
        wrong = ref("tags", "LocationSite", {"name": "x"}, many=True)
        assert "peers of kind BuiltinTag; 'LocationSite'" in faults(device({}, wrong))[0]

    def test_any_known_kind_may_stand_where_the_schema_does_not_have_the_declared_peer(self) -> None:
        groups = Relationship(name="groups", peer="CoreGroup", cardinality="many")
        member = kind("Member", attributes=[Attribute(name="name", kind="Text")], relationships=[groups])
        planned = update("Member", {"name": "m"}, {}, ref("groups", "BuiltinTag", {"name": "x"}, many=True))
        assert check_operation_values(planned, member, schema=schema(member, TAG)) == []


class TestSecrets:
    @pytest.mark.rules("G12")
    @pytest.mark.parametrize("action", ["create", "update"])
    def test_g12_a_password_is_refused_and_never_in_the_text(self, action: Any) -> None:
        planned = operation(
            action, "DcimDevice", {"name": "sw1"}, {"serial": "s", "password": "hunter2"}, [AT_DC1, ENDS]
        )
        found = check_operation_values(planned, DEVICE, schema=SCHEMA)
        assert [type(fault) for fault in found] == [SecretValueRefusedError]
        assert "DcimDevice.password" in found[0].found
        assert "hunter2" not in str(found[0])

    @pytest.mark.rules("G12")
    def test_g12_a_password_is_not_even_looked_at(self) -> None:
        strict = Attribute(name="code", kind="Password", regex="[0-9]+", min_length=30, optional=False)
        locked = kind("Account", attributes=[strict])
        (fault,) = check_operation_values(update("Account", {"code": "hunter2"}), locked)
        assert isinstance(fault, SecretValueRefusedError)
        assert "hunter2" not in str(fault)
        assert len(check_operation_values(update("Account", {"x": 1}, {"code": None}), locked)) == 2

    @pytest.mark.rules("G12")
    def test_g12_a_password_in_an_identity_or_a_peer_is_refused_even_in_a_delete(self) -> None:
        in_peer = ref("tags", "BuiltinTag", {"name": "t", "pin": "1234"}, many=True)
        nested = {"name": "sw1", "tags": [pair("BuiltinTag", pin="1234")]}
        for planned in (
            operation("delete", "DcimDevice", {"password": "hunter2"}),
            update("DcimDevice", {"name": "sw1"}, {}, in_peer),
            operation("delete", "DcimDevice", nested),
        ):
            found = check_operation_values(planned, DEVICE, schema=SCHEMA)
            assert [type(fault) for fault in found] == [SecretValueRefusedError]
            assert "hunter2" not in str(found[0])
            assert "1234" not in str(found[0]).replace(planned.operation_id, "")


class TestKnownKind:
    def test_the_kind_must_be_writable_and_known(self) -> None:
        assert require_known_kind(device(), SCHEMA) is DEVICE
        with pytest.raises(SchemaMismatchError, match="does not have"):
            require_known_kind(create("Nope", {"name": "x"}), SCHEMA)
        with pytest.raises(SchemaMismatchError, match="a generic"):
            require_known_kind(create("LocationHosting", {"name": "x"}), SCHEMA)


class TestNumbers:
    @pytest.mark.parametrize("value", [0, -5, 389, 2**63 - 1, -(2**63)])
    def test_whole_numbers_within_64_bits_are_taken(self, value: int) -> None:
        assert value_fault("Number", value) == ""

    @pytest.mark.parametrize("value", [True, False, 1.0, 0.5, "5", "", [], {}])
    def test_nothing_else_is_a_number_not_even_what_the_server_would_coerce(self, value: Any) -> None:
        assert "a whole number, not as text" in value_fault("Number", value)

    @pytest.mark.parametrize("value", [2**63, -(2**63) - 1])
    def test_numbers_beyond_64_bits_are_refused(self, value: int) -> None:
        assert "64 bits" in value_fault("Number", value)

    def test_a_number_too_long_to_print_is_refused_by_its_size(self) -> None:
        assert "a number of" in value_fault("Number", 10**5000)

    def test_range_and_excluded_numbers(self) -> None:
        limits = {"min_value": 1, "max_value": 4094, "excluded_ranges": ((7, 7), (10, 20))}
        assert value_fault("Number", 0, **limits) == "at least 1 / 0"
        assert value_fault("Number", 4095, **limits) == "at most 4094 / 4095"
        assert "10 to 20" in value_fault("Number", 20, **limits)
        assert "7 to 7" in value_fault("Number", 7, **limits)
        assert value_fault("Number", 21, **limits) == ""


class TestText:
    def test_text_is_not_a_number_or_a_boolean(self) -> None:
        values: list[Any] = [1, True, 1.5, [], {}]
        for value in values:
            assert value_fault("Text", value).startswith("text (Text)")

    def test_length_counts_code_points_and_the_limit_counts_bytes(self) -> None:
        assert value_fault("Text", "é" * 5, max_length=5) == ""
        assert "at most 4 characters" in value_fault("Text", "é" * 5, max_length=4)
        assert "at least 1 characters" in value_fault("Text", "", min_length=1)
        assert value_fault("Text", "x" * MAX_TEXT_BYTES) == ""
        assert "at most 4,092 bytes" in value_fault("Text", "é" * 2047)
        assert value_fault("TextArea", "x" * 100_000) == ""

    def test_the_pattern_must_match_the_whole_value(self) -> None:
        pattern = {"regex": "^[A-Z0-9]+$"}
        assert value_fault("Text", "ABC", **pattern) == ""
        for value in ("ABC\n", "ABC DEF", "", "xABC"):
            assert "as a whole" in value_fault("Text", value, **pattern)
        assert "as a whole" in value_fault("Text", "box_a", regex="^box_")
        assert value_fault("Text", None, **pattern) == ""

    def test_the_pattern_holds_for_each_entry_of_a_list(self) -> None:
        assert value_fault("List", ["a", "b"], regex="[a-z]") == ""
        assert '"B"' in value_fault("List", ["a", "B"], regex="[a-z]")

    def test_a_pattern_that_cannot_be_read_is_a_fault_and_no_crash(self) -> None:
        assert "a pattern in the schema" in value_fault("Text", "x", regex="(")

    def test_the_text_that_the_server_reads_back_as_null_is_refused(self) -> None:
        assert "reads back as null" in value_fault("Text", "NULL")
        assert value_fault("Text", "null") == ""

    @pytest.mark.parametrize("value", ["", "  ", "\u200b", "a\r\nb", "NFD é", "🙂"])
    def test_everything_that_the_server_keeps_as_sent_is_taken(self, value: str) -> None:
        assert value_fault("Text", value) == ""

    def test_a_long_value_is_cut_in_the_message_with_its_length(self) -> None:
        found = value_fault("Text", "x" * 3000, max_length=10)
        assert "3,002 characters" in found
        assert len(found) < 400


class TestOtherKinds:
    @pytest.mark.parametrize(
        ("attribute_kind", "good", "bad"),
        [
            ("Boolean", [True, False], [0, 1, "true", "", []]),
            ("Checkbox", [True], ["on"]),
            ("List", [[], [1, "a"]], ["[]", {}, 1]),
            ("JSON", [{}, [], {"from_pool": 1}], ["{}", 1, True]),
            ("Any", [1, "x", [], ["a", "b"], True], [{}, 1.5, ["a", 1], [None], [[1]]]),
            ("DateTime", ["2026-01-01", "5m", ""], [20260101]),
            ("URL", ["https://x.example/a", "/path"], ["x.example", "", "http://", "http://[::1"]),
            ("Email", ["not checked"], [1]),
            ("IPHost", ["10.0.0.1", "10.0.0.1/24", "::1"], ["10.0.0.1/33", "x", "", 167772161]),
            ("IPNetwork", ["10.0.0.0/8"], ["10.0.0.5/24"]),
            ("MacAddress", ["00:11:22:AA:BB:CC"], ["00:11"]),
        ],
    )
    def test_types_and_formats(self, attribute_kind: str, good: list[Any], bad: list[Any]) -> None:
        assert [value for value in good if value_fault(attribute_kind, value)] == []
        assert [value for value in bad if not value_fault(attribute_kind, value)] == []

    def test_a_dropdown_takes_its_choices_only(self) -> None:
        assert value_fault("Dropdown", "active", choices=("active", "drained")) == ""
        for value in ("bogus", "", "Active"):
            assert "one of active, drained" in value_fault("Dropdown", value, choices=("active", "drained"))

    @pytest.mark.rules("A46")
    def test_an_enumeration_is_compared_by_type(self) -> None:
        assert value_fault("Number", 1, enum=(1, 2)) == ""
        assert "one of 1, 2" in value_fault("Number", 3, enum=(1, 2))
        assert "one of 1" in value_fault("Any", True, enum=(1,))

    @pytest.mark.parametrize("attribute_kind", ["Text", "Number", "List", "IPHost"])
    def test_allocation_from_a_pool_is_refused(self, attribute_kind: str) -> None:
        assert "from a pool" in value_fault(attribute_kind, {"from_pool": {"id": "p"}})
