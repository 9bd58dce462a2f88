"""From objects to the JSON that a selection asks for.

For each selection and concrete kind a tuple of (key, function) is made once; a function takes the object and the
request's :class:`Reading` and gives the value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from graphql import FieldNode, GraphQLField, GraphQLInterfaceType, GraphQLObjectType, GraphQLSchema, SelectionSetNode
from graphql.execution.values import get_argument_values

from consumers.infrahub.sandbox.attribute_fields import attribute_getter
from consumers.infrahub.sandbox.branch import BranchStore
from consumers.infrahub.sandbox.errors import MutationRefusedError
from consumers.infrahub.sandbox.filters import find, ordered, page
from consumers.infrahub.sandbox.model import KindModel, RelationshipEnd
from consumers.infrahub.sandbox.records import Node, display_label
from consumers.infrahub.sandbox.selection import SelectedField, Selector

Below = tuple[SelectionSetNode, ...]
Getter = Callable[[Node, "Reading"], Any]

_NO_TYPES = frozenset[str]()


@dataclass(slots=True)
class Reading:
    """What one request reads from: a branch, its variables, and the arguments that were worked out already."""

    branch: BranchStore
    variables: dict[str, Any]
    arguments: dict[int, dict[str, Any]] = field(default_factory=dict)

    def arguments_of(self, definition: GraphQLField, node: FieldNode) -> dict[str, Any]:
        """The coerced arguments of a field; the same for every object of the request."""
        known = self.arguments.get(id(node))
        if known is None:
            known = self.arguments[id(node)] = get_argument_values(definition, node, self.variables)
        return known


class Projector:
    """Makes and keeps the getters of one document."""

    def __init__(self, schema: GraphQLSchema, selector: Selector) -> None:
        self._schema = schema
        self._selector = selector

    def list_query(self, selected: SelectedField, kind_name: str) -> Callable[[Reading], dict[str, Any]]:
        """The answer of a list query: ``count`` and ``edges``."""
        definition = self._field("Query", selected.name)
        wanted = self._selector.fields(selected.below, _NO_TYPES)
        edge_keys = [(item.key, self._edge_below(item)) for item in wanted if item.name == "edges"]

        def answer(reading: Reading) -> dict[str, Any]:
            arguments = reading.arguments_of(definition, selected.node)
            found = list(find(reading.branch, kind_name, arguments))
            result: dict[str, Any] = {}
            for item in wanted:
                if item.name == "count":
                    result[item.key] = sum(node.copies for node in found)
                elif item.name == "__typename":
                    result[item.key] = f"Paginated{kind_name}"
            for key, edge in edge_keys:
                result[key] = [edge(node, reading, None) for node in page(found, arguments)]
            return result

        return answer

    def object(self, below: Below) -> Callable[[Node, Reading], dict[str, Any]]:
        """An object with what its kind has of the selection."""
        made: dict[str, tuple[tuple[str, Getter], ...]] = {}

        def project(node: Node, reading: Reading) -> dict[str, Any]:
            getters = made.get(node.kind.name)
            if getters is None:
                getters = made[node.kind.name] = self._getters(below, node.kind)
            return {key: get(node, reading) for key, get in getters}

        return project

    def _getters(self, below: Below, kind: KindModel) -> tuple[tuple[str, Getter], ...]:
        types = frozenset((kind.name, *kind.interfaces))
        return tuple((item.key, self._getter(item, kind)) for item in self._selector.fields(below, types))

    def _getter(self, item: SelectedField, kind: KindModel) -> Getter:
        if item.name in _IDENTITY:
            return _IDENTITY[item.name]
        end = kind.ends.get(item.name)
        if end is None:
            inner = self._selector.fields(item.below, _NO_TYPES)
            return attribute_getter(kind, item.name, [(field.key, field.name) for field in inner])
        return self._many(item, kind, end) if end.many else self._one(item, end)

    def _one(self, item: SelectedField, end: RelationshipEnd) -> Getter:
        edge = self._edge_below(item)
        empty = dict.fromkeys(field.key for field in self._selector.fields(item.below, _NO_TYPES))
        slot = end.slot

        def get(node: Node, reading: Reading) -> Any:
            peers = node.peer_ids(slot)
            if len(peers) > 1:
                raise MutationRefusedError("At most, one relationship expected")
            for peer_id, since in peers.items():
                return edge(reading.branch.nodes[peer_id], reading, since)
            return dict(empty)

        return get

    def _many(self, item: SelectedField, kind: KindModel, end: RelationshipEnd) -> Getter:
        definition = self._field(kind.name, item.name)
        wanted = self._selector.fields(item.below, _NO_TYPES)
        edge_keys = [(field.key, self._edge_below(field)) for field in wanted if field.name == "edges"]
        counts = [field.key for field in wanted if field.name == "count"]

        def get(node: Node, reading: Reading) -> Any:
            arguments = reading.arguments_of(definition, item.node)
            edges = node.peer_ids(end.slot)
            peers: Iterable[Node] = [reading.branch.nodes[peer_id] for peer_id in edges]
            if arguments:
                matching = {match.id for match in find(reading.branch, end.peer, arguments)}
                peers = [peer for peer in peers if peer.id in matching]
            peers = ordered(reading.branch, reading.branch.model.kinds.get(end.peer), peers, arguments)
            total = sum(node.edges(end.slot, peer.id) for peer in peers)
            result: dict[str, Any] = dict.fromkeys(counts, total)
            for key, edge in edge_keys:
                result[key] = [edge(peer, reading, edges[peer.id]) for peer in page(peers, arguments)]
            return result

        return get

    def _edge_below(self, item: SelectedField) -> Callable[[Node, Reading, str | None], dict[str, Any]]:
        """An edge: the node, and metadata of node and edge."""
        parts = self._selector.fields(item.below, _NO_TYPES)
        getters = [(part.key, self._edge_part(part)) for part in parts]

        def edge(node: Node, reading: Reading, since: str | None) -> dict[str, Any]:
            return {key: get(node, reading, since) for key, get in getters}

        return edge

    def _edge_part(self, part: SelectedField) -> Callable[[Node, Reading, str | None], Any]:
        if part.name == "node":
            project = self.object(part.below)
            return lambda node, reading, _since: project(node, reading)
        keys = [(field.key, field.name) for field in self._selector.fields(part.below, _NO_TYPES)]
        if part.name == "node_metadata":
            return lambda node, _reading, _since: {key: _node_time(node, name) for key, name in keys}
        if part.name == "__typename":
            return lambda _node, _reading, _since: "Edge"
        return lambda _node, _reading, since: {key: _edge_property(name, since) for key, name in keys}

    def _field(self, type_name: str, name: str) -> GraphQLField:
        found = self._schema.type_map[type_name]
        if not isinstance(found, GraphQLObjectType | GraphQLInterfaceType):
            raise TypeError(f"{type_name} has no fields")
        fields: dict[str, GraphQLField] = found.fields
        return fields[name]


def _node_time(node: Node, name: str) -> str | None:
    if name == "updated_at":
        return node.updated_at
    return node.created_at if name == "created_at" else None


def _edge_property(name: str, since: str | None) -> Any:
    if name == "updated_at":
        return since
    return False if name == "is_protected" else None


_IDENTITY: dict[str, Getter] = {
    "id": lambda node, _reading: node.id,
    "__typename": lambda node, _reading: node.kind.name,
    "hfid": lambda node, reading: reading.branch.human_friendly_id(node),
    "display_label": lambda node, _reading: display_label(node),
}
