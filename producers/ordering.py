"""The order of a plan's operations: references between drafts as edges, tiers from them (design 4.4, A31)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from ledger.plan.model import PlannedOperation
from producers.destination_side import DestinationSide
from producers.drafts import Draft
from producers.errors import MandatoryCycleError
from producers.mapping import MappingPlan
from producers.records import ObservedRecord
from producers.tiers import Edge, Tiers, assign_tiers

_Object = tuple[str, str]


def operation_tiers(
    drafts: Sequence[Draft],
    deletes: Sequence[tuple[ObservedRecord, PlannedOperation]],
    mapping: MappingPlan,
    destination: DestinationSide,
) -> Tiers:
    """Tiers by operation id.

    With an explicit ``order:`` the tier is the kind's place in it, nothing is computed and nothing is cut (A31).
    """
    if mapping.order:
        place = {kind: index for index, kind in enumerate(mapping.order)}
        operations = [*(draft.operation for draft in drafts), *(operation for _, operation in deletes)]
        return Tiers(tiers={operation.operation_id: place[operation.kind] for operation in operations})
    written = {
        (draft.record.kind, draft.record.identity_text): (draft.operation.operation_id, draft.observed is None)
        for draft in drafts
    }
    nodes: dict[str, list[Edge]] = {
        draft.operation.operation_id: list(_draft_edges(draft, written, mapping)) for draft in drafts
    }
    nodes |= _delete_edges(drafts, deletes, destination)
    return assign_tiers(nodes)


def kind_tiers(mapping: MappingPlan) -> dict[str, int]:
    """A tier for each mapped kind, for resources without an operation: references between kinds, cycles given up."""
    if mapping.order:
        return {kind: mapping.order.index(kind) for kind in mapping.kinds}
    nodes = {
        kind: [
            Edge(target=target, field=name, hard=False)
            for name, targets in plan.candidates.items()
            for target in targets
            if target != kind
        ]
        for kind, plan in mapping.kinds.items()
    }
    return assign_tiers(nodes).tiers


def report_cycles(tiers: Tiers, drafts: Iterable[Draft]) -> bool:
    """Add a fault to every record on a cycle of mandatory references; return whether there was one."""
    by_id = {draft.operation.operation_id: draft for draft in drafts}
    for cycle in tiers.cycles:
        circle = " -> ".join(by_id[item].record.label for item in [*cycle, cycle[0]])
        for item in cycle:
            by_id[item].record.faults.append(
                MandatoryCycleError(
                    checked=f"the references of {by_id[item].record.label}",
                    expected="an order in which each create finds its mandatory peers",
                    found=f"a circle: {circle}",
                    next_action="make a reference optional in the schema, or break the cycle in the source",
                )
            )
    return bool(tiers.cycles)


def _draft_edges(draft: Draft, written: Mapping[_Object, tuple[str, bool]], mapping: MappingPlan) -> Iterator[Edge]:
    identity = draft.operation.identity
    for name, peers in draft.record.peers.items():
        relationship = mapping.kinds[draft.record.kind].kind.relationships[name]
        for peer in peers:
            target = written.get((peer.kind, peer.text))
            if target is not None:
                operation, is_create = target
                yield Edge(
                    target=operation,
                    field=name,
                    hard=is_create,
                    # only a create may leave a reference for later: an update was reviewed with it
                    optional=draft.observed is None and relationship.optional and name not in identity,
                )


def _delete_edges(
    drafts: Sequence[Draft],
    deletes: Sequence[tuple[ObservedRecord, PlannedOperation]],
    destination: DestinationSide,
) -> dict[str, list[Edge]]:
    """A recorded delete comes after the operations of the objects that referred to what it deletes."""
    by_object = {(record.kind, record.id): operation.operation_id for record, operation in deletes}
    nodes: dict[str, list[Edge]] = {operation_id: [] for operation_id in by_object.values()}
    referrers = {
        **{(item.observed.kind, item.observed.id): item.operation.operation_id for item in drafts if item.observed},
        **by_object,
    }
    for (kind, node_id), referrer in referrers.items():
        record = destination.by_id[kind][node_id]
        pointers = [(name, item) for name, item in record.one.items() if item is not None]
        pointers += [(name, item) for name, items in record.many.items() for item in items]
        for name, pointer in pointers:
            deleted = by_object.get((pointer.kind, pointer.id))
            if deleted is not None and deleted != referrer:
                nodes[deleted].append(Edge(target=referrer, field=name, hard=False))
    return nodes
