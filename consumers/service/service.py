"""One process of the service: writers, intake and relay, as far as they are enabled, until it is stopped."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from consumers.intake.reading import Alive, Intake
from consumers.intake.settings import IntakeSettings
from consumers.intake.taking import MessageTaker, ReceivedMessage
from consumers.relay.relaying import Relay
from consumers.relay.sending import EventSender
from consumers.relay.settings import RelaySettings
from consumers.service.checkpoints import CheckpointKeeper, CheckpointPolicy
from consumers.service.errors import NothingToServeError
from consumers.service.metrics import ServiceMetrics
from consumers.service.parts import Part, run_parts
from consumers.service.sampling import SampledLedger
from consumers.sharing import Share
from consumers.worker import Worker
from consumers.writer import BindingWriter
from ledger.binding import DestinationBinding
from ledger.store.doorbell import Doorbell
from ledger.store.ledger import Ledger

_SILENT_LEDGER = 10.0
"""Seconds without an answer of the ledger to a sign of life, from which on a process is not ready."""


@dataclass
class Service:
    """What runs in this process.

    Attributes:
        dsn: of the ledger, with the writer's role.
        declared: destinations whose commits are taken.
        writers: for the destinations that are written here; they share ``share``.
        share: this process's part of them.
        bell: says when something is ordered, or None.
        intake: where commits come from, or None.
        relay: where events go, or None.
        metrics: what is counted.
        checkpoints: when the heads of what is written here are signed, or None.
        allow_unsafe_fsync: for tests only: accept a server that runs without fsync.
    """

    dsn: str
    declared: Sequence[DestinationBinding] = ()
    writers: Sequence[BindingWriter] = ()
    share: Share | None = None
    bell: Doorbell | None = None
    intake: IntakeSettings | None = None
    relay: RelaySettings | None = None
    metrics: ServiceMetrics = field(default_factory=ServiceMetrics)
    checkpoints: CheckpointPolicy | None = None
    allow_unsafe_fsync: bool = False
    _reading: Intake | None = None
    _relaying: Relay | None = None
    _keeping: CheckpointKeeper | None = None

    def parts(self) -> list[Part]:
        """The parts that are wanted.

        Raises:
            NothingToServeError: none is.
        """
        parts = []
        if self.writers:
            parts.append(Part("writers", Worker(self.writers).run_until))
            parts.append(Part("sharing", self._run_sharing))
        if self.writers and self.checkpoints is not None:
            parts.append(Part("checkpoints", self._run_checkpoints))
        if self.intake is not None:
            parts.append(Part("intake", self._run_intake))
        if self.relay is not None:
            parts.append(Part("relay", self._run_relay))
        if not parts:
            raise NothingToServeError(
                checked="the parts of the service",
                expected="writers, intake or relay",
                found="none: they were left out, or intake and relay have no brokers",
                next_action="leave one of the --no-… flags out, or set APPLY_LEDGER_KAFKA__BROKERS",
            )
        return parts

    async def run_until(self, stop: asyncio.Event, parts: Sequence[Part], *more: Part) -> None:
        """Run ``parts`` until ``stop`` is set.

        Raises:
            ApplyLedgerError: a part ended by it, and the service with it.
        """
        await run_parts([*parts, *more], stop, restarted=self.metrics.part_restarted)

    def stuck(self) -> dict[str, str]:
        """Parts that only a new process can help."""
        reading = self._reading
        if reading is None or self.intake is None or reading.silent_for <= self.intake.stuck_after:
            return {}
        return {"intake": f"no poll has come back for {reading.silent_for:.0f} s"}

    async def refresh_metrics(self, ledger: SampledLedger) -> None:
        """Bring up to date what is looked at instead of being counted."""
        await ledger.refresh(self.metrics.ledger_state)
        if self.share is not None:
            self.metrics.show_held((writer.binding for writer in self.writers), self.share.held)

    def unready(self, parts: Sequence[Part]) -> dict[str, str]:
        """Why work would not be done now."""
        found = self.stuck() | {part.name: part.trouble for part in parts if part.trouble}
        if self.share is not None and self.writers:
            heard_at = self.share.heard_at
            if heard_at is None or time.monotonic() - heard_at > _SILENT_LEDGER:
                found["sharing"] = "the ledger has not answered"
        if self.intake is not None and (self._reading is None or not self._reading.is_member):
            found.setdefault("intake", "not a member of its group yet")
        if self._relaying is not None and self._relaying.trouble:
            found.setdefault("relay", self._relaying.trouble)
        if self._keeping is not None and self._keeping.trouble:
            found.setdefault("checkpoints", self._keeping.trouble)
        return found

    async def _run_sharing(self, stop: asyncio.Event) -> None:
        if self.share is None:
            await stop.wait()
            return
        async with await Ledger.open(
            self.dsn, application_name="apply-ledger worker", connections=1, allow_unsafe_fsync=self.allow_unsafe_fsync
        ) as ledger:
            bells = [] if self.bell is None else [self.bell.run_until(stop)]
            await asyncio.gather(self.share.run_until(ledger, stop), *bells)

    async def _run_checkpoints(self, stop: asyncio.Event) -> None:
        if self.checkpoints is None or self.share is None:
            await stop.wait()
            return
        share = self.share
        self._keeping = CheckpointKeeper(self.checkpoints, lambda: share.held)
        async with await Ledger.open(
            self.dsn,
            application_name="apply-ledger checkpoints",
            connections=1,
            allow_unsafe_fsync=self.allow_unsafe_fsync,
        ) as ledger:
            try:
                await self._keeping.run_until(ledger, stop)
            finally:
                self._keeping = None

    async def _run_intake(self, stop: asyncio.Event) -> None:
        if self.intake is None:
            return
        async with await Ledger.open(
            self.dsn, application_name="apply-ledger intake", allow_unsafe_fsync=self.allow_unsafe_fsync
        ) as ledger:
            taker = MessageTaker(ledger, self.declared)

            async def take(messages: Sequence[ReceivedMessage], alive: Alive) -> None:
                for receipt in await taker.take_together(messages, alive=alive):
                    outcome = "refused" if receipt is None else ("taken" if receipt.first else "repeated")
                    self.metrics.messages.labels(outcome).inc()

            self._reading = Intake(self.intake, taker.take, take_together=take)
            try:
                await self._reading.run_until(stop)
            finally:
                self._reading = None

    async def _run_relay(self, stop: asyncio.Event) -> None:
        if self.relay is None:
            return
        sender = EventSender(self.relay)
        async with await Ledger.open(
            self.dsn, application_name="apply-ledger relay", allow_unsafe_fsync=self.allow_unsafe_fsync
        ) as ledger:
            self._relaying = Relay(self.relay, ledger, sender, relayed=self.metrics.relayed_batch)
            try:
                await self._relaying.run_until(stop)
            finally:
                self._relaying = None
                await sender.close()
