"""Finds writes of other sources to the same objects since a plan was made (design 7.9).

Nothing is read from the destination: the stored plans and the recorded outcomes say which objects another source
wrote after the ledger position at which this plan's destination was read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from consumers.errors import OverlappingCreateError, OverlapRefusedError
from consumers.ports import LedgerPort
from ledger.errors import ApplyLedgerError
from ledger.events import Overlap
from ledger.plan.canonical import same_bytes
from ledger.plan.describe import object_text
from ledger.plan.model import PlannedOperation
from ledger.plan.stored_operations import identifiers_of, object_keys_of
from ledger.schema import DestinationSchema
from ledger.store.records import ForeignWrite

_ASKED_AT_ONCE = 5000


def _nothing(_: str) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class ForeignOverlap:
    """An operation of this plan, and a write of another source to the same object."""

    operation: PlannedOperation
    overlap: Overlap
    foreign_action: str


async def find_overlaps(
    ledger: LedgerPort,
    binding_id: int,
    *,
    source: str,
    after_position: int,
    operations: Sequence[PlannedOperation],
    is_done: Callable[[str], bool] = _nothing,
) -> list[ForeignOverlap]:
    """Every write of another source to an object that ``operations`` will write, in the order of the ledger.

    Asked for some thousand objects at a time, so that nothing but the overlaps is held.

    Args:
        ledger: where outcomes and plans are.
        binding_id: the destination.
        source: the source whose writes are no overlap: this plan's own, or "" where a stale plan is applied on purpose.
        after_position: writes up to this position were seen when the plan was made.
        operations: the plan's; recorded deletes overwrite nothing and are passed over.
        is_done: whether the operation with an identifier needs no further attempt; such ones are passed over too.
    """
    found: list[ForeignOverlap] = []
    keyed = enumerate(zip(identifiers_of(operations), object_keys_of(operations), strict=True))
    left = ((key, place) for place, (identifier, key) in keyed if not is_done(identifier))
    while some := list(islice(left, _ASKED_AT_ONCE)):
        places: dict[bytes, list[int]] = {}
        for key, place in some:
            places.setdefault(key, []).append(place)
        writes = await ledger.foreign_writes(
            binding_id, source=source, after_position=after_position, object_keys=list(places)
        )
        for write in writes:
            ours = (operations[place] for place in places[write.object_key])
            found += [_overlap(operation, write) for operation in ours if operation.action != "delete"]
    return sorted(found, key=lambda one: one.overlap.position)


def _overlap(operation: PlannedOperation, write: ForeignWrite) -> ForeignOverlap:
    foreign: Mapping[str, Any] = json.loads(write.line)
    ours, theirs = _values(operation.record()), _values(foreign)
    both = (ours.keys() & theirs.keys()) - operation.identity.keys()
    return ForeignOverlap(
        operation=operation,
        overlap=Overlap(
            kind=operation.kind,
            identity=operation.identity,
            operation_id=operation.operation_id,
            fields=sorted(name for name in both if not same_bytes(ours[name], theirs[name])),
            source=write.source,
            run_id=write.run_id,
            position=write.position,
        ),
        foreign_action=str(foreign["action"]),
    )


def _values(record: Mapping[str, Any]) -> dict[str, Any]:
    references = record.get("relationships") or ()
    return {**(record.get("payload") or {}), **{reference["field"]: reference for reference in references}}


def notes_of_creates(overlaps: Sequence[ForeignOverlap]) -> dict[str, str]:
    """What the outcome of each create says that meets an object which is known to be there (FF36), by operation id."""
    return {
        found.operation.operation_id: f"it met an object that was there: run {found.overlap.run_id} of source "
        f"{found.overlap.source} wrote it at ledger position {found.overlap.position}"
        for found in overlaps
        if found.operation.action == "create"
    }


def overlap_refusals(
    overlaps: Sequence[ForeignOverlap], schema: DestinationSchema, *, own_source: str, refuse_all: bool
) -> list[ApplyLedgerError]:
    """Overlaps that are refused before the first write; ``refuse_all`` means those of other sources.

    A create of a kind that is keyed by a constraint alone cannot converge onto the object that another source created
    since: the server could only refuse it, in the middle of the run. It is refused whatever the policy says.
    """
    refusals: list[ApplyLedgerError] = []
    for found in overlaps:
        kind = schema.node(found.operation.kind)
        unmatched = kind is not None and kind.keyed_by_constraint_alone
        if found.operation.action == "create" and found.foreign_action == "create" and unmatched:
            refusals.append(_overlapping_create(found.overlap))
        elif refuse_all and found.overlap.source != own_source:
            refusals.append(_refused_overlap(found.overlap))
    return refusals


def _overlapping_create(overlap: Overlap) -> OverlappingCreateError:
    return OverlappingCreateError(
        checked=f"create {object_text(overlap.kind, overlap.identity)} ({overlap.operation_id})",
        expected="an object that does not exist yet: the server cannot match this kind by a human-friendly id",
        found=f"source {overlap.source} created it in run {overlap.run_id} (ledger position {overlap.position})",
        next_action="make a fresh plan; it will contain an update or nothing for this object",
    )


def _refused_overlap(overlap: Overlap) -> OverlapRefusedError:
    fields = ", ".join(overlap.fields)
    differ = f"the values differ in {fields}" if fields else "no value differs"
    return OverlapRefusedError(
        checked=f"the operation on {object_text(overlap.kind, overlap.identity)} ({overlap.operation_id})",
        expected="no write of another source to this object since the plan was made (--on-overlap refuse)",
        found=f"source {overlap.source} wrote it in run {overlap.run_id} (position {overlap.position}): {differ}",
        next_action="make a fresh plan and review it, or resume with --on-overlap warn",
    )
