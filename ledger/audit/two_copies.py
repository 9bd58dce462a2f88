"""Two copies of one log, event by event: where they differ, which a checkpoint cannot tell.

Behind the first event that was changed every hash differs, so events are compared by what they say, and found again by
their ids where one copy has some that the other has not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from ledger.audit.bodies import parsed
from ledger.audit.source import AuditSource
from ledger.events import StoredEvent
from ledger.store.errors import UnreadableValueError
from ledger.store.records import BindingRow

MAX_DIFFERENCES = 200
"""Differences that are kept in full; further ones are only counted."""

_AHEAD = 1_000
"""Events that are looked at on each side to find one again; further away it counts as another event."""

_SAYS = ("event_id", "kind", "schema_version", "run_id", "operation_id", "ordinal", "attempt", "writer_epoch")
_MISSING = object()
_DEEPEST = 20


@dataclass(frozen=True, slots=True)
class Difference:
    """One event that is not the same in both copies.

    Attributes:
        change: what became of it.
        here: as it is in the copy that was asked about; None where it is not there.
        there: as it is in the other copy; None likewise.
    """

    change: Literal["changed", "only here", "only there"]
    here: StoredEvent | None
    there: StoredEvent | None

    def fields(self) -> dict[str, tuple[Any, Any]]:
        """What differs, by name, here and there; of a body the innermost values that do."""
        here, there = self.here, self.there
        if here is None or there is None:
            return {}
        found = {name: (a, b) for name in _SAYS if (a := getattr(here, name)) != (b := getattr(there, name))}
        if here.recorded_at != there.recorded_at:
            found["recorded_at"] = (here.recorded_at.isoformat(), there.recorded_at.isoformat())
        if here.body != there.body:
            found |= _bodies(here.body, there.body)
        return found or {"hash": (here.hash.hex(), there.hash.hex())}

    def document(self) -> dict[str, Any]:
        """For machines."""
        told = self.here or self.there
        return {
            "change": self.change,
            "position": None if self.here is None else self.here.position,
            "position_there": None if self.there is None else self.there.position,
            "kind": None if told is None else told.kind,
            "run_id": None if told is None else told.run_id,
            "operation_id": None if told is None else told.operation_id,
            "recorded_at": None if told is None else told.recorded_at.isoformat(),
            "fields": {
                name: {"here": _shown(here), "there": _shown(there)} for name, (here, there) in self.fields().items()
            },
        }


@dataclass(slots=True)
class Comparison:
    """What a comparison found.

    Attributes:
        compared: events that stand in both copies.
        differences: the first :data:`MAX_DIFFERENCES` in full, in order.
        total: how many there are.
        behind_here: events behind the end of the other copy: appended since, if the other one is older.
        behind_there: events of the other copy behind the end of this one.
        unreadable: where a copy holds what no program can read, and the comparison ended.
    """

    compared: int = 0
    differences: list[Difference] = field(default_factory=list)
    total: int = 0
    behind_here: int = 0
    behind_there: int = 0
    unreadable: list[str] = field(default_factory=list)

    @property
    def same(self) -> bool:
        """Whether the other copy is this one, or its beginning."""
        return not (self.total or self.behind_there or self.unreadable)

    def add(self, difference: Difference) -> None:
        """Take one."""
        self.total += 1
        if len(self.differences) < MAX_DIFFERENCES:
            self.differences.append(difference)


class _Side:
    """The events of one copy, with those that were looked at ahead."""

    def __init__(self, name: str, events: AsyncIterator[StoredEvent]) -> None:
        self.name = name
        self.ahead: deque[StoredEvent] = deque()
        self.broken = ""
        self._events = events
        self._last = 0

    async def fill(self, count: int) -> None:
        """Look ahead so far, or to the end."""
        while len(self.ahead) < count and not self.broken:
            try:
                event = await anext(self._events, None)
            except (UnreadableValueError, OverflowError, ValueError) as exc:
                self.broken = f"{self.name}: the event behind position {self._last:,} ({type(exc).__name__})"
                return
            if event is None:
                return
            self._last = event.position
            self.ahead.append(event)

    def place_of(self, event: StoredEvent) -> int | None:
        """How many events stand before it among those ahead; None where it is not among them."""
        return next((at for at, known in enumerate(self.ahead) if known.event_id == event.event_id), None)


async def compare_copies(here: AuditSource, row: BindingRow, there: AuditSource, other: BindingRow) -> Comparison:
    """Compare two copies of the log of one binding.

    Args:
        here: a ledger, or an export of one.
        row: the binding in it.
        there: another one.
        other: the binding in that.
    """
    found = Comparison()
    ours, theirs = _Side("here", here.events(row.id)), _Side("there", there.events(other.id))
    while True:
        await ours.fill(1)
        await theirs.fill(1)
        if not ours.ahead or not theirs.ahead:
            break
        if ours.ahead[0].event_id == theirs.ahead[0].event_id:
            _compare(found, ours.ahead.popleft(), theirs.ahead.popleft())
        else:
            await _realign(found, ours, theirs)
    found.unreadable = [side.broken for side in (ours, theirs) if side.broken]
    if not found.unreadable:
        found.behind_here, found.behind_there = await _rest(ours), await _rest(theirs)
    return found


def _compare(found: Comparison, here: StoredEvent, there: StoredEvent) -> None:
    found.compared += 1
    same = here.body == there.body and here.recorded_at == there.recorded_at
    same = same and all(getattr(here, name) == getattr(there, name) for name in _SAYS)
    if same and not found.total:  # behind a difference every hash is another one
        same = all(getattr(here, name) == getattr(there, name) for name in ("position", "prev_hash", "hash"))
    if not same:
        found.add(Difference("changed", here, there))


async def _realign(found: Comparison, ours: _Side, theirs: _Side) -> None:
    """Up to the next event that both have: what one of them has besides."""
    await ours.fill(_AHEAD)
    await theirs.fill(_AHEAD)
    missing_there, missing_here = ours.place_of(theirs.ahead[0]), theirs.place_of(ours.ahead[0])
    if missing_there is None and missing_here is None:
        missing_there = missing_here = 1
    for _ in range(missing_there or 0):
        found.add(Difference("only here", ours.ahead.popleft(), None))
    for _ in range(missing_here or 0):
        found.add(Difference("only there", None, theirs.ahead.popleft()))


def _bodies(here: bytes, there: bytes) -> dict[str, tuple[Any, Any]]:
    try:
        values = dict(_differing("body", parsed(here), parsed(there)))
    except RecursionError:  # no program of ours stores such a thing
        values = {}
    return values or {"body": (f"{len(here):,} bytes", f"{len(there):,} other bytes")}


async def _rest(side: _Side) -> int:
    count = 0
    while side.ahead:
        count += len(side.ahead)
        side.ahead.clear()
        await side.fill(_AHEAD)
    return count


def _differing(path: str, here: Any, there: Any) -> Iterator[tuple[str, tuple[Any, Any]]]:
    """The innermost values of two documents that differ; what is deeper than any document of ours is one value."""
    if isinstance(here, dict) and isinstance(there, dict) and path.count(".") < _DEEPEST:
        for name in sorted(here.keys() | there.keys()):
            yield from _differing(f"{path}.{name}", here.get(name, _MISSING), there.get(name, _MISSING))
    elif here is not there and (here != there or type(here) is not type(there)):
        yield path, (here, there)


def _shown(value: Any) -> Any:
    if value is _MISSING:
        return None
    return value if value is None or isinstance(value, str | int | float | bool | list | dict) else str(value)
