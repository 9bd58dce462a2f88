"""What two branches hold, compared object by object: read by infrahub-sdk, named by the keys of the mapping."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from tests.live.infrahub import LiveBranch
from tests.live.reading import BranchContent

Objects = Mapping[tuple[str, Any], Mapping[str, Any]]
"""Fields by kind and key."""


async def read_objects(branch: LiveBranch, mapping: Sequence[Mapping[str, Any]]) -> Objects:
    """The objects of the mapped kinds with their mapped fields; a peer is named by its own key.

    Each further object of one key stands under that key with its number.
    """
    content = await BranchContent.read(branch, {entry["name"] for entry in mapping})
    reading = _Reading(content, mapping)
    found: dict[tuple[str, Any], dict[str, Any]] = {}
    seen: Counter[tuple[str, Any]] = Counter()
    for node_id, node in content.nodes.items():
        kind, key = node.get_kind(), reading.key(node_id)
        seen[kind, key] += 1
        named = key if seen[kind, key] == 1 else (*key, f"number {seen[kind, key]}")
        found[kind, named] = {name: reading.value(node_id, name) for name in sorted(reading.fields[kind])}
    return found


def differences(ours: Objects, theirs: Objects) -> list[str]:
    """In words: what only one side has, and which fields differ in how many objects, with one example each."""
    lines = []
    for who, only in (("only ours", ours.keys() - theirs.keys()), ("only theirs", theirs.keys() - ours.keys())):
        for kind, count in sorted(Counter(kind for kind, _ in only).items()):
            lines.append(f"{kind}: {count} {who}, such as {min(str(key) for found, key in only if found == kind)}")
    differing: dict[tuple[str, str], list[str]] = {}
    for kind, key in sorted(ours.keys() & theirs.keys(), key=str):
        here, there = ours[kind, key], theirs[kind, key]
        for name in here:
            if here[name] != there[name]:
                differing.setdefault((kind, name), []).append(f"ours {here[name]!r}, theirs {there[name]!r}")
    lines += [
        f"{kind}.{name}: differs in {len(found)}, such as {found[0]}"
        for (kind, name), found in sorted(differing.items())
    ]
    return lines


class _Reading:
    """Values of what was read, as plain data."""

    def __init__(self, content: BranchContent, mapping: Sequence[Mapping[str, Any]]) -> None:
        self._content = content
        self.fields: dict[str, set[str]] = {}
        self._identifiers: dict[str, list[str]] = {}
        for entry in mapping:
            self.fields.setdefault(entry["name"], set()).update(field["name"] for field in entry["fields"])
            self._identifiers.setdefault(entry["name"], entry["identifiers"])

    def key(self, node_id: str) -> Any:
        """What an object is called; an id where it is of a kind that was not read."""
        node = self._content.nodes.get(node_id)
        if node is None:
            return node_id
        return tuple(self.value(node_id, name) for name in self._identifiers[node.get_kind()])

    def value(self, node_id: str, name: str) -> Any:
        """A field: of an attribute what is stored, of a relationship the keys of its peers."""
        node = self._content.nodes[node_id]
        related = self._content.schemas[node.get_kind()].get_relationship_or_none(name)
        stored = getattr(node, name)
        if related is None:
            return stored.value if isinstance(stored.value, str | int | list | dict | None) else str(stored.value)
        if related.cardinality == "one":
            return None if stored.id is None else self.key(str(stored.id))
        peers = sorted((self.key(str(peer.id)) for peer in stored.peers), key=str)
        count = self._content.edges[node_id, name]
        return peers if count == len(peers) else [*peers, f"the server counts {count}"]
