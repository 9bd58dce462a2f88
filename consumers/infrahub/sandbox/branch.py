"""The objects of one branch: edges kept on both sides, uniqueness and look-up indexes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from consumers.infrahub.sandbox.model import KindModel, RelationshipEnd, SchemaModel, UniqueGroup
from consumers.infrahub.sandbox.records import Node, index_value


@dataclass(frozen=True, slots=True)
class BranchInfo:
    """What the ``Branch`` query says about a branch."""

    id: str
    name: str
    description: str
    is_default: bool
    branched_from: str
    sync_with_git: bool
    fork_sequence: int
    status: str = "OPEN"


class BranchStore:
    """All objects of a branch. Methods here keep the indexes right; they check nothing (``writes`` does).

    ``watch`` is told of each object right before it, or an edge of it, changes: who wants to know what a write does
    need not compare the whole branch.
    """

    def __init__(self, info: BranchInfo, model: SchemaModel) -> None:
        self.info = info
        self.model = model
        self.watch: Callable[[Node], None] | None = None
        self.nodes: dict[str, Node] = {}
        self.by_kind: dict[str, dict[str, Node]] = {kind.name: {} for kind in model.nodes()}
        self._unique: dict[UniqueGroup, dict[tuple[Any, ...], dict[str, None]]] = {}
        self._by_value: dict[tuple[str, str], dict[Any, dict[str, Node]]] = {}

    def fork(self, info: BranchInfo) -> BranchStore:
        """A new branch that starts with a copy of every object."""
        other = BranchStore(info, self.model)
        for node in self.nodes.values():
            twin = node.copy()
            other.nodes[twin.id] = twin
            other.by_kind[twin.kind.name][twin.id] = twin
        other._unique = {group: {key: dict(ids) for key, ids in index.items()} for group, index in self._unique.items()}
        return other

    def of_kind(self, name: str) -> Iterator[Node]:
        """The objects of a kind, or of all kinds below a generic, oldest first within a kind."""
        for concrete in self.model.concrete(name):
            yield from self.by_kind[concrete].values()

    def count(self, name: str) -> int:
        """How many objects :meth:`of_kind` yields."""
        return sum(len(self.by_kind[concrete]) for concrete in self.model.concrete(name))

    def add(self, node: Node) -> None:
        """Put a new object in; its values and peers are set, its peers do not know it yet."""
        self._watched(node)
        self.nodes[node.id] = node
        self.by_kind[node.kind.name][node.id] = node
        for slot, peers in node.peers.items():
            reverse = node.kind.ends_by_slot[slot].reverse_slot
            for peer_id, at in peers.items():
                self._link(self.nodes[peer_id], reverse, node.id, at)
            for peer_id, further in node.further.get(slot, {}).items():
                _count_further(self.nodes[peer_id], reverse, node.id, further)
        self._index_values(node, node.kind.attributes)
        self.reindex(node)

    def restore(self, node: Node) -> None:
        """Put an object in that knows its peers, as all of them know it: nothing is linked."""
        self.nodes[node.id] = node
        self.by_kind[node.kind.name][node.id] = node
        self.reindex(node)

    def remove(self, node: Node) -> None:
        """Take an object out, and with it every edge that leads to it; of one that is there twice, one."""
        self._watched(node)
        if node.copies > 1:
            node.copies -= 1
            return
        for slot, peers in list(node.peers.items()):
            reverse = _reversed(slot)
            for peer_id in peers:
                if peer_id != node.id:
                    self._unlink(self.nodes[peer_id], reverse, node.id)
        self._unindex_values(node, node.kind.attributes)
        self._drop_keys(node)
        del self.nodes[node.id]
        del self.by_kind[node.kind.name][node.id]

    def set_values(self, node: Node, values: dict[str, Any]) -> None:
        """Store attribute values."""
        self._watched(node)
        self._unindex_values(node, values)
        node.values.update(values)
        self._index_values(node, values)

    def set_peers(
        self, node: Node, end: RelationshipEnd, peer_ids: Sequence[str], at: str, *, seen: Collection[str] | None = None
    ) -> None:
        """Replace the peers of one relationship on both sides; edges that stay keep their time.

        One edge goes to each peer that was ``seen`` (None: that is there) and is not wanted, one comes to each that is
        wanted and was not seen, and one to each further naming of it. Who saw what is not so any more doubles edges.
        """
        self._watched(node)
        before = dict(node.peer_ids(end.slot))
        node.peers.setdefault(end.slot, {})
        known = set(before if seen is None else seen)
        wanted = Counter(peer_id for peer_id in peer_ids if peer_id not in known)
        for peer_id in [peer_id for peer_id in before if peer_id in known and peer_id not in peer_ids]:
            self._take_edge(node, end, peer_id)
        for peer_id, edges in wanted.items():
            self._add_edges(node, end, peer_id, edges, at)

    def _add_edges(self, node: Node, end: RelationshipEnd, peer_id: str, edges: int, at: str) -> None:
        peer = self.nodes[peer_id]
        if peer_id not in node.peer_ids(end.slot):
            node.peers[end.slot][peer_id] = at
            self._link(peer, end.reverse_slot, node.id, at)
            edges -= 1
        if edges:
            self._watched(peer)
            _count_further(node, end.slot, peer_id, edges)
            _count_further(peer, end.reverse_slot, node.id, edges)

    def _take_edge(self, node: Node, end: RelationshipEnd, peer_id: str) -> None:
        """Of a doubled edge one stays: the server takes away what it read, which was one."""
        peer = self.nodes[peer_id]
        if node.edges(end.slot, peer_id) > 1:
            self._watched(peer)
            _count_further(node, end.slot, peer_id, -1)
            _count_further(peer, end.reverse_slot, node.id, -1)
            return
        del node.peers[end.slot][peer_id]
        self._unlink(peer, end.reverse_slot, node.id)

    def double(self, node: Node) -> None:
        """A second object of an id that is there: read in place of the first, and counted beside it."""
        there = self.nodes[node.id]
        self._watched(there)
        there.copies += 1
        self.set_values(there, node.values)

    def reindex(self, node: Node) -> None:
        """Compute the uniqueness keys of an object again after its values or peers changed."""
        self._watched(node)
        keys = tuple(unique_key(node, group) for group in node.kind.groups)
        if keys == node.unique_keys:
            return
        self._drop_keys(node)
        node.unique_keys = keys
        for group, key in zip(node.kind.groups, keys, strict=True):
            self._unique.setdefault(group, {}).setdefault(key, {})[node.id] = None

    def holders(self, group: UniqueGroup, key: tuple[Any, ...]) -> list[str]:
        """The ids of the objects that hold a uniqueness key."""
        return list(self._unique.get(group, {}).get(key, ()))

    def with_value(self, kind: str, attribute: str, value: Any) -> dict[str, Node]:
        """The objects of one concrete kind whose stored value is ``value``; the index is made at its first use."""
        index = self._by_value.get((kind, attribute))
        if index is None:
            index = self._by_value[(kind, attribute)] = {}
            for node in self.by_kind[kind].values():
                index.setdefault(index_value(node.values.get(attribute)), {})[node.id] = node
        return index.get(index_value(value)) or {}

    def human_friendly_id(self, node: Node) -> list[str] | None:
        """The components of the human-friendly id as texts; None where the kind has none, or a peer is missing.

        A value that is missing is shown by the word for it.
        """
        components = []
        for path in node.kind.kind.human_friendly_id:
            holder: Node | None = node
            if path.relationship is not None:
                peer_id = next(iter(node.peer_ids(node.kind.ends[path.relationship].slot)), None)
                holder = self.nodes.get(peer_id) if peer_id is not None else None
            if holder is None or path.attribute is None:
                return None
            components.append(str(holder.values.get(path.attribute)))
        return components or None

    def find_by_hfid(self, kind: KindModel, components: list[str]) -> Node | None:
        """The object of a kind, or of a kind below a generic, with exactly these components."""
        return next((node for node in self.of_kind(kind.name) if self.human_friendly_id(node) == components), None)

    def _watched(self, node: Node) -> None:
        if self.watch is not None:
            self.watch(node)

    def _link(self, peer: Node, slot: str, node_id: str, at: str) -> None:
        self._watched(peer)
        peer.peers.setdefault(slot, {})[node_id] = at
        if slot in peer.kind.keyed_slots:
            self.reindex(peer)

    def _unlink(self, peer: Node, slot: str, node_id: str) -> None:
        self._watched(peer)
        peer.peers.get(slot, {}).pop(node_id, None)
        _forget_further(peer, slot, node_id)
        if slot in peer.kind.keyed_slots:
            self.reindex(peer)

    def _drop_keys(self, node: Node) -> None:
        for group, key in zip(node.kind.groups, node.unique_keys, strict=False):
            index = self._unique[group]
            ids = index[key]
            del ids[node.id]
            if not ids:
                del index[key]
        node.unique_keys = ()

    def _index_values(self, node: Node, names: Iterable[str]) -> None:
        for name in names:
            index = self._by_value.get((node.kind.name, name))
            if index is not None:
                index.setdefault(index_value(node.values.get(name)), {})[node.id] = node

    def _unindex_values(self, node: Node, names: Iterable[str]) -> None:
        for name in names:
            index = self._by_value.get((node.kind.name, name))
            if index is not None:
                index.get(index_value(node.values.get(name)), {}).pop(node.id, None)


def _count_further(node: Node, slot: str, peer_id: str, more: int) -> None:
    counts = node.further.setdefault(slot, {})
    counts[peer_id] = counts.get(peer_id, 0) + more
    if counts[peer_id] == 0:
        _forget_further(node, slot, peer_id)


def _forget_further(node: Node, slot: str, peer_id: str) -> None:
    counts = node.further.get(slot)
    if counts is not None:
        counts.pop(peer_id, None)
        if not counts:
            del node.further[slot]


def unique_key(node: Node, group: UniqueGroup) -> tuple[Any, ...]:
    """What a uniqueness constraint compares: values, and ids of peers. Null is compared like any value."""
    return tuple(_component(node, name) for name in group.fields)


def _component(node: Node, name: str) -> Any:
    end = node.kind.ends.get(name)
    if end is not None:
        return next(iter(node.peer_ids(end.slot)), None)
    return index_value(node.values.get(name))


def _reversed(slot: str) -> str:
    identifier, _, direction = slot.rpartition(" ")
    return f"{identifier} {({'outbound': 'inbound', 'inbound': 'outbound'}).get(direction, direction)}"
