"""Checks one attribute value: type, range, length, pattern, choices (design 4.6).

Stricter than the destination where the destination accepts what harms later: it coerces numbers (``"5.7"`` is stored
as 5, ``true`` as 1), matches a pattern at the start only although its merge check wants the whole value, and reads the
text ``NULL`` back as null. A value that is refused here is refused before anything is written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from ledger.plan.canonical import canonical_json_bytes
from ledger.plan.describe import value_text
from ledger.plan.keying import is_pool_request
from ledger.plan.normal_form import spelling
from ledger.schema import Attribute

MAX_TEXT_BYTES = 4092
"""UTF-8 bytes of a text that the destination indexes; longer text needs an attribute of kind TextArea."""

NUMBER_RANGE = (-(2**63), 2**63 - 1)
"""The destination's database stores numbers as signed 64-bit integers."""

NULL_TEXT = "NULL"
"""The text by which the destination stores null: it reads back as null, and breaks later merges."""

_FORMATTED_TEXT_KINDS = frozenset({"DateTime", "Email", "URL", "MacAddress", "IPHost", "IPNetwork", "IPAddress"})
_TEXT_KINDS = _FORMATTED_TEXT_KINDS | {"ID", "Text", "TextArea", "Dropdown", "Color", "File", "String"}
UNINDEXED_KINDS = frozenset({"TextArea", "List", "JSON"})
"""Kinds of attributes whose values have no limit at the destination."""

_NUMBER_KINDS = frozenset({"Number", "NumberPool", "Bandwidth", "Integer"})
_BOOLEAN_KINDS = frozenset({"Boolean", "Checkbox"})


class ValueFault(NamedTuple):
    """What was expected of a value and what was found instead, in words."""

    expected: str
    found: str


def value_faults(attribute: Attribute, value: Any) -> list[ValueFault]:
    """Everything that is wrong with one canonical value; empty where the destination stores it as it is.

    Values of Password kinds are not for this function: they are refused without being looked at (G12).
    """
    if value is None:
        return [] if attribute.optional else [ValueFault("a value: the attribute is mandatory", "null")]
    if is_pool_request(value) and attribute.kind not in ("JSON", "Any"):
        return [ValueFault("a value: a plan names what is written", "a request for a value from a pool")]
    mistyped = type_fault(attribute, value)
    if mistyped is not None:
        return [mistyped]
    checks = (*_text_faults(attribute, value), *_number_faults(attribute, value), *_common_faults(attribute, value))
    return list(checks)


def type_fault(attribute: Attribute, value: Any) -> ValueFault | None:
    """What is wrong with the type of a canonical value other than null; None where its attribute can hold it."""
    kind = attribute.kind
    if kind in _NUMBER_KINDS:
        right, wanted = isinstance(value, int) and not isinstance(value, bool), "a whole number, not as text"
    elif kind in _BOOLEAN_KINDS:
        right, wanted = isinstance(value, bool), "true or false"
    elif kind in _TEXT_KINDS:
        right, wanted = isinstance(value, str), "text"
    elif kind == "List":
        right, wanted = isinstance(value, list), "a list"
    elif kind == "JSON":
        right, wanted = isinstance(value, (list, dict)), "a list or a mapping"
    elif kind == "Any":
        right, wanted = _is_property(value), "text, a whole number, true, false, or a list of one of these"
    else:
        return None
    return None if right else ValueFault(f"{wanted} ({kind})", f"{_type_name(value)} {value_text(value)}")


def _is_property(value: Any) -> bool:
    """What the destination's database holds as it is: of a fraction nothing is left, and the rest is refused late."""
    types = {type(item) for item in (value if isinstance(value, list) else (value,))}
    return len(types) <= 1 and types <= {str, int, bool}


def _type_name(value: Any) -> str:
    match value:
        case bool():
            return "the boolean"
        case int():
            return "the whole number"
        case float():
            return "the fraction"
        case str():
            return "the text"
        case list():
            return "the list"
        case _:
            return "the mapping"


def _text_faults(attribute: Attribute, value: Any) -> list[ValueFault]:
    if not isinstance(value, str):
        return []
    faults = []
    if value == NULL_TEXT:
        faults.append(ValueFault("any text but NULL, which the destination reads back as null", 'the text "NULL"'))
    size = len(value.encode("utf-8"))
    if attribute.kind not in UNINDEXED_KINDS and size > MAX_TEXT_BYTES:
        faults.append(ValueFault(f"at most {MAX_TEXT_BYTES:,} bytes of UTF-8", f"{size:,} bytes"))
    accepts, wanted = _FORMATS.get(attribute.kind, (None, ""))
    if accepts is not None and not accepts(attribute, value):
        faults.append(ValueFault(wanted, value_text(value)))
    return faults


def _number_faults(attribute: Attribute, value: Any) -> list[ValueFault]:
    if attribute.kind not in _NUMBER_KINDS:
        return []
    low, high = NUMBER_RANGE
    faults = []
    if not low <= value <= high:
        return [ValueFault("a number that 64 bits hold (-2^63 to 2^63-1)", _number_text(value))]
    if attribute.min_value is not None and value < attribute.min_value:
        faults.append(ValueFault(f"at least {attribute.min_value}", _number_text(value)))
    if attribute.max_value is not None and value > attribute.max_value:
        faults.append(ValueFault(f"at most {attribute.max_value}", _number_text(value)))
    for start, end in attribute.excluded_ranges:
        if start <= value <= end:
            faults.append(ValueFault(f"a number outside {start} to {end}, which are excluded", _number_text(value)))
    return faults


def _number_text(value: int) -> str:
    # int -> text is quadratic and limited by the interpreter; a number that long is named by its size.
    return str(value) if value.bit_length() <= 256 else f"a number of {value.bit_length():,} bits"


def _common_faults(attribute: Attribute, value: Any) -> list[ValueFault]:
    """Length, pattern, choices, enumeration. Lengths count code points, or the entries of a list."""
    faults = []
    if isinstance(value, (str, list)):
        unit = "characters" if isinstance(value, str) else "entries"
        if attribute.min_length is not None and len(value) < attribute.min_length:
            faults.append(ValueFault(f"at least {attribute.min_length} {unit}", f"{len(value)} in {value_text(value)}"))
        if attribute.max_length is not None and len(value) > attribute.max_length:
            faults.append(ValueFault(f"at most {attribute.max_length} {unit}", f"{len(value)} in {value_text(value)}"))
    faults += _pattern_faults(attribute, value)
    if attribute.kind == "Dropdown" and attribute.choices is not None and value not in attribute.choices:
        faults.append(ValueFault(f"one of {', '.join(sorted(attribute.choices))}", value_text(value)))
    if attribute.enum and not _in_enum(attribute.enum, value):
        faults.append(ValueFault(f"one of {', '.join(map(value_text, attribute.enum))}", value_text(value)))
    return faults


def _pattern_faults(attribute: Attribute, value: Any) -> list[ValueFault]:
    if attribute.regex is None or isinstance(value, dict):
        return []
    try:
        pattern = re.compile(attribute.regex)
    except (re.error, OverflowError, RecursionError) as exc:
        return [ValueFault("a pattern in the schema that can be read", f"{attribute.regex!r}: {exc}")]
    entries = value if isinstance(value, list) else [value]
    # fullmatch, because "$" also matches before a last newline: such a value is taken by the server's own check and
    # then refused by its merge check, which matches the whole value.
    return [
        ValueFault(f"a value that matches {attribute.regex} as a whole", value_text(entry))
        for entry in entries
        if not pattern.fullmatch(str(entry))
    ]


def _in_enum(enum: tuple[Any, ...], value: Any) -> bool:
    # Over canonical bytes: in Python 1 == 1.0 == True, at the destination they are three values.
    return canonical_json_bytes(value) in {canonical_json_bytes(item) for item in enum}


def _has_spelling(attribute: Attribute, text: str) -> bool:
    return spelling(attribute, text) is not None


def _is_url(attribute: Attribute, text: str) -> bool:
    del attribute
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return text.startswith("/") or bool("://" in text and parts.scheme and parts.netloc)


_SPAN_OF_TIME = re.compile(r"\d+[smh]")
"""Seconds, minutes or hours: the destination takes every text with such a span in it, and stores the text."""


_NAME_OF_A_ZONE = re.compile(r"\[[^\[\]]+\]$")


def _is_moment(attribute: Attribute, text: str) -> bool:
    if not text:
        return attribute.optional
    if _SPAN_OF_TIME.search(text):
        return True
    if "W" in text or (text.isdigit() and len(text) != len("20260101")):
        return False  # Python reads weeks, and takes some numbers for dates
    try:
        datetime.fromisoformat(_NAME_OF_A_ZONE.sub("", text.upper()))
    except ValueError:
        return False
    return True


_FORMATS: Mapping[str, tuple[Callable[[Attribute, str], bool], str]] = {
    "IPHost": (_has_spelling, "an IPv4 or IPv6 address, with or without a prefix length"),
    "IPNetwork": (_has_spelling, "an IPv4 or IPv6 network without host bits"),
    "IPAddress": (_has_spelling, "an IPv4 or IPv6 address without a prefix length"),
    "MacAddress": (_has_spelling, "a MAC address of 12 hexadecimal digits"),
    "DateTime": (_is_moment, "a date, a date with a time, or a span of time such as 5m"),
    "URL": (_is_url, "an absolute URL, or a path that begins with /"),
}
