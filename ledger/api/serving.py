"""Opens what an API needs, and serves it over HTTP until it is told to stop."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

from ledger.api.application import PagesMaker, create_app
from ledger.api.audits import Audits
from ledger.api.following import ProjectionFollower
from ledger.api.gate import Gate
from ledger.api.limits import ApiLimits, StreamSlots
from ledger.api.metrics import ApiMetrics
from ledger.api.orders import Orders
from ledger.api.reading import LedgerReader
from ledger.api.service import ApiService
from ledger.api.streaming import HeadWatch
from ledger.audit.keys import KeyFolder
from ledger.errors import ConfigurationError
from ledger.http_server import Certificate, listening
from ledger.http_server import serve_until as serve_application
from ledger.plan.private_copy import copy_folder
from ledger.plan.private_folder import remove_abandoned
from ledger.store.ledger import Ledger
from ledger.store.projections import ProjectionStore
from ledger.store.served import ServedLedger

CONNECTIONS = 8
AUDIT_CONNECTIONS = 2
"""Of one audit: it reads a page while it looks at the one before."""

AUDITS = "apply-ledger serve audit"
"""What the server shows the connections of audits as."""

ASK_AGAIN_FOR = 3.0
"""Seconds. Somebody waits: a database that is away is told soon, with when to come again."""

_END_WITHIN = 5


class UnguardedAddressError(ConfigurationError):
    """Local mode has no authentication, so it is refused on any address except loopback."""


class ApiAddressError(ConfigurationError):
    """The address or port cannot be listened on."""


@dataclass(frozen=True, slots=True)
class Connections:
    """DSNs of three roles: to read with, to look tokens up and note their use with, to follow projections with."""

    reader: str
    writer: str
    projector: str
    allow_unsafe_fsync: bool = False


@asynccontextmanager
async def open_api(
    dsns: Connections,
    *,
    limits: ApiLimits,
    orders: Orders | None,
    local: bool,
    keys: KeyFolder,
    pages: PagesMaker | None = None,
) -> AsyncIterator[tuple[Gate, ApiService]]:
    """The application, with what it needs open.

    Args:
        dsns: how to reach the ledger.
        limits: of the settings.
        orders: what takes orders; None to only read.
        local: nobody is asked for a token. For loopback alone; :func:`listen` sees to it.
        keys: whose public keys checkpoints are checked with.
        pages: makes the pages for people; None for an API without them.

    Raises:
        StoreError: the ledger cannot be reached.
    """
    unsafe = dsns.allow_unsafe_fsync
    await asyncio.to_thread(remove_abandoned, copy_folder())  # what a killed server left of exports
    async with (
        await ServedLedger.open(
            dsns.reader,
            application_name="apply-ledger serve",
            connections=CONNECTIONS,
            ask_again_for=ASK_AGAIN_FOR,
            allow_unsafe_fsync=unsafe,
        ) as ledger,
        await ServedLedger.open(
            dsns.writer,
            application_name="apply-ledger serve tokens",
            connections=2,
            ask_again_for=ASK_AGAIN_FOR,
            allow_unsafe_fsync=unsafe,
        ) as tokens,
        await ProjectionStore.open(dsns.reader, allow_unsafe_fsync=unsafe) as projections,
        ProjectionFollower(lambda: ProjectionStore.open(dsns.projector, allow_unsafe_fsync=unsafe)) as follower,
    ):
        watch = HeadWatch(ledger, limits.stream_poll_seconds)
        metrics = ApiMetrics()
        audits = Audits(partial(_open_for_audit, dsns), limits, metrics)
        service = ApiService(
            reader=LedgerReader(ledger, projections, follower),
            follower=follower,
            watch=watch,
            orders=orders,
            limits=limits,
            slots=StreamSlots(limits.max_streams, limits.max_streams_each),
            metrics=metrics,
            audits=audits,
            keys=keys,
        )
        try:
            yield create_app(service, None if local else tokens, pages), service
        finally:
            await audits.close()
            await watch.close()


async def _open_for_audit(dsns: Connections) -> Ledger:
    return await Ledger.open(
        dsns.reader,
        application_name=AUDITS,
        connections=AUDIT_CONNECTIONS,
        ask_again_for=ASK_AGAIN_FOR,
        allow_unsafe_fsync=dsns.allow_unsafe_fsync,
    )


def listen(host: str, port: int, *, local: bool) -> socket.socket:
    """A socket that listens; port 0 takes a free one.

    Raises:
        UnguardedAddressError: local mode on an address that others can reach.
        ApiAddressError: it cannot be listened on.
    """
    if local and not is_loopback(host):
        raise UnguardedAddressError(
            checked="--local and --host",
            expected="a loopback address: 127.0.0.1, ::1 or localhost",
            found=host,
            next_action="leave --local out and make tokens (`apply-ledger token create`), or listen on loopback",
        )
    try:
        return listening(host, port)
    except OSError as exc:
        raise ApiAddressError(
            checked="--host and --port",
            expected="an address that can be listened on",
            found=f"{host} port {port}: {exc.strerror or exc}",
            next_action="choose another port, or 0 for a free one",
        ) from exc


def is_loopback(host: str) -> bool:
    """Whether a host is loopback by itself; any other name may lead elsewhere tomorrow."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


async def serve_until(
    stop: asyncio.Event,
    app: Gate,
    service: ApiService,
    listener: socket.socket,
    *,
    certificate: Certificate | None = None,
) -> None:
    """Serve until ``stop`` is set; streams end first, behind a whole event, so that their readers come back at once."""
    await serve_application(
        stop,
        app,
        listener,
        name="api",
        end_within=_END_WITHIN,
        certificate=certificate,
        before_end=partial(_end_what_goes_on, service),
    )


async def _end_what_goes_on(service: ApiService) -> None:
    await service.watch.close()
    await service.audits.close()
