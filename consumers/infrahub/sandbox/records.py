"""One object of one branch, and what the server says about it."""

from __future__ import annotations

import json
from typing import Any

from consumers.infrahub.sandbox.model import KindModel
from consumers.infrahub.sandbox.values import NULL_TEXT


class Node:
    """An object. Values are as stored; :meth:`read` gives them as the server serves them.

    ``peers`` holds for each slot the peers' ids with the time at which the edge was made, in the order of their making.
    ``further`` counts, for a peer that writes at the same moment both added, the edges beside that one; ``copies`` how
    many objects two creates at the same moment made of one id. Both are what a server does that nobody keeps from it.
    ``as_written`` marks the copy that a mutation answers with: there a null under a default is still shown as null.
    """

    __slots__ = (
        "as_written",
        "changed_at",
        "copies",
        "created_at",
        "defaults",
        "further",
        "id",
        "kind",
        "peers",
        "sequence",
        "unique_keys",
        "updated_at",
        "values",
    )

    def __init__(self, node_id: str, kind: KindModel, sequence: int, at: str) -> None:
        self.id = node_id
        self.kind = kind
        self.sequence = sequence
        self.values: dict[str, Any] = {}
        self.defaults: set[str] = set()
        self.peers: dict[str, dict[str, str]] = {}
        self.further: dict[str, dict[str, int]] = {}
        self.copies = 1
        self.changed_at: dict[str, str | None] = {}
        self.created_at: str | None = at
        self.updated_at: str | None = at
        self.unique_keys: tuple[tuple[Any, ...], ...] = ()
        self.as_written = False

    def copy(self) -> Node:
        """An independent copy for another branch, or for an answer."""
        other = Node(self.id, self.kind, self.sequence, "")
        other.values = dict(self.values)
        other.defaults = set(self.defaults)
        other.peers = {slot: dict(peers) for slot, peers in self.peers.items()}
        other.further = {slot: dict(counts) for slot, counts in self.further.items()}
        other.copies = self.copies
        other.changed_at = dict(self.changed_at)
        other.created_at = self.created_at
        other.updated_at = self.updated_at
        other.unique_keys = self.unique_keys
        return other

    def read(self, name: str) -> Any:
        """The value of an attribute as a query shows it: a stored null under a default reads as the default."""
        value = self.values.get(name)
        if isinstance(value, float) and self.kind.attributes[name].kind == "Any":
            return None  # a fraction of any kind has no form in an answer
        if self.as_written:
            return value
        return self.kind.attributes[name].default if value is None or value == NULL_TEXT else value

    def is_default(self, name: str) -> bool:
        """Whether the value is the schema's, also where a stored null only reads so."""
        if name in self.defaults:
            return True
        reads_default = self.values.get(name) is None and self.kind.attributes[name].default is not None
        return reads_default and not self.as_written

    def peer_ids(self, slot: str) -> dict[str, str]:
        """The peers under a slot, with the time of each edge."""
        return self.peers.get(slot) or {}

    def edges(self, slot: str, peer_id: str) -> int:
        """How many edges lead to that peer under a slot."""
        if peer_id not in self.peer_ids(slot):
            return 0
        return 1 + self.further.get(slot, {}).get(peer_id, 0)


def display_label(node: Node) -> str:
    """An object's label, as the server shows it."""
    path = node.kind.display_label
    name = path.removesuffix("__value") if path else ""
    if name in node.kind.attributes:
        value = node.read(name)
        return "" if value is None else str(value)
    return f"{node.kind.name}(ID: {node.id})"


def index_value(value: Any) -> Any:
    """A value that can stand in a dictionary's key; true and 1 stay apart."""
    if isinstance(value, dict | list):
        return json.dumps(value, sort_keys=True)
    return ("boolean", value) if isinstance(value, bool) else value
