"""What was written to a branch since its fork, carried to another: the core of a merge and of a rebase.

Both sides are compared by the times that the server keeps: of each attribute's last change and of each edge. What a
branch did not touch stays as it is at the target. Conflicts are looked for before (``merge_checks``).
"""

from __future__ import annotations

from collections.abc import Iterable

from consumers.infrahub.sandbox.branch import BranchStore
from consumers.infrahub.sandbox.model import RelationshipEnd
from consumers.infrahub.sandbox.records import Node


def carry_changes(source: BranchStore, target: BranchStore, at: str) -> None:
    """Bring the changes of ``source`` to ``target``, which may have changed since the fork as well.

    An object that ``target`` deleted since then stays deleted.
    """
    forked, known = source.info.branched_from, source.info.fork_sequence
    for node in [node for node in target.nodes.values() if node.sequence <= known and node.id not in source.nodes]:
        target.remove(node)
    for node in [node for node in source.nodes.values() if node.sequence > known and node.id not in target.nodes]:
        twin = node.copy()
        twin.peers, twin.unique_keys = {}, ()
        target.add(twin)
    for node in list(source.nodes.values()):
        twin_here = target.nodes.get(node.id)
        if twin_here is not None:
            _carry_values(node, twin_here, target, forked, at)
            for end in node.kind.ends.values():
                _carry_peers(node, twin_here, end, target, forked, at)
            target.reindex(twin_here)


def _carry_values(node: Node, twin: Node, target: BranchStore, forked: str, at: str) -> None:
    changed = [name for name, when in node.changed_at.items() if when is not None and when >= forked]
    differing = [name for name in changed if node.values.get(name) != twin.values.get(name)]
    if differing:
        target.set_values(twin, {name: node.values.get(name) for name in differing})
        twin.updated_at = at
        twin.changed_at.update(dict.fromkeys(differing, at))
    twin.defaults.difference_update(changed)
    twin.defaults.update(name for name in changed if name in node.defaults)


def _carry_peers(node: Node, twin: Node, end: RelationshipEnd, target: BranchStore, forked: str, at: str) -> None:
    theirs, ours = twin.peer_ids(end.slot), node.peer_ids(end.slot)
    made = [peer for peer, since in ours.items() if since >= forked]
    kept = [peer for peer, since in theirs.items() if since >= forked or peer in ours]
    wanted = made if made and not end.many else list(dict.fromkeys([*kept, *made]))
    after = _present(wanted, target)
    if list(theirs) != after:
        target.set_peers(twin, end, after, at)
        twin.updated_at = at


def _present(peers: Iterable[str], target: BranchStore) -> list[str]:
    return [peer for peer in peers if peer in target.nodes]
