"""What a rehearsal said beside what then became of each operation on a real server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ledger.plan.canonical import canonical_json_bytes
from tests.live.reading import BranchContent, stored_value


def differences_from_rehearsal(
    effects: Iterable[Mapping[str, Any]],
    events: Iterable[Mapping[str, Any]],
    content: BranchContent,
    before: BranchContent | None = None,
) -> list[str]:
    """In words: each operation that ended otherwise than rehearsed, and each field that holds something else.

    Args:
        effects: of the rehearsal's document.
        events: what is recorded of the run.
        content: of the branch, when the run had ended.
        before: of the branch before the run; None where nothing was there.
    """
    recorded = {event["operation_id"]: event for event in events if event["operation_id"] is not None}
    found = []
    for effect in effects:
        event = recorded.pop(effect["operation_id"], None)
        where = f"{effect['kind']} {effect['identity']}"
        if event is None or event["kind"] != effect["recorded_as"]:
            found.append(f"{where}: rehearsed {effect['recorded_as']}, recorded {event and event['kind']}")
            continue
        node_id = event["body"].get("node_id")
        if effect["outcome"] == "created" and before is not None and node_id in before.nodes:
            found.append(f"{where}: rehearsed as new, and it was there")
        if effect["outcome"] in ("updated", "unchanged") and node_id != effect["destination_id"]:
            found.append(f"{where}: rehearsed on {effect['destination_id']}, written on {node_id}")
        for field in effect["fields"]:
            found += _field_differences(f"{where}.{field['field']}", field, node_id, content, before)
    return found + [f"{operation}: recorded and not rehearsed" for operation in recorded]


def _field_differences(
    where: str, field: Mapping[str, Any], node_id: str, content: BranchContent, before: BranchContent | None
) -> list[str]:
    sides = [("after", content)]
    if "before" in field and before is not None:
        sides.append(("before", before))
    found = []
    for side, held in sides:
        if not _is_held(field[side], node_id, field["field"], held):
            found.append(
                f"{where}: rehearsed {field[side]!r} {side}, and it is {_shown(node_id, field['field'], held)}"
            )
    return found


def _is_held(rehearsed: Any, node_id: str, name: str, content: BranchContent) -> bool:
    """Whether a field holds what was rehearsed: a value to the byte, or exactly these peers."""
    node = content.nodes[node_id]
    related = content.schemas[node.get_kind()].get_relationship_or_none(name)
    if related is None:
        return canonical_json_bytes(rehearsed) == canonical_json_bytes(stored_value(getattr(node, name)))
    peers = content.peer_ids(node, name)
    expected = [rehearsed] if isinstance(rehearsed, dict) else rehearsed or []
    left = list(peers)
    for peer in expected:
        match = next((peer_id for peer_id in left if _is_peer(peer, peer_id, content)), None)
        if match is None:
            return False
        left.remove(match)
    return not left


def _is_peer(rehearsed: Mapping[str, Any], peer_id: str, content: BranchContent) -> bool:
    """A peer that the rehearsal made is known by its key, one that was there by its id."""
    if "id" in rehearsed:
        return bool(rehearsed["id"] == peer_id)
    node = content.nodes.get(peer_id)
    return node is not None and (node.get_kind(), content.hfids[peer_id]) == (rehearsed["kind"], rehearsed["hfid"])


def _shown(node_id: str, name: str, content: BranchContent) -> str:
    node = content.nodes[node_id]
    if content.schemas[node.get_kind()].get_relationship_or_none(name) is None:
        return repr(stored_value(getattr(node, name)))
    return repr(content.peer_ids(node, name))
