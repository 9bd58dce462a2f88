"""Projections against the log, in the pass that reads the log anyway, without writing and in bounded memory (G9).

Both sides are sums: each document with its key is hashed, and the hashes are added up. Equal sums are equal sets of
documents, in whatever order they come; a document is added when nothing more can happen to it. The hash has a secret
key, made for this audit and known to nobody else: sums of a public hash of 256 bits are no obstacle to somebody who
chooses many documents for a sum that has to come out (Wagner's generalized birthday), while to somebody who cannot
compute one summand all sums are alike. A document of an
operation is such a one when the operation has a success, and as soon as the run has gone on to many others: a run never
comes back to one.
"""

from __future__ import annotations

import re
import struct
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from secrets import token_bytes
from typing import Any

from ledger.audit.plain_events import Stretch
from ledger.audit.report import LevelReport
from ledger.audit.source import AuditSource, HashedSource
from ledger.audit.subject_states import SubjectStates
from ledger.errors import ApplyLedgerError
from ledger.events import StoredEvent
from ledger.plan.canonical import canonical_json_bytes
from ledger.projections.binding_status import BINDING_FOLD
from ledger.projections.fold import Fold, Key, Projection, State
from ledger.projections.registry import PROJECTIONS
from ledger.projections.run_lines import RUN_LINE_FOLD, RunLine
from ledger.projections.runs import OPERATION_FOLD, RUN_FOLD
from ledger.store.records import BindingRow

_MODULUS = 1 << 256
_SUCCESSES = frozenset({"operation.applied", "operation.skipped"})
_OF_STRETCHES = (RUN_FOLD, OPERATION_FOLD, RUN_LINE_FOLD, BINDING_FOLD)
"""Folds of which it is known what they make of applied operations; that of runs makes nothing of them."""
_APPLIED_ONCE = (
    b'{"attempts":[{"attempt":1,"error":null,"outcome":"applied","position":%d}],'
    b'"operation_id":"%b","ordinal":%d,"position":%d%b'
)
"""The canonical bytes of an :class:`ledger.projections.runs.OperationState` with one attempt, which was applied."""
_PLAIN_IDS = re.compile(rb"(?:op_[0-9a-f]{16})+")
_ID_LENGTH = (19).to_bytes(8, "big")
_size = struct.Struct(">Q").pack
_OPEN_ITEMS = 1_000
"""Documents of operations that are held open: many more than runs that are under way at once."""
_TRIES = 5


@dataclass(slots=True)
class Sum:
    """A set of documents, however many they are; equal to another one only under the same key."""

    key: bytes = field(repr=False)
    count: int = 0
    value: int = 0

    def add(self, key: Key, document: bytes) -> None:
        """Add a document."""
        self.add_hashed([_prefixed(key.subject.encode()) + _prefixed(key.item.encode()) + _prefixed(document)])

    def add_hashed(self, documents: Sequence[bytes]) -> None:
        """Add documents as they are hashed: subject, item and text, each length-prefixed, so that none can pass for
        another.
        """
        key = self.key
        numbers = [int.from_bytes(blake2b(document, digest_size=32, key=key).digest(), "big") for document in documents]
        self.value = (self.value + sum(numbers)) % _MODULUS
        self.count += len(documents)


def _prefixed(data: bytes) -> bytes:
    return len(data).to_bytes(8, "big") + data


@dataclass(slots=True)
class FoldedProjection:
    """One projection, folded anew beside its live documents.

    Attributes:
        projection: which.
        position: up to which event the live one has come; 0 where it took none, or nobody remembers.
        hash: of that event, as the live one remembers it.
        live: the sum over its documents.
        rows: how many documents there are, counted apart.
    """

    projection: Projection
    position: int
    hash: bytes
    live: Sum
    rows: int = 0
    folded: Sum = field(init=False)
    reached: bytes | None = None
    broken: str | None = None
    _subjects: SubjectStates = field(default_factory=SubjectStates)
    _items: OrderedDict[Key, State] = field(default_factory=OrderedDict)

    def __post_init__(self) -> None:
        self.folded = Sum(self.live.key)

    @property
    def name(self) -> str:
        """Name and version, as ``rebuild`` shows it."""
        return f"{self.projection.name}/{self.projection.version}"

    @property
    def is_computed(self) -> bool:
        """Whether there is anything of it: an event that was taken, or documents without one."""
        return bool(self.position or self.live.count or self.rows)

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

    def can_take(self, stretch: Stretch) -> bool:
        """Whether a stretch of applied operations can be taken as a whole; else each of its events has to be fed."""
        if self._has_passed(stretch):
            return True
        known = all(fold in _OF_STRETCHES for fold in self.projection.folds)
        plain = _PLAIN_IDS.fullmatch(b"".join(stretch.operations)) is not None
        return known and plain and stretch.last_position <= self.position

    def take_stretch(self, stretch: Stretch) -> None:
        """Take one that can be taken."""
        if self._has_passed(stretch):
            return
        for fold in self.projection.folds:
            if fold is OPERATION_FOLD:
                self._take_operations(stretch)
            elif fold is RUN_LINE_FOLD:
                self._take_line(stretch)
            elif fold is BINDING_FOLD:
                self._take(fold, stretch.event(-1))  # of such events it keeps the last one alone
        if stretch.last_position == self.position:
            self.reached = stretch.hashes[-1]

    def _take_line(self, stretch: Stretch) -> None:
        """A run without an operation in doubt counts them; another one looks at each."""
        key = Key(stretch.run_id, "")
        line = self._subjects.get(key)
        if isinstance(line, RunLine) and not line.unsettled and line.position < stretch.first_position:
            applied = line.applied + len(stretch.operations)
            self._subjects.put(key, line.model_copy(update={"position": stretch.last_position, "applied": applied}))
            return
        for number in range(len(stretch.operations)):
            self._take(RUN_LINE_FOLD, stretch.event(number))

    def _has_passed(self, stretch: Stretch) -> bool:
        return stretch.first_position > self.position or self.broken is not None

    def _take_operations(self, stretch: Stretch) -> None:
        """An operation that was applied at its first attempt has a document that follows from where that was."""
        named = _prefixed(stretch.run_id.encode()) + _ID_LENGTH
        tail = b',"run_id":%b}' % canonical_json_bytes(stretch.run_id)
        first, ordinal = stretch.first_position, stretch.first_ordinal
        again = self._open_among(stretch) if self._items else set()
        for number in sorted(again):
            self._take(OPERATION_FOLD, stretch.event(number))
        documents = [
            (name, _APPLIED_ONCE % (first + number, name, ordinal + number, first + number, tail))
            for number, name in enumerate(stretch.operations)
            if number not in again
        ]
        self.folded.add_hashed(
            [b"%b%b%b%b" % (named, name, _size(len(document)), document) for name, document in documents]
        )

    def _open_among(self, stretch: Stretch) -> set[int]:
        """Those of a stretch that had an attempt before."""
        names = {key.item.encode() for key in self._items if key.subject == stretch.run_id}
        return {number for number, name in enumerate(stretch.operations) if name in names}

    def finish(self) -> None:
        """Add what was still open."""
        for key, document in self._subjects.items():
            self.folded.add(key, document)
        for key, state in self._items.items():
            self.folded.add(key, state.canonical_bytes())

    def close(self) -> None:
        """Remove what was kept in a file."""
        self._subjects.close()

    def _take(self, fold: Fold[Any], event: StoredEvent) -> None:
        key = fold.key(event)
        if key is None:
            return
        if not key.item:
            self._subjects.put(key, fold.take(self._subjects.get(key), event))
            return
        self._items[key] = fold.take(self._items.get(key), event)
        if event.kind in _SUCCESSES:
            self.folded.add(key, self._items.pop(key).canonical_bytes())
        else:
            self._items.move_to_end(key)
            if len(self._items) > _OPEN_ITEMS:
                oldest, state = self._items.popitem(last=False)
                self.folded.add(oldest, state.canonical_bytes())


@contextmanager
def closing_all(folded: Sequence[FoldedProjection]) -> Iterator[None]:
    """Close each of them at the end, whatever that is."""
    try:
        yield
    finally:
        for projection in folded:
            projection.close()


async def live_projections(ledger: AuditSource, row: BindingRow) -> list[FoldedProjection]:
    """The live documents of every projection of a binding, summed up, also where no cursor says that there are any."""
    key = token_bytes(32)
    return [await _live(ledger, row, projection, key) for projection in PROJECTIONS]


async def _live(ledger: AuditSource, row: BindingRow, projection: Projection, key: bytes) -> FoldedProjection:
    """Documents and cursor move together; what was read while they moved is read again."""
    place = (projection.name, projection.version, row.id)
    for _ in range(_TRIES):
        cursor = await ledger.live_cursor(*place)
        position, last = cursor or (0, b"")
        folded = FoldedProjection(projection, position, last, Sum(key))
        await _add_live(ledger, place, folded.live)
        folded.rows = await ledger.count_live_documents(*place)
        if await ledger.live_cursor(*place) == cursor:
            return folded
    folded.broken = ""
    return folded


async def _add_live(ledger: AuditSource, place: tuple[str, int, int], live: Sum) -> None:
    if not isinstance(ledger, HashedSource):
        async for subject, item, document in ledger.live_documents(*place):
            live.add(Key(subject, item), document.encode())
        return
    async with aclosing(ledger.hashed_documents(*place)) as pages:
        async for documents in pages:
            live.add_hashed(documents)


def report_projections(folded: Sequence[FoldedProjection], report: LevelReport, *, resumed: bool) -> None:
    """Compare each with its live documents."""
    if resumed:
        report.unchecked.append("they are folded from the first event on, which was not read")
    elif not any(projection.is_computed for projection in folded):
        report.unchecked.append("none was computed yet, or an export has none")
        return
    for projection in folded:
        projection.finish()
        if projection.broken == "":
            report.unchecked.append(f"{projection.name}: it kept moving while it was read")
            continue
        if not projection.is_computed:
            report.unchecked.append(
                f"{projection.name}: it has taken no event yet, or its cursor and documents are gone"
            )
            continue
        report.checked += projection.live.count
        if not projection.position:
            _differs(report, projection, "no documents, because it has taken no event", f"{projection.rows}")
        elif projection.broken is not None:
            _differs(report, projection, "bodies that can be folded", projection.broken)
        elif projection.reached != projection.hash:
            found = "another event, or none" if projection.reached is None else projection.reached.hex()
            _differs(report, projection, f"the event that it took last ({projection.hash.hex()})", found)
        elif projection.live != projection.folded:
            _differs(
                report, projection, f"{projection.folded.count} documents as folded", f"{projection.live.count} others"
            )
        elif projection.live.count != projection.rows:
            # Where the key is gone, a page may end between two documents of one place; the next one shows neither.
            _differs(report, projection, f"{projection.live.count} documents by key", f"{projection.rows}")
    report.ended()


def _differs(report: LevelReport, projection: FoldedProjection, expected: str, found: str) -> None:
    report.add(
        "ProjectionMismatch",
        checked=f"the projection {projection.name} up to position {projection.position}",
        expected=expected,
        found=found,
        next_action="find out who changed the read side, then run 'apply-ledger rebuild': the log is the truth, and"
        " after a restored backup the read side may be ahead of it",
    )
