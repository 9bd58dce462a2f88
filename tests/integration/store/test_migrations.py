"""Migrations: fresh equals upgraded, one upgrader at a time, whole files or nothing, refusals."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from ledger.store.errors import (
    EditedMigrationError,
    LedgerPermissionError,
    MigrationError,
    MigrationFailedError,
    MigrationFileError,
    NewerDatabaseError,
    NotMigratedError,
    PasswordRefusedError,
)
from ledger.store.ledger import Ledger
from ledger.store.migrate import LOGIN_ROLES, migrate, set_role_passwords
from ledger.store.sql_files import migrations, sql_folder
from tests.support.postgres import VERSIONS as POSTGRES_VERSIONS
from tests.support.postgres import PostgresServer, Version
from tests.support.store import BINDING, connection_to, until

pytestmark = pytest.mark.integration

VERSIONS = tuple(migration.version for migration in migrations())

CATALOGUE = {
    "columns": "select table_name, column_name, ordinal_position, data_type, collation_name, is_nullable,"
    " column_default, is_identity from information_schema.columns where table_schema = 'ledger'",
    "constraints": "select conrelid::regclass::text, conname, pg_get_constraintdef(oid) from pg_constraint"
    " where connamespace = 'ledger'::regnamespace",
    "indexes": "select indexdef from pg_indexes where schemaname = 'ledger'",
    "triggers": "select pg_get_triggerdef(t.oid), t.tgenabled from pg_trigger t join pg_class c on c.oid = t.tgrelid"
    " where c.relnamespace = 'ledger'::regnamespace and not t.tgisinternal",
    "functions": "select pg_get_functiondef(oid), proacl::text from pg_proc"
    " where pronamespace = 'ledger'::regnamespace",
    "relations": "select relname, relkind, relacl::text, reloptions::text, pg_get_userbyid(relowner) from pg_class"
    " where relnamespace = 'ledger'::regnamespace",
    "comments": "select objoid::regclass::text, objsubid, description from pg_description"
    " where classoid = 'pg_class'::regclass and objoid in"
    " (select oid from pg_class where relnamespace = 'ledger'::regnamespace)",
    "defaults": "select defaclnamespace::regnamespace::text, defaclobjtype, defaclacl::text from pg_default_acl",
    "kinds": "select kind, by_writer, by_control from ledger.event_kind",
}


async def catalogue(dsn: str) -> dict[str, list[tuple[Any, ...]]]:
    """Everything that makes the schema, in an order of its own."""
    async with connection_to(dsn) as connection:
        return {
            name: sorted((tuple(row) for row in await connection.fetch(text)), key=repr)
            for name, text in CATALOGUE.items()
        }


def copy_of(folder: Path, count: int | None = None) -> Path:
    """The first ``count`` migration files in a folder of their own."""
    folder.mkdir()
    for path in sorted(sql_folder().glob("*.sql"))[:count]:
        shutil.copy(path, folder / path.name)
    return folder


@pytest.mark.rules("G8")
async def test_g08_an_upgraded_database_equals_a_fresh_one_and_keeps_its_rows(
    postgres_server: PostgresServer, empty_admin_dsn: str, tmp_path: Path
) -> None:
    other = postgres_server.dsn(postgres_server.create_database())
    assert await migrate(other) == list(VERSIONS)
    applied: list[str] = []
    for count in range(1, len(VERSIONS) + 1):
        applied += await migrate(empty_admin_dsn, folder=copy_of(tmp_path / str(count), count))
        async with connection_to(empty_admin_dsn) as connection:
            if await connection.fetchval(
                "select to_regprocedure('ledger.register_binding_v1(text, text)') is not null"
            ):
                await connection.execute("select ledger.register_binding_v1('http://a', $1)", str(count))
    assert applied == list(VERSIONS)
    fresh, upgraded = await catalogue(other), await catalogue(empty_admin_dsn)
    for name in CATALOGUE:
        assert upgraded[name] == fresh[name], name
    async with connection_to(empty_admin_dsn) as connection:
        branches = [row["branch"] for row in await connection.fetch("select branch from ledger.binding order by id")]
    assert branches == [str(count) for count in range(4, len(VERSIONS) + 1)]
    postgres_server.drop_database(postgres_server.database_of(other))


async def test_migrating_again_does_nothing_and_each_file_is_recorded(empty_admin_dsn: str) -> None:
    assert await migrate(empty_admin_dsn) == list(VERSIONS)
    assert await migrate(empty_admin_dsn) == []
    async with connection_to(empty_admin_dsn) as connection:
        rows = await connection.fetch("select * from ledger.schema_migration order by version")
    assert [(row["version"], row["checksum"]) for row in rows] == [(m.version, m.checksum) for m in migrations()]
    assert {row["applied_by"] for row in rows} == {urlsplit(empty_admin_dsn).username}
    assert all(row["duration"].total_seconds() >= 0 for row in rows)


async def test_of_two_upgraders_at_once_one_works_and_the_other_finds_it_done(empty_admin_dsn: str) -> None:
    answers = await asyncio.gather(*(migrate(empty_admin_dsn) for _ in range(3)))
    assert sorted(answers, key=len) == [[], [], list(VERSIONS)]


async def test_two_databases_of_one_server_can_be_migrated_at_once(postgres_server: PostgresServer) -> None:
    names = [postgres_server.create_database() for _ in range(3)]
    answers = await asyncio.gather(*(migrate(postgres_server.dsn(name)) for name in names))
    assert answers == [list(VERSIONS)] * 3
    for name in names:
        postgres_server.drop_database(name)


@pytest.mark.rules("G8")
async def test_g08_an_edited_old_file_is_refused(empty_admin_dsn: str, tmp_path: Path) -> None:
    folder = copy_of(tmp_path / "sql")
    await migrate(empty_admin_dsn, folder=folder)
    path = sorted(folder.glob("*.sql"))[1]
    path.write_text(path.read_text(encoding="utf-8") + "-- edited\n", encoding="utf-8")
    with pytest.raises(EditedMigrationError) as refused:
        await migrate(empty_admin_dsn, folder=folder)
    assert path.stem in refused.value.checked


async def test_a_newer_database_is_refused_by_the_runner_and_by_the_ledger(
    empty_admin_dsn: str, tmp_path: Path
) -> None:
    folder = copy_of(tmp_path / "sql")
    (folder / "9999_later.sql").write_text("-- migrate:up\nselect 1;\n", encoding="utf-8")
    assert (await migrate(empty_admin_dsn, folder=folder))[-1] == "9999_later"
    for attempt in (migrate(empty_admin_dsn), Ledger.open(empty_admin_dsn, allow_unsafe_fsync=True)):
        with pytest.raises(NewerDatabaseError) as refused:
            await attempt
        assert "9999_later" in refused.value.found


async def test_an_old_or_empty_database_is_refused_by_the_ledger(empty_admin_dsn: str, tmp_path: Path) -> None:
    for folder in (None, copy_of(tmp_path / "sql", 2)):
        if folder is not None:
            await migrate(empty_admin_dsn, folder=folder)
        with pytest.raises(NotMigratedError) as refused:
            await Ledger.open(empty_admin_dsn, allow_unsafe_fsync=True)
        assert VERSIONS[-1] in refused.value.found
        assert "migrate" in refused.value.next_action


async def test_a_file_that_fails_leaves_nothing_and_names_itself(empty_admin_dsn: str, tmp_path: Path) -> None:
    folder = copy_of(tmp_path / "sql")
    broken = folder / "9998_broken.sql"
    broken.write_text("-- migrate:up\ncreate table ledger.half (x int);\nselect 1 / 0;\n", encoding="utf-8")
    with pytest.raises(MigrationFailedError) as refused:
        await migrate(empty_admin_dsn, folder=folder)
    assert "9998_broken" in refused.value.checked
    assert "22012" in refused.value.found
    async with connection_to(empty_admin_dsn) as connection:
        assert await connection.fetchval("select to_regclass('ledger.half')") is None
    broken.write_text("-- migrate:up\ncreate table ledger.half (x int);\n", encoding="utf-8")
    assert await migrate(empty_admin_dsn, folder=folder) == ["9998_broken"]


async def test_a_migration_killed_in_the_middle_of_a_file_can_be_run_again(
    empty_admin_dsn: str, tmp_path: Path
) -> None:
    folder = copy_of(tmp_path / "sql")
    slow = folder / "9997_slow.sql"
    slow.write_text("-- migrate:up\ncreate table ledger.half (x int);\nselect pg_sleep(60);\n", encoding="utf-8")
    running = asyncio.ensure_future(migrate(empty_admin_dsn, folder=folder))
    async with connection_to(empty_admin_dsn) as connection:

        async def killed() -> bool:
            return bool(
                await connection.fetchval(
                    "select count(pg_terminate_backend(pid)) from pg_stat_activity"
                    " where application_name = 'apply-ledger migrate' and wait_event = 'PgSleep'"
                    " and datname = current_database()"
                )
            )

        await until(killed)
        with pytest.raises(MigrationError) as refused:
            await running
        assert "terminating connection" in refused.value.found, "the first error is the one reported"
        assert await connection.fetchval("select to_regclass('ledger.half')") is None
    slow.write_text("-- migrate:up\ncreate table ledger.half (x int);\n", encoding="utf-8")
    assert await migrate(empty_admin_dsn, folder=folder) == ["9997_slow"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("12_short.sql", "-- migrate:up\n"),
        ("0002_Upper.sql", "-- migrate:up\n"),
        ("9999_headless.sql", "select 1;\n"),
        ("0002_twice.sql", "-- migrate:up\n"),
    ],
    ids=["number", "letters", "header", "same number"],
)
def test_a_file_without_usable_name_or_header_is_refused(tmp_path: Path, name: str, text: str) -> None:
    folder = copy_of(tmp_path / "sql")
    (folder / name).write_text(text, encoding="utf-8")
    with pytest.raises(MigrationFileError):
        migrations(folder)


async def test_a_new_file_with_an_old_number_is_refused(empty_admin_dsn: str, tmp_path: Path) -> None:
    folder = copy_of(tmp_path / "sql")
    await migrate(empty_admin_dsn, folder=folder)
    (folder / "0000_late.sql").write_text("-- migrate:up\nselect 1;\n", encoding="utf-8")
    with pytest.raises(MigrationFileError, match="0000_late"):
        await migrate(empty_admin_dsn, folder=folder)


async def test_without_migration_files_nothing_is_claimed(tmp_path: Path) -> None:
    with pytest.raises(MigrationFileError):
        migrations(tmp_path)


async def test_a_service_role_cannot_migrate(ledger_dsns: dict[str, str], tmp_path: Path) -> None:
    folder = copy_of(tmp_path / "sql")
    (folder / "9999_later.sql").write_text("-- migrate:up\ncreate table ledger.mine (x int);\n", encoding="utf-8")
    with pytest.raises((MigrationFailedError, LedgerPermissionError)):
        await migrate(ledger_dsns["writer"], folder=folder)


@pytest.mark.rules("G12")
async def test_g12_a_password_reaches_the_server_as_a_verifier_alone(
    postgres_server: PostgresServer, admin_dsn: str, admin: Any
) -> None:
    await admin.execute("select pg_stat_reset()")
    await set_role_passwords(admin_dsn, {"ledger_reader": "p@ss'word \\ %"})
    stored = await admin.fetchval("select rolpassword from pg_authid where rolname = 'ledger_reader'")
    assert stored.startswith("SCRAM-SHA-256$4096:")
    assert "p@ss" not in stored
    dsn = postgres_server.cluster.dsn(
        postgres_server.database_of(admin_dsn), user="ledger_reader", password="p@ss'word \\ %"
    )
    async with await Ledger.open(dsn, allow_unsafe_fsync=True) as ledger:
        assert await ledger.binding(BINDING) is None
    with pytest.raises(LedgerPermissionError) as refused:
        await Ledger.open(dsn.replace("word", "wrong"), allow_unsafe_fsync=True)
    assert "wrong" not in str(refused.value)
    await set_role_passwords(admin_dsn, {"ledger_reader": "test-only"})


@pytest.mark.parametrize(("role", "password"), [("ledger_owner", "x"), ("postgres", "x"), ("ledger_reader", "")])
async def test_passwords_are_for_login_roles_and_plain_text(admin_dsn: str, role: str, password: str) -> None:
    with pytest.raises(PasswordRefusedError):
        await set_role_passwords(admin_dsn, {role: password})
    with pytest.raises(PasswordRefusedError):
        await set_role_passwords(admin_dsn, {"ledger_reader": "contraseña"})


@pytest.mark.parametrize("version", POSTGRES_VERSIONS)
async def test_an_administrator_without_superuser_rights_makes_roles_schema_and_passwords(version: Version) -> None:
    server = PostgresServer.start(version)  # one of its own, on which the roles were never made
    try:
        name = server.create_database()
        async with connection_to(server.dsn(name)) as connection:
            await connection.execute("create role keeper login createrole password 'test-only'")
            await connection.execute(f'alter database "{name}" owner to keeper')
        keeper = server.dsn(name, user="keeper")
        assert await migrate(keeper) == list(VERSIONS)
        assert await migrate(keeper) == []
        await set_role_passwords(keeper, dict.fromkeys(LOGIN_ROLES, "test-only"))
        async with await Ledger.open(server.dsn(name, user="ledger_writer"), allow_unsafe_fsync=True) as ledger:
            assert await ledger.register_binding(BINDING) == 1
    finally:
        server.stop()
