"""The schema document, read for a server: what the neutral model of ``ledger.schema`` leaves out is added here.

A relationship is kept under a *slot*: its identifier plus the direction seen from the object. The peer holds the same
edge under the reverse slot, so that ``rack.site`` and ``site.racks`` are two views of one edge.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ledger.schema import Attribute, DestinationSchema, Kind, parse_schema

CORE_NODE = "CoreNode"
"""The interface that every object of Infrahub implements."""

_OWN_TYPES = frozenset({CORE_NODE, "CoreGenericAccount", "LineageOwner", "LineageSource"})
"""Generics of a server that the sandbox has as types of its own; a document may describe them, and need not."""

_REVERSE = {"bidirectional": "bidirectional", "outbound": "inbound", "inbound": "outbound"}


@dataclass(frozen=True, slots=True)
class Choice:
    """One choice of a Dropdown, as it is shown."""

    name: str
    label: str | None
    color: str | None
    description: str | None


@dataclass(frozen=True, slots=True)
class RelationshipEnd:
    """One kind's view of a relationship."""

    name: str
    peer: str
    target: str
    many: bool
    optional: bool
    read_only: bool
    slot: str
    reverse_slot: str
    min_count: int
    max_count: int
    cascade: bool
    concrete_peers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UniqueGroup:
    """A uniqueness constraint; ``scope`` is the kind or generic that declares it, and it spans all its kinds."""

    scope: str
    fields: tuple[str, ...]
    is_human_friendly_id: bool
    is_part_of_human_friendly_id: bool = False

    @property
    def label(self) -> str:
        """The constraint as error messages name it."""
        return "-".join(self.fields)


@dataclass(frozen=True, slots=True)
class KindModel:
    """A kind or generic with everything that reads and writes need.

    ``mandatory`` are the fields that a create has to name, attributes first; ``keyed_slots`` the slots whose peers
    stand in a uniqueness constraint.
    """

    name: str
    is_node: bool
    kind: Kind
    attributes: Mapping[str, Attribute]
    ends: Mapping[str, RelationshipEnd]
    groups: tuple[UniqueGroup, ...]
    interfaces: tuple[str, ...]
    concrete: tuple[str, ...]
    display_label: str | None
    default_filter: str | None
    order_by: tuple[str, ...] = ()
    choices: Mapping[str, tuple[Choice, ...]] = field(default_factory=dict)
    ends_by_slot: Mapping[str, RelationshipEnd] = field(default_factory=dict)
    keyed_slots: frozenset[str] = frozenset()
    mandatory: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SchemaModel:
    """All kinds of a schema document. ``outside`` are peers that the document names but does not describe."""

    kinds: Mapping[str, KindModel]
    outside: tuple[str, ...]
    document: Mapping[str, Any]

    def nodes(self) -> list[KindModel]:
        """The kinds that have objects."""
        return [kind for kind in self.kinds.values() if kind.is_node]

    def concrete(self, name: str) -> tuple[str, ...]:
        """The kinds that have objects and are, or inherit from, ``name``."""
        if name == CORE_NODE:
            return tuple(kind.name for kind in self.nodes())
        found = self.kinds.get(name)
        return found.concrete if found is not None else ()


def read_model(document: Mapping[str, Any]) -> SchemaModel:
    """Make the model of a document in the shape of ``GET /api/schema``.

    Raises:
        ConfigurationError: the document has not that shape.
    """
    schema = parse_schema(document)
    raws = {raw["kind"]: raw for raw in (*document["generics"], *document["nodes"]) if raw["kind"] not in _OWN_TYPES}
    kinds = {name: _kind(raw, schema) for name, raw in raws.items()}
    outside = {end.peer for kind in kinds.values() for end in kind.ends.values()} - set(kinds) - {CORE_NODE}
    return SchemaModel(kinds=kinds, outside=tuple(sorted(outside)), document=document)


def _kind(raw: Mapping[str, Any], schema: DestinationSchema) -> KindModel:
    kind = schema.kinds[raw["kind"]]
    ends = {item["name"]: _end(item, schema) for item in raw.get("relationships") or ()}
    groups = _groups(kind, schema)
    keyed = {name for group in groups for name in group.fields}
    fields: list[Attribute | RelationshipEnd] = [*kind.attributes.values(), *ends.values()]
    mandatory = [item.name for item in fields if not item.optional and not item.read_only]
    return KindModel(
        name=kind.kind,
        is_node=kind.is_node,
        kind=kind,
        attributes=kind.attributes,
        ends=ends,
        groups=groups,
        interfaces=_interfaces(kind) if kind.is_node else (),
        concrete=schema.concrete_kinds(kind.kind),
        display_label=raw.get("display_label"),
        default_filter=raw.get("default_filter"),
        order_by=tuple(raw.get("order_by") or ()),
        choices={item["name"]: _choices(item) for item in raw.get("attributes") or () if item.get("choices")},
        ends_by_slot={end.slot: end for end in ends.values()},
        keyed_slots=frozenset(end.slot for end in ends.values() if end.name in keyed),
        mandatory=tuple(mandatory),
    )


def _interfaces(kind: Kind) -> tuple[str, ...]:
    return (CORE_NODE, *(name for name in kind.inherit_from if name not in _OWN_TYPES))


def _end(raw: Mapping[str, Any], schema: DestinationSchema) -> RelationshipEnd:
    direction = raw.get("direction") or "bidirectional"
    identifier = raw["identifier"]
    many = raw["cardinality"] == "many"
    return RelationshipEnd(
        name=raw["name"],
        peer=raw["peer"],
        target=raw.get("hierarchical") or raw["peer"],
        many=many,
        optional=bool(raw.get("optional")),
        read_only=bool(raw.get("read_only")),
        slot=f"{identifier} {direction}",
        reverse_slot=f"{identifier} {_REVERSE[direction]}",
        min_count=raw.get("min_count") or 0,
        max_count=(raw.get("max_count") or 0) if many else 1,
        cascade=raw.get("on_delete") == "cascade",
        concrete_peers=schema.concrete_kinds(raw["peer"]),
    )


def _groups(kind: Kind, schema: DestinationSchema) -> tuple[UniqueGroup, ...]:
    """What is compared: within each generic first, then within the kind, unless a generic holds all of that already."""
    groups: list[UniqueGroup] = []
    own = _own_groups(kind)
    shown = {group.fields for group in own}
    for name in kind.inherit_from:
        generic = schema.kinds.get(name)
        inherited = _own_groups(generic) if generic is not None and generic.uniqueness_constraints else []
        groups += inherited
        if inherited and shown <= {group.fields for group in inherited}:
            own = []
    return (*groups, *own)


def _own_groups(kind: Kind) -> list[UniqueGroup]:
    hfid = tuple(path.field for path in kind.human_friendly_id)
    groups = [_group(kind.kind, tuple(path.field for path in paths), hfid) for paths in kind.uniqueness_constraints]
    if hfid and not any(group.is_human_friendly_id for group in groups):
        groups.append(_group(kind.kind, hfid, hfid))
    return groups


def _group(scope: str, fields: tuple[str, ...], hfid: tuple[str, ...]) -> UniqueGroup:
    whole = bool(hfid) and set(fields) == set(hfid)
    return UniqueGroup(scope, fields, whole, is_part_of_human_friendly_id=not whole and set(fields) < set(hfid))


def _choices(raw: Mapping[str, Any]) -> tuple[Choice, ...]:
    return tuple(
        Choice(item["name"], item.get("label"), item.get("color"), item.get("description")) for item in raw["choices"]
    )
