"""Deleting an object: what goes with it, and what forbids it."""

from __future__ import annotations

from consumers.infrahub.sandbox.branch import BranchStore
from consumers.infrahub.sandbox.errors import refuse_fields
from consumers.infrahub.sandbox.records import Node


def delete_node(branch: BranchStore, node: Node) -> list[str]:
    """Delete an object and, without a word in the answer, its components; returns the ids that went.

    Raises:
        InvalidFieldsError: other objects need one of them as a mandatory peer; one reason for each.
    """
    doomed = _with_components(branch, node)
    reasons = [reason for victim in doomed.values() for reason in _dependants(branch, victim, doomed)]
    if reasons:
        refuse_fields(node.kind.name, reasons)
    for victim in doomed.values():
        branch.remove(victim)
    return list(doomed)


def _with_components(branch: BranchStore, node: Node) -> dict[str, Node]:
    doomed, open_nodes = {node.id: node}, [node]
    while open_nodes:
        parent = open_nodes.pop()
        for end in parent.kind.ends.values():
            for peer_id in parent.peer_ids(end.slot) if end.cascade else ():
                if peer_id not in doomed:
                    doomed[peer_id] = branch.nodes[peer_id]
                    open_nodes.append(doomed[peer_id])
    return doomed


def _dependants(branch: BranchStore, node: Node, doomed: dict[str, Node]) -> list[tuple[str, str]]:
    reasons = []
    for slot, peers in node.peers.items():
        for peer_id in peers:
            peer = branch.nodes[peer_id]
            end = next((end for end in peer.kind.ends.values() if end.reverse_slot == slot), None)
            if end is None or end.optional or peer_id in doomed:
                continue
            where = f"{peer.kind.name}.{end.name}"
            linked = f"It is linked to mandatory relationship {end.name} on node {peer.kind.name} '{peer_id}'"
            reasons.append((where, f"Cannot delete {node.kind.name} '{node.id}'. {linked}"))
    return reasons
