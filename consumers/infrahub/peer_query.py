"""The look-up of one peer as GraphQL: filters from schema paths, values in variables, and the proof of the answer.

The server drops a filter whose value is null and then matches anything, so no null reaches a query, and an answer
counts only where it carries the values that were asked for (FF20).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from consumers.infrahub.answers import is_node_id
from ledger.plan.canonical import same_bytes
from ledger.schema import Attribute

_VARIABLE_TYPES = {"Number": "BigInt", "NumberPool": "BigInt", "Bandwidth": "BigInt"} | {
    "Boolean": "Boolean",
    "Checkbox": "Boolean",
}
LIMIT = 2
"""Two objects are enough to tell one from many."""


@dataclass(frozen=True, slots=True)
class Component:
    """One condition of a look-up, without its value: an attribute, one across a relationship, or a peer's id.

    Attributes:
        relationship: crossed by the condition, None for an own attribute.
        attribute: compared, None where the peer's id is compared.
        variable_type: GraphQL type of the value.
    """

    relationship: str | None
    attribute: str | None
    variable_type: str

    @classmethod
    def value(cls, attribute: Attribute, *, across: str | None = None) -> Component:
        """A condition on an attribute's value."""
        return cls(across, attribute.name, _VARIABLE_TYPES.get(attribute.kind, "String") + "!")

    @classmethod
    def peer_id(cls, relationship: str) -> Component:
        """A condition on the id of the peer of a relationship (P84)."""
        return cls(relationship, None, "[ID!]!")

    @property
    def filter(self) -> str:
        """The filter's name at the server."""
        if self.attribute is None:
            return f"{self.relationship}__ids"
        return (
            f"{self.attribute}__value" if self.relationship is None else f"{self.relationship}__{self.attribute}__value"
        )

    @property
    def selection(self) -> str:
        """What the answer must show so that the condition can be checked."""
        own = "id" if self.attribute is None else f"{self.attribute} {{ value }}"
        return own if self.relationship is None else f"{self.relationship} {{ node {{ {own} }} }}"

    def variable(self, value: Any) -> Any:
        """The value as the variable takes it."""
        return [value] if self.attribute is None else value

    def carried_by(self, node: Mapping[str, Any], value: Any) -> bool:
        """Whether an answered object carries the value; types count, ``1`` and ``true`` are two values (FF16)."""
        holder: Any = node
        if self.relationship is not None:
            holder = _member(_member(node, self.relationship), "node")
        shown = _member(holder, "id") if self.attribute is None else _member(_member(holder, self.attribute), "value")
        return shown is not None and same_bytes(shown, value)


@lru_cache(maxsize=1024)
def lookup_text(kind: str, components: tuple[Component, ...]) -> str:
    """The document of every look-up of that kind by those conditions (P77, P78, P84)."""
    declared = ", ".join(f"$v{n}: {component.variable_type}" for n, component in enumerate(components))
    filters = ", ".join(f"{component.filter}: $v{n}" for n, component in enumerate(components))
    shown = " ".join(component.selection for component in components)
    return f"query Peer({declared}) {{ {kind}({filters}, limit: {LIMIT}) {{ edges {{ node {{ id {shown} }} }} }} }}"


def lookup_variables(conditions: Sequence[tuple[Component, Any]]) -> dict[str, Any]:
    """The values of a look-up, named as in :func:`lookup_text`."""
    return {f"v{n}": component.variable(value) for n, (component, value) in enumerate(conditions)}


@dataclass(frozen=True, slots=True)
class Hits:
    """What a look-up found: ids that carry every value, and whether an object came that does not."""

    ids: tuple[str, ...]
    foreign: bool


def read_hits(data: Mapping[str, Any], kind: str, conditions: Sequence[tuple[Component, Any]]) -> Hits | None:
    """Take the answer apart; None where it has no such shape."""
    edges = _member(_member(data, kind), "edges")
    if not isinstance(edges, list):
        return None
    nodes = [_member(edge, "node") for edge in edges]
    ids = [_member(node, "id") for node in nodes]
    if not all(map(is_node_id, ids)):
        return None
    carrying = [
        str(node_id)
        for node, node_id in zip(nodes, ids, strict=True)
        if isinstance(node, dict) and all(component.carried_by(node, value) for component, value in conditions)
    ]
    return Hits(ids=tuple(dict.fromkeys(carrying)), foreign=len(carrying) < len(nodes))


def _member(holder: Any, name: str) -> Any:
    return holder.get(name) if isinstance(holder, dict) else None
