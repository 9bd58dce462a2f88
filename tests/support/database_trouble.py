"""Trouble inside PostgreSQL that only an administrator can make: appends that fail, commits that wait."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.support.store import connection_to, until

GATE = 4711
"""The advisory lock that a held commit waits for."""

_REFUSING = """
create function public.refuse_some() returns trigger language plpgsql as $$
begin
    raise exception using errcode = '{state}', message = 'made by the test';
end $$;
create trigger refuse_some before insert on ledger.event for each row when ({condition})
    execute function public.refuse_some();
"""
_HOLDING = """
create function public.wait_at_commit() returns trigger language plpgsql security definer as $$
begin
    perform pg_catalog.pg_advisory_xact_lock({gate});
    return null;
end $$;
grant execute on function public.wait_at_commit() to public;
create constraint trigger wait_at_commit after insert on ledger.event deferrable initially deferred
    for each row when ({condition}) execute function public.wait_at_commit();
"""
_WAITING = "select pid from pg_stat_activity where wait_event = 'advisory' and datname = current_database()"


@asynccontextmanager
async def refusing(admin_dsn: str, condition: str, state: str) -> AsyncIterator[None]:
    """While the block runs, the insert of an event for which ``condition`` holds (of ``new``) fails with this state."""
    async with connection_to(admin_dsn) as admin:
        await admin.execute(_REFUSING.format(condition=condition, state=state))
        yield
        await admin.execute("drop trigger refuse_some on ledger.event; drop function public.refuse_some()")


class HeldCommits:
    """Commits that wait at the gate."""

    def __init__(self, admin: Any) -> None:
        self._admin = admin

    async def one_waits(self) -> int:
        """Wait until one stands at the gate; the process id of its backend."""
        await until(lambda: self._admin.fetchval(_WAITING))
        found: int = await self._admin.fetchval(_WAITING)
        return found

    async def end(self, backend: int) -> None:
        """End a backend at the gate: its transaction never commits."""
        assert await self._admin.fetchval("select pg_terminate_backend($1)", backend)
        gone = "select not exists (select from pg_stat_activity where pid = $1)"
        await until(lambda: self._admin.fetchval(gone, backend))

    async def open(self) -> None:
        """Let everybody through from now on."""
        await self._admin.execute(f"select pg_advisory_unlock_all() -- {GATE}")


@asynccontextmanager
async def held_commits(admin_dsn: str, condition: str) -> AsyncIterator[HeldCommits]:
    """While the block runs, a transaction with an event for which ``condition`` holds waits inside its COMMIT."""
    async with connection_to(admin_dsn) as admin:
        await admin.execute(_HOLDING.format(condition=condition, gate=GATE))
        await admin.execute(f"select pg_advisory_lock({GATE})")
        try:
            yield HeldCommits(admin)
        finally:
            await admin.execute("select pg_advisory_unlock_all()")


async def lease_has_run_out(admin: Any) -> None:
    """Wait until no lease of this database is alive."""
    dead = "select not exists (select from ledger.binding where lease_expires_at > clock_timestamp())"
    async with asyncio.timeout(30):
        await until(lambda: admin.fetchval(dead), within=30)
