"""One binding as the machine drives it: its model, and what its writers remember."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ledger.binding import DestinationBinding
from ledger.events import NewEvent
from ledger.store.records import InFlight, Lease, OrderState
from tests.state_machine import facts
from tests.state_machine.model import SUCCESSES, BindingModel, Mark
from tests.state_machine.tables import Tables


@dataclass(frozen=True)
class Call:
    """An append that was answered, kept to be asked again."""

    lease: Lease
    events: tuple[NewEvent, ...]
    mark: Mark
    settle: bool
    closes: tuple[tuple[int, OrderState], ...]
    answer: tuple[int, int]


@dataclass
class Side:
    """A binding. ``leases`` are all that were ever given, ``marked`` is what was ever seen in flight in the tables."""

    id: int
    binding: DestinationBinding
    model: BindingModel = field(default_factory=BindingModel)
    leases: list[Lease] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    marked: set[InFlight] = field(default_factory=set)

    def lease(self, back: int) -> Lease:
        """The newest lease, or one of those before it."""
        return self.leases[-1 - min(back, len(self.leases) - 1)]

    def starts(self, run_id: str) -> int:
        """How often a run was started or resumed."""
        kinds = ("run.started", "run.resumed")
        return sum(event.kind in kinds and event.run_id == run_id for event, _ in self.model.log)

    def next_mark(self, run_id: str, *, after: NewEvent | None = None) -> InFlight | None:
        """The first create without a success and its next attempt; only of a run that was started."""
        if not self.starts(run_id):
            return None
        told = [*self.model.outcomes(run_id), *([after] if after else [])]
        for ordinal in range(facts.CREATES):
            mine = [event for event in told if event.ordinal == ordinal]
            if not any(event.kind in SUCCESSES for event in mine):
                return InFlight(run_id, ordinal, len(mine) + 1)
        return None

    def same_mark(self) -> Mark:
        """The mark as it stands, so that the events alone decide."""
        return self.model.mark or "keep"

    def deletes_left(self, run_id: str) -> list[int]:
        """Recorded deletes of a run without an outcome, as soon as everything before them in the plan is done."""
        if not self.starts(run_id) or self.next_mark(run_id) is not None:
            return []
        done = {event.ordinal for event in self.model.outcomes(run_id)}
        return [ordinal for ordinal in range(facts.CREATES, len(facts.OPERATIONS)) if ordinal not in done]

    def altered(self, events: tuple[NewEvent, ...], how: str) -> list[NewEvent]:
        """Known events with other content, in another order or in other company."""
        new = facts.run_mark("run.stopped", self.binding, facts.RUNS[0], 99)
        if how == "other bytes":
            return [*events[:-1], replace(events[-1], body=b'{"other":1}')]
        if how == "other attempt":
            return [*events[:-1], replace(events[-1], attempt=(events[-1].attempt or 0) + 7)]
        if how == "other order":
            return list(reversed(events))
        if how == "more":
            return [*events, new]
        return list(events[:1]) if how == "less" else [events[0], new, *events[1:]]

    def require_same(self, tables: Tables) -> None:
        """The tables say what the model says, down to the bytes."""
        row, model = tables.binding, self.model
        assert (row["writer_epoch"], row["lease_owner"]) == (model.epoch, model.owner), "model: epoch and owner"
        found = (row["live"], row["quiet"], tables.mark)
        assert found == (model.live, model.quiet, model.mark), "model: lease, quiet period and mark"
        stored = [
            (NewEvent(e.event_id, e.kind, e.body, e.run_id, e.operation_id, e.ordinal, e.attempt), e.writer_epoch)
            for e in tables.events
        ]
        assert stored == model.log, "model: the log"
        inbox = [(order["kind"], order["run_id"], order["position"], order["state"]) for order in tables.inbox]
        assert inbox == [(o.kind, o.run_id, o.position, o.state) for o in model.inbox], "model: the inbox"
