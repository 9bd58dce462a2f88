"""One ledger with a row in every table for all attacks on a version: nothing that is refused changes it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from ledger.store.migrate import migrate
from ledger.store.served import ServedLedger
from tests.support.postgres import ROLES, PostgresServer, migrate_fully
from tests.support.store import (
    BINDING,
    TinyPlan,
    applied,
    claim,
    connection_to,
    make_commit,
    open_writer,
    run_started,
)

PLAN = TinyPlan.of(["a"])
OWNER = "writer-1"
RUN = "committed-run"


async def _filled(admin_dsn: str, writer_dsn: str) -> None:
    async with (
        await ServedLedger.open(writer_dsn, allow_unsafe_fsync=True) as ledger,
        open_writer(writer_dsn) as writer,
    ):
        other = BINDING.model_copy(update={"branch": "other"})
        lease = await claim(writer, await ledger.register_binding(BINDING), OWNER)
        await claim(writer, await ledger.register_binding(other), "writer-2")
        await PLAN.store(ledger, [b"{}\n"])
        await ledger.store_artifact(
            binding_id=lease.binding_id,
            run_id=RUN,
            checksum=PLAN.checksum,
            source="netbox",
            manifest=b"{}",
            digest="d" * 64,
        )
        await ledger.store_detail(b"[]")
        await ledger.submit_commit(lease.binding_id, make_commit(RUN))
        await writer.append(lease, [run_started(lease, run_id=RUN), applied(lease, 0, run_id=RUN)])
        relay = await ledger.claim_relay(lease.binding_id, "held", owner="relay-1", ttl=86400.0)
        first = [event async for event in ledger.events(lease.binding_id, until=1)]
        await ledger.advance_relay(relay, position=1, hash_=first[0].hash, ttl=86400.0)
        await ledger.create_token("0" * 16, name="a token", role="reader", digest=bytes(32), seconds=None)
        await ledger.worker_beat("worker-1", host="host", serves=[BINDING], held=1, ttl=86400.0)
    async with connection_to(writer_dsn) as connection:
        await connection.execute(
            "select ledger.refuse_message_v1('topic', 0, 2147483649, sha256('x'), 'no JSON', null, null, null, null)"
        )
    async with connection_to(admin_dsn) as admin:
        await admin.execute(
            "insert into ledger.projection_cursor values ('p', 1, 'live', 1, 0, decode(repeat('00', 32), 'hex'));"
            "insert into ledger.projection_document values ('p', 1, 'live', 1, 's', 'i', '{}')"
        )


@pytest.fixture
async def filled(postgres_server: PostgresServer) -> AsyncIterator[dict[str, str]]:
    """DSNs of a new copy of the filled ledger."""

    async def migrate_and_fill(admin_dsn: str) -> None:
        await migrate_fully(admin_dsn)
        name = postgres_server.database_of(admin_dsn)
        await _filled(admin_dsn, postgres_server.dsn(name, user=ROLES["writer"]))

    name = postgres_server.create_database(postgres_server.template("a row in every table", migrate_and_fill))
    # Rights on a database are not copied with it.
    assert await migrate(postgres_server.dsn(name)) == []
    yield {"admin": postgres_server.dsn(name)} | {k: postgres_server.dsn(name, user=v) for k, v in ROLES.items()}
    postgres_server.drop_database(name)


@asynccontextmanager
async def rolled_back(connection: Any) -> AsyncIterator[None]:
    """A transaction that never commits, whatever happens in it."""
    transaction = connection.transaction()
    await transaction.start()
    try:
        yield
    finally:
        await transaction.rollback()
