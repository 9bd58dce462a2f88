"""Objects that were observed elsewhere, put into a sandbox under their own ids: a rehearsal begins where the real
destination stands.

What was observed is what is put in: nothing is checked, completed or brought into another form. A field that nobody
observed is empty; where it is part of a uniqueness constraint it gets a value that nothing else has, so that no
conflict is made up out of not knowing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from consumers.infrahub.sandbox.branch import BranchStore
from consumers.infrahub.sandbox.model import KindModel
from consumers.infrahub.sandbox.records import Node
from consumers.infrahub.sandbox.store import DEFAULT_NAMESPACE_KIND, SandboxStore
from ledger.destination import ObservedObject


@dataclass(slots=True)
class Seeded:
    """What was put in, and what could not be.

    Attributes:
        objects: how many.
        observed: the fields that were observed, by kind.
        unknown: kinds, and fields as ``Kind.field``, that the schema does not have (any more).
        dangling: peers that no object stands for, by ``Kind.relationship``.
    """

    objects: int = 0
    observed: dict[str, frozenset[str]] = field(default_factory=dict)
    unknown: set[str] = field(default_factory=set)
    dangling: dict[str, int] = field(default_factory=dict)


def seed(store: SandboxStore, observed: Iterable[ObservedObject]) -> Seeded:
    """Put observed objects on the default branch, then the edges between them."""
    branch, at, seeded = store.default_branch, store.now(), Seeded()
    held: list[tuple[Node, ObservedObject]] = []
    with store.lock:
        for item in observed:
            kind = store.model.kinds.get(item.kind)
            if kind is None or not kind.is_node:
                seeded.unknown.add(item.kind)
                continue
            if item.kind == DEFAULT_NAMESPACE_KIND and not seeded.observed.get(item.kind):
                _forget_own_namespace(branch)
            node = _node(store, kind, item, seeded, at)
            branch.add(node)
            store.used_ids.add(node.id)
            held.append((node, item))
        for node, item in held:
            _link(branch, node, item, seeded, at)
    seeded.objects = len(held)
    return seeded


def _forget_own_namespace(branch: BranchStore) -> None:
    """A sandbox is born with a default namespace, as a server is; the observed one takes its place."""
    for node in list(branch.of_kind(DEFAULT_NAMESPACE_KIND)):
        branch.remove(node)


def _node(store: SandboxStore, kind: KindModel, item: ObservedObject, seeded: Seeded, at: str) -> Node:
    node = Node(item.id, kind, store.next_sequence(), at)
    named = frozenset((*item.attributes, *item.one, *item.many))
    seeded.observed[kind.name] = named | seeded.observed.get(kind.name, frozenset())
    seeded.unknown.update(f"{kind.name}.{name}" for name in named - kind.attributes.keys() - kind.ends.keys())
    unique = {name for group in kind.groups for name in group.fields}
    for name, attribute in kind.attributes.items():
        if name in item.attributes:
            node.values[name] = item.attributes[name]
        elif name in unique and not attribute.is_secret:
            node.values[name] = f"not observed, of {item.id}"
        else:
            node.values[name] = attribute.default
            node.defaults.add(name)
    node.changed_at = dict.fromkeys(kind.attributes, at)
    return node


def _link(branch: BranchStore, node: Node, item: ObservedObject, seeded: Seeded, at: str) -> None:
    singles = {name: () if pointer is None else (pointer,) for name, pointer in item.one.items()}
    for name, pointers in {**singles, **item.many}.items():
        end = node.kind.ends.get(name)
        if end is None:
            continue
        known = [pointer.id for pointer in pointers if pointer.id in branch.nodes]
        if len(known) < len(pointers):
            where = f"{node.kind.name}.{name}"
            seeded.dangling[where] = seeded.dangling.get(where, 0) + len(pointers) - len(known)
        branch.set_peers(node, end, known, at)
    branch.reindex(node)
