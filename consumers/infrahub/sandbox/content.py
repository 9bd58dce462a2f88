"""A branch as comparable content: what it holds, without ids, times and order of writing."""

from __future__ import annotations

import json
from typing import Any

from consumers.infrahub.sandbox.branch import BranchStore
from consumers.infrahub.sandbox.records import Node


def branch_content(branch: BranchStore) -> list[dict[str, Any]]:
    """Every object as kind, name, values and named peers, sorted.

    An object is named by its kind and the fields of its human-friendly id or first constraint, peers in there by
    *their* names; where a kind has neither, by all its values. What is there twice is listed twice.
    """
    names: dict[str, list[Any]] = {}
    rows = [row for node in branch.nodes.values() for row in [_row(branch, node, names)] * node.copies]
    return sorted(rows, key=lambda row: json.dumps(row, sort_keys=True))


def _row(branch: BranchStore, node: Node, names: dict[str, list[Any]]) -> dict[str, Any]:
    relationships = {}
    for end in node.kind.ends.values():
        peers = [
            name
            for peer_id in node.peer_ids(end.slot)
            for name in [_name(branch, branch.nodes[peer_id], names)] * node.edges(end.slot, peer_id)
        ]
        if peers:
            relationships[end.name] = sorted(peers, key=json.dumps)
    return {
        "kind": node.kind.name,
        "name": _name(branch, node, names),
        "values": {name: node.read(name) for name in node.kind.attributes},
        "relationships": relationships,
    }


def _name(branch: BranchStore, node: Node, names: dict[str, list[Any]]) -> list[Any]:
    known = names.get(node.id)
    if known is not None:
        return known
    names[node.id] = [node.kind.name, "itself"]
    components: list[Any] = [node.kind.name]
    for field in _naming_fields(node):
        end = node.kind.ends.get(field)
        if end is None:
            components.append(node.values.get(field))
        else:
            components += [_name(branch, branch.nodes[peer_id], names) for peer_id in node.peer_ids(end.slot)]
    names[node.id] = components
    return components


def _naming_fields(node: Node) -> tuple[str, ...]:
    groups = node.kind.groups
    preferred = next((group for group in groups if group.is_human_friendly_id), groups[0] if groups else None)
    return preferred.fields if preferred is not None else tuple(node.kind.attributes)
