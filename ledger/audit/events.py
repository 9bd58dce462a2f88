"""The first pass of an audit: every event of a binding, once, in order, in bounded memory."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from ledger.audit.bodies import is_canonical, parsed_object
from ledger.audit.heads import Heads
from ledger.audit.outcome_order import OutcomeOrder
from ledger.audit.plain_events import APPLIED, PlainEvents, Stretch, is_plain_body
from ledger.audit.projections import FoldedProjection
from ledger.audit.report import Level, LevelReport
from ledger.audit.source import AuditSource, HashedSource
from ledger.chain import GENESIS, BreakKind, ChainBreak, ChainVerifier
from ledger.commit import PlanCommit
from ledger.events import (
    BODIES,
    OUTCOME_KINDS,
    SCHEMA_VERSION,
    Cut,
    PlanCommitted,
    PlanRefused,
    RunStarted,
    StoredEvent,
)
from ledger.hashed_event import event_of
from ledger.plan.canonical import canonical_json_bytes
from ledger.store.records import BindingRow

Progress = Callable[[int, int], None]
"""Called with how many events are done and how many there are."""

_PAGE = 5000
_TELL_EVERY = 1000
_LEVEL_OF = {BreakKind.GAP: Level.POSITIONS, BreakKind.ORDER: Level.POSITIONS}


@dataclass(slots=True)
class RunTrace:
    """What the second pass needs to know of a run."""

    run_id: str
    commit: PlanCommit | None = None
    committed_at: int = 0
    committed: bytes = b""
    started: bool = False
    outcomes: int = 0
    order: OutcomeOrder = field(default_factory=OutcomeOrder)
    last_end: str | None = None
    cuts: list[Cut] = field(default_factory=list)


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
        runs: by run id, in the order in which they appear.
        unreadable: whether the pass ended at an event that cannot be read.
    """

    row: BindingRow
    reports: dict[Level, LevelReport]
    heads: Heads
    after: int = 0
    trusted: bytes = GENESIS
    folded: Sequence[FoldedProjection] = ()
    verifier: ChainVerifier = field(init=False)
    runs: dict[str, RunTrace] = field(default_factory=dict)
    unreadable: bool = False

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
        self._tell(progress)
        for level in (Level.POSITIONS, Level.CHAIN, Level.CATALOGUE):
            self.reports[level].checked = self.verifier.events
        self._compare_head()
        await self._beside_pages(ledger)
        await self._behind_head(ledger)

    async def _run_by_pages(self, ledger: HashedSource, progress: Progress | None) -> None:
        """The same by pages of hashed bytes, as far as they can be read; what stops here is looked at one by one."""
        plain = PlainEvents(self.row.url, self.row.branch)
        pages = ledger.hashed_pages(self.row.id, after=self.verifier.position, until=self.row.head_position)
        async with aclosing(pages):
            while (page := await _next_page(pages)) is not None and await self._take_page(ledger, plain, *page):
                self._tell(progress)

    async def _take_page(
        self, ledger: HashedSource, plain: PlainEvents, hashed: Sequence[bytes], hashes: Sequence[bytes]
    ) -> bool:
        """Take the events of a page; False at the first one that cannot be read, with those before it taken."""
        marks = [*plain.marks(hashed), False]
        at = 0
        while at < len(hashed):
            end = marks.index(False, at) if marks[at] else at + 1
            stretch = plain.stretch(hashed[at:end], hashes[at:end], self.verifier) if marks[at] else None
            if stretch is not None and stretch.run_id not in self.runs:
                stretch, end = None, at + 1  # its first event makes the run known
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
        for projection in self.folded:
            projection.take_stretch(stretch)
        self.heads.passed(stretch.hashes)
        trace = self.runs[stretch.run_id]
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
        if self.after and event.run_id is not None and event.run_id not in self.runs:
            await self._earlier(ledger, event.run_id)
        self._catalogue(event)

    def _tell(self, progress: Progress | None) -> None:
        if progress:
            progress(self.after + self.verifier.events, self.row.head_position)

    async def _earlier(self, ledger: AuditSource, run_id: str) -> None:
        """What is known of a run that began among the events that are trusted."""
        trace = self.runs.setdefault(run_id, RunTrace(run_id))
        async for event in ledger.events(self.row.id, until=self.after, run_id=run_id):
            _trace(trace, event, _body(event))

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
            except (OverflowError, ValueError) as exc:
                if page == 1:
                    self.unreadable = True
                    self.reports[Level.CHAIN].add(
                        "UnreadableEventError",
                        checked=f"the event behind position {after}",
                        expected="values that an append can have stored",
                        found=type(exc).__name__,
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
        )

    def _catalogue(self, event: StoredEvent) -> None:
        report = self.reports[Level.CATALOGUE]
        if event.kind not in BODIES or event.schema_version > SCHEMA_VERSION:
            report.add(
                "UnknownEventKind",
                checked=f"the kind of event {event.position}",
                expected=f"a kind of this program's catalogue, version {SCHEMA_VERSION} or older",
                found=f"{event.kind}, version {event.schema_version}",
            )
            return
        if event.kind == APPLIED and is_plain_body(event.body):
            body: object | None = None  # nothing of it is needed; it is the one spelling of such a body
        elif (body := _body(event)) is None or not is_canonical(event.body):
            report.add(
                "EventBodyInvalid",
                checked=f"the body of event {event.position}",
                expected=f"canonical bytes of a body of {event.kind}",
                found="another shape" if body is None else "other bytes for the same values",
            )
        if event.run_id is not None:
            trace = self.runs.setdefault(event.run_id, RunTrace(event.run_id))
            _trace(trace, event, body)

    def _compare_head(self) -> None:
        report, row = self.reports[Level.HEAD], self.row
        report.checked = 1
        if (self.verifier.position, self.verifier.head) != (row.head_position, row.head_hash):
            report.add(
                "HeadMismatch",
                checked="the head of the binding against its last event",
                expected=f"position {row.head_position}, hash {row.head_hash.hex()}",
                found=f"position {self.verifier.position}, hash {self.verifier.head.hex()}",
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


def _body(event: StoredEvent) -> object | None:
    try:
        return BODIES[event.kind].model_validate_json(event.body)
    except (KeyError, ValueError):
        return None


def _trace(trace: RunTrace, event: StoredEvent, body: object) -> None:
    if isinstance(body, PlanCommitted):
        trace.commit, trace.committed_at = body.commit, event.position
        # As it was received, whatever this program's version of a commit would add.
        trace.committed = canonical_json_bytes((parsed_object(event.body) or {}).get("commit"))
    if isinstance(body, PlanRefused | RunStarted) and body.cut is not None:
        trace.cuts.append(body.cut)
    if event.kind == "run.started":
        trace.started = True
    elif event.kind in OUTCOME_KINDS:
        trace.outcomes += 1
        trace.order.take(event)
    elif event.kind.startswith("run.") and event.kind != "run.resumed":
        trace.last_end = event.kind
