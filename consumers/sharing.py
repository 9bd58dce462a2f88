"""Distributes bindings evenly among workers: which worker may claim next, and which gives one up.

This only balances load. Who may write is decided by the lease in PostgreSQL alone, so a worker that
cannot be heard, or a table of workers that is wrong, costs evenness and nothing else. A free binding is taken by the
worker that holds fewest of those that serve it; where that one does not take it, after a while by any. A worker that
holds two more than another that could serve the same gives one up, between two orders, never inside a run. A binding
that came back because the other did not take it is kept for a while: each change of hands is an event of the log.
"""

from __future__ import annotations

import asyncio
import socket
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Protocol

import structlog
from pydantic import BaseModel, ConfigDict, Field

from ledger.binding import DestinationBinding
from ledger.stopping import wait_unless_stopped
from ledger.store.errors import StoreError
from ledger.store.records import BindingRow
from ledger.store.workers import OtherWorker

_log = structlog.get_logger(__name__)


class Turns(Protocol):
    """Asked by a writer before it claims and between two orders."""

    def may_claim(self, binding: DestinationBinding) -> bool:
        """Whether it is this worker's turn to take a binding that is free."""
        ...

    def must_yield(self, binding: DestinationBinding) -> bool:
        """Whether this worker gives the binding up now, for one that holds fewer."""
        ...

    @contextmanager
    def holding(self, binding: DestinationBinding) -> Iterator[None]:
        """The time for which the binding is held."""
        ...


class AlwaysMyTurn:
    """For a writer without load balancing: only the lease decides."""

    def may_claim(self, binding: DestinationBinding) -> bool:  # noqa: ARG002 - the protocol's
        """Always."""
        return True

    def must_yield(self, binding: DestinationBinding) -> bool:  # noqa: ARG002 - the protocol's
        """Never."""
        return False

    @contextmanager
    def holding(self, binding: DestinationBinding) -> Iterator[None]:  # noqa: ARG002 - the protocol's
        """Hold nothing."""
        yield


class SharingTimes(BaseModel):
    """How quickly workers notice each other. Times are seconds.

    Attributes:
        beat_interval: between two signs of life.
        beat_ttl: a worker that is silent for so long counts no more.
        grace: how long a free binding is left to a worker that holds fewer.
        keep_returned: how long a binding is kept that no other worker took.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    beat_interval: float = Field(default=1.0, gt=0)
    beat_ttl: float = Field(default=5.0, gt=0)
    grace: float = Field(default=4.0, ge=0)
    keep_returned: float = Field(default=300.0, ge=0)


class WorkerRegister(Protocol):
    """What sharing needs of the ledger. Contracts: :class:`ledger.store.ledger.Ledger`."""

    async def worker_beat(  # noqa: D102 - see the class
        self, worker_id: str, *, host: str, serves: Sequence[DestinationBinding], held: int, ttl: float
    ) -> list[OtherWorker]: ...

    async def worker_gone(self, worker_id: str) -> None: ...  # noqa: D102

    async def bindings(self) -> list[BindingRow]: ...  # noqa: D102


class Share:
    """One worker's part of the bindings that it serves (:class:`Turns`)."""

    def __init__(
        self,
        serves: Iterable[DestinationBinding],
        times: SharingTimes | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.worker_id = uuid.uuid4().hex
        self.held: set[DestinationBinding] = set()
        self.heard_at: float | None = None
        """When the ledger answered last, by ``clock``."""
        self._serves = tuple(binding.normalised() for binding in serves)
        self._times = times or SharingTimes()
        self._clock = clock
        self._others: Sequence[OtherWorker] = ()
        self._leased_until: dict[DestinationBinding, float] = {}
        self._left_since: dict[DestinationBinding, float] = {}
        self._yielded: set[DestinationBinding] = set()
        self._kept_until: dict[DestinationBinding, float] = {}
        self._may_yield = False
        self._has_asked = False

    def may_claim(self, binding: DestinationBinding) -> bool:
        """Whether it is free, and nobody that serves it holds fewer, or whoever does has not taken it for a while.

        A lease that was heard of is not tried for: each attempt is a few connections, and most would be in vain.
        """
        now = self._clock()
        if not self._has_asked or now < self._leased_until.get(binding, now):
            return False
        if not any(other.held < len(self.held) for other in self._rivals(binding)):
            self._left_since.pop(binding, None)
            return True
        return now - self._left_since.setdefault(binding, now) >= self._times.grace

    def must_yield(self, binding: DestinationBinding) -> bool:
        """Whether this is the one binding that is given up after this sign of life, to one that holds two fewer."""
        is_kept = self._clock() < self._kept_until.get(binding, 0.0)
        if not self._may_yield or is_kept or not any(o.held <= len(self.held) - 2 for o in self._rivals(binding)):
            return False
        self._may_yield = False
        self._yielded.add(binding)
        return True

    @contextmanager
    def holding(self, binding: DestinationBinding) -> Iterator[None]:
        """Counts the binding as held."""
        if binding in self._yielded:
            self._yielded.discard(binding)
            self._kept_until[binding] = self._clock() + self._times.keep_returned
        self._left_since.pop(binding, None)
        self.held.add(binding)
        try:
            yield
        finally:
            self.held.discard(binding)

    def hear(self, others: Sequence[OtherWorker], rows: Iterable[BindingRow] = ()) -> None:
        """Take the newest word of the others, and who holds which lease; one binding may be given up until the next."""
        self._others = others
        now = self._clock()
        self._leased_until = {
            row.binding: now + row.lease_expires_in for row in rows if row.lease_expires_in is not None
        }
        self.heard_at = self._clock()
        self._may_yield = self._has_asked = True

    async def run_until(self, register: WorkerRegister, stop: asyncio.Event) -> None:
        """Give and hear signs of life until ``stop`` is set. A ledger that is unreachable only costs evenness."""
        told = False
        while not stop.is_set():
            try:
                others = await register.worker_beat(
                    self.worker_id,
                    host=socket.gethostname()[:255],
                    serves=self._serves,
                    held=len(self.held),
                    ttl=self._times.beat_ttl,
                )
                self.hear(others, await register.bindings())
                told = False
            except StoreError as exc:
                self._others, self._leased_until, self._may_yield, self._has_asked = (), {}, False, True
                if not told:
                    _log.warning("the other workers cannot be heard", error=str(exc))
                told = True
            await wait_unless_stopped(stop, self._times.beat_interval)
        with suppress(StoreError):  # the others forget this worker by themselves
            await register.worker_gone(self.worker_id)

    def _rivals(self, binding: DestinationBinding) -> Iterator[OtherWorker]:
        return (other for other in self._others if str(binding) in other.serves)
