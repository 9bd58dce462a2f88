"""Sends one operation: prepared while its mark is being recorded, released once the mark is durable, classified."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any

from consumers.control import RunControl
from consumers.errors import DispatchRefusedError
from consumers.lease import Clock, LeaseGuard, LeaseKeeper
from consumers.outcomes import OPERATIONAL_FAILURES, Verdict, applied_verdict, failure_verdict, not_begun_verdict
from consumers.pauses import PauseHook, PausePoint
from ledger import spans
from ledger.destination import PlannedWriteDestination
from ledger.plan.model import PlannedOperation

_MAX_HELD_BACK = 3
"""How often an attempt that was held back before it could write is begun again after a renewal."""


class Dispatch:
    """Calls the write surface for one run, one operation after the other, with the peers that this run knows."""

    def __init__(
        self,
        destination: PlannedWriteDestination,
        guard: LeaseGuard,
        keeper: LeaseKeeper,
        control: RunControl,
        *,
        notes: Mapping[str, str],
        pause: PauseHook,
        clock: Clock,
    ) -> None:
        """``notes`` is what the outcome of an applied operation says beside its node, by operation id."""
        self._destination = destination
        self._peers = destination.new_peer_resolver()
        self._guard = guard
        self._keeper = keeper
        self._control = control
        self._notes = notes
        self._pause = pause
        self._clock = clock
        self._run_began = clock()
        self._begun: asyncio.Task[str] | None = None
        self.may_have_left = False
        """Whether a request of the present attempt may have left; the caller says where a new attempt starts."""

    def begin(self, operation: PlannedOperation) -> None:
        """Do for the operation what needs no request; its first request waits until :meth:`attempt` lets it go (G4).

        Only for a destination whose requests wait for the guard. A second call for one attempt changes nothing.
        """
        if self._begun is None:
            self._guard.begin_unmarked()
            self._begun = asyncio.create_task(self._write(operation), name="operation begun")

    async def give_up(self) -> None:
        """Cancel an operation that was prepared but never marked. It has sent nothing, so nothing is recorded."""
        begun, self._begun = self._begun, None
        if begun is not None:
            begun.cancel()
            await asyncio.gather(begun, return_exceptions=True)
            self._guard.go()

    async def attempt(self, operation: PlannedOperation) -> Verdict:
        """Call the write surface once; again only where the guard held back a request before any that may write.

        The operation's mark is durable. If the operation was prepared, continue from there.

        Raises:
            LeaseLostError: nothing more may be sent by this process.
            Exception: a defect; ``may_have_left`` says whether it may have come too late.
        """
        await self._pause.reached(PausePoint.BEFORE_DISPATCH)
        self._control.look_ahead()
        for _ in range(_MAX_HELD_BACK):
            try:
                verdict = await self._call(operation)
                break
            except DispatchRefusedError as refusal:
                verdict = not_begun_verdict(refusal, sent=self._guard.writes > 0)
                if self._guard.writes > 0:
                    break
                self.may_have_left = False
                await self._keeper.make_room()
        await self._pause.reached(PausePoint.AFTER_WRITE_BEFORE_APPEND)
        return verdict

    async def _call(self, operation: PlannedOperation) -> Verdict:
        begun, self._begun = self._begun, None
        self.may_have_left = True
        sent = self._clock()
        try:
            if begun is not None:
                self._guard.go()
                answered = await begun
            else:
                self._guard.begin()
                answered = await self._write(operation)
        except OPERATIONAL_FAILURES as failure:
            return failure_verdict(failure)
        return applied_verdict(
            operation,
            answered,
            sent_ms=int((sent - self._run_began) * 1000),
            duration_ms=int((self._clock() - sent) * 1000),
            note=self._notes.get(operation.operation_id),
        )

    def _write(self, operation: PlannedOperation) -> Coroutine[Any, Any, str]:
        """The one call of the write surface."""
        if spans.is_on():
            return self._write_in_span(operation)
        return self._destination.apply_planned_operation(operation=operation, peers=self._peers)

    async def _write_in_span(self, operation: PlannedOperation) -> str:
        """The same with a span that says which operation it is, and nothing of what is in it."""
        told = {"apply_ledger.operation_id": operation.operation_id, "apply_ledger.kind": operation.kind}
        with spans.span(operation.action, attributes=told):
            return await self._destination.apply_planned_operation(operation=operation, peers=self._peers)
