"""Carries out one order: reads the history, checks and stores the plan, starts the run, applies its operations."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from consumers.apply import Ending, RunApplication
from consumers.control import RunControl
from consumers.cuts import fit
from consumers.errors import (
    DispatchRefusedError,
    GateDefectError,
    LeaseLostError,
    RequestOutlivesLeaseError,
    UnusableOrderError,
    WriterNotSetUpError,
    exit_code_of_refusal,
)
from consumers.gate import AdmittedPlan, Gate, read_committed, require_location
from consumers.history import RunHistory, read_history
from consumers.lease import Clock, LeaseGuard, LeaseKeeper, suspend_clock
from consumers.opening import LeftWhileOpening, open_while_wanted
from consumers.orders import commit_of, is_carried_out, policy_of, unusable
from consumers.pauses import NoPause, PauseHook, PausePoint
from consumers.ports import LedgerPort
from consumers.progress import WriterObserver, WriterProgress, unobserved
from consumers.recorded_text import recordable
from consumers.recorder import RunRecorder
from consumers.settings import WriterSettings
from ledger.binding import DestinationBinding
from ledger.commit import PlanCommit, Policy
from ledger.destination import DestinationAwayError, DestinationOpener, OpenDestination
from ledger.errors import ApplyLedgerError, ConfigurationError, Finding
from ledger.events import BY_WRITER, PlanRefused, RunResumed, RunStarted
from ledger.exit_codes import ExitCode
from ledger.plan.checksum import checksummed_body
from ledger.plan.errors import ArtifactStoreAwayError, PlanCopyFailedError
from ledger.plan.object_store import fetched_run
from ledger.plan.private_copy import copy_folder
from ledger.plan.reader import RawPlanArtifact
from ledger.plan.stored_operations import identifiers_of, object_keys_of
from ledger.shortage import MachineShortageError, shortage_of
from ledger.spans import Attributes, Span, span
from ledger.store.errors import StoreError
from ledger.store.records import Order

ORDERS_WAIT = (
    WriterNotSetUpError,
    DestinationAwayError,
    MachineShortageError,
    PlanCopyFailedError,
    ArtifactStoreAwayError,
)
"""Errors of this process, its machine or the destination, not of the plan: the order stays open and is retried."""

_NO_REFUSALS = (StoreError, LeaseLostError, DispatchRefusedError, *ORDERS_WAIT)
"""Nothing is recorded as refused because of these."""

_EXIT_CODES = {
    "run.applied": ExitCode.DONE,
    "run.failed": ExitCode.STOPPED_UNWRITTEN,
    "run.interrupted": ExitCode.STOPPED_MAYBE_WRITTEN,
    "run.stopped": ExitCode.INTERRUPTED,
    "left_open": ExitCode.INTERRUPTED,
}


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """How carrying out one order ended. ``findings`` is what the gate refused; ``repeated``: it had ended before."""

    run_id: str
    ending: Ending | Literal["plan.refused"]
    findings: tuple[Finding, ...] = ()
    repeated: bool = False

    @property
    def exit_code(self) -> ExitCode:
        """What a command that waited for this run says."""
        return exit_code_of_refusal(self.findings) if self.ending == "plan.refused" else _EXIT_CODES[self.ending]


@dataclass(frozen=True, slots=True)
class RunWorker:
    """Carries out orders of one binding under one lease, one after the other."""

    ledger: LedgerPort
    keeper: LeaseKeeper
    binding: DestinationBinding
    opener: DestinationOpener
    settings: WriterSettings
    aliases: tuple[DestinationBinding, ...] = ()
    pause: PauseHook = field(default_factory=NoPause)
    observe: WriterObserver = unobserved
    clock: Clock = suspend_clock

    async def carry_out(self, order: Order, control: RunControl) -> RunOutcome:
        """Bring the ordered run to a terminal event, or leave it open where the process is told to end.

        Raises:
            StoreError, LeaseLostError: nothing more can be recorded by this process.
            WriterNotSetUpError: this process cannot open the destination; the order stays open.
            DestinationAwayError: it did not answer ``open_attempts`` times; the order stays open.
            MachineShortageError, PlanCopyFailedError: there is too little memory or disk here; the order stays open.
            Exception: a defect, after it was recorded.
        """
        history = await self._history(order.run_id)
        if is_carried_out(order, history):
            await self.keeper.close_order(order.inbox_id)
            return _known_outcome(history)
        try:
            commit = await self._commit_of(order)
        except UnusableOrderError as refusal:
            return await self.refuse(order, RunRecorder(self.keeper, history, operations_count=0), refusal.findings)
        recorder = RunRecorder(self.keeper, history, operations_count=commit.operations_count)
        with self._span(order, commit) as told:
            async with AsyncExitStack() as stack:
                stack.push_async_callback(control.close)
                outcome = await _OneRun(self, order, commit, recorder, control, stack).carry_out()
            if outcome.ending != "run.applied":
                told.failed(outcome.ending)
            return outcome

    async def known_outcome(self, run_id: str) -> RunOutcome:
        """How a run ended for which nothing is ordered any more.

        Raises:
            LookupError: it never began, so nobody can wait for it.
        """
        history = await self._history(run_id)
        if history.last_terminal is None:
            raise LookupError(f"nothing is ordered for run {run_id}, and nothing is recorded of it")
        return _known_outcome(history)

    def _span(self, order: Order, commit: PlanCommit) -> AbstractContextManager[Span]:
        """The run below the span of its commit, in whatever process that was; a resumed run as well."""
        told: Attributes = {"apply_ledger.run_id": order.run_id, "apply_ledger.operations": commit.operations_count}
        return span("apply", kind="consumer", parent=commit.traceparent, attributes=told)

    async def _history(self, run_id: str) -> RunHistory:
        return await read_history(run_id, self.ledger.events(self._binding_id, run_id=run_id))

    @property
    def _binding_id(self) -> int:
        return self.keeper.lease.binding_id

    async def _commit_of(self, order: Order) -> PlanCommit:
        if order.kind == "commit":
            return commit_of(order)
        commit = await self.ledger.run_commit(self._binding_id, order.run_id)
        if commit is None:
            raise unusable(order, "a commit of that run", "none")
        return commit

    async def refuse(self, order: Order, recorder: RunRecorder, findings: Sequence[Finding]) -> RunOutcome:
        """Record everything that is wrong in ``plan.refused`` and close the order with it."""
        recorded = [
            finding.model_copy(update={name: recordable(text) for name, text in finding})  # every field is text
            for finding in findings
        ]
        kept, cut = await fit(self.ledger, recorded)
        refused = PlanRefused(findings=kept, cut=cut, **_words_of(order))
        recorder.pending.append(recorder.run_event("plan.refused", refused))
        await recorder.commit(in_flight=None, close_orders=[(order.inbox_id, "refused")])
        self.observe(WriterProgress("ended", order.run_id, detail="plan.refused"))
        return RunOutcome(order.run_id, "plan.refused", tuple(findings))


def _words_of(order: Order) -> dict[str, str]:
    """Who had a run go on, and why; nothing where the order is the commit, whose event says it."""
    return {name: str(order.body[name]) for name in ("by", "reason")} if order.kind == "resume" else {}


def _known_outcome(history: RunHistory) -> RunOutcome:
    endings: dict[str, Ending | Literal["plan.refused"]] = {
        "run.applied": "run.applied",
        "run.failed": "run.failed",
        "run.interrupted": "run.interrupted",
        "run.stopped": "run.stopped",
        "plan.refused": "plan.refused",
    }
    return RunOutcome(history.run_id, endings[history.last_terminal or ""], history.refusal, repeated=True)


class _OneRun:
    """One order being carried out; ``stack`` closes the destination when it is over."""

    def __init__(
        self,
        worker: RunWorker,
        order: Order,
        commit: PlanCommit,
        recorder: RunRecorder,
        control: RunControl,
        stack: AsyncExitStack,
    ) -> None:
        self._worker = worker
        self._order = order
        self._commit = commit
        self._recorder = recorder
        self._history = recorder.history
        self._control = control
        self._stack = stack
        self._guard = LeaseGuard(worker.keeper, worker.pause)

    async def carry_out(self) -> RunOutcome:
        await self._worker.pause.reached(PausePoint.BEFORE_GATE)
        self._worker.observe(WriterProgress("verifying", self._order.run_id, total=self._commit.operations_count))
        try:
            policy = policy_of(self._order, self._commit)
            admitted = await self._pass_gate(policy)
        except _NO_REFUSALS:
            raise
        except LeftWhileOpening:
            return RunOutcome(self._order.run_id, "left_open")
        except ApplyLedgerError as refusal:
            _raise_shortage(refusal)
            return await self._refuse(refusal.findings)
        except Exception as defect:  # recorded as the reason of the refusal, then it leaves with its traceback
            _raise_shortage(defect)
            await self._refuse(_defect_findings(defect))
            raise
        await self._worker.pause.reached(PausePoint.BEFORE_PLAN_STORED)
        await self._store_plan(admitted)
        await self._start(admitted, policy)
        ending = await self._application(admitted, policy).run()
        self._worker.observe(WriterProgress("ended", self._order.run_id, detail=ending))
        return RunOutcome(self._order.run_id, ending)

    async def _pass_gate(self, policy: Policy) -> AdmittedPlan:
        async with self._run_directory() as root:
            raw = await asyncio.to_thread(read_committed, root, self._commit)
            return await self._pass_gate_with(raw, policy)

    @asynccontextmanager
    async def _run_directory(self) -> AsyncIterator[Path]:
        """The root of the committed run; of one in an object store, of a copy that lasts as long as the gate."""
        require_location(self._commit.artifact)
        with ExitStack() as copies:
            fetched = fetched_run(self._worker.settings.artifact_root, self._commit.artifact, within=copy_folder())
            yield await asyncio.to_thread(copies.enter_context, fetched)

    async def _pass_gate_with(self, raw: RawPlanArtifact, policy: Policy) -> AdmittedPlan:
        opened = await open_while_wanted(
            self._open_once, order=self._order, control=self._control, settings=self._worker.settings
        )
        gate = Gate(
            ledger=self._worker.ledger,
            binding_id=self._worker.keeper.lease.binding_id,
            binding=self._worker.binding,
            commit=self._commit,
            policy=policy,
            history=self._history,
            aliases=self._worker.aliases,
        )
        return await gate.admit(raw, opened)

    async def _open_once(self) -> OpenDestination:
        await self._worker.keeper.make_room()
        try:
            opening = self._worker.opener(self._worker.binding, run_id=self._order.run_id, guard=self._guard)
            opened = await self._stack.enter_async_context(opening)
        except ConfigurationError as exc:
            raise WriterNotSetUpError(
                checked=exc.checked, expected=exc.expected, found=exc.found, next_action=exc.next_action
            ) from exc
        reckoned = self._worker.settings.request_timeout
        if opened.longest_request > reckoned:
            raise RequestOutlivesLeaseError(
                checked=f"how long a request to {self._worker.binding} may take",
                expected=f"at most {reckoned:g} s, the writer's request_timeout that the lease is held for",
                found=f"{opened.longest_request:g} s in the destination's client",
                next_action="give both the same time-out; the order waits",
            )
        return opened

    async def _refuse(self, findings: Sequence[Finding]) -> RunOutcome:
        return await self._worker.refuse(self._order, self._recorder, findings)

    async def _store_plan(self, admitted: AdmittedPlan) -> None:
        """The plan stands in the ledger before the run starts, so that an auditor needs nothing but the database."""
        artifact = admitted.artifact
        checksum = artifact.manifest.plan_checksum
        await self._worker.ledger.store_plan(
            checksum=checksum,
            body=checksummed_body(artifact.manifest_document),
            lines=artifact.lines,
            object_keys=object_keys_of(artifact.operations),
            coverage=artifact.raw.coverage_lines,
        )
        await self._worker.ledger.store_artifact(
            binding_id=self._worker.keeper.lease.binding_id,
            run_id=self._order.run_id,
            checksum=checksum,
            source=self._commit.source,
            manifest=artifact.raw.manifest_bytes,
            digest=artifact.raw.artifact_digest,
        )

    async def _start(self, admitted: AdmittedPlan, policy: Policy) -> None:
        """``run.started`` or ``run.resumed``; an open run that no operation was in flight of just goes on."""
        await self._worker.pause.reached(PausePoint.BEFORE_RUN_STARTED)
        if not self._history.open:
            body = self._resumed(admitted, policy) if self._history.started else await self._started(admitted, policy)
            kind = "run.resumed" if self._history.started else "run.started"
            self._recorder.pending.append(self._recorder.run_event(kind, body))
            await self._recorder.commit(in_flight=None)
        await self._worker.pause.reached(PausePoint.AFTER_RUN_STARTED)

    async def _started(self, admitted: AdmittedPlan, policy: Policy) -> RunStarted:
        overlaps, cut = await fit(self._worker.ledger, admitted.overlaps)
        return RunStarted(
            plan_checksum=admitted.artifact.manifest.plan_checksum,
            operations_count=len(admitted.artifact.operations),
            policy=policy,
            source=self._commit.source,
            overlaps=overlaps,
            cut=cut,
            **_words_of(self._order),
        )

    def _resumed(self, admitted: AdmittedPlan, policy: Policy) -> RunResumed:
        operations = admitted.artifact.operations
        left = (i for i, name in enumerate(identifiers_of(operations)) if not self._history.has_success(name))
        by, reason = BY_WRITER, "take-over after the writer's end"
        # An order that came after the run's end asks for this resumption; an older one was being carried out then.
        if self._order.position >= self._history.ended_at and (words := _words_of(self._order)):
            by, reason = words["by"], words["reason"]
        return RunResumed(by=by, reason=reason, from_ordinal=next(left, len(operations)), policy=policy)

    def _application(self, admitted: AdmittedPlan, policy: Policy) -> RunApplication:
        return RunApplication(
            operations=admitted.artifact.operations,
            destination=admitted.destination,
            begin_unmarked=admitted.waits_for_guard,
            recorder=self._recorder,
            guard=self._guard,
            control=self._control,
            policy=policy,
            settings=self._worker.settings,
            order_inbox_id=self._order.inbox_id,
            notes=admitted.notes,
            pause=self._worker.pause,
            observe=self._worker.observe,
            clock=self._worker.clock,
        )


def _raise_shortage(exc: Exception) -> None:
    """Raise the shortage that an exception stands for: what this machine lacks is no fault of a plan."""
    shortage = shortage_of(exc)
    if shortage is not None:
        raise shortage from exc


def _defect_findings(defect: Exception) -> tuple[Finding, ...]:
    """A defect of the gate. Its own text is not recorded: it was written for no reader, and may hold anything."""
    return GateDefectError(
        checked="the checks before the first write",
        expected="a verdict",
        found=f"a defect of the program: {type(defect).__name__}; its traceback is in the log",
        next_action="report the traceback, then resume the run with a corrected program",
    ).findings
