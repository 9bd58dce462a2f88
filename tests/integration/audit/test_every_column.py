"""Every column that the ledger has: either an audit compares it, or the page says that nothing binds it (G8).

A column that a later migration adds belongs to one of both as well, and this test asks which.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from ledger.audit import verify_binding
from ledger.audit.publish import publish_checkpoint
from ledger.errors import ApplyLedgerError
from ledger.store.ledger import Ledger
from ledger.store.projections import ProjectionStore
from tests.support.recorded_runs import BINDING
from tests.support.store import connection_to
from tests.support.tampering_campaign import KEY

pytestmark = pytest.mark.integration

_PAGE = Path(__file__).parents[3] / "docs" / "audit.md"

_WHOLE_TABLES = {"event_kind", "schema_migration", "intake_refusal", "relay", "worker", "api_token"}
"""Of which an audit of a binding compares nothing."""

_COLUMNS = {
    "binding": {
        "registered_at",
        "lease_owner",
        "lease_host",
        "lease_taken_at",
        "lease_expires_at",
        "in_flight_run",
        "in_flight_ordinal",
        "in_flight_attempt",
        "quiet_until",
    },
    "inbox": {"order_id", "received_at", "received_by", "closed_at"},
    "plan": {"stored_at"},
    "artifact": {"stored_at"},
    "detail": {"sha256", "data", "stored_at"},
}
"""Others that nothing binds. Lists that stand apart (``detail``) are bound where an event names them (test_verify)."""

_EDITS = {
    "bigint": "{column} + 1000",
    "integer": "{column} + 1000",
    "text": "{column} || 'x'",
    "uuid": "gen_random_uuid()",
    "bytea": "sha256('other')",
    "timestamp with time zone": "{column} + interval '1 second'",
}
"""By type, where a column has none of its own."""

_OWN_EDITS = {
    ("event", "kind"): "case {column} when 'run.failed' then 'run.stopped' else 'run.failed' end",
    ("event", "body"): "{column} || ' '",
    ("inbox", "kind"): "'stop'",
    ("inbox", "state"): "'refused'",
    ("inbox", "body"): "{column} || ' '",
    ("plan", "body"): "{column} || ' '",
    ("plan_operation", "line"): "'x' || {column}",
    ("plan_coverage", "line"): "'x' || {column}",
    ("artifact", "manifest"): "{column} || ' '::bytea",
    ("projection_cursor", "slot"): "'rebuild'",
    ("projection_document", "slot"): "'rebuild'",
}

_ROWS = {
    "event": "kind = 'operation.applied'",
    "inbox": "run_id = 'run-create'",
    "plan": "coverage_digest is not null",
}
"""Which row is edited, where not any will do."""

_ALONE = "ctid = (select ctid from ledger.{table} where {where} order by ctid limit 1)"


async def _columns(admin: Any) -> list[tuple[str, str, str]]:
    rows = await admin.fetch(
        "select c.table_name, c.column_name, c.data_type from information_schema.columns c"
        " where c.table_schema = 'ledger' order by c.table_name, c.ordinal_position"
    )
    return [(row[0], row[1], row[2]) for row in rows]


def _is_unbound(table: str, column: str) -> bool:
    return table in _WHOLE_TABLES or column in _COLUMNS.get(table, set())


@asynccontextmanager
async def _edited(admin: Any, table: str, column: str, type_: str) -> AsyncIterator[None]:
    """One value is another one for a while; a rule of the table that refuses it is taken away first."""
    expression = _OWN_EDITS.get((table, column), _EDITS[type_]).format(column=column)
    place = _ALONE.format(table=table, where=_ROWS.get(table, "true"))
    checks = await admin.fetch(_CHECKS, f"ledger.{table}")
    guard = await admin.fetchval(_GUARD, f"ledger.{table}")
    aside = [f"drop constraint {name}" for name, _ in checks] + [f"disable trigger {name}" for name in guard]
    back = [f"add constraint {name} {rule}" for name, rule in checks]
    back += [f"enable always trigger {name}" for name in guard]
    await _alter(admin, table, aside)
    old, ctid = await admin.fetchrow(f"select {column}::text, ctid::text from ledger.{table} where {place}")
    new = await admin.fetchval(
        f"update ledger.{table} set {column} = {expression} where ctid = $1::text::tid returning ctid::text", ctid
    )
    await _alter(admin, table, [rule for rule in back if rule.startswith("enable")])
    yield
    await _alter(admin, table, [rule for rule in aside if rule.startswith("disable")])
    await admin.execute(f"update ledger.{table} set {column} = $1::text::{type_} where ctid = $2::text::tid", old, new)
    await _alter(admin, table, back)


async def _alter(admin: Any, table: str, changes: list[str]) -> None:
    if changes:
        await admin.execute(f"alter table ledger.{table} {', '.join(changes)}")


_CHECKS = (
    "select conname, pg_get_constraintdef(oid) from pg_constraint where conrelid = $1::text::regclass and contype = 'c'"
)
_GUARD = "select array(select tgname::text from pg_trigger where tgrelid = $1::text::regclass and tgenabled = 'A')"


@pytest.mark.rules("G8", "G9")
@pytest.mark.timeout(300)
async def test_g08_every_column_is_compared_or_said_to_be_bound_by_nothing(told_dsns: dict[str, str]) -> None:
    async with await ProjectionStore.open(told_dsns["projector"], allow_unsafe_fsync=True) as store:
        await store.catch_up()
    missed = []
    async with (
        await Ledger.open(told_dsns["writer"], allow_unsafe_fsync=True) as ledger,
        connection_to(told_dsns["admin"]) as admin,
    ):
        await publish_checkpoint(ledger, (await ledger.bindings())[0], [KEY])
        # Foreign keys are no hindrance to somebody with all rights, and neither is a number that the database makes.
        await admin.execute("set session_replication_role = replica")
        await admin.execute("alter table ledger.binding alter column id drop identity")
        assert await _finds_nothing(ledger)
        for table, column, type_ in await _columns(admin):
            if _is_unbound(table, column):
                continue
            async with _edited(admin, table, column, type_):
                if await _finds_nothing(ledger):
                    missed.append(f"{table}.{column}")
        assert missed == []
        assert await _finds_nothing(ledger), "every edit was taken back"


async def _finds_nothing(ledger: Ledger) -> bool:
    try:
        return (await verify_binding(ledger, BINDING)).holds
    except ApplyLedgerError:
        return False  # of a binding under another name nothing is known


@pytest.mark.rules("G8")
async def test_g08_what_is_bound_by_nothing_is_there_and_the_page_says_so(told_dsns: dict[str, str]) -> None:
    async with connection_to(told_dsns["admin"]) as admin:
        there = {(table, column) for table, column, _ in await _columns(admin)}
    named = {(table, column) for table, columns in _COLUMNS.items() for column in columns}
    assert named <= there
    assert {table for table, _ in there} >= _WHOLE_TABLES
    page = _PAGE.read_text(encoding="utf-8").partition("# What verify does not compare")[2]
    untold = [f"{table}.{column}" for table, column in sorted(named) if f"`{table}.{column}`" not in page]
    untold += [table for table in sorted(_WHOLE_TABLES) if f"`{table}`" not in page]
    assert untold == []
