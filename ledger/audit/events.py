"""The first pass of an audit: every event of a binding, once, in order, in bounded memory."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from ledger.audit.bodies import is_canonical
from ledger.audit.heads import Heads
from ledger.audit.log_order import Contradiction, beyond, next_epoch
from ledger.audit.plain_events import APPLIED, PlainEvents, Stretch, is_plain_body
from ledger.audit.projections import FoldedProjection
from ledger.audit.report import Level, LevelReport
from ledger.audit.run_traces import RunTrace, body_of
from ledger.audit.source import AuditSource, HashedSource
from ledger.chain import GENESIS, BreakKind, ChainBreak, ChainVerifier
from ledger.events import BODIES, SCHEMA_VERSION, StoredEvent
from ledger.hashed_event import event_of
from ledger.store.errors import UnreadableValueError
from ledger.store.records import BindingRow

Progress = Callable[[int, int], None]
"""Called with how many events are done and how many there are."""

_PAGE = 5000
_TELL_EVERY = 1000
_LEVEL_OF = {BreakKind.GAP: Level.POSITIONS, BreakKind.ORDER: Level.POSITIONS}


@dataclass(slots=True)
class EventPass:
    """Feeds events to the chain and to the catalogue, and keeps a few facts of each run.

    Attributes:
        row: the binding with the head that was read before the first event.
        reports: of the levels that this pass fills.
        heads: what signed heads say of the events that go by.
        after: events up to this position are trusted and not read; 0 reads all of them.
        trusted: the hash of the event there.
        folded: projections that are folded anew from the events that go by.
        audit: audits a run whose last event went by.
        runs: by run id, those that are not audited yet: of one that was not applied, more may come.
        applied: the ids of those that were: nothing of them comes any more.
        unreadable: whether the pass ended at an event that cannot be read.
        epoch: of the last claim that went by; None where none did.
    """

    row: BindingRow
    reports: dict[Level, LevelReport]
    heads: Heads
    after: int = 0
    trusted: bytes = GENESIS
    folded: Sequence[FoldedProjection] = ()
    audit: Callable[[RunTrace], Awaitable[None]] | None = None
    verifier: ChainVerifier = field(init=False)
    runs: dict[str, RunTrace] = field(default_factory=dict)
    applied: set[str] = field(default_factory=set)
    unreadable: bool = False
    epoch: int | None = None
    _over: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.verifier = ChainVerifier(self.row.url, self.row.branch, self.after, self.trusted)

    async def run(self, ledger: AuditSource, progress: Progress | None) -> None:
        """Read everything up to the head, then compare with the head and look behind it."""
        if isinstance(ledger, HashedSource):
            await self._run_by_pages(ledger, progress)
        async for event in self._readable(ledger):
            await self._take(ledger, event)
            if self.verifier.events % _TELL_EVERY == 0:
                self._tell(progress)
                await self._audit_over()
        self._tell(progress)
        for level in (Level.POSITIONS, Level.CHAIN, Level.CATALOGUE):
            self.reports[level].checked = self.verifier.events
        self._compare_head()
        await self._beside_pages(ledger)
        await self._behind_head(ledger)
        for level in (Level.POSITIONS, Level.CHAIN, Level.CATALOGUE, Level.HEAD):
            self.reports[level].ended()
        self._over = list(dict.fromkeys([*self._over, *self.runs]))
        await self._audit_over()

    async def _audit_over(self) -> None:
        """Audit the runs that are over, and forget all but their names: a log may hold very many of them."""
        for run_id in self._over:
            trace = self.runs.pop(run_id, None)
            if trace is not None and self.audit is not None:
                await self.audit(trace)
        self._over.clear()

    async def _run_by_pages(self, ledger: HashedSource, progress: Progress | None) -> None:
        """The same by pages of hashed bytes, as far as they can be read; what stops here is looked at one by one."""
        plain = PlainEvents(self.row.url, self.row.branch)
        pages = ledger.hashed_pages(self.row.id, after=self.verifier.position, until=self.row.head_position)
        async with aclosing(pages):
            while (page := await _next_page(pages)) is not None and await self._take_page(ledger, plain, *page):
                self._tell(progress)
                await self._audit_over()

    async def _take_page(
        self, ledger: HashedSource, plain: PlainEvents, hashed: Sequence[bytes], hashes: Sequence[bytes]
    ) -> bool:
        """Take the events of a page; False at the first one that cannot be read, with those before it taken."""
        marks = [*plain.marks(hashed), False]
        at = 0
        while at < len(hashed):
            end = marks.index(False, at) if marks[at] else at + 1
            stretch = plain.stretch(hashed[at:end], hashes[at:end], self.verifier) if marks[at] else None
            if stretch is not None and (stretch.run_id not in self.runs or stretch.run_id in self.applied):
                stretch, end = None, at + 1  # its first event makes the run known; behind its end there is none
            if stretch is None or not self._take_stretch(stretch):
                events = _events_of(hashed[at:end], hashes[at:end])
                for event in events:
                    await self._take(ledger, event)
                if len(events) < end - at:
                    return False
            at = end
        return True

    def _take_stretch(self, stretch: Stretch) -> bool:
        """Take what was checked already; False where something else has to look at each of its events."""
        if self.heads.claims_among(stretch.first_position, stretch.last_position):
            return False
        if not all(projection.can_take(stretch) for projection in self.folded):
            return False
        trace, last_ordinal = self.runs[stretch.run_id], stretch.first_ordinal + len(stretch.hashes) - 1
        known = self._current_epoch in (None, stretch.writer_epoch)
        if not known or not trace.place.passes(stretch.first_ordinal, last_ordinal):
            return False
        for projection in self.folded:
            projection.take_stretch(stretch)
        self.heads.passed(stretch.hashes)
        self.verifier.passed(len(stretch.hashes), stretch.last_position, stretch.hashes[-1])
        trace.outcomes += len(stretch.hashes)
        trace.order.applied(stretch.first_ordinal, stretch.operations)
        return True

    async def _take(self, ledger: AuditSource, event: StoredEvent) -> None:
        for found in self.verifier.feed(event):
            self._note(found)
        self.heads.feed(event)
        for projection in self.folded:
            projection.feed(event)
        run_id = event.run_id
        if self.after and run_id is not None and run_id not in self.runs and run_id not in self.applied:
            await self._earlier(ledger, run_id)
        self._catalogue(event)

    def _tell(self, progress: Progress | None) -> None:
        if progress:
            progress(self.after + self.verifier.events, self.row.head_position)

    async def _earlier(self, ledger: AuditSource, run_id: str) -> None:
        """What is known of a run that began among the events that are trusted."""
        self.runs[run_id] = RunTrace(run_id)
        async for event in ledger.events(self.row.id, until=self.after, run_id=run_id):
            self._trace(run_id, event, body_of(event))

    async def _readable(self, ledger: AuditSource) -> AsyncIterator[StoredEvent]:
        """Events up to the head; a value that no program can read ends the pass with a finding, not with a crash."""
        page = _PAGE
        while True:
            after = self.verifier.position
            try:
                async for event in ledger.events(
                    self.row.id, after=after, until=self.row.head_position, page_size=page
                ):
                    yield event
                return
            except (UnreadableValueError, OverflowError, ValueError) as exc:
                if page == 1:
                    self.unreadable = True
                    self.reports[Level.CHAIN].add(
                        "UnreadableEventError",
                        checked=f"the event behind position {after}",
                        expected="values that an append can have stored",
                        found=type(exc).__name__,
                        position=after + 1,
                    )
                    return
                # Somewhere in this page: go on one by one up to it.
                page = 1

    def _note(self, found: ChainBreak) -> None:
        self.reports[_LEVEL_OF.get(found.kind, Level.CHAIN)].add(
            f"Chain{found.kind.capitalize()}",
            checked=f"the {found.kind} of event {found.position}",
            expected=found.expected,
            found=found.found,
            position=found.position,
        )

    def _catalogue(self, event: StoredEvent) -> None:
        report, current = self.reports[Level.CATALOGUE], self._current_epoch
        if event.kind == "writer.opened":
            self.epoch = event.writer_epoch
        if event.kind not in BODIES or event.schema_version > SCHEMA_VERSION:
            report.add(
                "UnknownEventKind",
                checked=f"the kind of event {event.position}",
                expected=f"a kind of this program's catalogue, version {SCHEMA_VERSION} or older",
                found=f"{event.kind}, version {event.schema_version}",
                position=event.position,
            )
            return
        if event.kind == APPLIED and is_plain_body(event.body):
            body: object | None = None  # nothing of it is needed; it is the one spelling of such a body
        elif (body := body_of(event)) is None or not is_canonical(event.body):
            report.add(
                "EventBodyInvalid",
                checked=f"the body of event {event.position}",
                expected=f"canonical bytes of a body of {event.kind}",
                found="another shape" if body is None else "other bytes for the same values",
                position=event.position,
            )
        self._out_of_place(event, beyond(event, body))
        self._out_of_place(event, next_epoch(event, body, current))
        if event.run_id is not None:
            self._trace(event.run_id, event, body)

    def _trace(self, run_id: str, event: StoredEvent, body: object) -> None:
        if run_id in self.applied:
            self.reports[Level.OUTCOMES].add(
                "RunWentOn",
                checked=f"event {event.position} of run {run_id}",
                expected="nothing of a run that has ended as applied",
                found=event.kind,
                position=event.position,
            )
            return
        trace = self.runs.setdefault(run_id, RunTrace(run_id))
        self._out_of_place(event, trace.place.take(event))
        trace.take(event, body)
        if event.kind == "run.applied":
            self.applied.add(run_id)
            self._over.append(run_id)

    @property
    def _current_epoch(self) -> int | None:
        """Of the last claim; not known as long as a pass that began behind the first event has met none."""
        return 0 if self.epoch is None and not self.after else self.epoch

    def _out_of_place(self, event: StoredEvent, found: Iterable[Contradiction]) -> None:
        for contradiction in found:
            self.reports[Level.CATALOGUE].add(
                "EventOutOfPlace",
                checked=f"event {event.position}, {event.kind}: {contradiction.what}",
                expected=contradiction.expected,
                found=contradiction.found,
                position=event.position,
            )

    def _compare_head(self) -> None:
        report, row = self.reports[Level.HEAD], self.row
        report.checked = 1
        if (self.verifier.position, self.verifier.head) != (row.head_position, row.head_hash):
            report.add(
                "HeadMismatch",
                checked="the head of the binding against its last event",
                expected=f"position {row.head_position}, hash {row.head_hash.hex()}",
                found=f"position {self.verifier.position}, hash {self.verifier.head.hex()}",
                position=self.verifier.position,
            )
        self._compare_epoch(report)

    def _compare_epoch(self, report: LevelReport) -> None:
        """A claim raises the epoch and says so in one transaction; one that was set back lets an old writer in (G2)."""
        claimed = self._current_epoch
        if claimed not in (None, self.row.writer_epoch):
            report.add(
                "EpochMismatch",
                checked="the epoch of the binding against its last claim",
                expected=str(claimed),
                found=str(self.row.writer_epoch),
            )

    async def _beside_pages(self, ledger: AuditSource) -> None:
        """Where the key is gone, a page may end between two rows of one position; the next one shows neither."""
        count = await ledger.count_events(self.row.id, after=self.after, until=self.row.head_position)
        if count is not None and count != self.verifier.events and not self.unreadable:
            self.reports[Level.POSITIONS].add(
                "EventsBesidePages",
                checked=f"the rows up to position {self.row.head_position}",
                expected=f"the {self.verifier.events} that were read by position",
                found=f"{count} in the table: some stand at a position that another row has, or at none",
            )

    async def _behind_head(self, ledger: AuditSource) -> None:
        """An event behind the head may have been appended meanwhile; then the head has moved by now as well."""
        last = 0
        async for event in ledger.events(self.row.id, after=self.row.head_position):
            last = event.position
        rows = [row for row in await ledger.bindings() if row.id == self.row.id]
        head = rows[0].head_position if rows else 0
        if last > head:
            self.reports[Level.HEAD].add(
                "EventBehindHead",
                checked="whether anything stands behind the head",
                expected=f"no event above position {head}",
                found=f"one at position {last}",
                position=last,
            )


async def _next_page(
    pages: AsyncGenerator[tuple[Sequence[bytes], Sequence[bytes]], None],
) -> tuple[Sequence[bytes], Sequence[bytes]] | None:
    """The next page; None behind the last one, and where one cannot be read."""
    try:
        return await anext(pages, None)
    except (OverflowError, ValueError):
        return None


def _events_of(hashed: Sequence[bytes], hashes: Sequence[bytes]) -> list[StoredEvent]:
    """The events of these bytes, up to the first that no program can read."""
    events: list[StoredEvent] = []
    try:
        for data, own_hash in zip(hashed, hashes, strict=True):
            events.append(event_of(data, own_hash))
    except (OverflowError, ValueError):
        pass  # it is looked at by itself
    return events
