"""Projections against the log, in the pass that reads the log anyway, without writing and in bounded memory (G9).

Both sides are sums: each document with its key is hashed, and the hashes are added up. Equal sums are equal sets of
documents, in whatever order they come; a document is added when nothing more can happen to it. A document of an
operation is such a one as soon as the run has gone on to another operation: a run never comes back to one.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ledger.audit.report import LevelReport
from ledger.audit.source import AuditSource
from ledger.errors import ApplyLedgerError
from ledger.events import StoredEvent
from ledger.projections.fold import Fold, Key, Projection, State
from ledger.projections.registry import PROJECTIONS
from ledger.store.records import BindingRow

_MODULUS = 1 << 256
_OPEN_ITEMS = 1_000
"""Documents of operations that are held open: many more than runs that are under way at once."""
_TRIES = 5


@dataclass(slots=True)
class Sum:
    """A set of documents, however many they are."""

    count: int = 0
    value: int = 0

    def add(self, key: Key, document: bytes) -> None:
        """Add a document; each part is length-prefixed, so that none can pass for another."""
        digest = hashlib.sha256()
        for part in (key.subject.encode(), key.item.encode(), document):
            digest.update(len(part).to_bytes(8, "big") + part)
        self.value = (self.value + int.from_bytes(digest.digest(), "big")) % _MODULUS
        self.count += 1


@dataclass(slots=True)
class FoldedProjection:
    """One projection, folded anew beside its live documents.

    Attributes:
        projection: which.
        position: up to which event the live one has come.
        hash: of that event, as the live one remembers it.
        live: the sum over its documents.
    """

    projection: Projection
    position: int
    hash: bytes
    live: Sum
    folded: Sum = field(default_factory=Sum)
    reached: bytes | None = None
    broken: str | None = None
    _subjects: dict[Key, State] = field(default_factory=dict)
    _items: OrderedDict[Key, State] = field(default_factory=OrderedDict)

    @property
    def name(self) -> str:
        """Name and version, as ``rebuild`` shows it."""
        return f"{self.projection.name}/{self.projection.version}"

    def feed(self, event: StoredEvent) -> None:
        """Take the next event of the log."""
        if event.position > self.position or self.broken is not None:
            return
        try:
            for fold in self.projection.folds:
                self._take(fold, event)
        except ApplyLedgerError as exc:
            self.broken = exc.found
        if event.position == self.position:
            self.reached = event.hash

    def finish(self) -> None:
        """Add what was still open."""
        for key, state in (*self._subjects.items(), *self._items.items()):
            self.folded.add(key, state.canonical_bytes())

    def _take(self, fold: Fold[Any], event: StoredEvent) -> None:
        key = fold.key(event)
        if key is None:
            return
        states: dict[Key, State] = self._items if key.item else self._subjects
        states[key] = fold.take(states.get(key), event)
        if key.item:
            self._items.move_to_end(key)
            if len(self._items) > _OPEN_ITEMS:
                oldest, state = self._items.popitem(last=False)
                self.folded.add(oldest, state.canonical_bytes())


async def live_projections(ledger: AuditSource, row: BindingRow) -> list[FoldedProjection]:
    """The live documents of every projection of a binding, summed up; those that were never computed are left out."""
    found = [await _live(ledger, row, projection) for projection in PROJECTIONS]
    return [projection for projection in found if projection is not None]


async def _live(ledger: AuditSource, row: BindingRow, projection: Projection) -> FoldedProjection | None:
    """Documents and cursor move together; what was read while they moved is read again."""
    place = (projection.name, projection.version, row.id)
    folded = None
    for _ in range(_TRIES):
        cursor = await ledger.live_cursor(*place)
        if cursor is None or not cursor[0]:
            return None
        folded = FoldedProjection(projection, cursor[0], cursor[1], Sum())
        async for subject, item, document in ledger.live_documents(*place):
            folded.live.add(Key(subject, item), document.encode())
        if await ledger.live_cursor(*place) == cursor:
            return folded
    if folded is not None:
        folded.broken = ""
    return folded


def report_projections(folded: Sequence[FoldedProjection], report: LevelReport, *, resumed: bool) -> None:
    """Compare each with its live documents."""
    if resumed:
        report.unchecked.append("they are folded from the first event on, which was not read")
    elif not folded:
        report.unchecked.append("none was computed yet, or an export has none")
    for projection in folded:
        projection.finish()
        if projection.broken == "":
            report.unchecked.append(f"{projection.name}: it kept moving while it was read")
            continue
        report.checked += projection.live.count
        if projection.broken is not None:
            _differs(report, projection, "bodies that can be folded", projection.broken)
        elif projection.reached != projection.hash:
            found = "another event, or none" if projection.reached is None else projection.reached.hex()
            _differs(report, projection, f"the event that it took last ({projection.hash.hex()})", found)
        elif projection.live != projection.folded:
            _differs(
                report, projection, f"{projection.folded.count} documents as folded", f"{projection.live.count} others"
            )


def _differs(report: LevelReport, projection: FoldedProjection, expected: str, found: str) -> None:
    report.add(
        "ProjectionMismatch",
        checked=f"the projection {projection.name} up to position {projection.position}",
        expected=expected,
        found=found,
        next_action="find out who changed the read side, then run 'apply-ledger rebuild': the log is the truth, and"
        " after a restored backup the read side may be ahead of it",
    )
