"""Ids that we choose for creates which the server cannot match: the same in every attempt of one operation.

A repeat after a lost answer is then recognised by the server ("already in use"), instead of making a second object or
being refused without a trace of who made the first.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from ledger.binding import DestinationBinding
from ledger.commit import NAMESPACE
from ledger.plan.canonical import canonical_json_bytes


def own_node_id(binding: DestinationBinding, *, run_id: str, operation_id: str) -> str:
    """UUIDv5 of url, branch, run and operation, in lower case: the server keeps other spellings as other ids."""
    place = binding.normalised()
    name = canonical_json_bytes([place.url, place.branch, run_id, operation_id])
    return str(uuid.uuid5(NAMESPACE, name.decode()))


def own_id_text(kind: str) -> str:
    """The document that asks for the objects of one id. Two of them come as one row and a count of two."""
    return f"query OwnId($ids: [ID!]!) {{ {kind}(ids: $ids) {{ count edges {{ node {{ id }} }} }} }}"


def count_of(node_id: str, data: Mapping[str, Any], kind: str) -> int | None:
    """How many objects have that id; None where the answer does not tell, or tells of others."""
    found = data.get(kind)
    if not isinstance(found, dict):
        return None
    count, edges = found.get("count"), found.get("edges")
    if not isinstance(count, int) or isinstance(count, bool) or not isinstance(edges, list):
        return None
    told = (
        len(edges) <= count and bool(edges) == bool(count) and all(edge == {"node": {"id": node_id}} for edge in edges)
    )
    return count if told else None
