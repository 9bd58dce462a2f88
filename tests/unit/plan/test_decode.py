"""Every way in which bytes are no acceptable JSON has a name, and none of them is a crash."""

from __future__ import annotations

import json
import re
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.plan.canonical import MAX_INTEGER_DIGITS, canonical_json_bytes
from ledger.plan.decode import MAX_LINE_BYTES, MAX_NESTING, MAX_VALUES, decode_canonical_line, decode_json
from ledger.plan.errors import (
    ByteOrderMarkError,
    DuplicateJsonKeyError,
    IntegerTooLongError,
    InvalidUtf8Error,
    JsonDocumentError,
    LineTooLongError,
    LoneSurrogateError,
    MalformedJsonError,
    NestingTooDeepError,
    NonCanonicalLineError,
    NonFiniteNumberError,
    NullCharacterError,
    PlanArtifactError,
    TooManyValuesError,
)

HOSTILE: dict[str, tuple[bytes, type[JsonDocumentError]]] = {
    "a byte order mark": (b'\xef\xbb\xbf{"a":1}', ByteOrderMarkError),
    "UTF-16": ('{"a":1}'.encode("utf-16-le"), NullCharacterError),
    "a raw surrogate": (b'{"a":"\xed\xa0\x80"}', InvalidUtf8Error),
    "an overlong encoding": (b'{"a":"\xc0\x80"}', InvalidUtf8Error),
    "latin-1": (b'{"a":"\xe9"}', InvalidUtf8Error),
    "an escaped lone surrogate": (b'{"a":"\\ud800"}', LoneSurrogateError),
    "an escaped lone low surrogate": (b'{"a":["\\udc00"]}', LoneSurrogateError),
    "a lone surrogate in a key": (b'{"\\ud800":1}', LoneSurrogateError),
    "a raw U+0000": (b'{"a":"x\x00y"}', NullCharacterError),
    "an escaped U+0000": (b'{"a":"x\\u0000y"}', NullCharacterError),
    "U+0000 in a key at depth": (b'{"a":[{"\\u0000":1}]}', NullCharacterError),
    "a duplicate key": (b'{"a":1,"a":1}', DuplicateJsonKeyError),
    "a duplicate key at depth": (b'{"a":[{"b":{"c":1,"d":2,"c":3}}]}', DuplicateJsonKeyError),
    "a duplicate key, once escaped": (b'{"a":1,"\\u0061":2}', DuplicateJsonKeyError),
    "NaN": (b'{"a":NaN}', NonFiniteNumberError),
    "Infinity": (b"[Infinity]", NonFiniteNumberError),
    "-Infinity": (b'{"a":-Infinity}', NonFiniteNumberError),
    "1e400": (b'{"a":1e400}', NonFiniteNumberError),
    "-1e400": (b'{"a":[-1e400]}', NonFiniteNumberError),
    "5 000 digits": (b'{"a":' + b"9" * 5000 + b"}", IntegerTooLongError),
    "one digit too many": (b'{"a":-' + b"9" * (MAX_INTEGER_DIGITS + 1) + b"}", IntegerTooLongError),
    "100 000 lists": (b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", NestingTooDeepError),
    "100 000 objects": (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, NestingTooDeepError),
    "100 000 brackets that never close": (b"[" * 100_000, NestingTooDeepError),
    "one level too many": (b"[" * (MAX_NESTING + 1) + b"]" * (MAX_NESTING + 1), NestingTooDeepError),
    "too many values": (b'{"a":[' + b"1," * MAX_VALUES + b"1]}", TooManyValuesError),
    "too many lists": (b"[" + b"[]," * MAX_VALUES + b"[]]", TooManyValuesError),
    "nothing": (b"", MalformedJsonError),
    "half an object": (b'{"a":', MalformedJsonError),
    "two values": (b"{} {}", MalformedJsonError),
    "a comment": (b'{"a":1} // one', MalformedJsonError),
    "single quotes": (b"{'a':1}", MalformedJsonError),
    "a raw line break in text": (b'{"a":"x\ny"}', MalformedJsonError),
    "a trailing comma": (b'{"a":1,}', MalformedJsonError),
    "a leading zero": (b'{"a":01}', MalformedJsonError),
    "a string that never ends, behind many brackets": (b"[" * 101 + b'"' + b'\\"' * 50, NestingTooDeepError),
}


MALFORMED = {
    b"": "nothing",
    b" \n": "nothing",
    b'{"a":}': "no value where one belongs at line 1, column 6",
    b'{"a":1,}': "no key in double quotes where one belongs at line 1, column 8",
    b"{a:1}": "no key in double quotes where one belongs at line 1, column 2",
    b'{"a" 1}': "no colon behind a key at line 1, column 6",
    b"[1 2]": "neither a comma nor a closing bracket at line 1, column 4",
    b"{}\n{}": "more behind the value at line 2, column 1",
    b'{"a': "a text that is not closed at line 1, column 2",
    b'["\t"]': "an unescaped control character in a text at line 1, column 3",
    b'["\\x"]': "an escape that JSON does not have at line 1, column 3",
    b'["\\u12"]': "an escape that JSON does not have at line 1, column 5",
}


@pytest.mark.rules("G11")
@pytest.mark.parametrize(("data", "found"), MALFORMED.items(), ids=map(repr, MALFORMED))
def test_g11_what_is_malformed_is_said_in_our_own_words(data: bytes, found: str) -> None:
    with pytest.raises(MalformedJsonError) as caught:
        decode_json(data, what="the document")
    assert re.sub(r"column \d+", "", caught.value.found) == re.sub(r"column \d+", "", found)


def test_commas_and_brackets_in_text_are_no_values() -> None:
    text = "[,{" * MAX_VALUES
    assert decode_json(canonical_json_bytes({"a": text}), what="the document") == {"a": text}
    assert decode_canonical_line(canonical_json_bytes({"a": text}), what="the line") == {"a": text}


def test_values_that_another_names_pass_when_asked_for() -> None:
    data = b'{"a":NaN,"b":-Infinity,"c":1e400,"d":"\\ud800","e":"\\u0000","f":12}'
    read = decode_json(data, what="the row", any_values=True)
    assert (repr(read["a"]), read["b"], read["c"]) == ("nan", float("-inf"), float("inf"))
    assert (read["d"], read["e"], read["f"]) == ("\ud800", "\x00", 12)
    for refused in (b'{"a":1,"a":2}', b"[" * 101, b"9" * 641, b"\xef\xbb\xbf1", b'"\xff"'):
        with pytest.raises(JsonDocumentError):
            decode_json(refused, what="the row", any_values=True)


@pytest.mark.rules("A8", "A14", "C31")
@pytest.mark.parametrize("decode", [decode_json, decode_canonical_line])
@pytest.mark.parametrize(("data", "error"), HOSTILE.values(), ids=HOSTILE)
def test_hostile_json_is_refused_by_name(
    data: bytes, error: type[JsonDocumentError], decode: Callable[..., Any]
) -> None:
    with pytest.raises(JsonDocumentError) as caught:
        decode(data, what="line 7 of plan/operations.jsonl")

    assert type(caught.value) is error
    assert caught.value.checked == "line 7 of plan/operations.jsonl"
    assert len(str(caught.value)) < 600


EXPENSIVE = {
    "an endless string": b'{"a":"' + b"x" * 3_000_000 + b"[" * 200 + b'\\"' * 3_000_000,
    "quotes and backslashes": b"[" * 200 + b'"\\' * 3_000_000,
    "digit runs below the limit": (b'{"a":"' + (b"9" * MAX_INTEGER_DIGITS + b" ") * 20_000)[: MAX_LINE_BYTES - 2],
    "the last key twice": b"{" + b",".join(b'"%d":1' % n for n in range(40_000)) + b',"39999":1}',
}


@pytest.mark.parametrize("data", EXPENSIVE.values(), ids=EXPENSIVE)
def test_hostile_json_costs_bounded_time_and_memory(data: bytes) -> None:
    started = time.process_time()
    with pytest.raises(PlanArtifactError):
        decode_canonical_line(data, what="a line")
    elapsed = time.process_time() - started
    tracemalloc.start()
    with pytest.raises(PlanArtifactError):
        decode_canonical_line(data, what="a line")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    # Well below a second; an expression that starts anew at each byte takes seconds or minutes.
    assert elapsed < 4
    assert peak < 200 * 1024 * 1024


NOT_CANONICAL = {
    "a blank after the colon": b'{"a": 1}',
    "a blank at the end": b'{"a":1} ',
    "keys in another order": b'{"b":1,"a":2}',
    "an ASCII escape": b'{"a":"\\u00e9"}',
    "an escaped slash": b'{"a":"\\/"}',
    "upper-case escape digits": b'{"a":"\\u001F"}',
    "a surrogate pair": b'{"a":"\\ud83d\\ude00"}',
    "an exponent": b'{"a":1E2}',
    "a float with a zero too many": b'{"a":1.50}',
    "minus zero as an integer": b'{"a":-0}',
    "keys in another order at depth": b'{"a":[{"c":1,"b":2}]}',
}


@pytest.mark.rules("A14", "A26", "G1")
@pytest.mark.parametrize("data", NOT_CANONICAL.values(), ids=NOT_CANONICAL)
def test_g01_a_line_with_another_spelling_is_refused(data: bytes) -> None:
    decode_json(data, what="a document may be spelled freely")

    with pytest.raises(NonCanonicalLineError):
        decode_canonical_line(data, what="a line")


@pytest.mark.rules("A14", "A17")
@pytest.mark.parametrize(
    "value",
    [
        1,
        1.0,
        True,
        -0.0,
        2**53 + 1,
        2**63,
        2**64,
        10**400,
        1e-07,
        None,
        "",
        "a b",
        [],
        {},
        "a\u2028b\u2029c\x85d\x0be\rf",
    ],
)
def test_a_canonical_line_gives_back_the_very_value(value: Any) -> None:
    decoded = decode_canonical_line(canonical_json_bytes({"a": value}), what="a line")["a"]

    assert (type(decoded), repr(decoded)) == (type(value), repr(value))


def test_text_that_looks_like_trouble_and_is_none_passes() -> None:
    innocent = {"a": "\\u0000", "b": "[" * 500, "c": "9" * 5000, "d": "}{][", "e": 'quote " [ \\" {', "f": "NaN"}

    assert decode_canonical_line(canonical_json_bytes(innocent), what="a line") == innocent
    assert decode_json(json.dumps(innocent).encode(), what="a document") == innocent


def test_nesting_up_to_the_limit_passes() -> None:
    data = b"[" * MAX_NESTING + b"]" * MAX_NESTING

    assert decode_canonical_line(data, what="a line") == decode_json(data, what="a document")


def test_an_oversized_line_is_refused_by_name() -> None:
    with pytest.raises(LineTooLongError):
        decode_canonical_line(b'"' + b"x" * MAX_LINE_BYTES + b'"', what="a line")


def test_the_limit_of_integers_does_not_depend_on_the_environment() -> None:
    longest = {"a": 10**MAX_INTEGER_DIGITS - 1}

    assert decode_canonical_line(canonical_json_bytes(longest), what="a line") == longest


@pytest.mark.rules("G12")
def test_g12_a_refusal_does_not_show_the_text_of_the_document() -> None:
    for data in (
        b'{"password":"hunter2",}',
        b'{"a":"hunter2\\ud800"}',
        b'{"p":"hunter2","q":1,"q":2}',
        b'"hunter2\x00"',
    ):
        with pytest.raises(JsonDocumentError) as caught:
            decode_json(data, what="a document")
        assert "hunter2" not in str(caught.value)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00")),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00")), inner, max_size=4
        )
    ),
    max_leaves=20,
)


@pytest.mark.rules("A14", "A17", "A19")
@given(JSON)
def test_every_canonical_value_survives_a_round_trip(value: Any) -> None:
    data = canonical_json_bytes(value)

    assert canonical_json_bytes(decode_canonical_line(data, what="a line")) == data
    assert canonical_json_bytes(decode_json(data, what="a document")) == data


@given(st.binary(max_size=60) | st.text().map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_bytes_give_a_value_or_a_named_refusal(data: bytes) -> None:
    for decode in (decode_json, decode_canonical_line):
        try:
            value = decode(data, what="bytes")
        except PlanArtifactError:
            continue
        assert decode_json(canonical_json_bytes(value), what="again") == value
