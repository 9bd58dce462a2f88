"""The HTTP API over a test database: in this process without a socket, or on a real port."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from ledger.api.application import PagesMaker
from ledger.api.gate import Gate
from ledger.api.limits import ApiLimits
from ledger.api.orders import Orders
from ledger.api.service import ApiService
from ledger.api.serving import Connections, listen, open_api, serve_until
from ledger.api.tokens import Role, new_token
from ledger.audit.keys import KeyFolder
from ledger.dashboard.application import Dashboard
from ledger.http_server import address_of
from ledger.store.served import ServedLedger

BASE = "/api/v1"


@dataclass(frozen=True)
class Served:
    """An application with a token for each role."""

    app: Gate
    service: ApiService
    tokens: Mapping[Role, str]

    def client(self, role: Role | None = Role.OPERATOR, **options: Any) -> httpx.AsyncClient:
        """Speaks to the application as a role, or as nobody."""
        headers = {} if role is None else {"Authorization": f"Bearer {self.tokens[role]}"}
        transport = httpx.ASGITransport(app=self.app, raise_app_exceptions=False)
        return httpx.AsyncClient(transport=transport, base_url="http://api.example", headers=headers, **options)


def connections(dsns: Mapping[str, str]) -> Connections:
    """How the API reaches a test database."""
    return Connections(dsns["reader"], dsns["writer"], dsns["projector"], allow_unsafe_fsync=True)


async def make_tokens(dsns: Mapping[str, str]) -> dict[Role, str]:
    """A token for each role."""
    tokens = {}
    async with await ServedLedger.open(dsns["writer"], allow_unsafe_fsync=True) as ledger:
        for role in Role:
            token = new_token()
            await ledger.create_token(
                token.token_id, name=f"the {role}", role=role.value, digest=token.digest, seconds=None
            )
            tokens[role] = token.text
    return tokens


@asynccontextmanager
async def served(
    dsns: Mapping[str, str],
    *,
    limits: ApiLimits | None = None,
    orders: Orders | None = None,
    tokens: Mapping[Role, str] | None = None,
    local: bool = False,
    pages: PagesMaker | None = Dashboard,
    keys: Path | None = None,
) -> AsyncIterator[Served]:
    """The application over a test database, with its pages for people."""
    made = tokens if tokens is not None else await make_tokens(dsns)
    chosen = limits or ApiLimits(requests_per_second=1e6, burst=10**6, failed_logins_per_minute=1e6)
    folder = KeyFolder(keys or Path("/nonexistent/keys"))
    opened = open_api(connections(dsns), limits=chosen, orders=orders, local=local, keys=folder, pages=pages)
    async with opened as (app, service):
        yield Served(app, service, made)


@asynccontextmanager
async def listening(served_: Served, *, port: int = 0) -> AsyncIterator[str]:
    """The application on a real port; the address."""
    listener = listen("127.0.0.1", port, local=True)
    stop = asyncio.Event()
    task = asyncio.create_task(serve_until(stop, served_.app, served_.service, listener))
    try:
        yield address_of(listener)
    finally:
        stop.set()
        await task
        listener.close()
