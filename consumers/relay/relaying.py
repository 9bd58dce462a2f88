"""Publishes every event at least once, for each binding in the order of positions (G8, G10).

For each binding there is one relay at a time, by a claim with an epoch in the database. The cursor moves after the
brokers have acknowledged, under that epoch: a relay that was frozen and wakes up may put events onto the topic once
more, but it cannot move the cursor, and so nothing is ever passed over.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from typing import Protocol

import structlog

from consumers.relay.errors import EventsNotSentError, RelayedElsewhereError
from consumers.relay.settings import RelaySettings
from ledger.events import StoredEvent
from ledger.stopping import wait_unless_stopped
from ledger.store.errors import (
    AlarmError,
    RelayFencedError,
    RelayHeldError,
    StoreError,
    TransientStoreError,
)
from ledger.store.records import BindingRow
from ledger.store.relay import RelayClaim

_log = structlog.get_logger(__name__)

_TRANSIENT_ERRORS = (TransientStoreError, EventsNotSentError)
"""Transient errors of brokers or ledger; the relay waits and continues from its cursor."""

_SELDOM = 30
"""Multiplies the usual wait before a binding that needs a person's attention is tried again."""


class RelayedLog(Protocol):
    """What the relay needs of the ledger. Contracts: :class:`ledger.store.ledger.Ledger`."""

    async def bindings(self) -> list[BindingRow]: ...  # noqa: D102 - see the class

    def events(self, binding_id: int, *, after: int = 0, until: int | None = None) -> AsyncIterator[StoredEvent]: ...  # noqa: D102

    async def claim_relay(self, binding_id: int, topic: str, *, owner: str, ttl: float) -> RelayClaim: ...  # noqa: D102

    async def advance_relay(self, claim: RelayClaim, *, position: int, hash_: bytes, ttl: float) -> None: ...  # noqa: D102

    async def release_relay(self, claim: RelayClaim) -> None: ...  # noqa: D102


class EventOutlet(Protocol):
    """Where events are put. Contract: :class:`consumers.relay.sending.EventSender`."""

    async def send(self, events: Sequence[StoredEvent]) -> None: ...  # noqa: D102 - see the class


Relayed = Callable[[str, str, int, int], None]
"""Told about each batch: url, branch, how many events, and the position that the topic holds now."""


class Relay:
    """Relays all bindings of a ledger until it is stopped; any number may run."""

    def __init__(
        self, settings: RelaySettings, ledger: RelayedLog, outlet: EventOutlet, *, relayed: Relayed | None = None
    ) -> None:
        self._settings = settings
        self._ledger = ledger
        self._outlet = outlet
        self._relayed = relayed or (lambda url, branch, count, position: None)  # noqa: ARG005 - nobody is told
        self._troubles: dict[int, str] = {}

    @property
    def trouble(self) -> str:
        """Why a binding is not relayed now; empty where all are."""
        return next(iter(self._troubles.values()), "")

    async def run_until(self, stop: asyncio.Event) -> None:
        """Relay until ``stop`` is set; bindings that are new are found while it runs.

        A binding whose log is not the one on the topic is not relayed; the others continue.

        Raises:
            StoreError: the ledger is set up wrongly.
        """
        tasks: dict[int, asyncio.Task[None]] = {}
        try:
            while not stop.is_set():
                with suppress(*_TRANSIENT_ERRORS):
                    for row in await self._ledger.bindings():
                        if row.id not in tasks:
                            name = f"relay of {row.binding}"
                            tasks[row.id] = asyncio.create_task(self._relay_binding(row, stop), name=name)
                for task in tasks.values():
                    if task.done():
                        task.result()
                await wait_unless_stopped(stop, max(1.0, self._settings.poll_interval))
            await asyncio.gather(*tasks.values())
        finally:
            for task in tasks.values():
                task.cancel()
            await asyncio.gather(*tasks.values(), return_exceptions=True)

    async def _relay_binding(self, row: BindingRow, stop: asyncio.Event) -> None:
        owner, told = uuid.uuid4().hex, ""
        while not stop.is_set():
            try:
                claim = await self._ledger.claim_relay(
                    row.id, self._settings.topic, owner=owner, ttl=self._settings.claim_ttl
                )
            except RelayHeldError:
                await wait_unless_stopped(stop, max(1.0, self._settings.poll_interval))
                continue
            except _TRANSIENT_ERRORS as exc:
                told = self._wait_for(row, exc, told)
                await wait_unless_stopped(stop, self._settings.retry_wait)
                continue
            try:
                await self._relay_claimed(claim, row, stop)
            except RelayFencedError as exc:
                _log.warning("another relay has taken over", binding=str(row.binding), error=str(exc))
            except _TRANSIENT_ERRORS as exc:
                told = self._wait_for(row, exc, told)
                await wait_unless_stopped(stop, self._settings.retry_wait)
            except (RelayedElsewhereError, AlarmError) as exc:
                if str(exc) != told:
                    _log.error("the relay of a binding stands still until a person has looked", error=str(exc))
                told = self._troubles[row.id] = str(exc)
                await wait_unless_stopped(stop, self._settings.retry_wait * _SELDOM)
            finally:
                await self._release(claim)
            # another name for the next claim: the old one may still be under way in a task that was given up
            owner = uuid.uuid4().hex

    async def _relay_claimed(self, claim: RelayClaim, row: BindingRow, stop: asyncio.Event) -> None:
        settings = self._settings
        position, head = claim.position, claim.hash
        renewed_at = time.monotonic()
        while not stop.is_set():
            events = await self._batch(claim.binding_id, position)
            if not events:
                self._troubles.pop(row.id, None)
                if time.monotonic() - renewed_at > settings.claim_ttl / 3:
                    await self._ledger.advance_relay(claim, position=position, hash_=head, ttl=settings.claim_ttl)
                    renewed_at = time.monotonic()
                await wait_unless_stopped(stop, settings.poll_interval)
                continue
            _require_same_log(row, events[0], position, head)
            await self._outlet.send(events)
            position, head = events[-1].position, events[-1].hash
            await self._ledger.advance_relay(claim, position=position, hash_=head, ttl=settings.claim_ttl)
            renewed_at = time.monotonic()
            self._troubles.pop(row.id, None)
            self._relayed(row.url, row.branch, len(events), position)

    def _wait_for(self, row: BindingRow, error: Exception, told: str) -> str:
        self._troubles[row.id] = str(error)
        if str(error) != told:
            _log.warning("the relay waits", error=str(error))
        return str(error)

    async def _batch(self, binding_id: int, position: int) -> list[StoredEvent]:
        last = position + self._settings.batch_events
        return [event async for event in self._ledger.events(binding_id, after=position, until=last)]

    async def _release(self, claim: RelayClaim) -> None:
        """A courtesy to the next one; where it cannot be done, the claim runs out."""
        try:
            await self._ledger.release_relay(claim)
        except StoreError as exc:
            _log.warning("a relay was not given back, it will run out", error=str(exc))


def _require_same_log(row: BindingRow, event: StoredEvent, position: int, head: bytes) -> None:
    if (event.position, event.prev_hash) == (position + 1, head):
        return
    raise RelayedElsewhereError(
        checked=f"how the log of {row.binding} continues after position {position}",
        expected=f"event {position + 1} behind hash {head.hex()}",
        found=f"event {event.position} behind hash {event.prev_hash.hex()}",
        next_action="run `apply-ledger verify`, and `verify --from-kafka` for what the topic holds",
    )
