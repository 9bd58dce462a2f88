"""Prefixes, addresses and their namespaces: what the server fills in before a write, and the tree that it keeps.

A prefix's parent is the smallest prefix around it in its namespace, an address stands in the smallest around it. The
server works that out anew after a create, an update and the deletion of a prefix, but not after an upsert that found
its object; and an upsert that names no namespace means the default one, also where its object is in another.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from consumers.infrahub.sandbox.branch import BranchStore
from consumers.infrahub.sandbox.errors import MutationRefusedError, PlainServerError, node_not_found
from consumers.infrahub.sandbox.lookup import by_hfid, by_id_or_hfid, hfid_text
from consumers.infrahub.sandbox.model import KindModel
from consumers.infrahub.sandbox.records import Node

NAMESPACE, PREFIX, ADDRESS = "BuiltinIPNamespace", "BuiltinIPPrefix", "BuiltinIPAddress"
_END = "ip_namespace"

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Interface = ipaddress.IPv4Interface | ipaddress.IPv6Interface


def is_prefix(kind: KindModel) -> bool:
    """Whether it is a kind of prefixes."""
    return PREFIX in kind.kind.inherit_from


def is_address(kind: KindModel) -> bool:
    """Whether it is a kind of addresses."""
    return ADDRESS in kind.kind.inherit_from


def in_address_space(kind: KindModel) -> bool:
    """Whether its objects are in a namespace."""
    return is_prefix(kind) or is_address(kind)


def default_namespace(branch: BranchStore) -> str | None:
    """The id of the namespace that is there from the beginning."""
    found = (ids for name in branch.model.concrete(NAMESPACE) for ids in branch.with_value(name, "name", "default"))
    return next(found, None)


def with_namespace(branch: BranchStore, data: Mapping[str, Any], *, there: str | None = None) -> dict[str, Any]:
    """The input with a namespace in it: as given, or ``there``, or the default one.

    Raises:
        MutationRefusedError: it names one that is not there, or none.
    """
    given = data.get(_END)
    if given is None:
        filled = there or default_namespace(branch)
        return dict(data) if filled is None else {**data, _END: {"id": filled}}
    if "id" in given:
        node = branch.nodes.get(given["id"])
        if node is None or NAMESPACE not in node.kind.kind.inherit_from:
            raise MutationRefusedError("'NoneType' object has no attribute 'id'")
    elif "hfid" in given:
        if by_hfid(branch, branch.model.kinds[NAMESPACE], given["hfid"]) is None:
            raise node_not_found(NAMESPACE, hfid_text(given["hfid"]))
    else:
        raise MutationRefusedError("can only join an iterable")
    return dict(data)


def to_update(branch: BranchStore, kind: KindModel, data: Mapping[str, Any]) -> Node:
    """The prefix or address of an update, which knows them by their id alone and does not look at the kind.

    Raises:
        PlainServerError: it is named by its human-friendly id.
        MutationRefusedError: there is no such object, or it is in no namespace.
    """
    if data.get("id") is None:
        raise PlainServerError("a prefix or address is updated by its id")
    node = branch.nodes.get(data["id"])
    if node is None:
        raise node_not_found(kind.name, data["id"])
    if not in_address_space(node.kind):
        raise MutationRefusedError("'Node' object has no attribute 'ip_namespace'")
    return node


def to_delete(branch: BranchStore, kind: KindModel, data: Mapping[str, Any]) -> Node:
    """The object of a deletion, whatever its kind.

    Raises:
        PlainServerError: a prefix that is named by its human-friendly id.
        MutationRefusedError: there is no such object, or it is the default namespace.
    """
    if is_prefix(kind) and data.get("id") is None:
        raise PlainServerError("a prefix is deleted by its id")
    if NAMESPACE in kind.kind.inherit_from and data.get("id") == default_namespace(branch):
        raise MutationRefusedError("Cannot delete default IPAM namespace")
    return by_id_or_hfid(branch, kind, data)


def require_address(kind: KindModel, data: Mapping[str, Any]) -> None:
    """What the server reads of an address before it looks at anything else; prefixes are looked at like any value.

    Raises:
        MutationRefusedError: there is none, in the words of the code that did not expect that.
    """
    if not is_address(kind):
        return
    if "address" not in data:
        raise MutationRefusedError("'address'")
    given = data["address"]
    if given is None:
        raise MutationRefusedError("'NoneType' object is not subscriptable")
    if "value" not in given:
        raise MutationRefusedError("'value'")
    try:
        ipaddress.ip_interface(given["value"])
    except ValueError as exc:
        raise MutationRefusedError(str(exc)) from exc


def namespace_of(node: Node) -> str | None:
    """The id of an object's namespace."""
    end = node.kind.ends.get(_END)
    return next(iter(node.peer_ids(end.slot)), None) if end is not None else None


def reconcile(branch: BranchStore, node: Node, at: str) -> None:
    """Put a written prefix or address into the tree, and what is below it under it."""
    prefixes = _prefixes(branch, node)
    _set_parent(branch, node, _around(prefixes, node), at)
    if not is_prefix(node.kind):
        return
    parent = _parent(branch, node)
    for child in list(_below(branch, node)):
        if _around(prefixes, child) is not node:
            _set_parent(branch, child, parent, at)
    network = _network(node)
    for item in _in_space(branch, node, "ip_prefixes", "ip_addresses"):
        if _is_inside(item, network) and _around(prefixes, item) is node:
            _set_parent(branch, item, node, at)


def before_deletion(branch: BranchStore, node: Node, at: str) -> None:
    """Hand what is below a prefix to the prefix around it."""
    parent = _parent(branch, node)
    for child in list(_below(branch, node)):
        _set_parent(branch, child, parent, at)


WORKED_OUT = frozenset({"netmask", "hostmask", "network_address", "broadcast_address", "utilization"})
"""Attributes of a prefix that the server stores nowhere."""


def worked_out(branch: BranchStore, node: Node, name: str) -> Any:
    """One of :data:`WORKED_OUT`, as the server works it out when it is asked."""
    return _utilization(branch, node) if name == "utilization" else str(getattr(_network(node), name))


def _utilization(branch: BranchStore, node: Node) -> int:
    """The share of a prefix that its members take, in whole percent."""
    network, members = _network(node), list(_below(branch, node))
    if node.read("member_type") == "prefix":
        taken = sum(_network(child).num_addresses for child in members if is_prefix(child.kind))
        return 100 * taken // network.num_addresses
    space = network.num_addresses
    if not node.read("is_pool") and network.version == 4 and space > 2:
        space -= 2  # network and broadcast address are nobody's
    return 100 * sum(is_address(child.kind) for child in members) // space


@lru_cache(maxsize=100_000)
def _parsed_network(text: str) -> Network:
    return ipaddress.ip_network(text)


@lru_cache(maxsize=100_000)
def _parsed_interface(text: str) -> Interface:
    return ipaddress.ip_interface(text)


def _network(node: Node) -> Network:
    return _parsed_network(node.values["prefix"])


def _first_and_length(node: Node) -> tuple[Network | Interface, int, int]:
    """Of a prefix or an address: what it is, its first address as a number, and how long it is."""
    if is_prefix(node.kind):
        network = _network(node)
        return network, int(network.network_address), network.prefixlen
    address = _parsed_interface(node.values["address"])
    return address, int(address.ip), address.network.prefixlen


def _is_inside(node: Node, network: Network) -> bool:
    what, first, _ = _first_and_length(node)
    return what.version == network.version and first & int(network.netmask) == int(network.network_address)


def _in_space(branch: BranchStore, node: Node, *names: str) -> list[Node]:
    """What else is in the namespace of an object, by the names of the namespace's lists."""
    namespace = branch.nodes.get(namespace_of(node) or "")
    if namespace is None:
        return []
    ends = [namespace.kind.ends[name] for name in names]
    ids = [node_id for end in ends for node_id in namespace.peer_ids(end.slot)]
    return [branch.nodes[node_id] for node_id in ids if node_id != node.id and _is_known(branch.nodes[node_id])]


def _is_known(node: Node) -> bool:
    """Whether its address is one: that of an object that a rehearsal observed in part is not known."""
    try:
        _first_and_length(node)
    except ValueError:
        return False
    return True


Prefixes = Mapping[tuple[int, int, int], Node]
"""By version, first address and length."""


def _prefixes(branch: BranchStore, node: Node) -> Prefixes:
    """Those of the namespace of an object, itself among them."""
    found = [*_in_space(branch, node, "ip_prefixes"), *([node] if is_prefix(node.kind) else ())]
    return {(_network(item).version, *_first_and_length(item)[1:]): item for item in found}


def _around(prefixes: Prefixes, node: Node) -> Node | None:
    """The smallest prefix around an object."""
    what, first, length = _first_and_length(node)
    bits = what.max_prefixlen
    # the route to a single address is around that address alone
    longest = length - 1 if is_prefix(node.kind) else max(length, bits - 1)
    for shorter in range(longest, -1, -1):
        found = prefixes.get((what.version, first >> (bits - shorter) << (bits - shorter), shorter))
        if found is not None and found is not node:
            return found
    return None


def _parent(branch: BranchStore, prefix: Node) -> Node | None:
    end = prefix.kind.ends["parent"]
    found = next(iter(prefix.peer_ids(end.slot)), None)
    return branch.nodes[found] if found is not None else None


def _below(branch: BranchStore, prefix: Node) -> Iterator[Node]:
    for name in ("children", "ip_addresses"):
        for node_id in prefix.peer_ids(prefix.kind.ends[name].slot):
            yield branch.nodes[node_id]


def _set_parent(branch: BranchStore, node: Node, parent: Node | None, at: str) -> None:
    end = node.kind.ends["parent" if is_prefix(node.kind) else "ip_prefix"]
    wanted = [] if parent is None else [parent.id]
    if list(node.peer_ids(end.slot)) != wanted:
        branch.set_peers(node, end, wanted, at)
    if is_prefix(node.kind) and node.values.get("is_top_level") is not (parent is None):
        branch.set_values(node, {"is_top_level": parent is None})
        node.defaults.discard("is_top_level")
        node.changed_at["is_top_level"] = at
