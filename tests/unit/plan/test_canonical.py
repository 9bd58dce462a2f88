"""The canonical encoding: which values there are, and that equal bytes mean equal values."""

from __future__ import annotations

import enum
import json
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from itertools import combinations
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.plan import canonical as encoding
from ledger.plan.canonical import (
    MAX_INTEGER_DIGITS,
    MAX_VALUE_NESTING,
    canonical_identity,
    canonical_json_bytes,
    canonical_json_text,
    canonical_value,
    identity_bytes,
    object_key,
    operation_id,
    same_bytes,
)
from ledger.plan.decode import MAX_NESTING
from ledger.plan.errors import UnserializablePayloadValueError


class Colour(str, enum.Enum):  # noqa: UP042  # the older form, whose str() is not its content, is the point
    RED = "red"


class Size(enum.IntEnum):
    SMALL = 1


def canonical(value: Any) -> Any:
    return canonical_value(value, kind="DcimDevice", field="name")


@pytest.mark.rules("A14")
def test_the_encoding_is_utf8_sorted_compact_and_unescaped() -> None:
    assert canonical_json_bytes({"b": 1, "a": ["é", "\u2028", "/", "\x7f"]}) == (
        '{"a":["é","\u2028","/","\x7f"],"b":1}'.encode()
    )


@pytest.mark.rules("A17")
@pytest.mark.parametrize("value", ["text", "", 0, -1, 2**64, 1.5, -0.0, True, False, None])
def test_plain_values_pass_through_with_their_type(value: Any) -> None:
    result = canonical(value)

    assert (type(result), repr(result)) == (type(value), repr(value))


@pytest.mark.rules("A18")
@pytest.mark.parametrize(
    ("value", "text"),
    [
        (date(2026, 1, 2), "2026-01-02"),
        (datetime(2026, 1, 2, 3, 4, 5), "2026-01-02T03:04:05"),
        (datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC), "2026-01-02T03:04:05.000006+00:00"),
        (datetime(2026, 1, 2, 3, tzinfo=timezone(timedelta(hours=2))), "2026-01-02T03:00:00+02:00"),
        (Decimal("1.50"), "1.50"),
        (Decimal("1E+2"), "1E+2"),
    ],
)
def test_times_and_decimals_become_text(value: Any, text: str) -> None:
    assert canonical(value) == text


@pytest.mark.rules("A18")
def test_one_instant_in_two_zones_is_two_values() -> None:
    instant = datetime(2026, 1, 1, 12, tzinfo=UTC)

    assert canonical(instant) != canonical(instant.astimezone(timezone(timedelta(hours=2))))


@pytest.mark.rules("A19", "A22")
def test_lists_keep_their_order_and_mappings_are_sorted_at_every_depth() -> None:
    value = {"z": [{"b": 1, "a": 2}, ("y", "x")], "a": OrderedDict(q=1, p=2), "m": MappingProxyType({"d": 1, "c": 2})}

    assert json.dumps(canonical(value)) == json.dumps(
        {"a": {"p": 2, "q": 1}, "m": {"c": 2, "d": 1}, "z": [{"a": 2, "b": 1}, ["y", "x"]]}
    )


@pytest.mark.rules("A20")
@pytest.mark.parametrize(
    "value",
    [b"bytes", {"a"}, object(), 1j, float("nan"), float("inf"), float("-inf"), Decimal("NaN"), Decimal("Infinity"),
     "a\x00b", "\ud800", {1: "a"}, {"\x00": 1}, {"\udc00": 1}, {None: 1}, {True: 1}, 10**MAX_INTEGER_DIGITS,
     -(10**MAX_INTEGER_DIGITS), timedelta(1), iter([1])],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else ascii(value),
)  # fmt: skip
@pytest.mark.parametrize(
    "wrap", [lambda v: v, lambda v: [v], lambda v: {"x": {"y": [v]}}], ids=["alone", "list", "deep"]
)
def test_what_has_no_canonical_form_is_refused_with_kind_field_and_type(value: Any, wrap: Any) -> None:
    with pytest.raises(UnserializablePayloadValueError) as caught:
        canonical(wrap(value))

    assert "DcimDevice.name" in str(caught.value)
    keyed = isinstance(value, dict)
    assert (type(next(iter(value))) if keyed else type(value)).__name__ in str(caught.value)


@pytest.mark.rules("A20")
def test_there_is_no_fallback_in_the_encoder() -> None:
    for value in (Decimal(1), b"x", date(2026, 1, 1), {1, 2}):
        with pytest.raises(TypeError):
            canonical_json_bytes({"a": value})
    with pytest.raises(ValueError, match="JSON compliant"):
        canonical_json_bytes(float("nan"))


@pytest.mark.rules("A20")
def test_endless_nesting_is_refused_and_not_a_recursion_error() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(UnserializablePayloadValueError, match="levels"):
        canonical(endless)

    deep: Any = "x"
    for _ in range(MAX_VALUE_NESTING):
        deep = [deep]
    canonical(deep)
    with pytest.raises(UnserializablePayloadValueError):
        canonical([deep])
    assert MAX_VALUE_NESTING + 6 <= MAX_NESTING, "what can be written can be read"


def test_members_of_enumerations_become_their_plain_content() -> None:
    assert [type(canonical(value)) for value in (Colour.RED, Size.SMALL)] == [str, int]
    assert [canonical(value) for value in (Colour.RED, Size.SMALL)] == ["red", 1]


@pytest.mark.rules("G12")
def test_g12_a_refused_value_is_not_shown() -> None:
    with pytest.raises(UnserializablePayloadValueError) as caught:
        canonical("hunter2\x00")

    assert "hunter2" not in str(caught.value)


@pytest.mark.rules("A26", "A53", "P70")
def test_an_identity_is_sorted_at_every_depth_and_keys_the_same_bytes() -> None:
    one = {"site": {"peer_kind": "Site", "identity": {"b": 1, "a": 2}}, "name": "x"}
    other = {"name": "x", "site": {"identity": {"a": 2, "b": 1}, "peer_kind": "Site"}}

    assert list(canonical_identity(one, kind="Rack")) == ["name", "site"]
    assert identity_bytes("Rack", one) == identity_bytes("Rack", other)
    assert object_key("Rack", one) == object_key("Rack", other)
    assert operation_id("create", "Rack", one) == operation_id("create", "Rack", other)


@pytest.mark.rules("A47", "A48", "A53", "P70")
def test_structured_keys_do_not_collide_where_joined_text_would() -> None:
    identities: list[dict[str, Any]] = [
        {"a": "x__y", "b": "z"}, {"a": "x", "b": "y__z"}, {"a": None, "b": "z"}, {"a": "None", "b": "z"},
        {"a": 1, "b": "z"}, {"a": "1", "b": "z"}, {"a": 1.0, "b": "z"}, {"a": True, "b": "z"}, {"a": "", "b": "z"},
        {"a": 0, "b": "z"}, {"a": False, "b": "z"}, {"a": -0.0, "b": "z"}, {"a": 0.0, "b": "z"},
    ]  # fmt: skip

    assert len({object_key("Thing", identity) for identity in identities}) == len(identities)
    assert len({operation_id("create", "Thing", identity) for identity in identities}) == len(identities)


@pytest.mark.rules("A53", "A54")
def test_the_operation_id_covers_action_kind_and_identity() -> None:
    ids = {
        operation_id(action, kind, {"name": name})
        for action in ("create", "update", "delete")
        for kind in ("Tag", "Site")
        for name in ("a", "b")
    }

    assert len(ids) == 12
    assert all(len(found) == 19 and found.startswith("op_") for found in ids)


SCALARS = st.sampled_from([None, True, False, 0, 1, 2, 0.0, -0.0, 1.0, 1.5, "", "0", "1", "true", "None"])
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
)


@pytest.mark.rules("A46", "P70")
@given(VALUES, VALUES)
def test_same_bytes_says_what_the_encoding_says(one: Any, other: Any) -> None:
    assert same_bytes(one, other) == (canonical_json_bytes(one) == canonical_json_bytes(other))


def test_language_equality_is_not_sameness() -> None:
    for one, other in combinations([1, 1.0, True], 2):
        assert one == other
        assert not same_bytes(one, other)
        assert not same_bytes({"a": [one]}, {"a": [other]})


@pytest.mark.rules("A14", "A77")
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=12,
    )
)
def test_the_short_ways_of_encoding_give_what_the_standard_library_gives(value: Any) -> None:
    def encoded(encode: Callable[[Any], str]) -> str | type[Exception]:
        try:
            return encode(value)
        except ValueError as exc:
            return type(exc)

    standard = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    assert encoded(canonical_json_text) == encoded(standard.encode)


def test_an_interpreter_without_a_c_encoder_encodes_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    value = {"b": [1, 1.5, None, True, "é\n"], "a": {"d": {}, "c": []}}
    expected = canonical_json_text(value)
    for instead in (None, lambda: None, lambda *_: lambda *_: ("something else",)):
        monkeypatch.setattr(json.encoder, "c_make_encoder", instead)
        encode = encoding._made_once()
        monkeypatch.undo()
        assert encode(value) == expected
