"""One normal form for each attribute kind: the spelling that the destination stores (design 4.8).

It is applied once, when a source row or an observed object becomes an object; the diff, the identity, the payload, the
collision check and the operation id all carry it. Measured on Infrahub 1.11.9. The decisions:

* **IPHost** ``10.0.0.1`` is ``10.0.0.1/32``; a netmask becomes a prefix length; IPv6 is lower case and compressed; a
  zone (``%eth0``) is dropped, because the server drops it: what a reviewer sees is what will be stored.
* **IPNetwork** the same, but the server keeps a zone there; host bits have no normal form (a value fault,
  :mod:`ledger.plan.values`).
* **IPAddress** a bare address, without a prefix length; a zone is kept.
* **IPv4-mapped IPv6** is written in hexadecimal (``::ffff:a00:1``) on every Python; 3.13 changed what ``str`` gives.
* **MacAddress** is six upper-case pairs with colons.
* **null** under a default is the default, whatever is sent (reads return the default).
* **Empty text is a value.** ``""`` and null are two normal forms, so ``null -> ""`` and ``"" -> null`` are updates that
  really happen. ``""`` against an unset attribute is therefore *one* update, not one in every run: the destination
  stores the empty text as sent, and the next plan compares ``""`` with ``""``.
* **Text is byte-exact.** Case, NFC and NFD, blanks at the ends and zero-width characters (U+200B) are kept by the
  destination and tell keys apart there; so they do here. Look-alikes are a warning
  (:meth:`ledger.plan.collision.CollisionIndex.near_misses`), never folded.
* **DateTime** is text that the destination does not rewrite: two spellings of one instant are two values.
* **Numbers and booleans keep their type**: ``1``, ``1.0`` and ``true`` are three values.
* **Lists** keep their order; only peer lists of relationships are sets.

A value that has no normal form is returned as it is, so that the value check can name it with all the others.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from typing import Any

from ledger.plan.canonical import Identity, canonical_identity, canonical_value, is_plain
from ledger.plan.describe import is_reference
from ledger.schema import Attribute, DestinationSchema

_MAC_SHAPES = (
    (re.compile(r"[0-9A-Fa-f]{1,2}(?:(?::[0-9A-Fa-f]{1,2}){5}|(?:-[0-9A-Fa-f]{1,2}){5})"), 2),
    (re.compile(r"[0-9A-Fa-f]{1,4}(?:(?:\.[0-9A-Fa-f]{1,4}){2}|(?::[0-9A-Fa-f]{1,4}){2}|(?:-[0-9A-Fa-f]{1,4}){2})"), 4),
    (re.compile(r"[0-9A-Fa-f]{6}[:-][0-9A-Fa-f]{6}"), 6),
    (re.compile(r"[0-9A-Fa-f]{12}"), 12),
)
"""Each shape with the number of digits of a full group; a shorter group is filled with zeros from the left."""


def normal_form(attribute: Attribute, value: Any, *, kind: str) -> Any:
    """The value as the destination would store it.

    Args:
        attribute: the destination's attribute that the value goes to, or was read from.
        value: from a source row, a transform or the destination.
        kind: the object's kind, for the error.

    Returns:
        A canonical value in normal form, or the canonical value unchanged where it has none.

    Raises:
        UnserializablePayloadValueError: the value has no canonical form at all (A20).
    """
    if value is None:
        value = attribute.default
    if value is None:
        return None
    # Nearly every value is a plain text; planning brings ten for each row into normal form.
    plain = value if type(value) is str and is_plain(value) else canonical_value(value, kind=kind, field=attribute.name)
    if not isinstance(plain, str):
        return plain
    respelled = spelling(attribute, plain)
    return plain if respelled is None else respelled


def spelling(attribute: Attribute, text: str) -> str | None:
    """The destination's spelling of a text value; None where the attribute's kind does not take this text."""
    respell = _SPELLINGS.get(attribute.kind)
    return text if respell is None else respell(text)


def normalise_peer_identity(schema: DestinationSchema, peer_kind: str, identity: Mapping[str, Any]) -> Identity:
    """A peer's identity with each component in normal form, to any depth (FF15).

    Plans of our own carry normal forms already; this is for plans made elsewhere. Components that the schema does not
    know stay as they are: the look-up that uses them will say so.

    Raises:
        UnserializablePayloadValueError: a component has no canonical form.
    """
    known = schema.kinds.get(peer_kind)
    plain = canonical_identity(identity, kind=peer_kind)
    if known is None:
        return plain
    return {name: _component(schema, known.attributes.get(name), value, peer_kind) for name, value in plain.items()}


def _component(schema: DestinationSchema, attribute: Attribute | None, value: Any, kind: str) -> Any:
    if attribute is not None:
        return normal_form(attribute, value, kind=kind)
    if is_reference(value):
        peer_kind = value["peer_kind"]
        return {"identity": normalise_peer_identity(schema, peer_kind, value["identity"]), "peer_kind": peer_kind}
    if isinstance(value, list):
        return [_component(schema, None, item, kind) for item in value]
    return value


def _host(text: str) -> str | None:
    try:
        interface = ipaddress.ip_interface(text)
    except ValueError:
        return None
    return f"{_digits(interface.ip)}/{interface.network.prefixlen}"


def _network(text: str) -> str | None:
    try:
        network = ipaddress.ip_network(text)
    except ValueError:
        return None
    return f"{_with_zone(network.network_address)}/{network.prefixlen}"


def _bare_address(text: str) -> str | None:
    try:
        return _with_zone(ipaddress.ip_address(text))
    except ValueError:
        return None


def _with_zone(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> str:
    zone = None if isinstance(address, ipaddress.IPv4Address) else address.scope_id
    return f"{_digits(address)}%{zone}" if zone else _digits(address)


def _digits(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> str:
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    number = int(address)
    if number >> 32 == 0xFFFF:
        return f"::ffff:{number >> 16 & 0xFFFF:x}:{number & 0xFFFF:x}"
    return str(ipaddress.IPv6Address(number))


def _mac(text: str) -> str | None:
    for shape, width in _MAC_SHAPES:
        if shape.fullmatch(text):
            digits = "".join(group.zfill(width) for group in re.split(r"[:.-]", text)).upper()
            return ":".join(digits[start : start + 2] for start in range(0, 12, 2))
    return None


_SPELLINGS: Mapping[str, Callable[[str], str | None]] = {
    "IPHost": _host,
    "IPNetwork": _network,
    "IPAddress": _bare_address,
    "MacAddress": _mac,
}
