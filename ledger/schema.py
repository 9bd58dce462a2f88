"""What a destination says about its kinds, in a neutral form.

The plan maker, the key rules, the value checks and the write surface all read this one model. It is made from the
document that Infrahub serves at ``/api/schema``; :func:`parse_schema` needs no client library, so that a plan can be
checked against a stored document.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from ledger.errors import ConfigurationError

SECRET_KINDS = frozenset({"Password", "HashedPassword"})
"""Attribute kinds whose values are never stored or shown (G12)."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
"""A GraphQL name: kinds and fields are part of the text of queries, where any other name would be syntax (FF14)."""


@dataclass(frozen=True, slots=True)
class KeyPath:
    """One component of a key: an own attribute, or an attribute reached across one relationship.

    ``name__value`` -> attribute ``name``; ``site__name__value`` -> relationship ``site``, attribute ``name``;
    a bare relationship name in a uniqueness constraint -> relationship with no attribute.
    """

    raw: str
    relationship: str | None
    attribute: str | None

    @property
    def field(self) -> str:
        """The field of the kind itself that supplies this component: what an identity must name (P44)."""
        if self.relationship is not None:
            return self.relationship
        if self.attribute is None:
            raise ValueError(f"key path {self.raw!r} names nothing")
        return self.attribute


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute of a kind. ``default`` is None where the schema declares none."""

    name: str
    kind: str
    optional: bool = True
    read_only: bool = False
    unique: bool = False
    default: Any = None
    choices: tuple[str, ...] | None = None
    enum: tuple[Any, ...] | None = None
    regex: str | None = None
    min_length: int | None = None
    max_length: int | None = None
    min_value: int | None = None
    max_value: int | None = None
    excluded_ranges: tuple[tuple[int, int], ...] = ()
    inherited: bool = False

    @property
    def is_secret(self) -> bool:
        """Whether values of this attribute must never be stored or shown (G12)."""
        return self.kind in SECRET_KINDS


@dataclass(frozen=True, slots=True)
class Relationship:
    """A relationship of a kind; ``peer`` may be a generic."""

    name: str
    peer: str
    cardinality: Literal["one", "many"]
    optional: bool = True
    read_only: bool = False
    kind: str = "Generic"
    min_count: int = 0
    max_count: int = 0
    inherited: bool = False


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind. ``human_friendly_id`` is empty where the kind has none; constraints include inherited ones.

    ``key_is_matched`` says whether an upsert finds its object by that id.
    """

    kind: str
    is_node: bool = True
    human_friendly_id: tuple[KeyPath, ...] = ()
    uniqueness_constraints: tuple[tuple[KeyPath, ...], ...] = ()
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    relationships: Mapping[str, Relationship] = field(default_factory=dict)
    inherit_from: tuple[str, ...] = ()
    key_is_matched: bool = True

    @property
    def keyed_by_constraint_alone(self) -> bool:
        """True for a kind that the server cannot match on a create, but whose second object it refuses (P59).

        It has a constraint, and no human-friendly id or one that is not matched (:func:`_with_matching`).
        """
        return not (self.human_friendly_id and self.key_is_matched) and bool(self.uniqueness_constraints)


@dataclass(frozen=True, slots=True)
class DestinationSchema:
    """All kinds of one branch, with the hash that the server gave for it (None for a stored document)."""

    kinds: Mapping[str, Kind]
    hash: str | None = None

    def node(self, kind: str) -> Kind | None:
        """The writable kind of that name, or None when it is unknown or a generic, profile or template."""
        found = self.kinds.get(kind)
        return found if found is not None and found.is_node else None

    def concrete_kinds(self, peer: str) -> tuple[str, ...]:
        """The node kinds that are allowed where ``peer`` is declared: itself, or all that inherit from the generic."""
        found = self.kinds.get(peer)
        if found is None:
            return ()
        if found.is_node:
            return (peer,)
        return tuple(sorted(k.kind for k in self.kinds.values() if k.is_node and peer in k.inherit_from))


def parse_schema(document: Mapping[str, Any]) -> DestinationSchema:
    """Read the document of ``GET /api/schema``.

    Raises:
        ConfigurationError: a key or type that every Infrahub schema document has is missing.
    """
    try:
        nodes = {_kind_name(raw): _parse_kind(raw, is_node=True) for raw in document["nodes"]}
        generics = {_kind_name(raw): _parse_kind(raw, is_node=False) for raw in document["generics"]}
    except (KeyError, TypeError, AttributeError, ValueError) as exc:
        raise ConfigurationError(
            checked="the destination's schema document",
            expected="the shape of Infrahub's GET /api/schema (nodes and generics with their fields)",
            found=f"{type(exc).__name__}: {exc}",
            next_action="check that the address is an Infrahub server of version 1.x",
        ) from exc
    main = document.get("main")
    nodes = {name: _with_matching(kind, generics) for name, kind in nodes.items()}
    return DestinationSchema(kinds={**generics, **nodes}, hash=main if isinstance(main, str) else None)


def _with_matching(kind: Kind, generics: Mapping[str, Kind]) -> Kind:
    """The kind with the knowledge whether the server's upsert finds an object of it by its human-friendly id.

    The server looks within a generic in place of the kind where the generic has all of the kind's constraints. Whether
    one of them *is* the human-friendly id then depends on that of the generic: has the generic none, a second upsert is
    refused as a violation and never becomes an update.
    """
    above = [generics[name] for name in kind.inherit_from if name in generics]
    above = [generic for generic in above if generic.uniqueness_constraints]
    own = _constraint_texts(kind)
    hidden = any(own <= _constraint_texts(generic) for generic in above)
    matched = not hidden or any(_has_its_key_as_constraint(generic) for generic in above)
    return kind if matched else replace(kind, key_is_matched=False)


def _constraint_texts(kind: Kind) -> set[frozenset[str]]:
    return {frozenset(path.raw for path in paths) for paths in kind.uniqueness_constraints}


def _has_its_key_as_constraint(kind: Kind) -> bool:
    key = {path.field for path in kind.human_friendly_id}
    return bool(key) and any({path.field for path in paths} == key for paths in kind.uniqueness_constraints)


def _kind_name(raw: Mapping[str, Any]) -> str:
    return _name(raw.get("kind") or f"{raw['namespace']}{raw['name']}")


def _name(value: Any) -> str:
    if not isinstance(value, str) or _NAME.fullmatch(value) is None:
        raise ValueError("a kind or field whose name is no GraphQL name")
    return value


def _parse_kind(raw: Mapping[str, Any], *, is_node: bool) -> Kind:
    attributes = {_name(item["name"]): _parse_attribute(item) for item in raw.get("attributes") or ()}
    relationships = {_name(item["name"]): _parse_relationship(item) for item in raw.get("relationships") or ()}
    hfid = tuple(parse_key_path(path, relationships) for path in raw.get("human_friendly_id") or ())
    constraints = [
        tuple(parse_key_path(path, relationships) for path in group)
        for group in raw.get("uniqueness_constraints") or ()
    ]
    for attribute in attributes.values():
        single = (KeyPath(raw=f"{attribute.name}__value", relationship=None, attribute=attribute.name),)
        if attribute.unique and single not in constraints:
            constraints.append(single)
    return Kind(
        kind=_kind_name(raw),
        is_node=is_node,
        human_friendly_id=hfid,
        uniqueness_constraints=tuple(constraints),
        attributes=attributes,
        relationships=relationships,
        inherit_from=tuple(raw.get("inherit_from") or ()),
    )


def parse_key_path(path: str, relationships: Mapping[str, Relationship]) -> KeyPath:
    """Split a *schema* path on ``__``; data is never split (A48)."""
    parts = path.split("__")
    if parts[0] in relationships:
        attribute = parts[1] if len(parts) > 1 else None
        return KeyPath(raw=path, relationship=parts[0], attribute=attribute)
    return KeyPath(raw=path, relationship=None, attribute=parts[0])


def _parse_attribute(raw: Mapping[str, Any]) -> Attribute:
    parameters: Mapping[str, Any] = raw.get("parameters") or {}
    choices: Sequence[Any] | None = raw.get("choices")
    enum: Sequence[Any] | None = raw.get("enum")
    return Attribute(
        name=raw["name"],
        kind=raw["kind"],
        optional=bool(raw.get("optional")),
        read_only=bool(raw.get("read_only")),
        unique=bool(raw.get("unique")),
        default=raw.get("default_value"),
        choices=None if choices is None else tuple(c["name"] if isinstance(c, Mapping) else str(c) for c in choices),
        enum=None if enum is None else tuple(enum),
        regex=_first(parameters.get("regex"), raw.get("regex")),
        min_length=_first(parameters.get("min_length"), raw.get("min_length")),
        max_length=_first(parameters.get("max_length"), raw.get("max_length")),
        min_value=parameters.get("min_value"),
        max_value=parameters.get("max_value"),
        excluded_ranges=_excluded_ranges(parameters.get("excluded_values")),
        inherited=bool(raw.get("inherited")),
    )


def _first(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


def _excluded_ranges(text: str | None) -> tuple[tuple[int, int], ...]:
    """``"7,10-20"`` -> ``((7, 7), (10, 20))``: numbers that the destination refuses, ends included."""
    found = re.finditer(r"(?:^|,)\s*(\d+)(?:-(\d+))?\s*(?=,|$)", text or "")
    return tuple((int(match[1]), int(match[2] or match[1])) for match in found)


def _parse_relationship(raw: Mapping[str, Any]) -> Relationship:
    cardinality = raw["cardinality"]
    if cardinality not in ("one", "many"):
        raise ValueError(f"cardinality {cardinality!r} of relationship {raw['name']!r}")
    return Relationship(
        name=raw["name"],
        peer=raw["peer"],
        cardinality=cardinality,
        optional=bool(raw.get("optional")),
        read_only=bool(raw.get("read_only")),
        kind=raw.get("kind") or "Generic",
        min_count=raw.get("min_count") or 0,
        max_count=raw.get("max_count") or 0,
        inherited=bool(raw.get("inherited")),
    )
