"""How a connection is opened: time limits on both sides, and a look at what durability rests on (G4, FF33)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import asyncpg

from ledger.errors import ConfigurationError
from ledger.store.errors import NewerDatabaseError, NotMigratedError, StoreError, UnsafeServerError
from ledger.store.sql_files import migrations, query
from ledger.store.sqlstates import DRIVER_ERRORS, translated

OLDEST_SERVER = 150000


HELD_LOCK_SECONDS = 7 * 24 * 3600.0
"""How long a transaction that only holds an advisory lock may stay open.

Such a lock belongs to a transaction, never to a session: behind a pooler in transaction mode a session is somebody
else's after the next commit, and the lock with it, freed or left behind for good (FF32).
"""


@dataclass(frozen=True, slots=True)
class Limits:
    """Time limits in seconds.

    The server ends a statement before the client gives up on it, because a client that cancels cannot know whether
    the statement had committed.
    """

    open: float = 5.0
    connect: float = 10.0
    acquire: float = 10.0
    lock: float = 10.0
    statement: float = 30.0
    idle_in_transaction: float = 60.0
    grace: float = 5.0

    @property
    def command(self) -> float:
        """After this the client treats the connection as lost."""
        return self.statement + self.grace


async def connect(dsn: str, *, application_name: str, limits: Limits) -> Any:
    """Open one connection.

    Raises:
        LedgerUnavailableError: the server cannot be reached in time.
        LedgerPermissionError: wrong role or password.
    """
    try:
        return await open_connection(dsn, application_name=application_name, limits=limits)
    except DRIVER_ERRORS as exc:
        raise translated(exc, doing="the connection to the ledger's database") from exc


def checked_dsn(dsn: str) -> str:
    """The DSN, where it can be one. The driver's own errors would quote parts of it, perhaps the password (G12).

    Raises:
        ConfigurationError: not a ``postgresql://`` URI.
    """
    try:
        parts = urlsplit(dsn)
        usable = parts.scheme in {"postgresql", "postgres"} and (parts.port is None or parts.port > 0)
    except ValueError:
        usable = False
    if not usable:
        raise ConfigurationError(
            checked="the DSN of the ledger's database",
            expected="postgresql://user:password@host:port/database, with reserved characters percent-encoded",
            found="something else (not shown: it may hold a password)",
            next_action="correct APPLY_LEDGER_DSN or APPLY_LEDGER_ADMIN_DSN",
        )
    return dsn


async def open_connection(dsn: str, *, application_name: str, limits: Limits) -> Any:
    """Open one connection; raises the driver's own errors, for callers that ask again."""
    return await asyncpg.connect(
        checked_dsn(dsn), timeout=limits.connect, server_settings=server_settings(application_name, limits)
    )


def server_settings(application_name: str, limits: Limits) -> dict[str, str]:
    """What every session of ours asks of the server."""
    return {
        "application_name": application_name,
        "client_encoding": "UTF8",
        "search_path": "pg_catalog, pg_temp",
        "timezone": "UTC",
        "synchronous_commit": "on",
        # Every query of ours is a look-up in an index. A young database has no statistics, and a scan that was cheap
        # while it was empty would be kept as long as the prepared statement lives.
        "enable_seqscan": "off",
        # A plan that cannot do without a scan then looks so dear that it would be compiled, for 200 ms, before it runs.
        "jit": "off",
        "statement_timeout": _milliseconds(limits.statement),
        "lock_timeout": _milliseconds(limits.lock),
        "idle_in_transaction_session_timeout": _milliseconds(limits.idle_in_transaction),
    }


def _milliseconds(seconds: float) -> str:
    return str(max(1, round(seconds * 1000)))


async def check_server(connection: Any, *, allow_unsafe_fsync: bool) -> None:
    """Refuse a server that would lose committed events or cannot hold them, is too old, or has not our schema.

    ``allow_unsafe_fsync`` is for tests: their clusters run without fsync.

    Raises:
        UnsafeServerError: ``fsync``, ``full_page_writes`` or ``synchronous_commit`` is off, an old server, or a
            database of another encoding than UTF8.
        ExchangedSessionError: (as the driver's error) there is a pooler in transaction mode in between.
        NotMigratedError, NewerDatabaseError: the schema is older or newer than this program.
    """
    # Twice: where sessions are exchanged behind our back, the statement that the first time prepared is gone, and it
    # shows here instead of between a write and its record.
    await connection.fetchrow(query("server_settings"))
    settings = await connection.fetchrow(query("server_settings"))
    if settings["server_version"] < OLDEST_SERVER:
        raise _unsafe(
            "server_version_num",
            f">= {OLDEST_SERVER} (PostgreSQL {OLDEST_SERVER // 10000})",
            str(settings["server_version"]),
        )
    if settings["synchronous_commit"] in {"off", "local"}:
        raise _unsafe("synchronous_commit", "on", settings["synchronous_commit"])
    if settings["server_encoding"] != "UTF8":
        raise _cannot_hold(settings["server_encoding"])
    for name in ("fsync", "full_page_writes"):
        if settings[name] != "on" and not allow_unsafe_fsync:
            raise _unsafe(name, "on", settings[name])
    await check_schema(connection)


def _unsafe(name: str, expected: str, found: str) -> UnsafeServerError:
    return UnsafeServerError(
        checked=f"the server's setting {name}",
        expected=expected,
        found=found,
        next_action="correct the server's configuration and restart it; without it a crash can lose committed events",
    )


def _cannot_hold(encoding: str) -> UnsafeServerError:
    """Some text of a plan has no spelling in another encoding, or other bytes than those that were hashed."""
    return UnsafeServerError(
        checked="the server's setting server_encoding",
        expected="UTF8",
        found=encoding,
        next_action="make the ledger's database anew with `create database … encoding 'UTF8' template template0`",
    )


async def check_schema(connection: Any) -> None:
    """Compare the applied migrations with the files of this program."""
    wanted = {migration.version for migration in migrations()}
    applied: set[str] = set()
    if await connection.fetchval(query("has_migrations")):
        applied = {row["version"] for row in await connection.fetch(query("applied_migrations"))}
    differs: tuple[type[StoreError], set[str], str, str] | None = None
    if wanted - applied:
        differs = (NotMigratedError, wanted - applied, "missing", "run 'apply-ledger migrate'")
    elif applied - wanted:
        differs = (NewerDatabaseError, applied - wanted, "unknown here", "install the newer program")
    if differs is None:
        return
    error, versions, what, next_action = differs
    raise error(
        checked="the migrations of the ledger's database",
        expected=f"exactly those of this program, up to {max(wanted)}",
        found=f"up to {max(applied, default='none')}; {what}: {', '.join(sorted(versions))}",
        next_action=next_action,
    )
