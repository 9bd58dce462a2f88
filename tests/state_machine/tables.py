"""The tables as they stand, read by an administrator without the store; and the guarantees that must hold in them."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import Any

from ledger.chain import GENESIS, event_hash
from ledger.events import OUTCOME_KINDS, StoredEvent
from ledger.store.bindings import in_flight_of, stored_event
from ledger.store.records import InFlight
from tests.state_machine.facts import CREATES, OPERATIONS
from tests.state_machine.model import SUCCESSES

_BINDING = """
select *, coalesce(lease_expires_at > clock_timestamp(), false) as live,
       coalesce(quiet_until > clock_timestamp(), false) as quiet
from ledger.binding where id = $1
"""
_EVENTS = """
select b.url, b.branch, e.position, e.event_id, e.kind, e.schema_version, e.run_id, e.operation_id, e.ordinal,
       e.attempt, e.writer_epoch, e.recorded_at, e.body, e.prev_hash, e.hash
from ledger.event e join ledger.binding b on b.id = e.binding_id
where e.binding_id = $1 order by e.position
"""
_INBOX = "select * from ledger.inbox where binding_id = $1 order by inbox_id"


@dataclass(frozen=True)
class Tables:
    """What stands in the tables for one binding."""

    binding: Any
    events: list[StoredEvent]
    inbox: list[Any]

    @classmethod
    async def read(cls, admin: Any, binding_id: int) -> Tables:
        """Read them."""
        rows = [await admin.fetch(text, binding_id) for text in (_EVENTS, _INBOX)]
        return cls(await admin.fetchrow(_BINDING, binding_id), [stored_event(row) for row in rows[0]], rows[1])

    @property
    def mark(self) -> InFlight | None:
        """The operation in flight."""
        return in_flight_of(self.binding)


def check_guarantees(tables: Tables, marked: set[InFlight]) -> None:
    """Every guarantee that can be seen in the tables alone.

    Args:
        tables: of one binding.
        marked: every operation that was ever seen in flight there.
    """
    _one_writer(tables)
    _outcomes(tables)
    _one_in_doubt(tables, marked)
    _recorded_once(tables)
    _chain(tables)


def _one_writer(tables: Tables) -> None:
    epoch = 0
    for event in tables.events:
        if event.kind == "writer.opened":
            epoch += 1
            said = (event.writer_epoch, json.loads(event.body)["epoch"])
            assert said == (epoch, epoch), f"G2: epoch {said} was opened after {epoch - 1}"
        elif event.writer_epoch is not None:
            assert event.writer_epoch == epoch, f"G2: {event.kind} of epoch {event.writer_epoch} in epoch {epoch}"
    assert tables.binding["writer_epoch"] == epoch, "G2: the binding's epoch is that of its last writer"


def _outcomes(tables: Tables) -> None:
    successes: Counter[tuple[str | None, str | None]] = Counter()
    for event in tables.events:
        if event.kind not in OUTCOME_KINDS:
            continue
        assert event.ordinal is not None, "G3: an outcome has an ordinal"
        assert event.operation_id == OPERATIONS[event.ordinal], "G3: an outcome is that of an operation of the plan"
        skipped = event.ordinal >= CREATES
        assert skipped == (event.kind == "operation.skipped"), "G3: deletes are recorded, everything else dispatched"
        successes[event.run_id, event.operation_id] += event.kind in SUCCESSES
    assert max(successes.values(), default=0) <= 1, f"G3: an operation succeeded twice: {successes}"


def _one_in_doubt(tables: Tables, marked: set[InFlight]) -> None:
    told = [
        InFlight(str(event.run_id), event.ordinal or 0, event.attempt or 0)
        for event in tables.events
        if event.kind in OUTCOME_KINDS
    ]
    dispatched = {mark for mark in told if mark.ordinal < CREATES}
    assert dispatched <= marked, f"G4: dispatched without a durable mark: {dispatched - marked}"
    doubts = marked - set(told)
    assert len(doubts) <= 1, f"G4: more than one operation in doubt: {doubts}"
    assert doubts == ({tables.mark} if tables.mark else set()), "G4: what is in doubt is what is marked"


def _recorded_once(tables: Tables) -> None:
    attempts = Counter((e.run_id, e.operation_id, e.attempt) for e in tables.events if e.kind in OUTCOME_KINDS)
    assert max(attempts.values(), default=0) <= 1, f"G7: two outcomes of one attempt: {attempts}"
    ids = Counter(event.event_id for event in tables.events)
    assert max(ids.values(), default=0) <= 1, "G7: one event id twice"
    commits = [(row["run_id"], row["position"]) for row in tables.inbox if row["kind"] == "commit"]
    events = [(event.run_id, event.position) for event in tables.events if event.kind == "plan.committed"]
    assert sorted(commits) == sorted(events), "G7: one plan.committed for each commit of the inbox"
    assert len({run_id for run_id, _ in commits}) == len(commits), "G7: a run is committed once"
    waiting = Counter((row["run_id"], row["kind"]) for row in tables.inbox if row["state"] == "open")
    assert max(waiting.values(), default=0) <= 1, f"G7: one open order of a kind for a run: {waiting}"
    assert [row["inbox_id"] for row in tables.inbox] == list(range(1, len(tables.inbox) + 1)), "G7: inbox numbers"


def _chain(tables: Tables) -> None:
    previous = GENESIS
    for position, event in enumerate(tables.events, start=1):
        assert event.position == position, f"G8: position {event.position} where {position} had to be"
        assert event.prev_hash == previous, f"G8: event {position} does not chain to the one before"
        assert event.hash == event_hash(event), f"G8: event {position} does not hash to its hash"
        previous = event.hash
    head = (tables.binding["head_position"], tables.binding["head_hash"])
    assert head == (len(tables.events), previous), "G8: the head is the last event"
