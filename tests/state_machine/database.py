"""One migrated database for all examples: every example has bindings of its own in it, and shares its connections.

The machine is synchronous, the store is not, so everything runs in one event loop that belongs to this object.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import asyncpg

from ledger.binding import DestinationBinding
from ledger.events import SCHEMA_VERSION
from ledger.store.ledger import Ledger
from ledger.store.records import Lease
from ledger.store.session import store_errors
from ledger.store.sql_files import query
from ledger.store.writer import WriterStore
from tests.state_machine.facts import HOST, opened
from tests.state_machine.tables import Tables
from tests.support.store import let_it_settle

T = TypeVar("T")
OWNERS = ("writer-a", "writer-b", "writer-c")
LONG = 3600.0
"""Seconds of a lease and of settling: longer than any example, so that time passes only where a rule says so."""

# Only where there is a lease: what the tables alone have to give away must not depend on the model's word.
_RUN_OUT = """
update ledger.binding set lease_expires_at = clock_timestamp() - interval '1 ms'
where id = $1 and lease_owner is not null
"""


class Database:
    """Connections of three writers, of everybody else, and of an administrator who only looks and moves times."""

    def __init__(self, dsns: Mapping[str, str]) -> None:
        self._dsns = dsns
        self._runner = asyncio.Runner()
        self._number = itertools.count(1)
        self.stores: dict[str, WriterStore] = {}
        self.examples = 0
        self.steps = 0
        self.ledger: Ledger
        self.admin: Any
        self.raw: Any

    @classmethod
    @contextmanager
    def opened(cls, dsns: Mapping[str, str]) -> Iterator[Database]:
        """Connect, and close everything at the end."""
        database = cls(dsns)
        try:
            database.run(database._open())
            yield database
        finally:
            database.run(database._close())
            database._runner.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run one call to its end."""
        return self._runner.run(work)

    def store_of(self, lease: Lease) -> WriterStore:
        """The connection of a lease's owner; that of anybody where it has none."""
        return self.stores.get(lease.owner, self.stores[OWNERS[0]])

    def new_binding(self) -> tuple[int, DestinationBinding]:
        """A binding that no example had before."""
        binding = DestinationBinding(url="http://infrahub.example:8000", branch=f"branch-{next(self._number)}")
        return self.run(self.ledger.register_binding(binding)), binding

    def claim(self, owner: str, binding_id: int, binding: DestinationBinding, expected_epoch: int) -> Lease:
        """One claim as the store sends it, by somebody who believes that the epoch is this one."""
        return self.run(self._claim(owner, binding_id, binding, expected_epoch))

    def tables(self, binding_id: int) -> Tables:
        """What stands in the tables."""
        return self.run(Tables.read(self.admin, binding_id))

    def let_lease_run_out(self, binding_id: int) -> None:
        """Time passes: the lease of this binding has run out, by the database's clock."""
        self.run(self.admin.execute(_RUN_OUT, binding_id))

    def let_it_settle(self, binding_id: int) -> None:
        """Time passes: the quiet period of this binding is over, by the database's clock."""
        self.run(let_it_settle(self.admin, binding_id))

    async def _claim(self, owner: str, binding_id: int, binding: DestinationBinding, expected: int) -> Lease:
        event = opened(binding, owner, expected + 1)
        with store_errors("a claim"):
            row = await self.raw.fetchrow(
                query("claim"),
                binding_id,
                owner,
                LONG,
                LONG,
                HOST,
                expected,
                event.event_id,
                SCHEMA_VERSION,
                event.body.decode(),
            )
        return Lease(binding_id, binding.url, binding.branch, row["epoch"], owner, LONG, None, row["quiet_for"])

    async def _open(self) -> None:
        writer = self._dsns["writer"]
        for owner in OWNERS:
            self.stores[owner] = await WriterStore.open(writer, allow_unsafe_fsync=True)
        self.ledger = await Ledger.open(writer, connections=1, allow_unsafe_fsync=True)
        self.admin = await asyncpg.connect(self._dsns["admin"])
        self.raw = await asyncpg.connect(writer)

    async def _close(self) -> None:
        for store in self.stores.values():
            await store.close()
        if hasattr(self, "ledger"):
            await self.ledger.close()
        for name in ("admin", "raw"):
            if hasattr(self, name):
                await getattr(self, name).close()
