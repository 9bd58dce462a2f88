"""What a write saw before another one that ran at the same moment was through.

The server reads an object, waits for its locks, and writes what it worked out from that reading; the locks keep unique
values apart and nothing else. So two writes of one object's peers can both add an edge that neither of them saw, and
two creates under one id can both find it free. A request that is held ``amid-write`` does just that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from consumers.infrahub.sandbox.branch import BranchStore
from consumers.infrahub.sandbox.records import Node


@dataclass(frozen=True, slots=True)
class Glimpse:
    """A reading that is not renewed. ``peers`` holds the peers' ids by object and slot, ``free`` ids nobody had."""

    peers: Mapping[str, Mapping[str, Collection[str]]] = field(default_factory=dict)
    free: Collection[str] = ()

    def seen(self, node: Node, slot: str) -> Collection[str] | None:
        """The peers that were read; None for an object that was not."""
        read = self.peers.get(node.id)
        return None if read is None else read.get(slot, ())


def glimpse_of(
    branch: BranchStore, used_ids: Collection[str], writes: Iterable[tuple[str, Mapping[str, Any]]]
) -> Glimpse:
    """What some writes, each the name of its kind and its input, would read now."""
    peers: dict[str, Mapping[str, Collection[str]]] = {}
    free: set[str] = set()
    for kind, data in writes:
        # an upsert by key finds its object among all of the kind
        peers |= {node.id: {slot: tuple(ids) for slot, ids in node.peers.items()} for node in branch.of_kind(kind)}
        wanted = data.get("id")
        if isinstance(wanted, str) and wanted not in used_ids:
            free.add(wanted)
    return Glimpse(peers, free)
