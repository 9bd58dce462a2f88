"""Brings a database to this program's schema: plain SQL files, in order, each in one transaction, each recorded.

One upgrader at a time holds an advisory lock on a connection of its own. A file that was edited after it had been
applied is a refusal, as is a database that a newer program migrated. There is no way back: events are never rewritten.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ledger.store.connect import HELD_LOCK_SECONDS, Limits, connect
from ledger.store.errors import (
    EditedMigrationError,
    MigrationFailedError,
    MigrationFileError,
    NewerDatabaseError,
    PasswordRefusedError,
)
from ledger.store.session import store_errors, transaction
from ledger.store.sql_files import Migration, migrations, query
from ledger.store.sqlstates import DRIVER_ERRORS

ROLES = ("ledger_owner", "ledger_writer", "ledger_projector", "ledger_reader")
LOGIN_ROLES = ROLES[1:]
_LIMITS = Limits(lock=60.0, statement=600.0, idle_in_transaction=600.0)
_SCRAM_ITERATIONS = 4096


async def migrate(admin_dsn: str, *, folder: Path | None = None) -> list[str]:
    """Apply what is missing and return the versions applied, oldest first; an empty list where nothing was.

    Args:
        admin_dsn: an administrator's connection: may create roles and a schema.
        folder: where the files are; this program's own by default.

    Raises:
        EditedMigrationError, NewerDatabaseError, MigrationFileError, MigrationFailedError: nothing of the file that
            failed is left; earlier files stay applied.
        LedgerUnavailableError, LedgerPermissionError, LedgerBusyError: the server, the role, another upgrader.
    """
    files = migrations(folder)
    async with _alone(admin_dsn), _admin(admin_dsn) as connection:
        with store_errors("the migrations of the ledger's database"):
            applied = await _applied(connection)
        missing = _missing(files, applied)
        for migration in missing:
            await _apply(connection, migration)
        with store_errors("the rights on the ledger's database"):
            await connection.execute(query("narrow_database"))
            await connection.execute(query("restore_rights"))
    return [migration.version for migration in missing]


@dataclass(frozen=True, slots=True)
class SchemaState:
    """The migrations of a database beside those of this program, each in order.

    Attributes:
        applied: what the database has.
        missing: what this program has and the database lacks.
        unknown: what the database has and this program does not know.
    """

    applied: tuple[str, ...]
    missing: tuple[str, ...]
    unknown: tuple[str, ...]


async def schema_state(dsn: str) -> SchemaState:
    """Compare a database with this program; nothing is changed.

    Args:
        dsn: of any role that may read the schema, or of an administrator.

    Raises:
        LedgerUnavailableError, LedgerPermissionError: the server, the role.
    """
    known = [migration.version for migration in migrations()]
    async with _admin(dsn) as connection:
        with store_errors("the migrations of the ledger's database"):
            applied = await _applied(connection)
    missing = tuple(version for version in known if version not in applied)
    return SchemaState(tuple(sorted(applied)), missing, tuple(sorted(set(applied) - set(known))))


async def set_role_passwords(admin_dsn: str, passwords: Mapping[str, str]) -> None:
    """Let roles log in. The server is sent SCRAM verifiers, so no password reaches it or its log (G12).

    Args:
        admin_dsn: an administrator's connection.
        passwords: password by role name; the owner cannot log in.

    Raises:
        PasswordRefusedError: not a login role, or a password that is empty or not printable ASCII.
        LedgerUnavailableError, LedgerPermissionError: the server, the role.
    """
    verifiers = {role: _verifier(role, password) for role, password in passwords.items()}
    async with _admin(admin_dsn) as connection:
        with store_errors("the passwords of the ledger's roles"):
            for role, verifier in verifiers.items():
                await connection.execute(await connection.fetchval(query("role_password_statement"), role, verifier))


@asynccontextmanager
async def _alone(dsn: str) -> AsyncIterator[None]:
    """Hold the lock of upgraders in a transaction of its own; it goes with the connection, whatever happens."""
    async with _admin(dsn, idle_in_transaction=HELD_LOCK_SECONDS) as connection:
        with store_errors("the migration lock"):
            await connection.transaction().start()
            await connection.execute(query("lock_migrations"))
        yield


@asynccontextmanager
async def _admin(dsn: str, **limits: float) -> AsyncIterator[Any]:
    connection = await connect(dsn, application_name="apply-ledger migrate", limits=replace(_LIMITS, **limits))
    try:
        yield connection
    finally:
        await connection.close(timeout=_LIMITS.connect)


async def _applied(connection: Any) -> dict[str, bytes]:
    if not await connection.fetchval(query("has_migrations")):
        return {}
    return {row["version"]: row["checksum"] for row in await connection.fetch(query("applied_migrations"))}


def _missing(files: tuple[Migration, ...], applied: Mapping[str, bytes]) -> list[Migration]:
    known = {migration.version for migration in files}
    if newer := sorted(set(applied) - known):
        raise NewerDatabaseError(
            checked="the migrations of the ledger's database",
            expected=f"none after {files[-1].version}",
            found=", ".join(newer),
            next_action="install the newer program; the schema cannot be downgraded",
        )
    for migration in files:
        if applied.get(migration.version, migration.checksum) != migration.checksum:
            raise EditedMigrationError(
                checked=f"the migration file {migration.version}",
                expected=f"the bytes that were applied, sha256 {applied[migration.version].hex()}",
                found=f"sha256 {migration.checksum.hex()}",
                next_action="restore the file as it was and put the change into a new one",
            )
    missing = [migration for migration in files if migration.version not in applied]
    if missing and applied and missing[0].version < max(applied):
        raise MigrationFileError(
            checked=f"the migration file {missing[0].version}",
            expected=f"a number above {max(applied)}, which is applied already",
            found="a number below it",
            next_action="give the new file the next free number",
        )
    return missing


async def _apply(connection: Any, migration: Migration) -> None:
    try:
        async with transaction(connection):
            await connection.execute(migration.text)
            await connection.execute(query("record_migration"), migration.version, migration.checksum)
    except DRIVER_ERRORS as exc:
        raise MigrationFailedError(
            checked=f"the migration {migration.version}",
            expected="that the database accepts it",
            found=f"{exc} [{getattr(exc, 'sqlstate', None) or type(exc).__name__}]",
            next_action="nothing of this file was kept; correct the cause and migrate again",
        ) from exc


def _verifier(role: str, password: str) -> str:
    """SCRAM-SHA-256 as PostgreSQL stores it (RFC 5803). ASCII alone, because SASLprep would choose a spelling."""
    if role not in LOGIN_ROLES or not password or not (password.isascii() and password.isprintable()):
        raise PasswordRefusedError(
            checked=f"the password of the role {role}",
            expected=f"one of {', '.join(LOGIN_ROLES)} with a password of printable ASCII",
            found="another role" if role not in LOGIN_ROLES else "an empty password, or other characters",
            next_action="choose another password",
        )
    salt = os.urandom(16)
    salted = hashlib.pbkdf2_hmac("sha256", password.encode("ascii"), salt, _SCRAM_ITERATIONS)
    stored = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    server = hmac.digest(salted, b"Server Key", "sha256")
    encode = base64.b64encode
    return (
        f"SCRAM-SHA-256${_SCRAM_ITERATIONS}:{encode(salt).decode()}${encode(stored).decode()}:{encode(server).decode()}"
    )
