"""A PostgreSQL server of the bench's own, as the product starts it: embedded, migrated, with fsync on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg

from ledger.store.embedded import Dsns, EmbeddedPostgres


@asynccontextmanager
async def ledger_server(folder: Path) -> AsyncIterator[Dsns]:
    """Start a server on a new database below ``folder``, and stop it afterwards."""
    server = EmbeddedPostgres((folder / "ledger").absolute())
    dsns = await server.ensure_running()
    try:
        yield dsns
    finally:
        await server.stop()


@asynccontextmanager
async def connection_to(dsn: str) -> AsyncIterator[asyncpg.Connection]:
    """A bare connection, to do what the product is compared with."""
    connection = await asyncpg.connect(dsn)
    try:
        yield connection
    finally:
        await connection.close()
