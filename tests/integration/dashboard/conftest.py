"""The pages over the shown ledger, spoken to without a socket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping

import pytest

from ledger.api.tokens import Role
from tests.support.api import Served, make_tokens, served
from tests.support.postgres import PostgresServer
from tests.support.shown_ledger import shown_database


@pytest.fixture(scope="package")
def shown_dsns(postgres18_server: PostgresServer) -> Iterator[dict[str, str]]:
    """A ledger that no test of this package changes, but for its tokens."""
    yield from shown_database(postgres18_server)


@pytest.fixture(scope="package")
def shown_tokens(shown_dsns: dict[str, str]) -> Mapping[Role, str]:
    """A token for each role."""
    return asyncio.run(make_tokens(shown_dsns))


@pytest.fixture
async def site(shown_dsns: dict[str, str], shown_tokens: Mapping[Role, str]) -> AsyncIterator[Served]:
    async with served(shown_dsns, tokens=shown_tokens) as opened:
        yield opened
