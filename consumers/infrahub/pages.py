"""Pages of objects as GraphQL: the documents, and the reading of their answers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from consumers.infrahub.answers import is_node_id
from ledger.destination import FieldSelection, ObservedObject, PeerPointer

_POINTER = "node { id __typename }"
_BY_ID = "order: { disable: true }"
"""The server then orders by id alone."""

_KIND_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")


@dataclass(frozen=True, slots=True)
class Page:
    """One page. ``peer_counts`` holds the server's own count of peers per object id and many-relationship."""

    count: int
    objects: tuple[ObservedObject, ...]
    peer_counts: Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class PeersPage:
    """Some peers of one object under one relationship, and how many it has there in all."""

    count: int
    peers: tuple[PeerPointer, ...]


@lru_cache(maxsize=1024)
def page_text(kind: str, attributes: tuple[str, ...], one: tuple[str, ...], many: tuple[str, ...]) -> str:
    """The document of every page of that kind with those fields."""
    fields = [
        "id",
        "__typename",
        *(f"{name} {{ value }}" for name in attributes),
        *(f"{name} {{ {_POINTER} }}" for name in one),
        *(f"{name} {{ count edges {{ {_POINTER} }} }}" for name in many),
    ]
    page = f"{kind}(offset: $offset, limit: $limit, {_BY_ID}) {{ count edges {{ node {{ {' '.join(fields)} }} }} }}"
    return f"query Page($offset: Int!, $limit: Int!) {{ {page} }}"


@lru_cache(maxsize=1024)
def peers_page_text(kind: str, relationship: str) -> str:
    """The document that reads one object's peers on."""
    peers = f"{relationship}(offset: $offset, limit: $limit) {{ count edges {{ {_POINTER} }} }}"
    return (
        "query Peers($ids: [ID!]!, $offset: Int!, $limit: Int!) "
        f"{{ {kind}(ids: $ids) {{ edges {{ node {{ id {peers} }} }} }} }}"
    )


@lru_cache(maxsize=1024)
def count_text(kinds: tuple[str, ...]) -> str:
    """The document that counts kinds; it asks for one object of each too, so that a 0 is said twice."""
    counted = (f"{kind}(offset: 0, limit: 1, {_BY_ID}) {{ count edges {{ node {{ id }} }} }}" for kind in kinds)
    return f"query Count {{ {' '.join(counted)} }}"


def read_count(data: Mapping[str, Any], kind: str) -> int | None:
    """How many objects of a kind there are; None where the answer does not say it, or contradicts itself."""
    try:
        count, edges = _count(data[kind]["count"]), _list(data[kind]["edges"])
    except (KeyError, TypeError, ValueError):
        return None
    return count if len(edges) == min(count, 1) else None


def read_page(data: Mapping[str, Any], kind: str, fields: FieldSelection) -> Page | None:
    """Take a page apart; None where anything that was asked for is missing: absent is never read as empty."""
    try:
        page = data[kind]
        count = _count(page["count"])
        nodes = [edge["node"] for edge in _list(page["edges"])]
        objects = tuple(_object(node, kind, fields) for node in nodes)
        counts = {node["id"]: {name: _count(node[name]["count"]) for name in fields.many} for node in nodes}
    except (KeyError, TypeError, ValueError):
        return None
    return Page(count=count, objects=objects, peer_counts=counts)


def read_peers(data: Mapping[str, Any], kind: str, relationship: str, *, node_id: str) -> PeersPage | None:
    """One page of one object's peers; None where that object is not there."""
    try:
        (edge,) = _list(data[kind]["edges"])
        node = edge["node"]
        if node["id"] != node_id:
            return None
        page = node[relationship]
        return PeersPage(_count(page["count"]), tuple(_pointer(inner["node"]) for inner in _list(page["edges"])))
    except (KeyError, TypeError, ValueError):
        return None


def _object(node: Mapping[str, Any], kind: str, fields: FieldSelection) -> ObservedObject:
    if node["__typename"] != kind:
        raise ValueError("an object of another kind")
    return ObservedObject(
        kind=kind,
        id=_id(node["id"]),
        attributes={name: node[name]["value"] for name in fields.attributes},
        one={name: _one(node[name]) for name in fields.one},
        many={name: tuple(_pointer(edge["node"]) for edge in _list(node[name]["edges"])) for name in fields.many},
    )


def _one(related: Mapping[str, Any]) -> PeerPointer | None:
    node = related["node"]
    return None if node is None else _pointer(node)


def _pointer(node: Mapping[str, Any]) -> PeerPointer:
    return PeerPointer(kind=_name(node["__typename"]), id=_id(node["id"]))


def _list(value: Any) -> list[Any]:
    """Only a list: an empty object or text in its place would be read as "there are none"."""
    if not isinstance(value, list):
        raise TypeError("no list")
    return value


def _id(value: Any) -> str:
    if not is_node_id(value):
        raise ValueError("no id of a node")
    return str(value)


def _name(value: Any) -> str:
    if not isinstance(value, str) or _KIND_NAME.fullmatch(value) is None:
        raise ValueError("no name of a kind")
    return value


def _count(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError("not a count")
    return value
