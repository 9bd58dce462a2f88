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

from consumers.infrahub.sandbox.errors import MutationRefusedError, unprocessable
from ledger.schema import Attribute

NULL_TEXT = "NULL"
"""The server's stored null; a Text of these letters therefore reads back as null."""

MAX_TEXT_BYTES = 4092
"""The longest UTF-8 text that an indexed attribute takes."""

_MAX_NUMBER = 2**63 - 1
_UNINDEXED = frozenset({"TextArea", "List", "JSON"})
_RELATIVE_TIME = re.compile(r"^\d+(\.\d+)?\s*(ms|s|m|h|d|w)$")
_MAC = re.compile(
    r"^(?:(?:[0-9a-f]{2}[:-]){5}[0-9a-f]{2}|(?:[0-9a-f]{4}\.){2}[0-9a-f]{4}|[0-9a-f]{6}-[0-9a-f]{6}|[0-9a-f]{12})$",
    re.IGNORECASE,
)


class ValueRefusedError(Exception):
    """A value that its attribute does not take; the text is the server's reason."""


def stored_value(attribute: Attribute, value: Any) -> Any:
    """The value as it is stored, None being null.

    Raises:
        ValueRefusedError: the reason belongs to the field.
        MutationRefusedError: the server fails without naming the field (over-long text, bad enum, huge number).
    """
    if value is None:
        if not attribute.optional:
            raise ValueRefusedError(f"A value must be provided for {attribute.name}")
        return None
    if attribute.enum is not None and value not in attribute.enum:
        raise MutationRefusedError(f"{value!r} is not a valid {attribute.name.title()}Enum")
    normalise = _NORMAL_FORMS.get(attribute.kind)
    if normalise is not None:
        value = _normalised(normalise, attribute, value)
    _check_content(attribute, value)
    if isinstance(value, str) and attribute.kind not in _UNINDEXED and _utf8_length(value) > MAX_TEXT_BYTES:
        raise unprocessable("Text attribute length should be less than 4096 characters.")
    return value


def _normalised(normalise: Callable[[Any], Any], attribute: Attribute, value: Any) -> Any:
    try:
        return normalise(value)
    except ValueError as exc:
        raise ValueRefusedError(f"{value} is not a valid {attribute.kind}") from exc


def _check_content(attribute: Attribute, value: Any) -> None:
    if attribute.regex and not re.match(attribute.regex, str(value)):
        raise ValueRefusedError(f"{value} must be conform with the regex: {attribute.regex!r}")
    if isinstance(value, str):
        if attribute.min_length and len(value) < attribute.min_length:
            raise ValueRefusedError(f"{value} must have a minimum length of {attribute.min_length!r}")
        if attribute.max_length and len(value) > attribute.max_length:
            raise ValueRefusedError(f"{value} must have a maximum length of {attribute.max_length!r}")
    if isinstance(value, int) and not isinstance(value, bool):
        _check_range(attribute, value)
    if attribute.choices is not None and value not in attribute.choices:
        names = ", ".join(sorted(attribute.choices))
        raise ValueRefusedError(f"{value} must be one of {names!r}")


def _check_range(attribute: Attribute, value: int) -> None:
    if attribute.min_value is not None and value < attribute.min_value:
        raise ValueRefusedError(f"{value} is lower than the minimum allowed value {attribute.min_value!r}")
    if attribute.max_value is not None and value > attribute.max_value:
        raise ValueRefusedError(f"{value} is higher than the maximum allowed value {attribute.max_value!r}")
    if abs(value) > _MAX_NUMBER:
        raise MutationRefusedError("Python int too large to convert to C long")


def _utf8_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _host(value: str) -> str:
    interface = ipaddress.ip_interface(value)
    if isinstance(interface, ipaddress.IPv6Interface):
        return f"{_ipv6_text(int(interface.ip))}/{interface.network.prefixlen}"
    return interface.with_prefixlen


def _network(value: str) -> str:
    network = ipaddress.ip_network(value)
    if isinstance(network, ipaddress.IPv6Network):
        return f"{_ipv6_text(int(network.network_address))}/{network.prefixlen}"
    return network.with_prefixlen


def _ipv6_text(number: int) -> str:
    """Without a zone, and mapped IPv4 in hexadecimal: Python 3.13 writes ``::ffff:10.0.0.1``, the server does not."""
    if number >> 32 == 0xFFFF:
        return f"::ffff:{number >> 16 & 0xFFFF:x}:{number & 0xFFFF:x}"
    return str(ipaddress.IPv6Address(number))


def _mac(value: str) -> str:
    if not _MAC.match(value) or value.endswith("\n"):
        raise ValueError(value)
    digits = re.sub(r"[^0-9a-fA-F]", "", value).upper()
    return ":".join(digits[index : index + 2] for index in range(0, 12, 2))


def _date_time(value: str) -> str:
    """Checked, but kept as sent: offsets, dates and relative times stay text."""
    if value and not _RELATIVE_TIME.match(value):
        datetime.fromisoformat(value)
    return value


def _url(value: str) -> str:
    parts = urlsplit(value)
    if not parts.scheme or not parts.netloc:
        raise ValueError(value)
    return value


def _list(value: Any) -> Any:
    """A text has to be a JSON list, and is stored as that text."""
    if not isinstance(json.loads(value) if isinstance(value, str) else value, list):
        raise ValueError(value)
    return value


def _json(value: Any) -> Any:
    if not isinstance(json.loads(value) if isinstance(value, str) else value, dict | list):
        raise ValueError(value)
    return value


_NORMAL_FORMS: dict[str, Callable[[Any], Any]] = {
    "IPHost": _host,
    "IPNetwork": _network,
    "MacAddress": _mac,
    "DateTime": _date_time,
    "URL": _url,
    "List": _list,
    "JSON": _json,
}
