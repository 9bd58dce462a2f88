"""One browser for all tests of the pages, on one event loop with all of them, and the pages over a shown ledger."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext

from ledger.api.tokens import Role
from ledger.cli.api_orders import CommandOrders
from ledger.cli.settings import DestinationSettings, Settings
from ledger.store.served import ServedLedger
from tests.support.api import Served, listening, served
from tests.support.browser import WIDE, Scheme, Watched, chromium, new_context
from tests.support.postgres import ROLES, PostgresServer, migrate_fully
from tests.support.recorded_runs import BINDING
from tests.support.shown_ledger import shown_database

# A browser, and everything that speaks to it, belongs to the loop on which it was started.
ON_ONE_LOOP = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    async with chromium() as running:
        yield running


@dataclass
class Site:
    """The pages at an address, and a browser."""

    origin: str
    api: Served
    browser: Browser

    async def context(
        self, role: Role | None, *, size: tuple[int, int] = WIDE, scheme: Scheme = "light"
    ) -> BrowserContext:
        """A window's memory in which somebody with this role has logged in."""
        context = await new_context(self.browser, size=size, scheme=scheme)
        if role is not None:
            form: dict[str, str | float | bool] = {"token": self.api.tokens[role], "next": "/"}
            headers = {"Origin": self.origin, "Sec-Fetch-Site": "same-origin"}
            answer = await context.request.post(f"{self.origin}/login", form=form, headers=headers, max_redirects=0)
            assert answer.status == 303, await answer.text()
        return context

    async def window(self, role: Role | None, *, size: tuple[int, int] = WIDE, scheme: Scheme = "light") -> Watched:
        """A page in it, not yet loaded."""
        context = await self.context(role, size=size, scheme=scheme)
        return Watched(await context.new_page(), self.origin)


@contextmanager
def database_of(server: PostgresServer) -> Iterator[dict[str, str]]:
    """DSNs of a new ledger with nothing in it."""
    name = server.create_database(server.template("newest", migrate_fully))
    yield {"admin": server.dsn(name)} | {key: server.dsn(name, user=role) for key, role in ROLES.items()}
    server.drop_database(name)


@pytest.fixture(scope="package")
def shown_dsns(postgres18_server: PostgresServer) -> Iterator[dict[str, str]]:
    """A ledger that no test of this package changes."""
    yield from shown_database(postgres18_server)


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def site(browser: Browser, shown_dsns: dict[str, str]) -> AsyncIterator[Site]:
    """The pages over the shown ledger."""
    async with site_over(shown_dsns, browser) as opened:
        yield opened


@asynccontextmanager
async def site_over(dsns: dict[str, str], browser: Browser) -> AsyncIterator[Site]:
    """The pages over a test database, by a server that takes orders for its destination."""
    destination = DestinationSettings(url=BINDING.url, branch=BINDING.branch)
    async with await ServedLedger.open(dsns["writer"], allow_unsafe_fsync=True) as ledger:
        orders = CommandOrders(Settings(destination=(destination,)), ledger)
        async with served(dsns, orders=orders) as api, listening(api) as origin:
            yield Site(origin, api, browser)
