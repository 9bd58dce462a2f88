"""Relationship input: from what a mutation says about peers to the objects it means."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from consumers.infrahub.sandbox.branch import BranchStore
from consumers.infrahub.sandbox.errors import MutationRefusedError, node_not_found, unprocessable
from consumers.infrahub.sandbox.lookup import by_hfid, hfid_text
from consumers.infrahub.sandbox.model import RelationshipEnd
from consumers.infrahub.sandbox.records import Node


class PeerRefusedError(Exception):
    """A set of peers that the relationship does not take; the text is the server's reason."""


def wanted_peers(branch: BranchStore, end: RelationshipEnd, raw: Any) -> list[str]:
    """The ids of the peers that a payload gives, each as often as it is named, nulls in a list dropped.

    Raises:
        MutationRefusedError: a peer does not exist, or names nothing.
        PeerRefusedError: a peer is of a kind that the relationship does not take.
    """
    items = [raw] if isinstance(raw, Mapping) else [item for item in raw or () if item is not None]
    found = [_peer(branch, end, item) for item in items]
    for node in found:
        if node.kind.name not in end.concrete_peers:
            allowed = list(end.concrete_peers)
            raise PeerRefusedError(
                f"{node.kind.name} - {node.id} cannot be added to relationship, must be of type: {allowed}"
            )
    return [node.id for node in found]


def check_count(end: RelationshipEnd, count: int) -> None:
    """Refuse fewer or more peers than the relationship may have.

    Raises:
        PeerRefusedError: out of bounds.
    """
    if count < _minimum(end):
        raise PeerRefusedError(f"Too few relationships, min {_minimum(end)}")
    if end.many and end.max_count and count > end.max_count:
        raise PeerRefusedError(f"Too many relationships, max {end.max_count}")


def check_other_side(branch: BranchStore, end: RelationshipEnd, before: Iterable[str], after: Iterable[str]) -> None:
    """Refuse a change that leaves a peer's own relationship with too many or too few peers.

    Raises:
        MutationRefusedError: the peer and its count.
    """
    old, new = set(before), set(after)
    for peer_id in sorted(new - old):
        peer, count = _counted(branch, end, peer_id)
        if peer is not None and peer.max_count and count + 1 > peer.max_count:
            raise unprocessable(
                f"Node {peer_id} has {count + 1} peers for {_identifier(end)}, maximum of {peer.max_count} allowed"
            )
    for peer_id in sorted(old - new):
        peer, count = _counted(branch, end, peer_id)
        if peer is not None and count - 1 < _minimum(peer):
            raise unprocessable(
                f"Node {peer_id} has {count - 1} peers for {_identifier(end)}, no fewer than {_minimum(peer)} allowed"
            )


def pool_not_found(end: RelationshipEnd, pool: Mapping[str, Any], *, of: str) -> MutationRefusedError:
    """A peer is asked for from a pool: there are none here."""
    words = f"Unable to find the pool to generate a node for the relationship '{end.name}' on '{of}'"
    return node_not_found("CoreResourcePool", str(pool.get("id")), words)


def _minimum(end: RelationshipEnd) -> int:
    return 0 if end.optional else max(end.min_count, 1)


def _identifier(end: RelationshipEnd) -> str:
    return end.slot.rpartition(" ")[0]


def _counted(branch: BranchStore, end: RelationshipEnd, peer_id: str) -> tuple[RelationshipEnd | None, int]:
    peer = branch.nodes[peer_id]
    return peer.kind.ends_by_slot.get(end.reverse_slot), len(peer.peer_ids(end.reverse_slot))


def _peer(branch: BranchStore, end: RelationshipEnd, item: Mapping[str, Any]) -> Node:
    """By id, which wins over a human-friendly id beside it; ``kind`` is not checked, as on the server."""
    if "id" in item and item["id"] != "":
        return _peer_by_id(branch, end, item["id"])
    if item.get("hfid"):
        return _peer_by_hfid(branch, end, item)
    raise MutationRefusedError("Relationship has not been initialized yet")


def _peer_by_id(branch: BranchStore, end: RelationshipEnd, peer_id: str | None) -> Node:
    if peer_id is None:
        raise MutationRefusedError("'NoneType' object has no attribute 'get_id'")
    node = branch.nodes.get(peer_id)
    if node is None:
        raise node_not_found(end.peer, peer_id)
    return node


def _peer_by_hfid(branch: BranchStore, end: RelationshipEnd, item: Mapping[str, Any]) -> Node:
    """A kind beside it is looked at only where the relationship leads to a generic."""
    model = branch.model.kinds.get(end.peer)
    if model is not None and not model.is_node:
        model = branch.model.kinds.get(item.get("kind") or end.peer)
    node = by_hfid(branch, model, item["hfid"]) if model is not None else None
    if node is None:
        raise node_not_found(model.name if model is not None else end.peer, hfid_text(item["hfid"]))
    return node
