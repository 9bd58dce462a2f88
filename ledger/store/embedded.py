"""The embedded PostgreSQL: started on demand, private to one user, found again, stopped on request.

Nothing listens on the network; the one socket lies in a folder that only the server's account (and root) can enter,
and every role has a random password. The server lives in a session of its own and outlives the process that started
it, even when that one is killed.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import asyncpg
import filelock
from tenacity import AsyncRetrying, RetryError, retry_if_exception_type, stop_after_attempt, wait_exponential

from ledger.store.binaries import PostgresBinaries, choose_binaries, find_binaries, runnable_by
from ledger.store.cluster import SUPERUSER, Cluster, socket_folder
from ledger.store.data_folder import DataFolder
from ledger.store.embedded_errors import (
    BinariesNotFoundError,
    DataFolderBusyError,
    DataFolderNotWritableError,
    OtherMajorVersionError,
    ServerStartError,
)
from ledger.store.migrate import migrate, set_role_passwords
from ledger.store.system_account import ServerAccount, server_account

DATABASE = "apply_ledger"
ROLE_NAMES = {"writer": "ledger_writer", "projector": "ledger_projector", "reader": "ledger_reader"}

_NO_PROGRAMS = PostgresBinaries(folder=Path(), major=0, minor=0, origin="none")
"""Enough to ask for a running server: finding it needs no programs, and must work when they are gone."""


@dataclass(frozen=True, slots=True)
class Dsns:
    """Connection URIs of the four roles. They hold passwords, so that their text form leaves them out."""

    admin: str = field(repr=False)
    writer: str = field(repr=False)
    projector: str = field(repr=False)
    reader: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class EmbeddedStatus:
    """What can be said about an embedded database without touching it.

    Attributes:
        folder: its data folder.
        exists: whether there is a database in it.
        pid: process id of the running server, or nothing.
        major: major version of the database, or nothing.
        log: the server's log file.
        credentials: the file with the password of each role.
        reader: connection URI of the reader's role, without its password; nothing where there is no database.
        crashed: whether no server runs although none was stopped: it was killed, or gave itself up.
    """

    folder: Path
    exists: bool
    pid: int | None
    major: int | None
    log: Path
    credentials: Path
    reader: str | None = None
    crashed: bool = False


def default_folder() -> Path:
    """The XDG data folder, as root ``/var/lib/apply-ledger``."""
    if os.geteuid() == 0:
        return Path("/var/lib/apply-ledger")
    base = os.environ.get("XDG_DATA_HOME", "")
    # The XDG base directory specification: a relative value is to be ignored.
    root = Path(base) if base.startswith("/") else Path.home() / ".local" / "share"
    return root / "apply-ledger"


class EmbeddedPostgres:
    """The embedded database in one folder.

    Args:
        data_dir: its folder; :func:`default_folder` names the usual one.
        bin_dir: a folder of PostgreSQL programs to use instead of those that come with this package.
        timeout: seconds to wait for another process that starts or stops the same server, and for the server itself.
    """

    def __init__(self, data_dir: Path, *, bin_dir: Path | None = None, timeout: float = 60.0) -> None:
        self._folder = DataFolder(Path(os.path.abspath(data_dir)))
        self._bin_dir = bin_dir
        self._timeout = timeout

    async def ensure_running(self) -> Dsns:
        """Start the server unless it runs, bring its schema up to date, and say how to reach it.

        Safe to call from many processes at once: one of them starts the server, the others find it.

        Raises:
            EmbeddedServerError: one class below it for each reason.
            ledger.store.errors.StoreError: the schema cannot be brought up to date.
        """
        account = await asyncio.to_thread(server_account)
        await asyncio.to_thread(self._folder.prepare, account)
        async with self._locked():
            cluster, passwords = await self._serve(account)
            dsns = Dsns(
                admin=cluster.dsn(DATABASE, user=SUPERUSER, password=passwords["admin"]),
                **{key: cluster.dsn(DATABASE, user=name, password=passwords[key]) for key, name in ROLE_NAMES.items()},
            )
            await migrate(dsns.admin)
            await set_role_passwords(dsns.admin, {name: passwords[key] for key, name in ROLE_NAMES.items()})
        return dsns

    async def stop(self) -> bool:
        """Stop the server: sessions are ended, a checkpoint is written.

        Returns:
            Whether there was a server to stop.

        Raises:
            ServerStopError: it still runs.
            DataFolderBusyError: another process is starting or stopping it.
        """
        if self.status().pid is None:
            return False
        async with self._locked():
            account = await asyncio.to_thread(server_account)
            cluster = self._cluster(account, self._binaries())
            return await asyncio.to_thread(cluster.stop, timeout=self._timeout)

    def status(self) -> EmbeddedStatus:
        """Whether a server runs on this folder; starts and changes nothing."""
        major = self._folder.major_version() if self._folder.is_ours() else None
        pid, reader = None, None
        if major is not None:
            owner = self._folder.data.stat()
            account = ServerAccount(name=str(owner.st_uid), uid=owner.st_uid, gid=owner.st_gid)
            cluster = self._cluster(account, _NO_PROGRAMS)
            pid = cluster.pid()
            reader = cluster.dsn(DATABASE, user=ROLE_NAMES["reader"], password=None)
        return EmbeddedStatus(
            folder=self._folder.path,
            exists=major is not None,
            pid=pid,
            major=major,
            log=self._folder.log,
            reader=reader,
            credentials=self._folder.credentials_file,
            crashed=major is not None and pid is None and not self._folder.was_shut_down(),
        )

    async def _serve(self, account: ServerAccount) -> tuple[Cluster, dict[str, str]]:
        """Start and connect; a server that dies in between (a crash, an ending stop) is started again."""
        again = AsyncRetrying(
            stop=stop_after_attempt(5),
            wait=wait_exponential(0.1),
            retry=retry_if_exception_type(
                (OSError, asyncpg.CannotConnectNowError, asyncpg.ConnectionDoesNotExistError)
            ),
        )
        try:
            async for attempt in again:
                with attempt:
                    cluster, passwords = await asyncio.to_thread(self._start, account)
                    await _create_database(cluster, passwords["admin"])
        except RetryError as exc:
            raise ServerStartError(
                checked=f"a connection to the embedded database in {self._folder.path}",
                expected="a server that answers",
                found=type(exc.last_attempt.exception()).__name__,
                next_action=f"read {self._folder.log}",
            ) from exc
        return cluster, passwords

    def _start(self, account: ServerAccount) -> tuple[Cluster, dict[str, str]]:
        self._folder.remove_leftovers()
        passwords = self._folder.credentials()
        running = self._cluster(account, _NO_PROGRAMS)
        if running.pid() is not None and running.wait_until_ready(timeout=self._timeout):
            return running, passwords
        if running.pid() is not None:
            raise ServerStartError(
                checked=f"the server that already runs on {self._folder.path}",
                expected=f"one that accepts connections within {self._timeout:g} s",
                found="one that is still starting, recovering or stopping",
                next_action=f"wait, or read {self._folder.log}",
            )
        binaries = runnable_by(self._binaries(), account, copy_under=self._folder.programs)
        cluster = self._cluster(account, binaries)
        if self._folder.major_version() is None:
            cluster.initialise(passwords["admin"])
        cluster.start(timeout=self._timeout)
        return cluster, passwords

    def _cluster(self, account: ServerAccount, binaries: PostgresBinaries) -> Cluster:
        return Cluster(
            binaries=binaries,
            account=account,
            data=self._folder.data,
            sockets=socket_folder(self._folder.path, account),
            log=self._folder.log,
        )

    def _binaries(self) -> PostgresBinaries:
        """Programs of the major version that made the cluster, else the preferred ones."""
        major = self._folder.major_version()
        found = find_binaries(self._bin_dir)
        try:
            return choose_binaries(found, major=major)
        except BinariesNotFoundError as exc:
            if major is None or not found:
                raise
            raise OtherMajorVersionError(
                checked=f"the major version of the database in {self._folder.path}",
                expected=f"PostgreSQL {found[0].major}, the version of the programs at hand",
                found=f"a database made by PostgreSQL {major}",
                next_action=(
                    f"install PostgreSQL {major} (Debian: 'postgresql-{major}') to keep using it, or move its data"
                    " with that version's pg_dumpall into a new folder"
                ),
            ) from exc

    @asynccontextmanager
    async def _locked(self) -> AsyncIterator[None]:
        lock = filelock.AsyncFileLock(self._folder.lock, timeout=self._timeout, mode=0o600)
        try:
            await lock.acquire()
        except filelock.Timeout as exc:
            raise DataFolderBusyError(
                checked=f"the lock of the embedded database, {self._folder.lock}",
                expected=f"to get it within {self._timeout:g} s",
                found="another process that starts or stops the server",
                next_action="wait for it, then try again",
            ) from exc
        except OSError as exc:
            raise DataFolderNotWritableError(
                checked=f"the lock of the embedded database, {self._folder.lock}",
                expected="a file that can be written",
                found=exc.strerror or type(exc).__name__,
                next_action="choose another folder, or set APPLY_LEDGER_DSN to another PostgreSQL",
            ) from exc
        try:
            yield
        finally:
            await lock.release()


async def _create_database(cluster: Cluster, password: str) -> None:
    """Make our database in a new cluster; its name is fixed, so a run that died in between is simply continued."""
    connection = await asyncpg.connect(cluster.dsn("postgres", user=SUPERUSER, password=password), timeout=30)
    try:
        if not await connection.fetchval("select true from pg_database where datname = $1", DATABASE):
            await connection.execute(f'create database "{DATABASE}"')
    finally:
        await connection.close()
