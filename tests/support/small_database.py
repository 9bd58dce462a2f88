"""A PostgreSQL server whose data stand on a small file system, and that may be out of room, killed and started again.

Where nothing can be mounted, the server refuses what it would refuse without room: a trigger gives the same answer.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import asyncpg

from ledger.store.cluster import Cluster, socket_folder
from ledger.store.process_table import processes_in
from ledger.store.system_account import server_account
from tests.support.database_trouble import refusing
from tests.support.postgres import PASSWORD, binaries_of, migrate_fully, run_apart
from tests.support.small_disk import SmallDisk, small_disk
from tests.support.store import connection_to

_KIBIBYTES = 160 * 1024
_USE_LOG = "select pg_switch_wal(), pg_logical_emit_message(false, 'x', repeat('x', 99999))"
_SETTINGS = {"autovacuum": "off", "min_wal_size": "32MB", "max_wal_size": "48MB", "shared_buffers": "16MB"}


@dataclass
class SmallDatabase:
    """The server and its disk."""

    cluster: Cluster
    disk: SmallDisk
    _refusals: AsyncExitStack = field(default_factory=AsyncExitStack)

    @property
    def admin(self) -> str:
        """The superuser's DSN."""
        return self.cluster.dsn("ledger", user="postgres", password=PASSWORD)

    @property
    def writer(self) -> str:
        """The writer's DSN."""
        return self.cluster.dsn("ledger", user="ledger_writer", password=PASSWORD)

    async def fill(self) -> None:
        """From now on nothing can be stored beyond what is allocated; the next row needs more."""
        self.disk.fill()
        if not self.disk.mounted:
            await self._refusals.enter_async_context(refusing(self.admin, "true", "53100"))

    async def free(self) -> None:
        """Give the room back."""
        self.disk.free()
        await self._refusals.aclose()

    async def use_up_the_log(self) -> None:
        """Let the server need a new file of its write-ahead log, for which there is no room: it panics."""
        if not self.disk.mounted:
            await self._refusals.aclose()
            await asyncio.to_thread(self.cluster.stop, mode="immediate")
            return
        with suppress(asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
            async with connection_to(self.admin) as admin:
                for _ in range(64):
                    await admin.execute(_USE_LOG)
            raise AssertionError("the server still has room for its log")

    def start(self) -> None:
        """Start the server again."""
        self.cluster.stop(mode="immediate")
        self.cluster.start()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop every process of the server (SIGSTOP) while the block runs, as on a host that is frozen."""
        frozen = processes_in(self.cluster.data)
        assert frozen
        for pid in frozen:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in frozen:
                os.kill(pid, signal.SIGCONT)


@contextmanager
def small_database() -> Iterator[SmallDatabase]:
    """A migrated database on a small disk, with fsync as in service."""
    with small_disk(kibibytes=_KIBIBYTES) as disk:
        account = server_account()
        root = disk.folder / "server"
        root.mkdir()
        account.take(root, mode=0o700)
        cluster = Cluster(
            binaries=binaries_of("15"),
            account=account,
            data=root / "data",
            sockets=socket_folder(Path(root), account),
            log=root / "server.log",
            settings=_SETTINGS,
        )
        cluster.initialise(PASSWORD)
        cluster.start()
        try:
            run_apart(_create(cluster))
            yield SmallDatabase(cluster, disk)
        finally:
            disk.free()
            cluster.stop(mode="immediate")


async def _create(cluster: Cluster) -> None:
    async with connection_to(cluster.dsn("postgres", user="postgres", password=PASSWORD)) as admin:
        await admin.execute("create database ledger")
    await migrate_fully(cluster.dsn("ledger", user="postgres", password=PASSWORD))
