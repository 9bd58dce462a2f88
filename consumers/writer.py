"""The single writer of one binding: claim, take over, work the inbox in order, release (design section 7)."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol

import structlog
from pydantic import ValidationError

from consumers.control import RunControl, StopRequest
from consumers.errors import (
    AliasRecordedError,
    ArtifactElsewhereError,
    DispatchRefusedError,
    LeaseLostError,
)
from consumers.lease import Clock, LeaseKeeper, suspend_clock
from consumers.orders import moot_stops, next_order
from consumers.pauses import NoPause, PauseHook, PausePoint
from consumers.ports import LedgerPort, StoreConnector
from consumers.progress import RecordedEvents, WriterObserver, WriterProgress, uncounted, unobserved
from consumers.recorder import claim_identity
from consumers.runs import ORDERS_WAIT, RunOutcome, RunWorker
from consumers.settings import WriterSettings
from consumers.sharing import AlwaysMyTurn, Turns
from consumers.stores import postgres_connector
from consumers.takeover import record_interrupted_operation
from ledger.binding import DestinationBinding
from ledger.destination import DestinationOpener
from ledger.store.errors import (
    EpochMovedError,
    FencedWriterError,
    LeaseHeldError,
    TransientStoreError,
)
from ledger.store.records import Order

_log = structlog.get_logger(__name__)

_CLAIM_AGAIN = (
    LeaseHeldError,
    EpochMovedError,
    LeaseLostError,
    DispatchRefusedError,
    FencedWriterError,
    TransientStoreError,
)
"""After these errors a serving writer claims again; every other error is raised to the caller."""


_MOST_FINDINGS = 3
"""Of a refusal that are logged; all of them are in the ledger."""

_LONGEST_PAUSE = 60.0
"""Seconds between two attempts at an order that waits."""


class OrderBell(Protocol):
    """Says when something is ordered. Contract: :class:`ledger.store.doorbell.Doorbell`."""

    def of(self, binding_id: int) -> asyncio.Event: ...  # noqa: D102 - see the class


class BindingWriter:
    """Applies what is committed to one destination. Any number may run; the lease decides which one writes."""

    def __init__(
        self,
        dsn: str,
        binding: DestinationBinding,
        opener: DestinationOpener,
        settings: WriterSettings,
        *,
        aliases: Sequence[DestinationBinding] = (),
        connect: StoreConnector | None = None,
        pause: PauseHook | None = None,
        observe: WriterObserver = unobserved,
        recorded: RecordedEvents = uncounted,
        turns: Turns | None = None,
        bell: OrderBell | None = None,
        clock: Clock = suspend_clock,
    ) -> None:
        """Nothing is opened before :meth:`run_until` or :meth:`drain`.

        Args:
            dsn: of the ledger, with the writer's role.
            binding: the destination; normalised here.
            opener: opens the destination for one run.
            settings: times and limits; a destination whose requests may outlast ``request_timeout`` is not written to.
            aliases: other names of the destination, under which a plan may have been made.
            connect: opens the ledger; by default PostgreSQL at ``dsn``.
            pause: for fault tests.
            observe: told about each step, for showing it.
            recorded: receives the events of each append, to count them.
            turns: who serves which binding where several workers share them; by default the lease alone decides.
            bell: says when something is ordered; the inbox is looked at every ``poll_interval`` as well.
            clock: seconds on a clock that goes on in suspend.
        """
        self._dsn = dsn
        self._binding = binding.normalised()
        self._opener = opener
        self._settings = settings
        self._aliases = tuple(aliases)
        self._connect = connect or postgres_connector(settings)
        self._pause = pause or NoPause()
        self._observe = observe
        self._recorded = recorded
        self._turns = turns or AlwaysMyTurn()
        self._bell = bell
        self._clock = clock

    @property
    def binding(self) -> DestinationBinding:
        """The destination."""
        return self._binding

    async def run_until(self, stop: asyncio.Event) -> None:
        """Serve the binding until ``stop`` is set: wait for the lease, then work the inbox as orders come.

        When ``stop`` is set the operation in flight is finished or recorded, the lease is released, and the run is
        left open for the successor.

        Raises:
            StoreError: an alarm, or a ledger that is set up wrongly; a lost or held lease only means waiting.
            AliasRecordedError: the ledger keeps the destination under another of its names.
            Exception: a defect, after it was recorded.
        """
        told = ""
        while not stop.is_set():
            if not self._turns.may_claim(self._binding):
                await _wait(stop, self._settings.poll_interval)
                continue
            try:
                async with self._session() as worker:
                    told = ""
                    self._tell_taken_over(worker.keeper)
                    with self._turns.holding(self._binding):
                        await self._serve(worker, stop)
            except _CLAIM_AGAIN as exc:
                if _whose_turn(exc) != told:
                    told = _whose_turn(exc)
                    place = {"url": self._binding.url, "branch": self._binding.branch}
                    if isinstance(exc, LeaseHeldError):  # a standby is as it should be
                        _log.info("not writing now", **place, error=str(exc))
                    else:
                        _log.warning("not writing now", **place, error=str(exc))
                self._observe(WriterProgress("claiming", seconds=_seconds_held(exc), detail=str(exc)))
                await _wait(stop, self._settings.poll_interval)

    async def drain(
        self,
        run_id: str,
        *,
        by: str,
        interrupted: asyncio.Event | None = None,
        leave: asyncio.Event | None = None,
    ) -> RunOutcome:
        """Claim the binding and work its inbox in order until that run has ended.

        Args:
            run_id: the run to wait for; it must have been committed (or ordered to resume).
            by: who is named in ``run.stopped`` when ``interrupted`` is set.
            interrupted: stops this run after the operation in flight; a run of somebody else before it is left open.
            leave: ends the work after the operation in flight and leaves the run open, whoever's it is.

        Raises:
            LeaseHeldError: a live lease is on the binding; its holder will carry the run out.
            LookupError: nothing is ordered for that run, and it never began.
            WriterNotSetUpError, DestinationAwayError, MachineShortageError, PlanCopyFailedError: the destination
                cannot be opened, or the plan not be read, from here and now; what is ordered stays ordered.
            ArtifactElsewhereError: a run of somebody else comes first and its files are not here; it stays ordered.
            StoreError, LeaseLostError: nothing more can be recorded by this process.
            Exception: a defect, after it was recorded.
        """
        interrupted = interrupted or asyncio.Event()
        leave = leave or asyncio.Event()
        request = StopRequest(by=by, reason="interrupted while waiting for the run")
        async with self._session() as worker:
            while not (leave.is_set() or interrupted.is_set()):
                order = await self._next(worker, until=run_id)
                if order is None:
                    return await worker.known_outcome(run_id)
                is_ours = order.run_id == run_id
                if not is_ours:
                    await self._require_files(worker, order)
                control = self._control(
                    worker.ledger,
                    worker.keeper,
                    order,
                    leave=leave,
                    interrupt=request if is_ours else None,
                    interrupted=interrupted,
                )
                outcome = await worker.carry_out(order, control)
                if is_ours:
                    return outcome
        return RunOutcome(run_id, "left_open")

    async def _require_files(self, worker: RunWorker, order: Order) -> None:
        """Only `work` may refuse a run whose files are missing; a command that waits for its own run must not."""
        try:
            commit = await worker.ledger.run_commit(worker.keeper.lease.binding_id, order.run_id)
        except ValidationError:
            return  # an order that nobody can read is judged where it is carried out
        if commit is None or await asyncio.to_thread(self._holds, commit.artifact):
            return
        raise ArtifactElsewhereError(
            checked=f"the run {order.run_id} of {commit.source}, which was ordered before",
            expected=f"its files in {commit.artifact} below {self._settings.artifact_root}",
            found="no such folder on this host",
            next_action="run `apply` or `work` where that run was planned, then this one again",
        )

    def _holds(self, artifact: str) -> bool:
        root = self._settings.artifact_root
        return (root / artifact).is_dir() if isinstance(root, Path) else root.holds(artifact)

    @asynccontextmanager
    async def _session(self) -> AsyncIterator[RunWorker]:
        """Claim, take over, and release at the end."""
        async with self._connect(self._dsn) as stores:
            await self._require_one_name(stores.ledger)
            binding_id = await stores.ledger.register_binding(self._binding)
            await self._pause.reached(PausePoint.BEFORE_CLAIM)
            claim_sent_at = self._clock()
            owner = claim_identity()
            lease = await stores.writer.claim(
                binding_id,
                owner=owner,
                ttl=self._settings.lease_ttl,
                settle=self._settings.settle_seconds,
                body_host=socket.gethostname(),
                body_process_id=owner,
            )
            await self._pause.reached(PausePoint.AFTER_CLAIM)
            keeper = LeaseKeeper(
                stores.writer,
                lease,
                self._settings,
                claim_sent_at=claim_sent_at,
                clock=self._clock,
                pause=self._pause,
                recorded=self._recorded,
            )
            async with keeper:
                await self._take_over(stores.ledger, keeper)
                yield RunWorker(
                    ledger=stores.ledger,
                    keeper=keeper,
                    binding=self._binding,
                    opener=self._opener,
                    settings=self._settings,
                    aliases=self._aliases,
                    pause=self._pause,
                    observe=self._observe,
                    clock=self._clock,
                )

    async def _require_one_name(self, ledger: LedgerPort) -> None:
        """A lease is held on one binding; under another name the same server could be written beside it (G2)."""
        for alias in self._aliases:
            if await ledger.binding(alias) is not None:
                raise AliasRecordedError(self._binding, alias)

    async def _take_over(self, ledger: LedgerPort, keeper: LeaseKeeper) -> None:
        mark = keeper.lease.in_flight
        if mark is None:
            return
        await self._pause.reached(PausePoint.AT_TAKE_OVER)
        self._observe(WriterProgress("taking_over", run_id=mark.run_id, seconds=keeper.quiet_for()))
        await record_interrupted_operation(ledger, keeper, mark)
        await self._pause.reached(PausePoint.AFTER_TAKE_OVER)

    async def _serve(self, worker: RunWorker, stop: asyncio.Event) -> None:
        told = ""
        rung = asyncio.Event() if self._bell is None else self._bell.of(worker.keeper.lease.binding_id)
        while not (stop.is_set() or self._turns.must_yield(self._binding)):
            rung.clear()
            order = await self._next(worker)
            if order is None:
                worker.keeper.require_known_held()
                await _wait(stop, self._settings.poll_interval, or_for=rung)
                continue
            began = self._clock()
            try:
                outcome = await worker.carry_out(order, self._control(worker.ledger, worker.keeper, order, leave=stop))
            except ORDERS_WAIT as exc:
                if str(exc) != told:
                    told = str(exc)
                    _log.error("orders wait", run_id=order.run_id, error=told)
                # Wait as long as the attempt took: a plan too large for memory must not be re-read without a pause.
                await _wait(stop, max(self._settings.poll_interval, min(self._clock() - began, _LONGEST_PAUSE)))
            else:
                told = ""
                self._tell_end(outcome)

    def _tell_taken_over(self, keeper: LeaseKeeper) -> None:
        mark = keeper.lease.in_flight
        if mark is not None:
            _log.warning(
                "a run was taken over from a writer that is gone",
                url=self._binding.url,
                branch=self._binding.branch,
                run_id=mark.run_id,
                ordinal=mark.ordinal,
            )

    def _tell_end(self, outcome: RunOutcome) -> None:
        """What a person has to look at is told at the usual level of the log, what went well one level below."""
        findings = "; ".join(f"{finding.name}: {finding.found}" for finding in outcome.findings[:_MOST_FINDINGS])
        told = {
            "url": self._binding.url,
            "branch": self._binding.branch,
            "run_id": outcome.run_id,
            "ending": outcome.ending,
            **({"findings": findings} if findings else {}),
        }
        if outcome.ending in ("run.applied", "left_open"):
            _log.info("a run has ended", **told)
        else:
            _log.warning("a run has ended", **told)

    async def _next(self, worker: RunWorker, *, until: str | None = None) -> Order | None:
        """The next order; with ``until`` only as long as something is ordered for that run."""
        orders = await worker.ledger.open_orders(worker.keeper.lease.binding_id)
        for moot in moot_stops(orders):
            await worker.keeper.close_order(moot.inbox_id)
        if until is not None and not any(order.run_id == until and order.kind != "stop" for order in orders):
            return None
        return next_order(orders)

    def _control(
        self,
        ledger: LedgerPort,
        keeper: LeaseKeeper,
        order: Order,
        *,
        leave: asyncio.Event,
        interrupt: StopRequest | None = None,
        interrupted: asyncio.Event | None = None,
    ) -> RunControl:
        return RunControl(
            ledger,
            keeper.lease.binding_id,
            order.run_id,
            leave=leave,
            interrupt=interrupt,
            interrupted=interrupted,
            poll_interval=self._settings.stop_poll_interval,
            clock=self._clock,
        )


def _whose_turn(exc: Exception) -> str:
    """What is worth telling once: who holds the lease, without the seconds that are left of it; else the trouble."""
    return f"held by {exc.facts.get('owner')}" if isinstance(exc, LeaseHeldError) else str(exc)


def _seconds_held(exc: Exception) -> float:
    return float(exc.facts.get("seconds", 0.0)) if isinstance(exc, LeaseHeldError) else 0.0


async def _wait(stop: asyncio.Event, seconds: float, *, or_for: asyncio.Event | None = None) -> None:
    waits = [asyncio.ensure_future(event.wait()) for event in (stop, or_for) if event is not None]
    try:
        await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
        await asyncio.gather(*waits, return_exceptions=True)
