"""The store of a sandbox as plain records, and back: one for each branch and object, with all that an answer shows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from consumers.infrahub.sandbox.branch import BranchInfo, BranchStore
from consumers.infrahub.sandbox.records import Node
from consumers.infrahub.sandbox.store import SandboxStore

Record = dict[str, Any]


def branch_record(branch: BranchStore) -> Record:
    """What a branch is, without its objects."""
    return asdict(branch.info)


def node_record(node: Node) -> Record:
    """One object. Indexes and keys are left out: they follow from the rest."""
    doubled = {"further": node.further} if node.further else {}
    copied = {"copies": node.copies} if node.copies > 1 else {}
    return {
        **doubled,
        **copied,
        "id": node.id,
        "kind": node.kind.name,
        "sequence": node.sequence,
        "values": node.values,
        "defaults": sorted(node.defaults),
        "peers": node.peers,
        "changed_at": node.changed_at,
        "created_at": node.created_at,
        "updated_at": node.updated_at,
    }


def node_of(store: SandboxStore, record: Mapping[str, Any]) -> Node:
    """The object of a record.

    Raises:
        LookupError, TypeError, ValueError: it is none of this schema.
    """
    node = Node(record["id"], store.model.kinds[record["kind"]], record["sequence"], "")
    node.values = dict(record["values"])
    node.defaults = set(record["defaults"])
    node.peers = {slot: dict(peers) for slot, peers in record["peers"].items()}
    node.further = {slot: dict(counts) for slot, counts in record.get("further", {}).items()}
    node.copies = record.get("copies", 1)
    node.changed_at = dict(record["changed_at"])
    node.created_at, node.updated_at = record["created_at"], record["updated_at"]
    return node


def restore(
    store: SandboxStore,
    branches: Iterable[Mapping[str, Any]],
    nodes: Iterable[tuple[str, Mapping[str, Any]]],
    *,
    used_ids: Iterable[str],
    sequence: int,
) -> None:
    """Make a new store what a stored one was; what it was born with is gone.

    Args:
        store: fresh, of the same schema and seed.
        branches: their records.
        nodes: branch name and record of each object.
        used_ids: ids that no new object may get, of deleted objects too.
        sequence: of the newest object.

    Raises:
        LookupError, TypeError, ValueError: a record is none of this schema.
    """
    with store.lock:
        store.branches = {
            info.name: BranchStore(info, store.model) for info in (BranchInfo(**record) for record in branches)
        }
        for name, record in nodes:
            store.branches[name].restore(node_of(store, record))
        store.used_ids = {*used_ids, *(branch.info.id for branch in store.branches.values())}
        store.sequence = sequence
        store.default_branch  # noqa: B018 - a store without one cannot be served: this is where that shows
