"""One run of the writer with a clock at its two borders: the request on its way, and the append."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Literal

import httpx

from consumers.infrahub.transport import KEEPALIVE_SECONDS
from consumers.ports import StorePorts, WriterStorePort
from consumers.settings import WriterSettings
from consumers.stores import postgres_connector
from ledger.events import NewEvent
from ledger.store.records import Appended, InFlight, Lease, OrderState
from tests.bench.live.loops import Loops


@dataclass
class Parts:
    """Seconds of one run, from when run.started is durable to when run.applied is.

    ``server`` is that of mutations and ends with the head of an answer; no request is under way during an append, so
    ``server`` and ``appends`` never overlap. ``cpu`` is that of this process.
    """

    wall: float = 0.0
    server: float = 0.0
    appends: float = 0.0
    cpu: float = 0.0


async def timed_run(loops: Loops) -> Parts:
    """Write on a branch and tell the parts."""
    parts = Parts()
    connect = postgres_connector(WriterSettings(artifact_root=loops.root))

    @asynccontextmanager
    async def timed(dsn: str) -> AsyncIterator[StorePorts]:
        async with connect(dsn) as stores:
            yield StorePorts(ledger=stores.ledger, writer=_TimedStore(stores.writer, parts))

    with loops.place.branch() as branch:
        runs = loops.writer(branch, transport=_TimedTransport(parts), connect=timed)
        await runs.loop()
    return parts


class _TimedTransport(httpx.AsyncHTTPTransport):
    """The product's HTTP layer; the time of mutations adds up."""

    def __init__(self, parts: Parts) -> None:
        super().__init__(limits=httpx.Limits(max_connections=4, keepalive_expiry=KEEPALIVE_SECONDS), trust_env=False)
        self._parts = parts

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        started = time.perf_counter()
        response = await super().handle_async_request(request)
        if b"mutation" in request.content:
            self._parts.server += time.perf_counter() - started
        return response


class _TimedStore(WriterStorePort):
    """The store of the lease's holder; the time of appends behind that of run.started adds up."""

    def __init__(self, store: WriterStorePort, parts: Parts) -> None:
        self._store = store
        self._parts = parts
        self._wall_before = self._cpu_before = 0.0

    async def claim(
        self, binding_id: int, *, owner: str, ttl: float, settle: float, body_host: str, body_process_id: str
    ) -> Lease:
        return await self._store.claim(
            binding_id, owner=owner, ttl=ttl, settle=settle, body_host=body_host, body_process_id=body_process_id
        )

    async def renew(self, lease: Lease) -> None:
        await self._store.renew(lease)

    async def release(self, lease: Lease) -> None:
        await self._store.release(lease)

    async def close_order(self, lease: Lease, inbox_id: int, state: OrderState) -> None:
        await self._store.close_order(lease, inbox_id, state)

    async def append(
        self,
        lease: Lease,
        events: Sequence[NewEvent],
        *,
        in_flight: InFlight | Literal["keep"] | None = "keep",
        settle: float | None = None,
        close_orders: Sequence[tuple[int, OrderState]] = (),
        meanwhile: Callable[[], None] | None = None,
    ) -> Appended:
        kinds = {event.kind for event in events}
        started = time.perf_counter()
        appended = await self._store.append(
            lease, events, in_flight=in_flight, settle=settle, close_orders=close_orders, meanwhile=meanwhile
        )
        ended, cpu = time.perf_counter(), time.process_time()
        if "run.started" in kinds:  # the run's time begins with it
            self._wall_before, self._cpu_before = ended, cpu
        else:
            self._parts.appends += ended - started
        if "run.applied" in kinds:
            self._parts.wall, self._parts.cpu = ended - self._wall_before, cpu - self._cpu_before
        return appended
