"""What the rules of the machine are made of: calls of the ledger beside the model, and the judgement of both."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from hypothesis import event as note
from hypothesis.stateful import RuleBasedStateMachine

from ledger.commit import Policy
from ledger.events import NewEvent
from ledger.store.errors import StoreError
from ledger.store.records import InFlight, Lease, OrderState
from tests.state_machine import facts
from tests.state_machine.database import LONG, Database
from tests.state_machine.folds import check_projections
from tests.state_machine.model import Mark, Verdict
from tests.state_machine.sides import Call, Side
from tests.state_machine.tables import check_guarantees


class Moves(RuleBasedStateMachine):
    """Two bindings. ``judge_answers`` off leaves the judgement to the tables alone."""

    def __init__(self, database: Database, *, judge_answers: bool = True) -> None:
        super().__init__()
        self.database = database
        self.judge_answers = judge_answers
        self.sides: list[Side] = []

    def check(self, side: Side) -> None:
        tables = self.database.tables(side.id)
        if tables.mark is not None:
            side.marked.add(tables.mark)
        check_guarantees(tables, side.marked)
        if self.judge_answers:
            side.require_same(tables)
            check_projections(tables.events, side.model)

    def do_carry_on(self, side: Side, run_id: str, kinds: Sequence[str], dies: bool) -> None:
        """What the holder does while nobody disturbs it; where it ``dies``, an operation is left in flight."""
        lease = side.lease(0)
        if side.model.commit_of(run_id) is None:
            self.do_submit(side, run_id, {})
        if side.model.mark is None:
            starts = side.starts(run_id)
            begun = facts.run_mark("run.resumed" if starts else "run.started", side.binding, run_id, starts)
            self.append(side, lease, [begun])
        for kind in (*kinds, None):
            self.do_settle(side)
            if side.model.mark is None and (mark := side.next_mark(run_id)) and (kind or dies):
                self.append(side, lease, [], mark)
                self.check(side)
            if side.model.mark is not None and (kind or not dies):
                self.do_record(side, lease, kind or "operation.failed", kind == "operation.applied")
                self.check(side)

    def do_record(self, side: Side, lease: Lease, kind: str, goes_on: bool) -> None:
        """The outcome of the operation in flight, and where it goes on the mark of the next, in one call."""
        mark = marked(side.model.mark)
        event = facts.outcome(kind, side.binding, mark.run_id, mark.ordinal, mark.attempt)
        following = side.next_mark(mark.run_id, after=event) if goes_on else None
        # A quiet period and a mark exclude each other, so one that goes on says nothing of settling.
        settle = kind == "operation.unknown" and following is None
        self.append(side, lease, [event], following, settle=settle)

    def do_settle(self, side: Side) -> None:
        side.model.quiet = False
        self.database.let_it_settle(side.id)

    def do_claim(self, side: Side, owner: str, behind: int) -> None:
        expected = max(0, side.model.epoch - behind)
        verdict = side.model.claim(owner, expected, facts.opened(side.binding, owner, expected + 1))
        lease = self.judge(verdict, lambda: self.database.claim(owner, side.id, side.binding, expected))
        if isinstance(lease, Lease) and lease.epoch not in [known.epoch for known in side.leases]:
            side.leases.append(lease)

    def run_out(self, side: Side) -> None:
        side.model.live = False
        self.database.let_lease_run_out(side.id)

    def do_submit(self, side: Side, run_id: str, other: dict[str, Any]) -> None:
        commit = facts.commit(side.binding, run_id, **other)
        verdict = side.model.submit_commit(commit, facts.committed(commit))
        receipt = self.await_(verdict, self.database.ledger.submit_commit(side.id, commit))
        if receipt is not None and self.judge_answers:
            first = next(order for order in side.model.inbox if (order.kind, order.run_id) == ("commit", run_id))
            assert receipt.position == first.position, "G7: a repeat is answered with the first row"

    def judge(self, verdict: Verdict, call: Callable[[], Any]) -> Any:
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

    def await_(self, verdict: Verdict, work: Coroutine[Any, Any, Any]) -> Any:
        return self.judge(verdict, lambda: self.database.run(work))

    def append(
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
        appended = self.await_(
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

    def order(self, side: Side, run_id: str, policy: Policy | None) -> None:
        """A resume has a policy, a stop has none."""
        ledger = self.database.ledger
        if policy is None:
            stop = ledger.submit_stop(side.id, run_id=run_id, by="me", reason="enough")
            self.await_(side.model.submit_order("stop", run_id, None), stop)
        else:
            resume = ledger.submit_resume(side.id, run_id=run_id, by="me", reason="go on", policy=policy)
            self.await_(side.model.submit_order("resume", run_id, policy), resume)

    def end_run(self, side: Side, lease: Lease, run_id: str, kind: str, state: OrderState, but: str) -> None:
        """The end of a run closes the orders of it that are open, ``but`` one kind."""
        if starts := side.starts(run_id):
            mine = [(n, o.kind) for n, o in enumerate(side.model.inbox, 1) if (o.run_id, o.state) == (run_id, "open")]
            closes = [(n, state) for n, ordered_kind in mine if ordered_kind != but]
            event = facts.run_mark(kind, side.binding, run_id, starts - 1)
            self.append(side, lease, [event], "keep", closes=closes)


def marked(mark: InFlight | None) -> InFlight:
    """The mark, where a rule is meant for a binding that has one."""
    if mark is None:
        raise LookupError("the rule is for a binding with an operation in flight")
    return mark
