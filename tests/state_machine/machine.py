"""Any sequence of calls by three writers, most of them dead or late, on two bindings, against the model.

Every append may be sent under every lease that was ever given: the newest one is the holder's, the others are those of
zombies. Which error the ledger owes is the model's word; what stands in the tables afterwards is judged without it.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any, cast

from hypothesis import event as note
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ledger.commit import Policy
from ledger.events import NewEvent
from ledger.store.errors import StoreError
from ledger.store.records import InFlight, Lease, OrderState
from tests.state_machine import facts
from tests.state_machine.conditions import (
    answered,
    deleting,
    dispatchable,
    held,
    in_doubt,
    leased,
    ordered,
    some,
    started,
    successful,
)
from tests.state_machine.database import LONG, OWNERS, Database
from tests.state_machine.folds import check_projections
from tests.state_machine.model import SUCCESSES, Mark, Verdict
from tests.state_machine.sides import Call, Side
from tests.state_machine.tables import check_guarantees

AT = st.sampled_from((0, 0, 0, 1))
RUNS = st.sampled_from((facts.RUNS[0], facts.RUNS[0], facts.RUNS[1]))
BACK = st.sampled_from((0, 0, 0, 0, 1, 2))
WHICH = st.integers(0, 9)
CLOSED = st.sampled_from(("done", "refused"))
OTHER_COMMITS = st.sampled_from(
    (
        {},
        {},
        {"actor": "another", "reason": "again", "committed_at": "2026-12-01T00:00:00.000000+00:00"},
        {"plan_checksum": "a" * 64},
        {"policy": facts.POLICIES[1]},
        {"artifact_digest": "e" * 64},
    )
)


class LedgerMachine(RuleBasedStateMachine):
    """The rules. ``judge_answers`` off leaves the judgement to the tables alone."""

    def __init__(self, database: Database, *, judge_answers: bool = True) -> None:
        super().__init__()
        self.database = database
        self.judge_answers = judge_answers
        self.sides: list[Side] = []

    @initialize(owner=st.sampled_from(OWNERS))
    def two_bindings_and_a_run(self, owner: str) -> None:
        """Two bindings; on the first a run is committed and about to be started."""
        self.sides = [Side(*self.database.new_binding()) for _ in range(2)]
        self.database.examples += 1
        self._claim(self.sides[0], owner, 0)
        self._submit(self.sides[0], facts.RUNS[0], {})

    # -- the lease ----------------------------------------------------------------------------------------------------

    @rule(at=AT)
    def register_again(self, at: int) -> None:
        side = self.sides[at]
        assert self.database.run(self.database.ledger.register_binding(side.binding)) == side.id, "one binding: one row"

    @rule(at=AT, owner=st.sampled_from(OWNERS), behind=st.sampled_from((0, 0, 0, 0, 1, 2)))
    def claim(self, at: int, owner: str, behind: int) -> None:
        """``behind`` makes it a claim by somebody who read the epoch earlier, or the repeat of an answered claim."""
        self._claim(self.sides[at], owner, behind)

    @rule(at=AT)
    @some(leased)
    def claim_again_after_the_answer_was_lost(self, side: Side) -> None:
        self._claim(side, side.lease(0).owner, 1)

    @rule(at=AT, owner=st.sampled_from((None, *OWNERS)))
    @some(held)
    def the_holder_dies_and_another_takes_its_place(self, side: Side, owner: str | None) -> None:
        """The other may have the same name: then the epoch alone tells the two apart."""
        self._run_out(side)
        self._claim(side, owner or side.lease(0).owner, 0)

    @rule(at=AT)
    @some(held)
    def the_lease_runs_out(self, side: Side) -> None:
        self._run_out(side)

    @rule(at=AT, back=BACK)
    @some(leased)
    def renew(self, side: Side, back: int) -> None:
        lease = side.lease(back)
        self._await(side.model.renew(lease), self.database.store_of(lease).renew(lease))

    @rule(at=AT, back=BACK)
    @some(leased)
    def release(self, side: Side, back: int) -> None:
        lease = side.lease(back)
        self._await(side.model.release(lease), self.database.store_of(lease).release(lease))

    @rule(at=AT)
    @some(lambda side: side.model.quiet)
    def the_destination_settles(self, side: Side) -> None:
        side.model.quiet = False
        self.database.let_it_settle(side.id)

    # -- the inbox ----------------------------------------------------------------------------------------------------

    @rule(at=AT, run_id=RUNS, other=OTHER_COMMITS)
    def submit_commit(self, at: int, run_id: str, other: dict[str, Any]) -> None:
        self._submit(self.sides[at], run_id, other)

    @rule(at=AT, run_id=RUNS, policy=st.sampled_from(facts.POLICIES))
    def resume(self, at: int, run_id: str, policy: Policy) -> None:
        side = self.sides[at]
        verdict = side.model.submit_order("resume", run_id, policy)
        order = self.database.ledger.submit_resume(side.id, run_id=run_id, by="me", reason="go on", policy=policy)
        self._await(verdict, order)

    @rule(at=AT, run_id=RUNS)
    def stop(self, at: int, run_id: str) -> None:
        side = self.sides[at]
        verdict = side.model.submit_order("stop", run_id, None)
        self._await(verdict, self.database.ledger.submit_stop(side.id, run_id=run_id, by="me", reason="enough"))

    @rule(at=AT, back=BACK, which=WHICH, state=CLOSED)
    @some(ordered)
    def close_order(self, side: Side, back: int, which: int, state: OrderState) -> None:
        lease, index = side.lease(back), 1 + which % len(side.model.inbox)
        verdict = side.model.close(lease, index, state)
        self._await(verdict, self.database.store_of(lease).close_order(lease, index, state))

    # -- what a writer appends ----------------------------------------------------------------------------------------

    @rule(at=AT, back=BACK, run_id=RUNS)
    @some(leased)
    def start_or_resume(self, side: Side, back: int, run_id: str) -> None:
        if side.model.commit_of(run_id):
            starts = side.starts(run_id)
            kind = "run.resumed" if starts else "run.started"
            self._append(side, side.lease(back), [facts.run_mark(kind, side.binding, run_id, starts)])

    @rule(at=AT, back=BACK, run_id=RUNS)
    @some(dispatchable)
    def dispatch(self, side: Side, back: int, run_id: str) -> None:
        """Marks the next operation, also before the quiet period has ended."""
        if mark := side.next_mark(run_id):
            self._append(side, side.lease(back), [], mark)

    @rule(
        at=AT,
        back=BACK,
        kind=st.sampled_from(("operation.applied", "operation.applied", "operation.failed", "operation.unknown")),
        goes_on=st.booleans(),
    )
    @some(in_doubt)
    def record(self, side: Side, back: int, kind: str, goes_on: bool) -> None:
        """The outcome of the operation in flight, and where it goes on the mark of the next, in one call."""
        mark = _known(side.model.mark)
        event = facts.outcome(kind, side.binding, mark.run_id, mark.ordinal, mark.attempt)
        following = side.next_mark(mark.run_id, after=event) if goes_on else None
        # A quiet period and a mark exclude each other, so one that goes on says nothing of settling.
        settle = kind == "operation.unknown" and following is None
        self._append(side, side.lease(back), [event], following, settle=settle)

    @rule(at=AT, back=BACK, run_id=RUNS, count=st.integers(1, 2))
    @some(deleting)
    def record_deletes(self, side: Side, back: int, run_id: str, count: int) -> None:
        left = side.deletes_left(run_id)[:count]
        if left:
            events = [facts.outcome("operation.skipped", side.binding, run_id, ordinal, 1) for ordinal in left]
            self._append(side, side.lease(back), events, "keep")

    @rule(
        at=AT,
        back=BACK,
        run_id=RUNS,
        kind=st.sampled_from(("run.applied", "run.stopped", "run.failed", "run.interrupted")),
        state=CLOSED,
    )
    @some(started)
    def end(self, side: Side, back: int, run_id: str, kind: str, state: OrderState) -> None:
        """The end of a run closes every order of it that is open."""
        if starts := side.starts(run_id):
            closes = [(n, state) for n, o in enumerate(side.model.inbox, 1) if (o.run_id, o.state) == (run_id, "open")]
            event = facts.run_mark(kind, side.binding, run_id, starts - 1)
            self._append(side, side.lease(back), [event], "keep", closes=closes)

    @rule(at=AT, back=BACK)
    @some(in_doubt)
    def take_over(self, side: Side, back: int) -> None:
        """What a successor does first about the operation that it found in flight."""
        mark = _known(side.model.mark)
        events = [
            facts.outcome("operation.unknown", side.binding, mark.run_id, mark.ordinal, mark.attempt),
            facts.run_mark("run.interrupted", side.binding, mark.run_id, side.starts(mark.run_id) - 1),
        ]
        self._append(side, side.lease(back), events, None)

    # -- what no writer should append ---------------------------------------------------------------------------------

    @rule(at=AT, back=BACK, how=st.sampled_from(("clear", "move", "tell and keep")))
    @some(in_doubt)
    def drop_the_doubt(self, side: Side, back: int, how: str) -> None:
        """Moves the mark away from an operation whose outcome nobody recorded, or leaves it on a recorded one."""
        mark = _known(side.model.mark)
        told = facts.outcome("operation.failed", side.binding, mark.run_id, mark.ordinal, mark.attempt)
        moved = InFlight(mark.run_id, mark.ordinal, mark.attempt + 1)
        events = [told] if how == "tell and keep" else []
        to: Mark = None if how == "clear" else (moved if how == "move" else "keep")
        self._append(side, side.lease(back), events, to)

    @rule(
        at=AT,
        owner=st.sampled_from((None, None, None, *OWNERS)),
        how=st.sampled_from(("append", "append", "renew", "release")),
    )
    @some(leased)
    def use_the_epoch_under_another_name(self, side: Side, owner: str | None, how: str) -> None:
        """Epochs can be read by everybody; the name has to be right as well, and no name is nobody's."""
        lease = replace(side.lease(0), owner=cast("str", owner))
        store = self.database.store_of(lease)
        if how == "append":
            self._append(side, lease, [facts.run_mark("run.stopped", side.binding, facts.RUNS[0], side.model.epoch)])
        elif how == "renew":
            self._await(side.model.renew(lease), store.renew(lease))
        else:
            self._await(side.model.release(lease), store.release(lease))

    @rule(at=AT, back=BACK, which=WHICH, again=st.booleans())
    @some(successful)
    def record_twice(self, side: Side, back: int, which: int, again: bool) -> None:
        """A second success of an operation, or another outcome of the same attempt."""
        told = [event for event, _ in side.model.log if event.kind in SUCCESSES]
        event = told[which % len(told)]
        kind = event.kind if again else "operation.failed"
        attempt = (event.attempt or 0) + again
        second = facts.outcome(kind, side.binding, str(event.run_id), event.ordinal or 0, attempt)
        self._append(side, side.lease(back), [second], side.same_mark())

    @rule(at=AT, which=st.sampled_from((0, 0, 0, 1, 2, 5)))
    @some(answered)
    def ask_again(self, side: Side, which: int) -> None:
        """The answer was lost, now or long ago."""
        call = side.calls[-1 - which % len(side.calls)]
        self._append(side, call.lease, call.events, call.mark, settle=call.settle, closes=call.closes, known=call)

    @rule(
        at=AT,
        back=BACK,
        which=st.integers(0, 3),
        how=st.sampled_from(("other bytes", "other attempt", "other order", "more", "less", "in between")),
    )
    @some(answered)
    def ask_again_otherwise(self, side: Side, back: int, which: int, how: str) -> None:
        """Known ids with other content, in another order, or in other company."""
        if told := [call for call in side.calls if call.events]:
            events = side.altered(told[-1 - which % len(told)].events, how)
            self._append(side, side.lease(back), events, side.same_mark())

    # -- after every step ---------------------------------------------------------------------------------------------

    @invariant()
    def the_guarantees_hold_and_the_tables_are_the_model(self) -> None:
        self.database.steps += 1
        for side in self.sides:
            tables = self.database.tables(side.id)
            if tables.mark is not None:
                side.marked.add(tables.mark)
            check_guarantees(tables, side.marked)
            if self.judge_answers:
                side.require_same(tables)
                check_projections(tables.events, side.model)

    # -- how ----------------------------------------------------------------------------------------------------------

    def _claim(self, side: Side, owner: str, behind: int) -> None:
        expected = max(0, side.model.epoch - behind)
        verdict = side.model.claim(owner, expected, facts.opened(side.binding, owner, expected + 1))
        lease = self._judge(verdict, lambda: self.database.claim(owner, side.id, side.binding, expected))
        if isinstance(lease, Lease) and lease.epoch not in [known.epoch for known in side.leases]:
            side.leases.append(lease)

    def _run_out(self, side: Side) -> None:
        side.model.live = False
        self.database.let_lease_run_out(side.id)

    def _submit(self, side: Side, run_id: str, other: dict[str, Any]) -> None:
        commit = facts.commit(side.binding, run_id, **other)
        verdict = side.model.submit_commit(commit, facts.committed(commit))
        receipt = self._await(verdict, self.database.ledger.submit_commit(side.id, commit))
        if receipt is not None and self.judge_answers:
            first = next(order for order in side.model.inbox if (order.kind, order.run_id) == ("commit", run_id))
            assert receipt.position == first.position, "G7: a repeat is answered with the first row"

    def _judge(self, verdict: Verdict, call: Callable[[], Any]) -> Any:
        owed = "an answer" if verdict is None else verdict.__name__
        note(f"owed {owed}")
        answer, found = None, "an answer"
        try:
            answer = call()
        except StoreError as error:
            found = type(error).__name__
        if self.judge_answers:
            assert found == owed, f"answer: {found} where {owed} was owed"
        return answer

    def _await(self, verdict: Verdict, work: Coroutine[Any, Any, Any]) -> Any:
        return self._judge(verdict, lambda: self.database.run(work))

    def _append(
        self,
        side: Side,
        lease: Lease,
        events: Sequence[NewEvent],
        mark: Mark = "keep",
        *,
        settle: bool = False,
        closes: Sequence[tuple[int, OrderState]] = (),
        known: Call | None = None,
    ) -> None:
        verdict = side.model.append(lease, events, mark, settle, closes)
        appended = self._await(
            verdict,
            self.database.store_of(lease).append(
                lease, events, in_flight=mark, settle=LONG if settle else None, close_orders=closes
            ),
        )
        if appended is None or not self.judge_answers:
            return
        answer = (appended.first_position, appended.last_position)
        places = side.model.positions(events)
        owed = (places[0], places[-1]) if places else (len(side.model.log) + 1, len(side.model.log))
        assert answer == owed, f"answer: positions {answer} where {owed} were owed"
        if known is None:
            side.calls.append(Call(lease, tuple(events), mark, settle, tuple(closes), answer))
        elif events:
            assert answer == known.answer, "answer: another one than the first time"


def machine_on(database: Database, *, judge_answers: bool = True) -> type[LedgerMachine]:
    """The machine with its database, as the runner wants it: a class without arguments."""

    class Machine(LedgerMachine):
        def __init__(self) -> None:
            super().__init__(database, judge_answers=judge_answers)

    return Machine


def _known(mark: InFlight | None) -> InFlight:
    if mark is None:
        raise LookupError("the rule is for a binding with an operation in flight")
    return mark
