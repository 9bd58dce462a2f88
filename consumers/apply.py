"""One run: the loop that dispatches a plan's operations in stored order and records what became of each (P100 to P148).

The gate has passed and ``run.started`` or ``run.resumed`` stands in the ledger. For each operation without a success:

1. a delete is recorded as skipped and never dispatched; consecutive ones share one append;
2. somebody may stop the run here, and only here: between two operations;
3. one append records the outcome of the operation before and marks this one as in flight, durably;
4. the write surface is called, possibly while that append is still running; the lease guard holds its request until
   the mark is durable, and is asked as the last step before the request leaves;
5. success is kept for the next append; anything else ends the run, or is tried again where the policy says so.

What ends the loop otherwise (a defect, a cancellation) is recorded before it goes on: as unknown where the operation
may have been sent. Only a lost lease or a lost ledger leaves nothing behind but the mark, from which a successor
records the operation as unknown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import structlog

from consumers.control import RunControl, StopRequest
from consumers.dispatch import Dispatch
from consumers.errors import KnowabilityError, LeaseLostError
from consumers.lease import Clock, LeaseGuard, suspend_clock, to_its_end
from consumers.outcomes import (
    Verdict,
    cancelled_verdict,
    defect_verdict,
    reason_of_end,
)
from consumers.pauses import NoPause, PauseHook, PausePoint
from consumers.progress import WriterObserver, WriterProgress, unobserved
from consumers.recorder import RunRecorder
from consumers.settings import WriterSettings
from ledger.commit import Policy
from ledger.destination import PlannedWriteDestination
from ledger.events import BY_WRITER, MAX_EVENTS_PER_APPEND, NewEvent, RunStopped
from ledger.plan.model import PlannedOperation
from ledger.plan.stored_operations import identifiers_of
from ledger.store.errors import QuietPeriodError, StoreError
from ledger.store.records import InFlight

_log = structlog.get_logger(__name__)

_PENDING_LIMIT = MAX_EVENTS_PER_APPEND - 2
"""Room for the last outcome and the terminal event in the same append."""

_LEAST_WAIT = 0.01
Ending = Literal["run.applied", "run.failed", "run.interrupted", "run.stopped", "left_open"]


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at one operation, as marked in flight."""

    operation: PlannedOperation
    ordinal: int
    number: int


class RunApplication:
    """Applies what is left of one admitted plan. One object, one call of :meth:`run`."""

    def __init__(
        self,
        *,
        operations: Sequence[PlannedOperation],
        destination: PlannedWriteDestination,
        begin_unmarked: bool = False,
        recorder: RunRecorder,
        guard: LeaseGuard,
        control: RunControl,
        policy: Policy,
        settings: WriterSettings,
        order_inbox_id: int | None = None,
        notes: Mapping[str, str] | None = None,
        pause: PauseHook | None = None,
        observe: WriterObserver = unobserved,
        clock: Clock = suspend_clock,
    ) -> None:
        """``operations`` is the whole plan in stored order; what has a success in the history is passed over.

        ``begin_unmarked`` says that each request of ``destination`` waits for the guard: then an operation is begun
        while the database records its mark, and all of it but the request is done when the mark is durable.
        ``order_inbox_id`` is the order that this run carries out; it is closed together with the terminal event.
        ``notes`` is what the outcome of an applied operation says beside its node, by operation id.
        """
        self._operations = operations
        self._begin_unmarked = begin_unmarked
        self._recorder = recorder
        self._history = recorder.history
        self._keeper = recorder.keeper
        self._control = control
        self._policy = policy
        self._settings = settings
        self._order = order_inbox_id
        self._pause = pause or NoPause()
        self._observe = observe
        self._dispatch = Dispatch(
            destination, guard, recorder.keeper, control, notes=notes or {}, pause=self._pause, clock=clock
        )
        self._current: Attempt | None = None
        self._ahead: tuple[int, PlannedOperation] | None = None

    async def run(self) -> Ending:
        """Dispatch until the plan is done, an operation fails, or somebody asks for an end.

        Raises:
            StoreError, LeaseLostError: nothing more can be recorded by this process.
            Exception: a defect; what could be recorded was recorded, and the run has a terminal event.
            CancelledError: recorded like a crash while an operation was under way, else the run is left open.
        """
        try:
            return await self._loop()
        except (StoreError, LeaseLostError):
            raise
        except BaseException as exc:  # a cancellation too: whatever ends the run in the middle is recorded first
            await to_its_end(self._record_abnormal_end(exc))
            raise
        finally:
            await self._dispatch.give_up()
            await self._control.close()

    async def _loop(self) -> Ending:
        for ordinal, name in enumerate(identifiers_of(self._operations)):
            if self._history.has_success(name):
                continue
            operation = self._operation(ordinal)
            if operation.action == "delete":
                await self._skip(operation, ordinal)
                continue
            ended = await self._work(operation, ordinal)
            if ended is not None:
                return ended
            self._show("applying")
        return await self._complete()

    def _operation(self, ordinal: int) -> PlannedOperation:
        """The operation at a place of the plan; it was made ahead where there was time for that."""
        ahead, self._ahead = self._ahead, None
        return ahead[1] if ahead is not None and ahead[0] == ordinal else self._operations[ordinal]

    async def _skip(self, operation: PlannedOperation, ordinal: int) -> None:
        self._recorder.pending.append(self._recorder.skipped_event(operation, ordinal))
        if len(self._recorder.pending) >= _PENDING_LIMIT:
            await self._flush()

    async def _work(self, operation: PlannedOperation, ordinal: int) -> Ending | None:
        """Attempts at one operation until it is applied (None) or the run ends."""
        while True:
            attempt = Attempt(operation, ordinal, self._history.attempts.get(operation.operation_id, 0) + 1)
            ended = await self._mark(attempt)
            if ended is not None:
                return ended
            verdict = await self._dispatch.attempt(operation)
            if verdict.kind == "operation.applied":
                self._conclude(attempt, verdict)
                return None
            may_go_on = self._may_converge(operation.operation_id, verdict)
            await to_its_end(self._record_failure(attempt, verdict, end_run=not may_go_on))
            if not may_go_on:
                return "run.failed" if self._proves_unwritten(attempt, verdict) else "run.interrupted"
            self._wait_before_repeat(operation.operation_id, verdict)

    def _may_converge(self, operation_id: str, verdict: Verdict) -> bool:
        """Whether the policy has the operation sent again; not where only another plan is a way on."""
        if verdict.kind != "operation.unknown" or verdict.final:
            return False
        tried = self._history.unknown_in_episode.get(operation_id, 0) + 1
        return self._policy.on_unknown == "converge" and tried < self._settings.max_converge_attempts

    def _wait_before_repeat(self, operation_id: str, verdict: Verdict) -> None:
        """Nothing has to settle where nothing was sent, but what kept it back would still be there at once."""
        if not verdict.settle:
            tried = self._history.unknown_in_episode.get(operation_id, 1)
            self._keeper.extend_quiet(self._settings.converge_wait * 2 ** (tried - 1))

    def _proves_unwritten(self, attempt: Attempt, verdict: Verdict) -> bool:
        """A refusal speaks of its own attempt; after an earlier one that may have written it proves nothing (G5)."""
        return verdict.kind == "operation.failed" and attempt.operation.operation_id not in self._history.in_doubt

    async def _mark(self, attempt: Attempt) -> Ending | None:
        """Record what is pending and mark the operation as in flight; an ending where the run ends here instead."""
        mark = self._mark_of(attempt)
        begin = partial(self._while_marking, attempt) if self._begin_unmarked else None
        while True:
            ended = await self._until_quiet(attempt.operation.operation_id)
            if ended is not None:
                return ended
            await self._keeper.make_room()
            self._current = attempt
            self._dispatch.may_have_left = False
            try:
                await self._recorder.commit(in_flight=mark, meanwhile=begin)
            except QuietPeriodError as exc:
                self._keeper.extend_quiet(max(float(exc.facts.get("seconds", 0.0)), _LEAST_WAIT))
            else:
                return None

    def _while_marking(self, attempt: Attempt) -> None:
        """While the database records the mark: begin the operation, and read the one behind it."""
        self._dispatch.begin(attempt.operation)
        following = attempt.ordinal + 1
        if self._ahead is None and following < len(self._operations):
            self._ahead = (following, self._operations[following])

    def _mark_of(self, attempt: Attempt) -> InFlight:
        return InFlight(run_id=self._history.run_id, ordinal=attempt.ordinal, attempt=attempt.number)

    async def _until_quiet(self, operation_id: str) -> Ending | None:
        """Wait while the destination may still be busy with a lost request; an ending where the run ends meanwhile."""
        while True:
            ended = await self._asked_to_end(operation_id)
            if ended is not None:
                return ended
            left = self._keeper.quiet_for()
            if left <= 0:
                return None
            await self._flush()
            self._show("settling", seconds=left)
            await self._control.wait(min(left, self._settings.poll_interval))

    def _conclude(self, attempt: Attempt, verdict: Verdict) -> None:
        """The attempt has its outcome; from here on it is no longer in doubt for this process."""
        self._current = None
        self._recorder.pending.append(
            self._recorder.operation_event(
                verdict.kind,
                verdict.body,
                operation_id=attempt.operation.operation_id,
                ordinal=attempt.ordinal,
                attempt=attempt.number,
            )
        )

    async def _record_failure(
        self, attempt: Attempt, verdict: Verdict, *, end_run: bool, keep_order: bool = False
    ) -> None:
        """One append for the outcome, the end of the run where it ends, and the start of settling."""
        self._conclude(attempt, verdict)
        settle = self._settings.settle_seconds if verdict.settle else None
        if not end_run:
            await self._recorder.commit(in_flight=None, settle=settle)
            return
        kind: Literal["run.failed", "run.interrupted"] = (
            "run.failed" if self._proves_unwritten(attempt, verdict) else "run.interrupted"
        )
        await self._pause.reached(PausePoint.BEFORE_TERMINAL)
        ended = self._recorder.ended_event(kind, failed_operation=attempt.operation.operation_id)
        await self._finish(ended, settle=settle, keep_order=keep_order)

    async def _asked_to_end(self, operation_id: str) -> Ending | None:
        """End the run here where somebody asks for it; in doubt about an operation it is interrupted, not stopped."""
        stop = await self._control.requested()
        if stop is not None:
            if operation_id not in self._history.in_doubt:
                await to_its_end(self._stop(stop))
                return "run.stopped"
            ended = self._recorder.ended_event("run.interrupted", failed_operation=operation_id)
            await to_its_end(self._finish(ended, stop=stop))
            return "run.interrupted"
        if self._control.must_leave:
            await self._flush()
            return "left_open"
        return None

    async def _stop(self, stop: StopRequest) -> None:
        await self._pause.reached(PausePoint.BEFORE_TERMINAL)
        body = RunStopped(by=stop.by, reason=stop.reason, last_ordinal=self._recorder.last_ordinal)
        await self._finish(self._recorder.run_event("run.stopped", body), stop=stop)

    async def _complete(self) -> Ending:
        """End a run in which every operation succeeded, after checking that against the records (P114, P147)."""
        pending = {event.operation_id for event in self._recorder.pending if event.operation_id is not None}
        recorded = len(self._history.applied) + len(self._history.skipped) + len(pending)
        missing = sum(
            not self._history.has_success(name) and name not in pending for name in identifiers_of(self._operations)
        )
        planned = len(self._operations)
        if missing or recorded != planned:
            raise KnowabilityError(
                f"run {self._history.run_id}: {planned} operations planned, {recorded} recorded as done, and "
                f"the two sets differ by {missing + recorded - (planned - missing)}"
            )
        await self._pause.reached(PausePoint.BEFORE_TERMINAL)
        await self._finish(self._recorder.ended_event("run.applied"))
        skipped = len(self._history.skipped)
        if skipped:
            _log.info("recorded deletes were not executed", run_id=self._history.run_id, count=skipped)
        return "run.applied"

    async def _finish(
        self,
        terminal: NewEvent,
        *,
        settle: float | None = None,
        stop: StopRequest | None = None,
        keep_order: bool = False,
    ) -> None:
        """Append the terminal event and close what it answers in the same transaction."""
        orders = [] if keep_order else [self._order]
        orders += [] if stop is None else [stop.inbox_id]
        self._recorder.pending.append(terminal)
        await self._recorder.commit(
            in_flight=None, settle=settle, close_orders=[(order, "done") for order in orders if order is not None]
        )
        await self._pause.reached(PausePoint.AFTER_TERMINAL)

    async def _flush(self) -> None:
        if self._recorder.pending:
            await self._recorder.commit(in_flight=None)

    async def _record_abnormal_end(self, exc: BaseException) -> None:
        """Record what a defect or a cancellation left behind; the exception itself is what the caller gets to see."""
        try:
            if self._current is not None and self._recorder.in_flight == self._mark_of(self._current):
                await self._record_interrupted(self._current, exc)
            elif isinstance(exc, Exception):
                await self._stop(StopRequest(by=BY_WRITER, reason=reason_of_end(exc)))
            else:
                await self._flush()
        except (StoreError, LeaseLostError) as lost:
            _log.error("the end of a run could not be recorded", run_id=self._history.run_id, error=str(lost))
        else:
            exc.add_note(f"run {self._history.run_id}: recorded; last ordinal {self._history.last_ordinal}")

    async def _record_interrupted(self, attempt: Attempt, exc: BaseException) -> None:
        """The operation is unknown where it may have been sent. A cancelled run stays ordered, to be resumed."""
        if isinstance(exc, Exception):
            await self._record_failure(attempt, defect_verdict(exc, sent=self._dispatch.may_have_left), end_run=True)
            return
        verdict = cancelled_verdict(sent=self._dispatch.may_have_left)
        resumes = self._policy.on_crash == "resume"
        await self._record_failure(attempt, verdict, end_run=True, keep_order=resumes)

    def _show(self, phase: Literal["applying", "settling"], *, seconds: float = 0.0) -> None:
        self._observe(
            WriterProgress(
                phase=phase,
                run_id=self._history.run_id,
                done=self._recorder.done,
                total=len(self._operations),
                seconds=seconds,
            )
        )
