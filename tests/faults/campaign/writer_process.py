"""A writer process of the campaign: what `apply-ledger work` runs, with a trail and a strike.

Nothing of the writer is replaced. The three seams that it has anyway are used: the pause hook, the connector of the
ledger (to note what was acknowledged) and the layer below httpx (to name the sender of each request).
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Literal

import httpx
import structlog
from pydantic import SecretStr

from consumers.infrahub.connection import InfrahubOpener, InfrahubSettings, declared
from consumers.infrahub.sandbox.journal import SENDER_HEADER
from consumers.infrahub.transport import KEEPALIVE_SECONDS
from consumers.pauses import PausePoint
from consumers.ports import StoreConnector, StorePorts, WriterStorePort
from consumers.settings import WriterSettings
from consumers.stores import postgres_connector
from consumers.worker import Worker
from consumers.writer import BindingWriter
from ledger.binding import DestinationBinding
from ledger.events import NewEvent
from ledger.store.records import Appended, InFlight, Lease, OrderState
from tests.faults.campaign.trail import Strike, Trail
from tests.support.real_writer import TOKEN


@dataclass(frozen=True)
class WriterTask:
    """What a writer process serves, and what happens to it. ``times`` are the writer's settings."""

    name: str
    dsn: str
    url: str
    branches: tuple[str, ...]
    root: Path
    trail: Path
    log: Path
    times: dict[str, float]
    strike: Strike | None = None


@dataclass
class Stand:
    """Where a writer stands on one binding: goes with each of its requests, so that the journal names the sender."""

    name: str
    branch: str
    trail: Trail
    epoch: int | None = None
    mark: InFlight | None = None
    guarded_at: float = 0.0

    async def reached(self, point: PausePoint) -> None:
        """The pause hook."""
        self.trail.step(point, self.branch)

    def reached_guard(self) -> None:
        """The pause hook between the last check and the request."""
        self.guarded_at = time.time()
        self.trail.step(PausePoint.AFTER_GUARD, self.branch)

    def sender(self) -> str:
        """The header of a request."""
        mark = self.mark
        document = {
            "writer": self.name,
            "epoch": self.epoch,
            "guarded_at": self.guarded_at,
            "mark": None if mark is None else [mark.run_id, mark.ordinal, mark.attempt],
        }
        return json.dumps(document, separators=(",", ":"))


class NamedTransport(httpx.AsyncBaseTransport):
    """The transport of the product with the sender's name on each request."""

    def __init__(self, stand: Stand) -> None:
        self._stand = stand
        limits = httpx.Limits(max_connections=4, keepalive_expiry=KEEPALIVE_SECONDS)
        self._inner = httpx.AsyncHTTPTransport(verify=False, limits=limits, trust_env=False)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send it, and note both ends."""
        stand = self._stand
        request.headers[SENDER_HEADER] = stand.sender()
        what = "mutation" if b'"mutation ' in request.content else "read"
        stand.trail.step(f"{what} sent", stand.branch)
        try:
            response = await self._inner.handle_async_request(request)
        except BaseException as exc:  # a cancellation is an answer that did not come
            stand.trail.step(f"{what} unanswered", stand.branch, error=type(exc).__name__)
            raise
        stand.trail.step(f"{what} answered", stand.branch, status=response.status_code)
        return response

    async def aclose(self) -> None:
        """Close its connections."""
        await self._inner.aclose()


class NotingStore:
    """The writer's side of the store; what the database acknowledged is noted after it did."""

    def __init__(self, store: WriterStorePort, stand: Stand) -> None:
        self._store = store
        self._stand = stand

    async def claim(
        self, binding_id: int, *, owner: str, ttl: float, settle: float, body_host: str, body_process_id: str
    ) -> Lease:
        """See :class:`ledger.store.writer.WriterStore`."""
        lease = await self._store.claim(
            binding_id, owner=owner, ttl=ttl, settle=settle, body_host=body_host, body_process_id=body_process_id
        )
        self._stand.epoch, self._stand.mark = lease.epoch, None
        self._stand.trail.step("claimed", self._stand.branch, epoch=lease.epoch)
        return lease

    async def renew(self, lease: Lease) -> None:
        """See :class:`ledger.store.writer.WriterStore`."""
        await self._store.renew(lease)

    async def release(self, lease: Lease) -> None:
        """See :class:`ledger.store.writer.WriterStore`."""
        await self._store.release(lease)
        self._stand.trail.step("released", self._stand.branch, epoch=lease.epoch)

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
        """See :class:`ledger.store.writer.WriterStore`."""
        self._stand.trail.step("append sent", self._stand.branch, events=len(events))
        appended = await self._store.append(
            lease, events, in_flight=in_flight, settle=settle, close_orders=close_orders, meanwhile=meanwhile
        )
        if in_flight != "keep":
            self._stand.mark = in_flight
        self._stand.trail.step(
            "acknowledged",
            self._stand.branch,
            epoch=lease.epoch,
            position=appended.last_position,
            hash=appended.head_hash.hex(),
        )
        return appended

    async def close_order(self, lease: Lease, inbox_id: int, state: OrderState) -> None:
        """See :class:`ledger.store.writer.WriterStore`."""
        await self._store.close_order(lease, inbox_id, state)


def run(task: WriterTask, connection: Connection) -> None:
    """The process: serves until SIGTERM."""
    sys.stderr = task.log.open("a", buffering=1, encoding="utf-8")
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    asyncio.run(_serve(task))
    connection.send("ended")


async def _serve(task: WriterTask) -> None:
    trail = Trail(task.trail, task.strike)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    trail.step("started")
    writers = [_writer(task, Stand(task.name, branch, trail)) for branch in task.branches]
    await Worker(writers, pause_after_defect=0.2).run_until(stop)
    trail.step("ended")


def _writer(task: WriterTask, stand: Stand) -> BindingWriter:
    settings = WriterSettings(artifact_root=task.root, **task.times)
    infrahub = InfrahubSettings(
        url=task.url,
        branch=stand.branch,
        token=SecretStr(TOKEN),
        request_timeout=settings.request_timeout,
        attempts=2,
        retry_wait=0.01,
    )
    return BindingWriter(
        task.dsn,
        DestinationBinding(url=task.url, branch=stand.branch),
        InfrahubOpener(declared(infrahub), factory=lambda: NamedTransport(stand)),
        settings,
        connect=noting_connector(settings, stand),
        pause=stand,
    )


def noting_connector(settings: WriterSettings, stand: Stand) -> StoreConnector:
    """The product's connector with a note of each acknowledgement."""
    plain = postgres_connector(settings)

    @asynccontextmanager
    async def connected(dsn: str) -> AsyncIterator[StorePorts]:
        async with plain(dsn) as ports:
            yield StorePorts(ledger=ports.ledger, writer=NotingStore(ports.writer, stand))

    def connect(dsn: str) -> AbstractAsyncContextManager[StorePorts]:
        return connected(dsn)

    return connect
