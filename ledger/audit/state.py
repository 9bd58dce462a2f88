"""The asserted state: what each object had to be, by everything that was applied up to a position (time travel).

It is a fold over outcomes and plan lines, in one pass and in bounded memory. It says what was written through this
ledger; it is not a copy of the destination, whose other writers it has not seen.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from ledger.audit.outcome_records import (
    Progress,
    node_id_in,
    outcome_records,
    parsed_line,
    run_and_time,
)
from ledger.audit.spill import ObjectSpill
from ledger.plan.asserted import asserted_fields
from ledger.plan.canonical import same_bytes
from ledger.store.ledger import Ledger
from ledger.store.records import BindingRow

_UNKNOWN, _DELETE = b"u", b"d"
_BREATHE_EVERY = 1000
"""Objects between two moments at which whoever waits for them can say that nobody does any more."""

_RECORDS_KEPT = 100


@dataclass(slots=True)
class ObjectState:
    """One object as it was asserted.

    Attributes:
        object_key: 32 bytes, by which states are ordered.
        kind: of the object; ``None`` only where its lines are unreadable.
        identity: as in the plans.
        fields: each field that was applied, with the value applied last.
        position: of the last event that applied something; 0 where nothing certain was applied.
        run_id: its run.
        recorded_at: when it was recorded, UTC.
        node_id: the id that the destination answered with then.
        doubts: by position, the fields of attempts that may have written and were not overwritten since.
        delete_recorded: the position at which its deletion was recorded (and not executed), if it was.
    """

    object_key: bytes
    kind: str | None = None
    identity: Any = None
    fields: dict[str, Any] = field(default_factory=dict)
    position: int = 0
    run_id: str | None = None
    recorded_at: str | None = None
    node_id: str | None = None
    doubts: dict[int, dict[str, Any]] = field(default_factory=dict)
    delete_recorded: int | None = None
    _applied: list[bytes] = field(default_factory=list, repr=False, compare=False)

    @property
    def is_asserted(self) -> bool:
        """Whether anything was applied to it, or may have been."""
        return self.position > 0 or bool(self.doubts)

    def document(self) -> dict[str, Any]:
        """The state for machines."""
        return {
            "object_key": self.object_key.hex(),
            "kind": self.kind,
            "identity": self.identity,
            "fields": self.fields,
            "position": self.position or None,
            "recorded_at": self.recorded_at,
            "run_id": self.run_id,
            "node_id": self.node_id,
            "in_doubt": [{"position": position, "fields": fields} for position, fields in self.doubts.items()],
            "delete_recorded": self.delete_recorded,
        }

    def copied(self) -> ObjectState:
        """The state as it is now, whatever happens to this one."""
        return ObjectState(
            self.object_key,
            self.kind,
            self.identity,
            dict(self.fields),
            self.position,
            self.run_id,
            self.recorded_at,
            self.node_id,
            dict(self.doubts),
            self.delete_recorded,
            list(self._applied),
        )

    def take(self, position: int, record: bytes) -> None:
        """Fold one outcome in: its head, and the plan's line behind it."""
        operation = parsed_line(record)
        self.kind = operation.get("kind", self.kind)
        self.identity = operation.get("identity", self.identity)
        kind = record[:1]
        if kind == _DELETE:
            self.delete_recorded = position
            return
        fields = asserted_fields(operation)
        if kind == _UNKNOWN:
            self.doubts[position] = fields
            return
        self.fields |= fields
        self.position = position
        self._keep(record)
        self.delete_recorded = None
        if self.doubts:
            left = {
                place: {name: value for name, value in doubted.items() if name not in fields}
                for place, doubted in self.doubts.items()
            }
            self.doubts = {place: doubted for place, doubted in left.items() if doubted}

    def settled(self) -> ObjectState:
        """Itself, with what is said of the last event alone."""
        if self._applied:
            self.run_id, self.recorded_at = run_and_time(self._applied[-1])
            self.node_id = self._last_node_id()
        return self

    def _keep(self, record: bytes) -> None:
        """The node's id is looked for at the end, in the last record that has one; of very many, now and then."""
        if len(self._applied) == _RECORDS_KEPT:
            self.node_id = self._last_node_id()
            self._applied.clear()
        self._applied.append(record)

    def _last_node_id(self) -> str | None:
        return next(filter(None, map(node_id_in, reversed(self._applied))), self.node_id)


@dataclass(frozen=True, slots=True)
class StateChange:
    """One object that is asserted differently at two positions; ``before`` is None where it was not asserted yet."""

    before: ObjectState | None
    after: ObjectState

    @property
    def object(self) -> ObjectState:
        """The state that knows which object this is."""
        return self.after if self.before is None or self.after.kind is not None else self.before

    @property
    def change(self) -> str:
        """``added``, ``changed``, or ``removed`` on the way back to where it was not asserted yet."""
        if not self.after.is_asserted:
            return "removed"
        return "added" if self.before is None else "changed"

    def document(self) -> dict[str, Any]:
        """The change for machines: each field with ``before`` and ``after``, where there was one."""
        old = {} if self.before is None else self.before.fields
        new = self.after.fields
        return {
            "object_key": self.after.object_key.hex(),
            "kind": self.object.kind,
            "identity": self.object.identity,
            "change": self.change,
            "fields": {
                name: {
                    **({"before": old[name]} if name in old else {}),
                    **({"after": new[name]} if name in new else {}),
                }
                for name in sorted(old.keys() | new.keys())
                if name not in old or name not in new or not same_bytes(old[name], new[name])
            },
            "position": self.after.position or None,
            "recorded_at": self.after.recorded_at,
            "run_id": self.after.run_id,
            "in_doubt": self.after.document()["in_doubt"],
            "delete_recorded": self.after.delete_recorded,
        }


async def asserted_states(
    ledger: Ledger, row: BindingRow, *, until: int, kind: str | None = None, progress: Progress | None = None
) -> AsyncGenerator[ObjectState, None]:
    """Every object that was asserted up to a position, in the order of object keys.

    Args:
        ledger: open, with any role that may read.
        row: the binding.
        until: the last position that counts.
        kind: only objects of this kind.
        progress: called now and then with events done and events in all.

    Raises:
        PlanOfRunMissingError: a run has outcomes and no stored plan.
        StoreError: the database cannot be read.
    """
    with ObjectSpill() as spill:
        await _collect(ledger, row, until, spill, progress)
        for number, (object_key, records) in enumerate(spill.objects()):
            await _breathe(number)
            state = ObjectState(object_key)
            for position, record in records:
                state.take(position, record)
            if state.is_asserted and kind in (None, state.kind):
                yield state.settled()


async def state_changes(
    ledger: Ledger,
    row: BindingRow,
    *,
    first: int,
    second: int,
    kind: str | None = None,
    progress: Progress | None = None,
) -> AsyncGenerator[StateChange, None]:
    """Every object that is asserted differently at the second position than at the first, in the order of object keys.

    Where ``second`` is the earlier one, the changes are those that lead back.

    Raises:
        PlanOfRunMissingError: a run has outcomes and no stored plan.
        StoreError: the database cannot be read.
    """
    low, high = sorted((first, second))
    with ObjectSpill() as spill:
        await _collect(ledger, row, high, spill, progress)
        for number, (object_key, records) in enumerate(spill.objects()):
            await _breathe(number)
            older, newer = _two_states(object_key, records, low)
            if kind in (None, newer.kind) and (change := _change(older, newer, back=second < first)) is not None:
                yield change


async def state_records(
    ledger: Ledger, row: BindingRow, *, until: int, kind: str | None = None, progress: Progress | None = None
) -> AsyncGenerator[dict[str, Any], None]:
    """The records of ``replay --state``: each state's document, with the binding and the position that it is as of.

    Takes and raises what :func:`asserted_states` does.
    """
    async with aclosing(asserted_states(ledger, row, until=until, kind=kind, progress=progress)) as states:
        async for state in states:
            yield {"url": row.url, "branch": row.branch, "as_of": until, **state.document()}


async def change_records(
    ledger: Ledger,
    row: BindingRow,
    *,
    first: int,
    second: int,
    kind: str | None = None,
    progress: Progress | None = None,
) -> AsyncGenerator[dict[str, Any], None]:
    """The records of ``replay --diff``: each change's document, with the binding and the two positions.

    Takes and raises what :func:`state_changes` does.
    """
    found = state_changes(ledger, row, first=first, second=second, kind=kind, progress=progress)
    async with aclosing(found) as changes:
        async for change in changes:
            yield {"url": row.url, "branch": row.branch, "from": first, "to": second, **change.document()}


async def _breathe(number: int) -> None:
    if number % _BREATHE_EVERY == 0:
        await asyncio.sleep(0)


def _two_states(object_key: bytes, records: Iterable[tuple[int, bytes]], low: int) -> tuple[ObjectState, ObjectState]:
    state = ObjectState(object_key)
    older: ObjectState | None = None
    for position, record in records:
        if older is None and position > low:
            older = state.copied()
        state.take(position, record)
    return (older or state).settled(), state.settled()


def _change(older: ObjectState, newer: ObjectState, *, back: bool) -> StateChange | None:
    if newer is older or (not newer.is_asserted and newer.delete_recorded is None):
        return None
    one, other = (newer, older) if back else (older, newer)
    change = StateChange(one if one.is_asserted else None, other)
    document = change.document()
    differs = document["fields"] or one.doubts != other.doubts or one.delete_recorded != other.delete_recorded
    return change if differs else None


async def _collect(ledger: Ledger, row: BindingRow, until: int, spill: ObjectSpill, progress: Progress | None) -> None:
    """Put every outcome beside its line. A page of outcomes of a run is a range of its plan, read at once."""
    async for keys, positions, records in outcome_records(ledger, row, until, progress):
        spill.put_all(keys, positions, records)
