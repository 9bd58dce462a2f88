"""What an event presupposes of the events before it: a log from which one was taken out contradicts itself.

Whoever takes an event out, or puts one in, and computes every hash anew leaves a chain that holds. But an event says
where others stand: a commit how far the log had come when its plan was made, an attempt how many there were before it,
an event of a writer which claim is in force. Only what every log has that this program wrote is looked at here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ledger.events import (
    OUTCOME_KINDS,
    CheckpointPublished,
    PlanCommitted,
    RunStarted,
    StoredEvent,
    WriterOpened,
)

_ENDS = frozenset({"run.applied", "run.failed", "run.interrupted", "run.stopped"})


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Something that an event presupposes and the log before it has not."""

    what: str
    expected: str
    found: str


@dataclass(slots=True)
class RunPlace:
    """Where a run stands, by its events so far.

    Attributes:
        committed: whether its commit went by.
        started: whether it has begun.
        open: whether it goes on: begun or resumed, and not ended since.
        ordinal: of the operation with the last outcome; -1 where none has one.
        attempt: the attempt of that outcome.
    """

    committed: bool = False
    started: bool = False
    open: bool = False
    ordinal: int = -1
    attempt: int = 0

    def take(self, event: StoredEvent) -> Iterator[Contradiction]:
        """Take the next event of the run; what it presupposes and is not so."""
        kind = event.kind
        if kind == "plan.committed":
            self.committed = True
            return
        if not self.committed:
            yield Contradiction(f"the commit of run {event.run_id}", "one before it", "none")
            self.committed = True  # told once
        if kind in OUTCOME_KINDS:
            yield from self._outcome(event)
        elif kind == "run.started":
            if self.started:
                yield Contradiction(f"the start of run {event.run_id}", "none before it", "one")
            self.started = self.open = True
        elif kind == "run.resumed":
            if self.open or not self.started:
                found = "the run going on" if self.open else "no start"
                yield Contradiction(f"what of run {event.run_id} was resumed", "a start and an end before it", found)
            self.started = self.open = True
        elif kind in _ENDS or kind == "plan.refused":
            if kind in _ENDS and not self.open:
                yield self._not_going_on(event)
            self.open = False

    def passes(self, first_ordinal: int, last_ordinal: int) -> bool:
        """Take the first attempts at operations in a row; False, and nothing taken, where each has to be looked at."""
        if not self.open or first_ordinal <= self.ordinal:
            return False
        self.ordinal, self.attempt = last_ordinal, 1
        return True

    def _outcome(self, event: StoredEvent) -> Iterator[Contradiction]:
        if not self.open:
            yield self._not_going_on(event)
            self.open = True  # told once
        ordinal = -1 if event.ordinal is None else event.ordinal
        expected = self.attempt + 1 if ordinal == self.ordinal else 1
        if event.attempt != expected:
            what = f"the attempt at operation {ordinal} of run {event.run_id}"
            yield Contradiction(what, f"attempt {expected}, one more than have an outcome", f"attempt {event.attempt}")
        self.ordinal, self.attempt = ordinal, event.attempt or 0

    def _not_going_on(self, event: StoredEvent) -> Contradiction:
        found = "an end" if self.started else "no start"
        return Contradiction(f"whether run {event.run_id} goes on", "a start or resumption since its last end", found)


def beyond(event: StoredEvent, body: object) -> Iterator[Contradiction]:
    """Positions that a body names and that were not there yet when it was appended."""
    named: list[tuple[str, int]] = []
    if isinstance(body, PlanCommitted) and body.commit.ledger_position is not None:
        named = [("the end of the log when the plan was made", body.commit.ledger_position)]
    elif isinstance(body, RunStarted):
        named = [(f"the overlap with run {overlap.run_id}", overlap.position) for overlap in body.overlaps]
    elif isinstance(body, CheckpointPublished):
        named = [("the event that was signed", body.position)]
    for what, position in named:
        if position >= event.position:
            yield Contradiction(what, f"a position before {event.position}", str(position))


def next_epoch(event: StoredEvent, body: object, current: int | None) -> Iterator[Contradiction]:
    """Each claim raises the epoch by one, and what a writer appends carries the epoch of the last claim (G2).

    Args:
        event: the event.
        body: its body as one of its kind; None where it is none.
        current: of the last claim; 0 in front of the first, None where it is not known.
    """
    found = event.writer_epoch
    if event.kind != "writer.opened":
        if found is not None and current is not None and found != current:
            yield Contradiction("the epoch of its writer", f"{current}, that of the last claim", str(found))
        return
    if isinstance(body, WriterOpened) and body.epoch != found:
        yield Contradiction("the epoch in its body", str(found), str(body.epoch))
    if current is not None and found != current + 1:
        yield Contradiction("the epoch that was claimed", f"{current + 1}, one more than the last", str(found))
