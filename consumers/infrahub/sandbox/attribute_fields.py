"""The answer for one attribute: its value and what is said about it."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Sequence
from typing import Any

from consumers.infrahub.sandbox.address_space import WORKED_OUT, is_prefix, worked_out
from consumers.infrahub.sandbox.model import KindModel
from consumers.infrahub.sandbox.records import Node


def attribute_getter(kind: KindModel, name: str, keys: Sequence[tuple[str, str]]) -> Callable[[Node, Any], Any]:
    """A function that answers ``(key, field)`` pairs for one attribute of an object."""
    if is_prefix(kind) and name in WORKED_OUT:
        keyed = [key for key, field in keys if field == "value"]
        nothing = dict.fromkeys(key for key, _ in keys)
        return lambda node, reading: nothing | dict.fromkeys(keyed, worked_out(reading.branch, node, name))
    if [field for _, field in keys] == ["value"]:
        only = keys[0][0]
        return lambda node, _reading: {only: node.read(name)}
    getters = [(key, _field_getter(kind, name, field)) for key, field in keys]
    return lambda node, _reading: {key: get(node) for key, get in getters}


def _field_getter(kind: KindModel, name: str, field: str) -> Callable[[Node], Any]:
    if field == "value":
        return lambda node: node.read(name)
    if field == "is_default":
        return lambda node: node.is_default(name)
    if field == "updated_at":
        return lambda node: node.changed_at.get(name)
    if field in ("is_protected", "is_from_profile"):
        return lambda _node: False
    if field in ("label", "color", "description") and name in kind.choices:
        shown = {choice.name: getattr(choice, field) for choice in kind.choices[name]}
        return lambda node: shown.get(node.read(name))
    if kind.attributes[name].kind in ("IPHost", "IPNetwork"):
        return lambda node: _address_part(node.read(name), field)
    return lambda _node: None


def _address_part(value: str | None, field: str) -> Any:
    if value is None:
        return None
    interface = ipaddress.ip_interface(value)
    network = interface.network
    parts: dict[str, Any] = {
        "ip": str(interface.ip),
        "hostmask": str(network.hostmask),
        "netmask": str(network.netmask),
        "with_hostmask": interface.with_hostmask,
        "with_netmask": interface.with_netmask,
        "prefixlen": network.prefixlen,
        "version": interface.version,
        "broadcast_address": str(network.broadcast_address),
        "num_addresses": network.num_addresses,
    }
    return parts.get(field)
