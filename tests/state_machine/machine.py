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
OUTCOMES = st.sampled_from(("operation.applied", "operation.applied", "operation.failed", "operation.unknown"))
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

    @initialize(owner=st.sampled_from(OWNERS), kinds=st.lists(OUTCOMES, max_size=4), dies=st.booleans())
    def two_bindings_and_a_run(self, owner: str, kinds: list[str], dies: bool) -> None:
        """Two bindings; on the first a run is committed, started and carried on for a while."""
        self.sides = [Side(*self.database.new_binding()) for _ in range(2)]
        self.database.examples += 1
        self._claim(self.sides[0], owner, 0)
        self._submit(self.sides[0], facts.RUNS[0], {})
        self._carry_on(self.sides[0], facts.RUNS[0], kinds, dies)

    # -- the lease ----------------------------------------------------------------------------------------------------

    @rule(at=AT, owner=st.sampled_from((None, *OWNERS)), behind=st.sampled_from((0, 0, 1, 1, 2)))
    def claim(self, at: int, owner: str | None, behind: int) -> None:
        """``behind`` makes it a claim by somebody who read the epoch earlier, or one whose answer was lost."""
        side = self.sides[at]
        last = side.lease(0).owner if side.leases else OWNERS[0]
        self._claim(side, owner or last, behind)

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
        self._settle(side)

    # -- the inbox ----------------------------------------------------------------------------------------------------

    @rule(at=AT, run_id=RUNS, other=OTHER_COMMITS)
    def submit_commit(self, at: int, run_id: str, other: dict[str, Any]) -> None:
        side = self.sides[at]
        assert self.database.run(self.database.ledger.register_binding(side.binding)) == side.id, "one binding: one row"
        self._submit(side, run_id, other)

    @rule(at=AT, run_id=RUNS, policy=st.sampled_from((None, *facts.POLICIES)))
    def resume_or_stop(self, at: int, run_id: str, policy: Policy | None) -> None:
        """A resume has a policy, a stop has none."""
        side, ledger = self.sides[at], self.database.ledger
        if policy is None:
            stop = ledger.submit_stop(side.id, run_id=run_id, by="me", reason="enough")
            self._await(side.model.submit_order("stop", run_id, None), stop)
        else:
            resume = ledger.submit_resume(side.id, run_id=run_id, by="me", reason="go on", policy=policy)
            self._await(side.model.submit_order("resume", run_id, policy), resume)

    @rule(at=AT, back=BACK, which=WHICH, state=CLOSED)
    @some(ordered)
    def close_order(self, side: Side, back: int, which: int, state: OrderState) -> None:
        lease, index = side.lease(back), 1 + which % len(side.model.inbox)
        verdict = side.model.close(lease, index, state)
        self._await(verdict, self.database.store_of(lease).close_order(lease, index, state))

    # -- what a writer appends ----------------------------------------------------------------------------------------

    @rule(at=AT, run_id=RUNS, kinds=st.lists(OUTCOMES, max_size=4), dies=st.booleans())
    @some(held)
    def carry_on(self, side: Side, run_id: str, kinds: list[str], dies: bool) -> None:
        self._carry_on(side, run_id, kinds, dies)

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
        kind=OUTCOMES,
        goes_on=st.booleans(),
    )
    @some(in_doubt)
    def record(self, side: Side, back: int, kind: str, goes_on: bool) -> None:
        self._record(side, side.lease(back), kind, goes_on)

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
            self._check(side)

    # -- how ----------------------------------------------------------------------------------------------------------

    def _check(self, side: Side) -> None:
        tables = self.database.tables(side.id)
        if tables.mark is not None:
            side.marked.add(tables.mark)
        check_guarantees(tables, side.marked)
        if self.judge_answers:
            side.require_same(tables)
            check_projections(tables.events, side.model)

    def _carry_on(self, side: Side, run_id: str, kinds: Sequence[str], dies: bool) -> None:
        """What the holder does while nobody disturbs it; where it ``dies``, an operation is left in flight."""
        lease = side.lease(0)
        if side.model.commit_of(run_id) is None:
            self._submit(side, run_id, {})
        if side.model.mark is None:
            starts = side.starts(run_id)
            begun = facts.run_mark("run.resumed" if starts else "run.started", side.binding, run_id, starts)
            self._append(side, lease, [begun])
        for kind in (*kinds, None):
            self._settle(side)
            if side.model.mark is None and (mark := side.next_mark(run_id)) and (kind or dies):
                self._append(side, lease, [], mark)
                self._check(side)
            if side.model.mark is not None and (kind or not dies):
                self._record(side, lease, kind or "operation.failed", kind == "operation.applied")
                self._check(side)

    def _record(self, side: Side, lease: Lease, kind: str, goes_on: bool) -> None:
        """The outcome of the operation in flight, and where it goes on the mark of the next, in one call."""
        mark = _known(side.model.mark)
        event = facts.outcome(kind, side.binding, mark.run_id, mark.ordinal, mark.attempt)
        following = side.next_mark(mark.run_id, after=event) if goes_on else None
        # A quiet period and a mark exclude each other, so one that goes on says nothing of settling.
        settle = kind == "operation.unknown" and following is None
        self._append(side, lease, [event], following, settle=settle)

    def _settle(self, side: Side) -> None:
        side.model.quiet = False
        self.database.let_it_settle(side.id)

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
