"""Every kind of the inventories' schema: made, made again, changed, cleared and deleted, as its schema allows."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Iterator
from typing import Any

from ledger.schema import Attribute, Kind, Relationship, parse_schema
from tests.contract.cases.case import Case, register
from tests.contract.cases.schema import INVENTORY_FILE
from tests.contract.cases.talk import Talk, peer, peers

_SCHEMA = parse_schema(json.loads(INVENTORY_FILE.read_text(encoding="utf-8")))
_FITTING = ("ABC12", "XYZ34")
"""For a text that has to fit a pattern."""


def kinds() -> Iterator[Kind]:
    """The kinds that have objects."""
    yield from (kind for kind in _SCHEMA.kinds.values() if kind.is_node)


def _number(t: Talk, label: str) -> int:
    """A number that another object of the same branch hardly has; the same in each run."""
    return zlib.crc32(f"{t.case} {label}".encode())


def _given(t: Talk, attribute: Attribute, label: str, turn: int) -> Any:
    """A value that the attribute takes; another one for the second turn."""
    if attribute.choices or attribute.enum:
        return sorted(attribute.choices or attribute.enum or ())[turn]
    number = _number(t, label)
    low = number >> 8 & 255, number & 255
    match attribute.kind:
        case "Number":
            return 4_200_000_000 + number % 1_000_000 if attribute.unique else 40 + turn
        case "Boolean":
            return bool(turn) is bool(attribute.default)
        case "IPHost":
            return f"10.{low[0]}.{low[1]}.{len(attribute.name)}/32"
        case "IPNetwork":
            return f"10.{low[0]}.{low[1]}.0/24"
        case "MacAddress":
            return f"00:11:22:33:44:5{turn}"
        case "DateTime":
            return f"2026-01-0{turn + 1}T10:00:00Z"
        case "Text" | "TextArea" if attribute.regex:
            return next(text for text in _FITTING[turn:] if re.fullmatch(attribute.regex, text))
        case "Text" | "TextArea":
            return t.name(label) if not attribute.optional else f"{attribute.name} {turn}"
    raise ValueError(f"no value for {attribute.kind}")


def _writable(kind: Kind) -> list[Attribute]:
    return [item for item in kind.attributes.values() if not item.read_only]


def _key_fields(kind: Kind) -> set[str]:
    paths = [*kind.human_friendly_id, *(path for constraint in kind.uniqueness_constraints for path in constraint)]
    return {path.field for path in paths} or {item.name for item in kind.attributes.values() if not item.optional}


def _mandatory(kind: Kind) -> list[Relationship]:
    return [item for item in kind.relationships.values() if not item.optional and not item.read_only]


def _depth(kind: str) -> int:
    """How many objects have to be there before one of that kind can be."""
    return sum(1 + _depth(_simplest(item.peer)) for item in _mandatory(_SCHEMA.kinds[kind]))


def _simplest(peer_kind: str) -> str:
    """The kind that stands for a generic with the fewest objects."""
    return min(_SCHEMA.concrete_kinds(peer_kind), key=lambda name: (_depth(name), name))


def _make(t: Talk, kind_name: str, label: str) -> str:
    """The id of an object with nothing but what it needs."""
    kind = _SCHEMA.kinds[kind_name]
    data = {item.name: {"value": _given(t, item, label, 0)} for item in _writable(kind) if not item.optional}
    return t.write(f"{kind_name}Upsert", {**data, **_needed(t, kind, label)}).id


def _needed(t: Talk, kind: Kind, label: str) -> dict[str, Any]:
    """The peers without which there is no object of the kind."""
    found: dict[str, Any] = {}
    for item in _mandatory(kind):
        made = [
            _make(t, _simplest(item.peer), f"{item.name} {number} of {label}") for number in range(item.min_count or 1)
        ]
        found[item.name] = peer(made[0]) if item.cardinality == "one" else peers(*made)
    return found


def _optional(kind: Kind) -> list[Relationship]:
    """Peers that can be set and cleared, and need nobody themselves; address spaces have cases of their own."""
    return [
        item
        for item in kind.relationships.values()
        if item.optional
        and not item.read_only
        and item.kind not in ("Component", "Parent", "Hierarchy")
        and item.name != "ip_namespace"
        and _SCHEMA.concrete_kinds(item.peer)
        and _depth(_simplest(item.peer)) == 0
    ]


def _everything(kind: Kind) -> str:
    """What a read asks for: all attributes, and the peers whose kinds the schema describes."""
    fields = [f"{item.name} {{ value{'' if item.read_only else ' is_default'} }}" for item in kind.attributes.values()]
    for item in kind.relationships.values():
        if _SCHEMA.concrete_kinds(item.peer):
            node = "node { __typename display_label }"
            fields.append(f"{item.name} {{ {node if item.cardinality == 'one' else f'count edges {{ {node} }}'} }}")
    return " ".join(["hfid display_label", *fields])


def _life(kind: Kind) -> Callable[[Talk], None]:
    def hold(t: Talk) -> None:
        mutation, below, key = f"{kind.kind}Upsert", _everything(kind), _key_fields(kind)
        first, second = (
            {item.name: {"value": _given(t, item, kind.kind, turn)} for item in _writable(kind)} for turn in (0, 1)
        )
        again = {name: value for name, value in second.items() if name not in key}
        named = {name: value for name, value in first.items() if name in key}
        needed = _needed(t, kind, kind.kind)
        made = t.write(mutation, {**first, **needed}, below="ok object { id hfid display_label }").id
        t.read(kind.kind, made, below)
        t.write(mutation, {**named, **again, **needed}, call=f"{mutation} of the same key")
        peers_by_field = {item.name: (item, _make(t, _simplest(item.peer), item.name)) for item in _optional(kind)}
        set_ = {name: peer(i) if item.cardinality == "one" else peers(i) for name, (item, i) in peers_by_field.items()}
        t.write(mutation, {"id": made, **again, **set_}, call=f"{mutation} by id")
        t.read(kind.kind, made, below)
        nothing = {item.name: {"value": None} for item in _writable(kind) if item.optional}
        cleared: dict[str, Any] = {
            name: None if item.cardinality == "one" else [] for name, (item, _) in peers_by_field.items()
        }
        t.write(mutation, {"id": made, **nothing, **cleared}, call=f"{mutation} by id, cleared")
        t.read(kind.kind, made, below)
        t.write(f"{kind.kind}Delete", {"id": made})
        t.read(kind.kind, made, "id")

    return hold


for _kind in kinds():
    register(Case("kind", _kind.kind, "Made with all its fields, made again, changed, cleared, deleted.", _life(_kind)))
