"""What a server looks at before it merges or rebases: what both sides changed, and what would then not be allowed.

It looks at more than the writes did: the text that stands for null, a mandatory peer that is null and a line break
behind a pattern are taken by a write and stop a merge. It looks at all objects of a kind that the branch touched, so
one bad object on the default branch stops every merge of that kind.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from consumers.infrahub.sandbox.branch import BranchStore, unique_key
from consumers.infrahub.sandbox.model import KindModel, RelationshipEnd, UniqueGroup
from consumers.infrahub.sandbox.records import Node, display_label
from consumers.infrahub.sandbox.values import NULL_TEXT
from ledger.schema import Attribute


def in_conflict(source: BranchStore, target: BranchStore) -> bool:
    """Whether both sides changed one thing, and not to the same.

    An object that one side deleted and the other changed is such a thing; a set of peers is not.
    """
    forked, known = source.info.branched_from, source.info.fork_sequence
    for node in source.nodes.values():
        twin = target.nodes.get(node.id)
        if twin is not None and _apart(node, twin, forked):
            return True
        if twin is None and node.sequence <= known and is_changed(node, forked):
            return True
    gone = (node for node in target.nodes.values() if node.sequence <= known and node.id not in source.nodes)
    return any(is_changed(node, forked) for node in gone)


def is_changed(node: Node, since: str) -> bool:
    """Whether an object was written to since a moment."""
    return node.updated_at is not None and node.updated_at >= since


def _attributes_apart(node: Node, twin: Node, forked: str) -> Iterator[str]:
    for name in node.kind.attributes:
        both = all((side.changed_at.get(name) or "") >= forked for side in (node, twin))
        if both and node.values.get(name) != twin.values.get(name):
            yield name


def _apart(node: Node, twin: Node, forked: str) -> bool:
    if any(_attributes_apart(node, twin, forked)):
        return True
    return any(_peer_apart(node, twin, end, forked) for end in node.kind.ends.values() if not end.many)


def _peer_apart(node: Node, twin: Node, end: RelationshipEnd, forked: str) -> bool:
    ours, theirs = node.peer_ids(end.slot), twin.peer_ids(end.slot)
    if set(ours) == set(theirs):
        return False
    before = {peer for side in (ours, theirs) for peer, since in side.items() if since < forked}
    return set(ours) != before and set(theirs) != before


def conflicts_to_resolve(source: BranchStore, target: BranchStore) -> list[str]:
    """The values that both sides changed apart, as a refused rebase names them."""
    forked = source.info.branched_from
    pairs = ((node, target.nodes.get(node.id)) for node in source.nodes.values())
    return sorted(
        f"data/{node.id}/{name}/value"
        for node, twin in pairs
        if twin is not None
        for name in _attributes_apart(node, twin, forked)
    )


def violations(source: BranchStore, merged: BranchStore, touched: Touched) -> Iterator[str]:
    """What is not allowed in what a merge would leave, in the server's words.

    Args:
        source: the branch.
        merged: the default branch as it would be.
        touched: the fields that the branch changed.
    """
    for name, fields in touched.items():
        kind = merged.model.kinds[name]
        for field in sorted(fields):
            for node in merged.of_kind(name):
                label = _label(source, node)
                if field in kind.attributes:
                    yield from _of_attribute(merged, node, kind.attributes[field], label)
                elif not _is_filled(node, kind.ends[field]):
                    # once as a peer that is wanted, once as a number of them
                    yield from [_said(node, label, "Relationship-level 'optional'")] * 2
        for group in kind.groups:
            if set(group.fields) & fields:
                yield from _of_group(source, merged, kind, group)


def _of_attribute(merged: BranchStore, node: Node, attribute: Attribute, label: str) -> Iterator[str]:
    value = node.values.get(attribute.name)
    if value is None or value == NULL_TEXT:
        if not attribute.optional:
            yield _said(node, label, "Attribute-level 'optional'")
        return
    if attribute.regex and isinstance(value, str) and re.fullmatch(attribute.regex, value) is None:
        # the pattern is declared in two places, and each is looked at
        yield from [_said(node, label, "Attribute-level 'regex'", f"{attribute.name}={value!r}")] * 2
    alike = merged.with_value(node.kind.name, attribute.name, value)
    if attribute.unique and len(alike) > 1:
        yield _said(node, label, "Attribute-level 'unique'", f"{attribute.name}={str(value)!r}")


def _of_group(source: BranchStore, merged: BranchStore, kind: KindModel, group: UniqueGroup) -> Iterator[str]:
    by_key: dict[tuple[Any, ...], list[Node]] = {}
    for node in merged.of_kind(kind.name):
        by_key.setdefault(unique_key(node, group), []).append(node)
    for holders in by_key.values():
        for node in holders if len(holders) > 1 else ():
            for field in group.fields:
                told = f"{field}.value={str(node.values.get(field))!r}" if field in kind.attributes else f"{field}.id"
                yield _said(node, _label(source, node), "Node-level 'uniqueness_constraints'", told)


def _is_filled(node: Node, end: RelationshipEnd) -> bool:
    return end.optional or end.read_only or bool(node.peer_ids(end.slot))


def _said(node: Node, label: str, constraint: str, detail: str = "") -> str:
    words = f"{constraint} constraint violation on schema '{node.kind.name}'. Node ({label}) is not compliant."
    return words + (f" The error relates to field {detail}." if detail else "")


def _label(source: BranchStore, node: Node) -> str:
    """The server reads labels on the branch; of what is not there it knows kind and id."""
    return display_label(node) if node.id in source.nodes else f"{node.kind.name}: {node.id}"


Touched = dict[str, set[str]]
"""Fields by kind."""


def touched_fields(source: BranchStore, target: BranchStore) -> Touched:
    """The fields that a branch changed since its fork."""
    forked, known = source.info.branched_from, source.info.fork_sequence
    found: Touched = {}
    for node in source.nodes.values():
        fields = set(_changed_fields(node, target.nodes.get(node.id), forked, is_new=node.sequence > known))
        if fields:
            found.setdefault(node.kind.name, set()).update(fields)
    return found


def _changed_fields(node: Node, twin: Node | None, forked: str, *, is_new: bool) -> Iterator[str]:
    yield from (name for name in node.kind.attributes if is_new or (node.changed_at.get(name) or "") >= forked)
    for end in node.kind.ends.values():
        ours = node.peer_ids(end.slot)
        gone = twin.peer_ids(end.slot).keys() - ours if twin is not None else ()
        if gone or any(since >= forked for since in ours.values()):
            yield end.name
