"""The arguments of a list query, turned into the objects that match."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from consumers.infrahub.sandbox.branch import BranchStore
from consumers.infrahub.sandbox.model import KindModel, RelationshipEnd
from consumers.infrahub.sandbox.records import Node

Matches = dict[str, Node]

_PAGING = frozenset({"offset", "limit", "order", "partial_match"})


def find(branch: BranchStore, kind_name: str, arguments: Mapping[str, Any]) -> Iterable[Node]:
    """All objects of a kind or generic that every filter lets through, in the server's order (:func:`ordered`).

    A filter whose value is null is dropped before the query, as on the server: it matches everything.
    """
    filters = {name: value for name, value in arguments.items() if value is not None and name not in _PAGING}
    kind = branch.model.kinds.get(kind_name)
    if not filters:
        return ordered(branch, kind, branch.of_kind(kind_name), arguments)
    partial = bool(arguments.get("partial_match"))
    found: Matches | None = None
    # Filters on the objects themselves first: what they leave is mostly one object, whose peers are few.
    for name in sorted(filters, key=lambda name: _end_of(kind, name) is not None):
        end = _end_of(kind, name)
        if found is not None and kind is not None and end is not None:
            found = _narrowed(branch, found, end, name.partition("__")[2], filters[name], partial=partial)
        else:
            matches = _matches(branch, kind_name, name, filters[name], partial=partial)
            found = matches if found is None else {node_id: found[node_id] for node_id in found if node_id in matches}
    return ordered(branch, kind, (found or {}).values(), arguments)


def ordered(
    branch: BranchStore, kind: KindModel | None, nodes: Iterable[Node], arguments: Mapping[str, Any]
) -> list[Node]:
    """By id, so that pages fit together; before that as the kind says, unless the request forbids it."""
    by_id = sorted(nodes, key=lambda node: node.id)
    if kind is None or not kind.order_by or (arguments.get("order") or {}).get("disable"):
        return by_id
    return sorted(by_id, key=lambda node: [_sortable(branch, node, path) for path in kind.order_by])


def _sortable(branch: BranchStore, node: Node, path: str) -> tuple[int, Any]:
    """The value at a path; nothing comes behind everything."""
    head, *rest = path.split("__")
    end = node.kind.ends.get(head)
    if end is not None and rest:
        peer = next(iter(node.peer_ids(end.slot)), None)
        return (1, "") if peer is None else _sortable(branch, branch.nodes[peer], "__".join(rest))
    value = node.read(head) if head in node.kind.attributes else None
    return (1, "") if value is None else (0, value)


def page(items: Iterable[Node], arguments: Mapping[str, Any]) -> list[Node]:
    """The part of a list that offset and limit name; no limit means all."""
    chosen = items if isinstance(items, list) else list(items)
    offset = arguments.get("offset") or 0
    limit = arguments.get("limit")
    return chosen[offset:] if limit is None else chosen[offset : offset + limit]


def _matches(branch: BranchStore, kind_name: str, name: str, value: Any, *, partial: bool) -> Matches:
    if name == "ids":
        allowed = set(branch.model.concrete(kind_name))
        nodes = (branch.nodes.get(str(node_id)) for node_id in value)
        return {node.id: node for node in nodes if node is not None and node.kind.name in allowed}
    if name == "hfid":
        node = branch.find_by_hfid(branch.model.kinds[kind_name], [str(component) for component in value])
        return {} if node is None else {node.id: node}
    kind = branch.model.kinds[kind_name]
    head, _, rest = name.partition("__")
    end = kind.ends.get(head)
    if end is None:
        return _by_attribute(branch, kind.concrete, head, rest, value, partial=partial)
    return _by_relationship(branch, kind, end, rest, value, partial=partial)


def _by_attribute(
    branch: BranchStore, kinds: Iterable[str], attribute: str, operator: str, value: Any, *, partial: bool
) -> Matches:
    found: Matches = {}
    for kind in kinds:
        if operator == "isnull":
            nodes = branch.by_kind[kind].values()
            found |= {node.id: node for node in nodes if (node.values.get(attribute) is None) is value}
        elif partial and isinstance(value, str):
            nodes = branch.by_kind[kind].values()
            found |= {node.id: node for node in nodes if _contains(node.values.get(attribute), value)}
        else:
            for wanted in value if operator == "values" else (value,):
                found |= branch.with_value(kind, attribute, wanted)
    return found


def _contains(value: Any, part: str) -> bool:
    return isinstance(value, str) and part.lower() in value.lower()


def _end_of(kind: KindModel | None, name: str) -> RelationshipEnd | None:
    return kind.ends.get(name.partition("__")[0]) if kind is not None else None


def _narrowed(
    branch: BranchStore, found: Matches, end: RelationshipEnd, rest: str, value: Any, *, partial: bool
) -> Matches:
    """Those of some objects that have a peer which fits."""
    if rest == "isnull":
        return {node.id: node for node in found.values() if bool(node.peer_ids(end.slot)) is not value}
    peers = {peer.id for peer in _fitting_peers(branch, end, rest, value, partial=partial)}
    return {node.id: node for node in found.values() if not peers.isdisjoint(node.peer_ids(end.slot))}


def _by_relationship(
    branch: BranchStore, kind: KindModel, end: RelationshipEnd, rest: str, value: Any, *, partial: bool
) -> Matches:
    """Through the peers: their edges lead back to the objects that are asked for."""
    if rest == "isnull":
        return _all_where(branch, kind, lambda node: bool(node.peer_ids(end.slot)) is not value)
    allowed = set(kind.concrete)
    found: Matches = {}
    for peer in _fitting_peers(branch, end, rest, value, partial=partial):
        for node_id in peer.peer_ids(end.reverse_slot):
            node = branch.nodes[node_id]
            if node.kind.name in allowed:
                found[node_id] = node
    return found


def _fitting_peers(
    branch: BranchStore, end: RelationshipEnd, rest: str, value: Any, *, partial: bool
) -> Iterable[Node]:
    if rest == "ids":
        return [branch.nodes[str(peer_id)] for peer_id in value if str(peer_id) in branch.nodes]
    attribute, _, operator = rest.rpartition("__")
    return _by_attribute(branch, end.concrete_peers, attribute, operator, value, partial=partial).values()


def _all_where(branch: BranchStore, kind: KindModel, condition: Callable[[Node], bool]) -> Matches:
    return {node.id: node for node in branch.of_kind(kind.name) if condition(node)}
