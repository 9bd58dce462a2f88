"""Whose objects a query looks into: to count objects and to name their ids needs no right, to see more of one does."""

from __future__ import annotations

from collections.abc import Iterable

from graphql import SelectionSetNode

from consumers.infrahub.sandbox.documents import OperationPlan
from consumers.infrahub.sandbox.model import KindModel, SchemaModel
from consumers.infrahub.sandbox.selection import Selector

_NO_TYPES = frozenset[str]()
_ANYBODYS = frozenset({"id", "__typename"})
"""What is told of an object to whoever may ask at all."""


def kinds_looked_into(plan: OperationPlan, model: SchemaModel) -> list[str]:
    """The kinds of which more than ids is asked for, each once, in the order of the document."""
    found: dict[str, None] = {}
    for root in plan.roots:
        kind = model.kinds.get(root.selected.name)
        if kind is not None:
            _look(kind, root.selected.below, plan.selector, model, found)
    return list(found)


def _look(
    kind: KindModel, below: Iterable[SelectionSetNode], selector: Selector, model: SchemaModel, found: dict[str, None]
) -> None:
    """Through a list or a single peer: edges where there are any, then the object."""
    for item in selector.fields(below, _NO_TYPES):
        if item.name == "edges":
            _look(kind, item.below, selector, model, found)
        if item.name != "node":
            continue
        for field in selector.fields(item.below, frozenset((kind.name, *kind.interfaces))):
            if field.name in _ANYBODYS:
                continue
            found[kind.name] = None
            end = kind.ends.get(field.name)
            peer = model.kinds.get(end.peer) if end is not None else None
            if peer is not None:
                _look(peer, field.below, selector, model, found)
