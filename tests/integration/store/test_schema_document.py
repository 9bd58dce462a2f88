"""``docs/schema.sql`` is the schema that the migrations make, and no migration itself."""

from __future__ import annotations

import pytest

from ledger.store.sql_files import migrations, sql_folder
from tests.support.postgres import PostgresServer
from tests.support.schema_document import PAGE, dump
from tests.support.store import connection_to

pytestmark = pytest.mark.integration


def test_the_file_is_not_stale(postgres18_server: PostgresServer, postgres18_admin_dsn: str) -> None:
    database = postgres18_server.database_of(postgres18_admin_dsn)
    assert PAGE.read_text(encoding="utf-8") == dump(postgres18_server, database), "run `make rules`"


async def test_it_has_every_table_function_trigger_and_index(postgres18_admin_dsn: str) -> None:
    text = PAGE.read_text(encoding="utf-8")
    async with connection_to(postgres18_admin_dsn) as admin:
        tables = await admin.fetch("select tablename as name from pg_tables where schemaname = 'ledger'")
        functions = await admin.fetch(
            "select distinct proname as name from pg_proc where pronamespace = 'ledger'::regnamespace"
        )
        indexes = await admin.fetch(
            "select indexname as name from pg_indexes i where schemaname = 'ledger' and not exists"
            " (select from pg_constraint c where c.conname = i.indexname)"
        )
    assert len(tables) > 10
    for kind, rows in (("TABLE", tables), ("FUNCTION", functions), ("INDEX", indexes)):
        for row in rows:
            place = "" if kind == "INDEX" else "ledger."
            assert f"{kind} {place}{row['name']}" in text, (kind, row["name"])


def test_the_loader_of_migrations_does_not_see_it() -> None:
    assert not PAGE.is_relative_to(sql_folder())
    assert PAGE.stem not in {migration.version for migration in migrations()}
