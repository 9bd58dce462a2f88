"""Attribute values as the server stores them: its checks, its normal forms, its error texts.

Written from the server's measured behaviour and on purpose apart from ``ledger.plan.normal_form``: a mistake there has
to show as a difference here.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Callable
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from consumers.infrahub.sandbox.errors import MutationRefusedError
from ledger.schema import Attribute

NULL_TEXT = "NULL"
"""The server's stored null; a Text of these letters therefore reads back as null."""

MAX_TEXT_BYTES = 4092
"""The longest UTF-8 text that an indexed attribute takes."""

_NUMBERS = range(-(2**63), 2**63)
_UNINDEXED = frozenset({"TextArea", "List", "JSON"})
_SPAN_OF_TIME = re.compile(r"\d+[smh]")
# "$" on purpose, which lets one line break pass at the end, as the server does
_MACS = (
    (re.compile(r"^[0-9a-f]{1,2}(?:(?::[0-9a-f]{1,2}){5}|(?:-[0-9a-f]{1,2}){5})$", re.IGNORECASE), 2),
    (
        re.compile(
            r"^[0-9a-f]{1,4}(?:(?::[0-9a-f]{1,4}){2}|(?:-[0-9a-f]{1,4}){2}|(?:\.[0-9a-f]{1,4}){2})$", re.IGNORECASE
        ),
        4,
    ),
    (re.compile(r"^[0-9a-f]{5,6}[:-][0-9a-f]{5,6}$", re.IGNORECASE), 6),
    (re.compile(r"^[0-9a-f]{11,12}$", re.IGNORECASE), 12),
)
"""Each shape with the digits of a full group."""


class ValueRefusedError(Exception):
    """A value that its attribute does not take; the text is the server's reason.

    ``part`` is what of the attribute is wrong; with ``names_field`` false the server does not say where it is.
    """

    def __init__(self, reason: str, *, names_field: bool = True, part: str | None = None) -> None:
        super().__init__(reason)
        self._names_field = names_field
        self._part = part

    def field_of(self, attribute: str) -> str:
        """The field as the server names it; empty where it names none."""
        if not self._names_field:
            return ""
        return f"{attribute}.{self._part}" if self._part else attribute


def stored_value(attribute: Attribute, value: Any, *, creating: bool) -> Any:
    """The value as it is stored, None being null.

    Raises:
        ValueRefusedError: the reason belongs to the field.
        MutationRefusedError: the server fails without naming the field (bad enum of an update, huge number).
    """
    if value is None:
        if not attribute.optional:
            raise ValueRefusedError(f"A value must be provided for {attribute.name}")
        return None
    if not creating and attribute.enum is not None and value not in attribute.enum:
        raise MutationRefusedError(f"{value!r} is not a valid {attribute.name.title()}Enum")
    normalise = _NORMAL_FORMS.get(attribute.kind)
    if normalise is not None:
        value = _normalised(normalise, attribute, value)
    if isinstance(value, str):
        _check_text(attribute, value)
    if attribute.kind == "Any":
        _check_property(value)
    _check_content(attribute, value)
    return value


def _check_property(value: Any) -> None:
    """What the server's database takes for a property; other kinds are stored as text, this one as it is."""
    if isinstance(value, dict):
        kinds = "Property values can only be of primitive types or arrays thereof."
        raise MutationRefusedError(f"{kinds} Encountered: {_property_text(value)}.")
    if not isinstance(value, list):
        return
    if None in value:
        raise MutationRefusedError("Collections containing null values can not be stored in properties.")
    if any(isinstance(item, list) for item in value):
        raise MutationRefusedError("Collections containing collections can not be stored in properties.")
    if len({type(item) for item in value}) > 1:
        raise MutationRefusedError(
            "Neo4j only supports a subset of Cypher types for storage as singleton or array properties. "
            "Please refer to section cypher/syntax/values of the manual for more details."
        )


def _property_text(value: Any) -> str:
    """A value in the words of the server's database."""
    if isinstance(value, dict):
        return f"Map{{{', '.join(f'{name} -> {_property_text(item)}' for name, item in value.items())}}}"
    return f"Long({value})" if isinstance(value, int) else f'String("{value}")'


def _check_text(attribute: Attribute, value: str) -> None:
    try:
        size = _utf8_length(value)
    except UnicodeEncodeError as exc:
        raise MutationRefusedError(str(exc)) from exc
    if attribute.kind not in _UNINDEXED and size > MAX_TEXT_BYTES:
        raise ValueRefusedError("Text attribute length should be less than 4096 characters.", names_field=False)


def _normalised(normalise: Callable[[Any], Any], attribute: Attribute, value: Any) -> Any:
    try:
        return normalise(value)
    except ValueError as exc:
        raise ValueRefusedError(f"{value} is not a valid {attribute.kind}") from exc


def _check_content(attribute: Attribute, value: Any) -> None:
    """Pattern, lengths, bounds, enumeration and choices, in the server's order; the first that fails is named."""
    for entry in value if attribute.kind == "List" and isinstance(value, list) else (value,):
        if attribute.regex and not re.match(attribute.regex, str(entry)):
            raise ValueRefusedError(f"{entry} must conform with the regex: {attribute.regex!r}")
    if isinstance(value, str | list):
        if attribute.min_length and len(value) < attribute.min_length:
            raise ValueRefusedError(f"{value} must have a minimum length of {attribute.min_length!r}")
        if attribute.max_length and len(value) > attribute.max_length:
            raise ValueRefusedError(f"{value} must have a maximum length of {attribute.max_length!r}")
    if isinstance(value, int) and not isinstance(value, bool):
        _check_range(attribute, value)
    if attribute.enum is not None and value not in attribute.enum:
        raise ValueRefusedError(f"{value} must be one of {list(attribute.enum)!r}")
    if attribute.choices is not None and value not in attribute.choices:
        names = ", ".join(sorted(attribute.choices))
        raise ValueRefusedError(f"{value} must be one of {names!r}")


def _check_range(attribute: Attribute, value: int) -> None:
    if attribute.min_value is not None and value < attribute.min_value:
        raise ValueRefusedError(f"{value} is lower than the minimum allowed value {attribute.min_value!r}")
    if attribute.max_value is not None and value > attribute.max_value:
        raise ValueRefusedError(f"{value} is higher than the maximum allowed value {attribute.max_value!r}")
    for first, last in attribute.excluded_ranges:
        if first == last == value:
            raise ValueRefusedError(f"{value} is in the excluded values")
        if first <= value <= last:
            raise ValueRefusedError(f"{value} is in an the excluded range {first}-{last}")
    if value not in _NUMBERS:
        raise MutationRefusedError("Python int too large to convert to C long")


def _utf8_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _host(value: str) -> str:
    interface = ipaddress.ip_interface(value)
    if isinstance(interface, ipaddress.IPv6Interface):
        return f"{_ipv6_text(int(interface.ip))}/{interface.network.prefixlen}"
    return interface.with_prefixlen


def _network(value: str) -> str:
    """A host loses its zone, a network keeps it."""
    network = ipaddress.ip_network(value)
    if isinstance(network, ipaddress.IPv6Network):
        zone = network.network_address.scope_id
        return f"{_ipv6_text(int(network.network_address))}{f'%{zone}' if zone else ''}/{network.prefixlen}"
    return network.with_prefixlen


def _address(value: str) -> str:
    """Without a prefix; it keeps its zone."""
    address = ipaddress.ip_address(value)
    if isinstance(address, ipaddress.IPv6Address):
        return f"{_ipv6_text(int(address))}{f'%{address.scope_id}' if address.scope_id else ''}"
    return str(address)


def _ipv6_text(number: int) -> str:
    """Without a zone, and mapped IPv4 in hexadecimal: Python 3.13 writes ``::ffff:10.0.0.1``, the server does not."""
    if number >> 32 == 0xFFFF:
        return f"::ffff:{number >> 16 & 0xFFFF:x}:{number & 0xFFFF:x}"
    return str(ipaddress.IPv6Address(number))


def _mac(value: str) -> str:
    width = next((width for shape, width in _MACS if shape.match(value)), None)
    if width is None:
        raise ValueError(value)
    digits = "".join(group.zfill(width) for group in re.split(r"[:.-]", value.strip())).upper()
    return ":".join(digits[index : index + 2] for index in range(0, 12, 2))


def _date_time(value: str) -> str:
    """Checked, but kept as sent: offsets and dates stay text, and so does all that has a span of time in it."""
    if value and not _SPAN_OF_TIME.search(value):
        if "W" in value or (value.isdigit() and len(value) != len("20260101")):
            raise ValueError(value)  # weeks, and numbers that would pass for dates
        datetime.fromisoformat(re.sub(r"\[[^\[\]]+\]$", "", value.upper()))
    return value


def _url(value: str) -> str:
    parts = urlsplit(value)
    if not value.startswith("/") and not (parts.scheme and parts.netloc):
        raise ValueError(value)
    return value


def _list(value: Any) -> Any:
    """A text has to be a JSON list, and is stored as that text; an empty one is not looked at."""
    found = _loaded(value, "a valid JSON list") if isinstance(value, str) and value else value
    if not isinstance(found, list) and found != "":
        raise ValueRefusedError(f"{found} is not a valid List")
    return value


def _json(value: Any) -> Any:
    found = _loaded(value, "valid JSON") if isinstance(value, str) and value else value
    if not isinstance(found, dict | list) and found != "":
        raise ValueRefusedError(f"{found} is not a valid JSON")
    return value


def _loaded(text: str, wanted: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as exc:
        raise ValueRefusedError(f"{text} is not {wanted}") from exc


_NORMAL_FORMS: dict[str, Callable[[Any], Any]] = {
    "IPHost": _host,
    "IPAddress": _address,
    "IPNetwork": _network,
    "MacAddress": _mac,
    "DateTime": _date_time,
    "URL": _url,
    "List": _list,
    "JSON": _json,
}
