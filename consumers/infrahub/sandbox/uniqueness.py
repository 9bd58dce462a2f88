"""Who holds what has to be unique, in the order in which the server looks.

A node is compared first within each generic whose constraints it inherits, then within its own kind, unless a generic
holds all of its own constraints already. Whether a constraint *is* the human-friendly id depends on the one who
declares it: a generic without such an id turns a second upsert into a refusal.
"""

from __future__ import annotations

from collections.abc import Iterable

from consumers.infrahub.sandbox.branch import BranchStore, unique_key
from consumers.infrahub.sandbox.errors import MutationRefusedError, uniqueness_violated
from consumers.infrahub.sandbox.model import UniqueGroup
from consumers.infrahub.sandbox.records import Node


class KeyHeldError(Exception):
    """Nothing but the human-friendly id is held, and by one object: an upsert goes on as an update of that one."""

    def __init__(self, holder: str, label: str) -> None:
        super().__init__(holder)
        self.holder = holder
        self.label = label


def check_uniqueness(branch: BranchStore, default: BranchStore, node: Node, *, named: Iterable[str] | None) -> None:
    """Refuse a node that holds what another one holds.

    Args:
        branch: where it is written.
        default: the default branch, whose newer objects count too.
        node: as it would be.
        named: the fields that the write names; None stands for all. An optional unique attribute always counts.

    Raises:
        KeyHeldError: the human-friendly id alone is held.
        MutationRefusedError: anything else is.
    """
    fields = None if named is None else {*named, *_implied(node)}
    groups = [group for group in node.kind.groups if fields is None or fields & set(group.fields)]
    violated = [(group, holders) for group in groups if (holders := _holders(branch, default, node, group))]
    by_key = next(((group, holders) for group, holders in violated if group.is_human_friendly_id), None)
    for group, holders in violated:
        if not group.is_human_friendly_id and not _excused(group, holders, by_key):
            raise uniqueness_violated(group.label)
    if by_key is None:
        return
    group, holders = by_key
    if len(holders) > 1:
        raise MutationRefusedError(f"Multiple {node.kind.name} nodes have the same hfid")
    raise KeyHeldError(holders[0], group.label)


def _excused(group: UniqueGroup, holders: list[str], by_key: tuple[UniqueGroup, list[str]] | None) -> bool:
    """A part of the key is held wherever the key is; any other constraint only where the same object holds it."""
    if by_key is None:
        return False
    return group.is_part_of_human_friendly_id or (len(holders) == 1 and holders[0] == by_key[1][0])


def _implied(node: Node) -> list[str]:
    return [item.name for item in node.kind.attributes.values() if item.unique and item.optional]


def _holders(branch: BranchStore, default: BranchStore, node: Node, group: UniqueGroup) -> list[str]:
    """Who else holds a uniqueness key: on this branch, or made on the default branch since the fork."""
    key = unique_key(node, group)
    holders = [holder for holder in branch.holders(group, key) if holder != node.id]
    if default is not branch:
        since = branch.info.fork_sequence
        holders += [
            holder
            for holder in default.holders(group, key)
            if default.nodes[holder].sequence > since and holder not in branch.nodes
        ]
    return holders
