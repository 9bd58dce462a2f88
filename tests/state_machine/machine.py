"""Any sequence of calls by three writers, most of them dead or late, on two bindings, against the model.

Every append may be sent under every lease that was ever given: the newest one is the holder's, the others are those of
zombies. Which error the ledger owes is the model's word; what stands in the tables afterwards is judged without it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from ledger.commit import Policy
from ledger.store.records import InFlight, OrderState
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
from tests.state_machine.database import OWNERS, Database
from tests.state_machine.model import SUCCESSES, Mark
from tests.state_machine.moves import Moves, marked
from tests.state_machine.sides import Side

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


class LedgerMachine(Moves):
    """The rules."""

    @initialize(owner=st.sampled_from(OWNERS), kinds=st.lists(OUTCOMES, max_size=4), dies=st.booleans())
    def two_bindings_and_a_run(self, owner: str, kinds: list[str], dies: bool) -> None:
        """Two bindings; on the first a run is committed, started and carried on for a while."""
        self.sides = [Side(*self.database.new_binding()) for _ in range(2)]
        self.database.examples += 1
        self.do_claim(self.sides[0], owner, 0)
        self.do_submit(self.sides[0], facts.RUNS[0], {})
        self.do_carry_on(self.sides[0], facts.RUNS[0], kinds, dies)

    # -- the lease ----------------------------------------------------------------------------------------------------

    @rule(at=AT, owner=st.sampled_from((None, *OWNERS)), behind=st.sampled_from((0, 0, 1, 1, 2)))
    def claim(self, at: int, owner: str | None, behind: int) -> None:
        """``behind`` makes it a claim by somebody who read the epoch earlier, or one whose answer was lost."""
        side = self.sides[at]
        last = side.lease(0).owner if side.leases else OWNERS[0]
        self.do_claim(side, owner or last, behind)

    @rule(at=AT, owner=st.sampled_from((None, *OWNERS)))
    @some(held)
    def the_holder_dies_and_another_takes_its_place(self, side: Side, owner: str | None) -> None:
        """The other may have the same name: then the epoch alone tells the two apart."""
        self.run_out(side)
        self.do_claim(side, owner or side.lease(0).owner, 0)

    @rule(at=AT, owner=st.sampled_from((None, *OWNERS)), claims=st.booleans())
    @some(in_doubt)
    def another_tells_the_answer(self, side: Side, owner: str | None, claims: bool) -> None:
        """A frozen writer that wakes up when another holds the binding and all has settled; or nobody at all."""
        frozen = side.lease(0) if claims else replace(side.lease(0), owner="nobody")
        if claims:
            self.run_out(side)
            self.do_claim(side, owner or frozen.owner, 0)
        self.do_settle(side)
        self.do_record(side, frozen, "operation.applied", True)

    @rule(at=AT)
    @some(held)
    def the_lease_runs_out(self, side: Side) -> None:
        self.run_out(side)

    @rule(at=AT, back=BACK)
    @some(leased)
    def renew(self, side: Side, back: int) -> None:
        lease = side.lease(back)
        self.await_(side.model.renew(lease), self.database.store_of(lease).renew(lease))

    @rule(at=AT, back=BACK)
    @some(leased)
    def release(self, side: Side, back: int) -> None:
        lease = side.lease(back)
        self.await_(side.model.release(lease), self.database.store_of(lease).release(lease))

    @rule(at=AT)
    @some(lambda side: side.model.quiet)
    def the_destination_settles(self, side: Side) -> None:
        self.do_settle(side)

    # -- the inbox ----------------------------------------------------------------------------------------------------

    @rule(at=AT, run_id=RUNS, other=OTHER_COMMITS)
    def submit_commit(self, at: int, run_id: str, other: dict[str, Any]) -> None:
        side = self.sides[at]
        assert self.database.run(self.database.ledger.register_binding(side.binding)) == side.id, "one binding: one row"
        self.do_submit(side, run_id, other)

    @rule(at=AT, run_id=RUNS, policy=st.sampled_from((None, *facts.POLICIES)))
    def resume_or_stop(self, at: int, run_id: str, policy: Policy | None) -> None:
        """A resume has a policy, a stop has none."""
        self.order(self.sides[at], run_id, policy)

    @rule(at=AT, back=BACK, which=WHICH, state=CLOSED)
    @some(ordered)
    def close_order(self, side: Side, back: int, which: int, state: OrderState) -> None:
        lease, index = side.lease(back), 1 + which % len(side.model.inbox)
        verdict = side.model.close(lease, index, state)
        self.await_(verdict, self.database.store_of(lease).close_order(lease, index, state))

    # -- what a writer appends ----------------------------------------------------------------------------------------

    @rule(at=AT, run_id=RUNS, kinds=st.lists(OUTCOMES, max_size=4), dies=st.booleans())
    @some(held)
    def carry_on(self, side: Side, run_id: str, kinds: list[str], dies: bool) -> None:
        self.do_carry_on(side, run_id, kinds, dies)

    @rule(at=AT, back=BACK, run_id=RUNS)
    @some(leased)
    def start_or_resume(self, side: Side, back: int, run_id: str) -> None:
        if side.model.commit_of(run_id):
            starts = side.starts(run_id)
            kind = "run.resumed" if starts else "run.started"
            self.append(side, side.lease(back), [facts.run_mark(kind, side.binding, run_id, starts)])

    @rule(at=AT, back=BACK, run_id=RUNS)
    @some(dispatchable)
    def dispatch(self, side: Side, back: int, run_id: str) -> None:
        """Marks the next operation, also before the quiet period has ended."""
        if mark := side.next_mark(run_id):
            self.append(side, side.lease(back), [], mark)

    @rule(
        at=AT,
        back=BACK,
        kind=OUTCOMES,
        goes_on=st.booleans(),
    )
    @some(in_doubt)
    def record(self, side: Side, back: int, kind: str, goes_on: bool) -> None:
        self.do_record(side, side.lease(back), kind, goes_on)

    @rule(at=AT, back=BACK, run_id=RUNS, count=st.integers(1, 2))
    @some(deleting)
    def record_deletes(self, side: Side, back: int, run_id: str, count: int) -> None:
        left = side.deletes_left(run_id)[:count]
        if left:
            events = [facts.outcome("operation.skipped", side.binding, run_id, ordinal, 1) for ordinal in left]
            self.append(side, side.lease(back), events, "keep")

    @rule(
        at=AT,
        back=BACK,
        run_id=RUNS,
        kind=st.sampled_from(("run.applied", "run.stopped", "run.failed", "run.interrupted")),
        state=CLOSED,
        but=st.sampled_from(("stop", "none")),
    )
    @some(started)
    def end(self, side: Side, back: int, run_id: str, kind: str, state: OrderState, but: str) -> None:
        """The end of a run closes the orders of it that are open, ``but`` a stop that its writer has not seen."""
        self.end_run(side, side.lease(back), run_id, kind, state, but)

    @rule(at=AT, run_id=RUNS, policy=st.sampled_from(facts.POLICIES))
    @some(started)
    def a_stop_comes_too_late(self, side: Side, run_id: str, policy: Policy) -> None:
        """It must not end what is ordered after the run's end."""
        self.order(side, run_id, None)
        self.end_run(side, side.lease(0), run_id, "run.stopped", "done", "stop")
        self.order(side, run_id, policy)

    @rule(at=AT, back=BACK)
    @some(in_doubt)
    def take_over(self, side: Side, back: int) -> None:
        """What a successor does first about the operation that it found in flight."""
        mark = marked(side.model.mark)
        events = [
            facts.outcome("operation.unknown", side.binding, mark.run_id, mark.ordinal, mark.attempt),
            facts.run_mark("run.interrupted", side.binding, mark.run_id, side.starts(mark.run_id) - 1),
        ]
        self.append(side, side.lease(back), events, None)

    # -- what no writer should append ---------------------------------------------------------------------------------

    @rule(at=AT, back=BACK, how=st.sampled_from(("clear", "move", "tell and keep", "tell another")))
    @some(in_doubt)
    def drop_the_doubt(self, side: Side, back: int, how: str) -> None:
        """Moves the mark away from an operation whose outcome nobody recorded, or leaves it on a recorded one."""
        mark = marked(side.model.mark)
        told = facts.outcome("operation.failed", side.binding, mark.run_id, mark.ordinal, mark.attempt)
        moved = InFlight(mark.run_id, mark.ordinal, mark.attempt + 1)
        another = facts.outcome("operation.applied", side.binding, mark.run_id, mark.ordinal, mark.attempt + 1)
        events = {"tell and keep": [told], "tell another": [another]}.get(how, [])
        further = InFlight(mark.run_id, mark.ordinal, mark.attempt + 2)
        to: Mark = {"clear": None, "tell and keep": "keep", "move": moved}.get(how, further)
        self.append(side, side.lease(back), events, to)

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
            self.append(side, lease, [facts.run_mark("run.stopped", side.binding, facts.RUNS[0], side.model.epoch)])
        elif how == "renew":
            self.await_(side.model.renew(lease), store.renew(lease))
        else:
            self.await_(side.model.release(lease), store.release(lease))

    @rule(at=AT, back=BACK, which=WHICH, again=st.booleans())
    @some(successful)
    def record_twice(self, side: Side, back: int, which: int, again: bool) -> None:
        """A second success of an operation, or another outcome of the same attempt."""
        told = [event for event, _ in side.model.log if event.kind in SUCCESSES]
        event = told[which % len(told)]
        kind = event.kind if again else "operation.failed"
        attempt = (event.attempt or 0) + again
        second = facts.outcome(kind, side.binding, str(event.run_id), event.ordinal or 0, attempt)
        self.append(side, side.lease(back), [second], side.same_mark())

    @rule(at=AT, which=st.sampled_from((0, 0, 0, 1, 2, 5)))
    @some(answered)
    def ask_again(self, side: Side, which: int) -> None:
        """The answer was lost, now or long ago."""
        call = side.calls[-1 - which % len(side.calls)]
        self.append(side, call.lease, call.events, call.mark, settle=call.settle, closes=call.closes, known=call)

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
            self.append(side, side.lease(back), events, side.same_mark())

    # -- after every step ---------------------------------------------------------------------------------------------

    @invariant()
    def the_guarantees_hold_and_the_tables_are_the_model(self) -> None:
        self.database.steps += 1
        for side in self.sides:
            self.check(side)


def machine_on(database: Database, *, judge_answers: bool = True) -> type[LedgerMachine]:
    """The machine with its database, as the runner wants it: a class without arguments."""

    class Machine(LedgerMachine):
        def __init__(self) -> None:
            super().__init__(database, judge_answers=judge_answers)

    return Machine
