"""Checks of the ledger's database: reachable, of this program's schema, durable, guarded, with rights not too wide."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

from ledger.checkup import Check, Said, clock_said, failure, good, warning
from ledger.store.connect import Limits, check_schema, check_server, connect
from ledger.store.ledger import Ledger
from ledger.store.session import store_errors
from ledger.store.sql_files import migrations, query

_LIMITS = Limits(connect=5.0, statement=10.0)
_NAME = "apply-ledger doctor"


@dataclass
class LedgerCheckup:
    """The checks of one database.

    Args:
        dsn: of the service's login.
        projector_dsn: of the login that keeps the projections; often the same.
        allow_unsafe_fsync: for tests only: what depends on durability is looked at although the server has none.
    """

    dsn: str
    projector_dsn: str
    allow_unsafe_fsync: bool = False
    _connection: Any = field(default=None, init=False)

    def checks(self) -> Sequence[Check]:
        """All of them, in order."""
        return (
            Check("database", self._reachable),
            Check("encoding", self._encoding, needs=("database",)),
            Check("migrations", self._migrated, needs=("database",)),
            Check("durability", self._durable, needs=("database", "encoding", "migrations")),
            Check("roles", self._rights, needs=("database", "migrations")),
            Check("append-only", self._guarded, needs=("database", "encoding", "migrations", "durability")),
            Check("unique keys", self._keyed, needs=("database", "encoding", "migrations", "durability")),
            Check("database clock", self._clock, needs=("database",)),
        )

    async def close(self) -> None:
        """Give the connection back."""
        if self._connection is not None:
            await self._connection.close(timeout=_LIMITS.open)

    async def _reachable(self) -> Said:
        began = time.monotonic()
        self._connection = await connect(self.dsn, application_name=_NAME, limits=_LIMITS)
        took = (time.monotonic() - began) * 1000
        version = ".".join(str(part) for part in self._connection.get_server_version()[:2])
        return good(f"PostgreSQL {version}, connected in {took:.0f} ms", version=version)

    async def _encoding(self) -> Said:
        with store_errors("the encoding of the ledger's database"):
            settings = await self._connection.fetchrow(query("server_settings"))
        encoding = str(settings["server_encoding"])
        if encoding != "UTF8":
            return failure(
                f"the database keeps texts as {encoding}, which cannot hold every text of a plan as it was hashed",
                "as an administrator: CREATE DATABASE name ENCODING 'UTF8' TEMPLATE template0; name it in"
                " APPLY_LEDGER_DSN and APPLY_LEDGER_ADMIN_DSN, and run `apply-ledger migrate`",
                encoding=encoding,
            )
        return good("the database keeps texts as UTF8", encoding=encoding)

    async def _migrated(self) -> Said:
        with store_errors("the migrations of the ledger's database"):
            await check_schema(self._connection)
        newest = migrations()[-1].version
        program = metadata.version("apply-ledger")
        return good(f"schema {newest}, exactly that of apply-ledger {program}", newest=newest, program=program)

    async def _durable(self) -> Said:
        with store_errors("the settings of the ledger's database"):
            await check_server(self._connection, allow_unsafe_fsync=self.allow_unsafe_fsync)
        return good("fsync, full_page_writes and synchronous_commit are on; no pooler exchanges sessions")

    async def _rights(self) -> Sequence[Said]:
        said = [_judged(await self._login(self.dsn), "writer", "read and append")]
        if self.projector_dsn != self.dsn:
            said.append(_judged(await self._login(self.projector_dsn), "projector", "keep the projections"))
        return said

    async def _login(self, dsn: str) -> Any:
        connection = await connect(dsn, application_name=_NAME, limits=_LIMITS)
        try:
            with store_errors("the rights of the ledger's login"):
                return await connection.fetchrow(query("login_rights"))
        finally:
            await connection.close(timeout=_LIMITS.open)

    async def _guarded(self) -> Said:
        async with await self._ledger() as ledger:
            unguarded, changed = await ledger.unguarded_tables(), await ledger.changed_functions()
        if changed:
            return failure(
                f"functions of the ledger are not what the migrations made them: {', '.join(changed)}",
                "run `apply-ledger verify`, which finds what was changed since; then restore the database from a"
                " backup, or have its owner define each again as in sql/, and find out who replaced them",
                functions=changed,
            )
        if unguarded:
            return failure(
                f"triggers that keep events from being changed are not in force on {', '.join(unguarded)}",
                "run `apply-ledger verify`, which finds what was changed since; then, as their owner, ALTER TABLE …"
                " ENABLE ALWAYS TRIGGER refuse_row_change and refuse_truncate, and find out who took them away",
                tables=unguarded,
            )
        return good("the triggers that keep events from being changed are in force, and every function is ours")

    async def _keyed(self) -> Said:
        async with await self._ledger() as ledger:
            missing = await ledger.missing_keys()
        if missing:
            tables = sorted({table for table, _ in missing})
            return failure(
                f"{len(missing)} of the keys that refuse a second row are gone or not valid, on {', '.join(tables)}",
                "run `apply-ledger verify`, which names each and the rows that came in without it; then restore the"
                " database from a backup, or have its owner create each again as a unique index over these columns",
                keys=[{"table": table, "columns": columns} for table, columns in missing],
            )
        return good("every key that refuses a second row is there and valid")

    async def _ledger(self) -> Ledger:
        return await Ledger.open(
            self.dsn,
            application_name=_NAME,
            limits=_LIMITS,
            ask_again_for=1.0,
            allow_unsafe_fsync=self.allow_unsafe_fsync,
        )

    async def _clock(self) -> Said:
        before = datetime.now(UTC)
        with store_errors("the clock of the ledger's database"):
            told: datetime = await self._connection.fetchval(query("database_clock"))
        after = datetime.now(UTC)
        return clock_said(told, before, after, whose="the database's clock")


def _judged(rights: Any, wanted: str, what: str) -> Said:
    login = str(rights["login"])
    facts = {name: rights[name] for name in ("login", "writer", "projector", "reader", "owner", "superuser")}
    has = [name for name in ("writer", "projector", "reader") if rights[name]]
    if not rights[wanted]:
        said = f"the login {login} is no member of ledger_{wanted}, so it cannot {what}"
        return failure(said, f"as an administrator: GRANT ledger_{wanted} TO {login}", **facts)
    for name, why in (("superuser", "a superuser"), ("owner", "a member of ledger_owner")):
        if rights[name]:
            return warning(
                f"the login {login} is {why}: it could rewrite the record, and only a head kept elsewhere would tell",
                "give the service a login of its own with ledger_writer and ledger_projector and nothing else",
                **facts,
            )
    return good(f"the login {login} has {', '.join(f'ledger_{name}' for name in has)} and no more", **facts)
