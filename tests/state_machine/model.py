"""What a binding must be after each call: lease, operation in flight, quiet period, log and inbox, without a database.

Every method says which error the ledger owes, or changes the model as the ledger must change. Nothing here knows SQL,
time or hashes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from ledger.commit import PlanCommit
from ledger.events import OUTCOME_KINDS, NewEvent
from ledger.store import errors
from ledger.store.records import InFlight, Lease, OrderState

Verdict = type[errors.StoreError] | None
Mark = InFlight | Literal["keep"] | None
SUCCESSES = frozenset({"operation.applied", "operation.skipped"})
GOES_ON = frozenset({"plan.committed", "run.started", "run.resumed"})


@dataclass
class ModelOrder:
    """One row of the inbox. ``content`` is the commit, or the policy of a resume, or nothing for a stop."""

    kind: str
    run_id: str
    content: object
    position: int
    state: str = "open"


@dataclass
class BindingModel:
    """One binding. The log holds each event with the epoch under which it was appended."""

    epoch: int = 0
    owner: str | None = None
    live: bool = False
    mark: InFlight | None = None
    quiet: bool = False
    log: list[tuple[NewEvent, int | None]] = field(default_factory=list)
    inbox: list[ModelOrder] = field(default_factory=list)

    def claim(self, owner: str, expected: int, opened: NewEvent) -> Verdict:
        """A repeat of the claim that holds is the claim that holds."""
        again = (self.epoch, self.owner) == (expected + 1, owner)
        if not again and self.live:
            return errors.LeaseHeldError
        if not again and self.epoch != expected:
            return errors.EpochMovedError
        if not again:
            self.epoch, self.owner = expected + 1, owner
            self.log.append((opened, self.epoch))
        self.live = True
        self.quiet = self.quiet or self.mark is not None
        return None

    def holds(self, lease: Lease) -> bool:
        """Name and epoch, both; nobody is no holder."""
        return self.owner is not None and (lease.owner, lease.epoch) == (self.owner, self.epoch)

    def renew(self, lease: Lease) -> Verdict:
        """Also of a lease that ran out and that nobody took."""
        if not self.holds(lease):
            return errors.FencedWriterError
        self.live = True
        return None

    def release(self, lease: Lease) -> Verdict:
        """Twice is once; the epoch stays."""
        if lease.epoch != self.epoch or (self.owner is not None and not self.holds(lease)):
            return errors.FencedWriterError
        self.owner, self.live = None, False
        return None

    def append(
        self,
        lease: Lease,
        events: Sequence[NewEvent],
        mark: Mark = "keep",
        settle: bool = False,
        closes: Sequence[tuple[int, OrderState]] = (),
    ) -> Verdict:
        """Fence, repeat, quiet period, doubt, facts, in that order; then the log and the mark move together."""
        if not self.holds(lease):
            return errors.FencedWriterError
        if known := self.positions(events):
            stored = [event for event, _ in self.log[known[0] - 1 : known[-1]]]
            if stored != list(events) or (mark != "keep" and mark != self.mark):
                return errors.EventConflictError
            return self._close(closes)
        if isinstance(mark, InFlight) and self.quiet:
            return errors.QuietPeriodError
        if self.mark is not None and (self.mark in marks_of(events)) != (mark not in ("keep", self.mark)):
            return errors.DoubtDroppedError
        if not events and isinstance(mark, InFlight) and not self._is_ahead(mark):
            return errors.EventConflictError
        if self._twice(events):
            return errors.DuplicateFactError
        if (refused := self._close(closes)) is not None:
            return refused
        self.log += [(event, self.epoch) for event in events]
        self.mark = self.mark if mark == "keep" else mark
        self.quiet = self.quiet or settle
        return None

    def close(self, lease: Lease, index: int, state: OrderState) -> Verdict:
        """An order changes once; the same change again is harmless."""
        return self._close([(index, state)]) if self.holds(lease) else errors.FencedWriterError

    def submit_commit(self, commit: PlanCommit, committed: NewEvent) -> Verdict:
        """A run is committed once; who says it again, when and why does not matter, what it is does."""
        first = self.commit_of(commit.run_id)
        if first is None:
            self.log.append((committed, None))
            self.inbox.append(ModelOrder("commit", commit.run_id, commit, len(self.log)))
            return None
        if first.plan_checksum != commit.plan_checksum:
            return errors.RunChecksumConflictError
        if self.goes_on(commit.run_id) and first.policy != commit.policy:
            return errors.PolicyConflictError
        return None if first.artifact_digest == commit.artifact_digest else errors.CommitConflictError

    def submit_order(self, kind: str, run_id: str, content: object) -> Verdict:
        """A resume for a run that ended, a stop for one that goes on; one open order of each kind."""
        if (waiting := self.waiting(kind, run_id)) is not None:
            return None if waiting.content == content else errors.OrderConflictError
        if self.commit_of(run_id) is None:
            return errors.UnknownRunError
        if self.last_mark(run_id) == "run.applied" or (kind == "stop" and not self.goes_on(run_id)):
            return errors.RunFinishedError
        if kind == "resume" and self.goes_on(run_id):
            return errors.RunStillOpenError
        if kind == "resume" and (late := self.waiting("stop", run_id)) is not None:
            late.state = "done"
        self.inbox.append(ModelOrder(kind, run_id, content, len(self.log)))
        return None

    # -- what follows from the above ----------------------------------------------------------------------------------

    def commit_of(self, run_id: str) -> PlanCommit | None:
        """The commit of a run."""
        contents = (order.content for order in self.inbox if (order.kind, order.run_id) == ("commit", run_id))
        found = next(contents, None)
        return found if isinstance(found, PlanCommit) else None

    def waiting(self, kind: str, run_id: str) -> ModelOrder | None:
        """The open order of a kind for a run."""
        mine = (order for order in self.inbox if (order.kind, order.run_id, order.state) == (kind, run_id, "open"))
        return next(mine, None)

    def last_mark(self, run_id: str) -> str | None:
        """The last event of a run that is no outcome."""
        kinds = [e.kind for e, _ in self.log if e.run_id == run_id and e.kind not in OUTCOME_KINDS]
        return kinds[-1] if kinds else None

    def goes_on(self, run_id: str) -> bool:
        """Whether somebody carries the run out, or has to."""
        ordered = [self.waiting(kind, run_id) for kind in ("commit", "resume")]
        return self.last_mark(run_id) in GOES_ON or any(ordered)

    def positions(self, events: Sequence[NewEvent]) -> list[int]:
        """Where events with these ids stand."""
        ids = {event.event_id for event in events}
        return [place for place, (event, _) in enumerate(self.log, start=1) if event.event_id in ids]

    def outcomes(self, run_id: str) -> list[NewEvent]:
        """Outcomes of a run in stored order."""
        return [event for event, _ in self.log if event.run_id == run_id and event.kind in OUTCOME_KINDS]

    def _close(self, closes: Sequence[tuple[int, OrderState]]) -> Verdict:
        if any(self.inbox[index - 1].state not in ("open", state) for index, state in closes):
            return errors.OrderConflictError
        for index, state in closes:
            self.inbox[index - 1].state = state
        return None

    def _is_ahead(self, mark: InFlight) -> bool:
        """Behind every outcome of its run: an attempt that was never told."""
        told = self.outcomes(mark.run_id)
        return not told or (told[-1].ordinal or 0, told[-1].attempt or 0) < (mark.ordinal, mark.attempt)

    def _twice(self, events: Sequence[NewEvent]) -> bool:
        """Whether an attempt would get a second outcome, or an operation a second success."""
        told = [e for e in (*(stored for stored, _ in self.log), *events) if e.kind in OUTCOME_KINDS]
        attempts = [(e.run_id, e.operation_id, e.attempt) for e in told]
        successes = [(e.run_id, e.operation_id) for e in told if e.kind in SUCCESSES]
        return len(set(attempts)) < len(attempts) or len(set(successes)) < len(successes)


def marks_of(events: Sequence[NewEvent]) -> list[InFlight]:
    """The operations in flight whose outcome is told by these events."""
    return [
        InFlight(event.run_id, event.ordinal, event.attempt)
        for event in events
        if event.kind in OUTCOME_KINDS
        and event.run_id is not None
        and event.ordinal is not None
        and event.attempt is not None
    ]
