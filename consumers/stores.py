"""The writer's two ports on a real ledger."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from consumers.ports import StoreConnector, StorePorts
from consumers.settings import WriterSettings
from ledger.store.ledger import Ledger
from ledger.store.writer import WriterStore


def postgres_connector(settings: WriterSettings, *, allow_unsafe_fsync: bool = False) -> StoreConnector:
    """Opens the ledger at a DSN, with the writer's role.

    A call whose connection is lost is asked again for half of the lease's time at most: longer, and the answer would
    come when another process holds the lease.

    Args:
        settings: the writer's times.
        allow_unsafe_fsync: for tests only: accept a server that runs without fsync.
    """
    ask_again_for = settings.lease_ttl / 2

    @asynccontextmanager
    async def connected(dsn: str) -> AsyncIterator[StorePorts]:
        ledger = await Ledger.open(dsn, ask_again_for=ask_again_for, allow_unsafe_fsync=allow_unsafe_fsync)
        async with ledger:
            writer = await WriterStore.open(dsn, ask_again_for=ask_again_for, allow_unsafe_fsync=allow_unsafe_fsync)
            async with writer:
                yield StorePorts(ledger=ledger, writer=writer)

    def connect(dsn: str) -> AbstractAsyncContextManager[StorePorts]:
        return connected(dsn)

    return connect
