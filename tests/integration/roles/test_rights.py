"""The rights are those that are written down, and a role that gives up its own gets them back (G8)."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from ledger.store.ledger import Ledger
from ledger.store.migrate import migrate
from ledger.store.records import Lease
from ledger.store.writer import WriterStore
from tests.integration.roles.conftest import OWNER
from tests.integration.roles.rights import EXPECTED, granted, table
from tests.support.store import BINDING, applied, chain_is_whole, claim, connection_to, open_writer, unknown

pytestmark = pytest.mark.integration

PAGE = Path(__file__).resolve().parents[3] / "docs" / "roles.md"


@pytest.mark.rules("G8")
async def test_g08_nobody_has_a_right_that_is_not_written_down(filled: dict[str, str]) -> None:
    async with connection_to(filled["admin"]) as admin:
        assert await granted(admin) == EXPECTED


def test_the_page_of_roles_tells_the_rights_as_they_are() -> None:
    assert table() in PAGE.read_text(encoding="utf-8"), f"put this table into {PAGE.name}:\n{table()}"


@pytest.mark.rules("G8")
async def test_g08_everybody_may_do_nothing_in_this_database_but_connect(filled: dict[str, str]) -> None:
    async with connection_to(filled["admin"]) as admin:
        rights = await admin.fetchrow(
            "select has_database_privilege('public', current_database(), 'create') as made,"
            " has_database_privilege('public', current_database(), 'temporary') as temporary,"
            " has_schema_privilege('public', 'public', 'create') as public,"
            " has_schema_privilege('public', 'ledger', 'usage') as ledger,"
            " bool_or(has_function_privilege('public', p.oid, 'execute')) as large_objects"
            " from pg_proc p where p.proname in ('lo_creat', 'lo_create', 'lo_from_bytea')"
        )
        assert dict(rights) == dict.fromkeys(("made", "temporary", "public", "ledger", "large_objects"), False)


@pytest.mark.rules("G8")
async def test_g08_what_a_role_gave_up_of_its_own_is_there_again_after_migrating(filled: dict[str, str]) -> None:
    async with connection_to(filled["admin"]) as admin:
        before = await admin.fetch("select defaclacl::text from pg_default_acl order by 1")
        for role in ("ledger_writer", "ledger_projector", "ledger_reader"):
            await admin.execute(f"drop owned by {role}")
        assert await granted(admin) == {}
        async with connection_to(filled["reader"]) as reader:
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await reader.fetch("select * from ledger.binding")
        assert await migrate(filled["admin"]) == []
        assert await granted(admin) == EXPECTED
        assert await admin.fetch("select defaclacl::text from pg_default_acl order by 1") == before


LOOK_ALIKES = """
create schema hostile;
grant usage on schema hostile to public;
create function hostile.clock_timestamp() returns timestamptz language sql return '2000-01-01'::timestamptz;
create function hostile.sha256(bytea) returns bytea language sql return '\\x00'::bytea;
create function hostile.int8send(bigint) returns bytea language sql return '\\x00'::bytea;
create function hostile.convert_to(text, name) returns bytea language sql return '\\x00'::bytea;
create function hostile.octet_length(text) returns integer language sql return 0;
create function hostile.cardinality(anyarray) returns integer language sql as 'select 0';
create function hostile.current_setting(text) returns text language sql return 'on';
create function hostile.never(text, text) returns boolean language sql return false;
create function hostile.never(bigint, bigint) returns boolean language sql return false;
create function hostile.nothing(bytea, bytea) returns bytea language sql return ''::bytea;
create operator hostile.= (function = hostile.never, leftarg = text, rightarg = text);
create operator hostile.= (function = hostile.never, leftarg = bigint, rightarg = bigint);
create operator hostile.> (function = hostile.never, leftarg = bigint, rightarg = bigint);
create operator hostile.|| (function = hostile.nothing, leftarg = bytea, rightarg = bytea);
create table hostile.binding as select * from ledger.binding;
create table hostile.event as select * from ledger.event;
create type hostile.jsonb as enum ('{}');
grant all on all tables in schema hostile to public;
"""


async def _hostile_session(dsn: str) -> Any:
    """A writer's session in which everything unqualified means something else."""
    connection = await asyncpg.connect(dsn)
    await connection.execute("create temporary table binding (id bigint, writer_epoch bigint)")
    await connection.execute("create temporary table event (kind text)")
    await connection.execute(
        "create function pg_temp.sha256(bytea) returns bytea language sql return '\\x00'::pg_catalog.bytea"
    )
    await connection.execute("set search_path = pg_temp, hostile, pg_catalog, ledger")
    return connection


@pytest.mark.rules("G8", "G2")
async def test_g08_look_alikes_of_tables_functions_operators_and_types_change_nothing(
    filled: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even where an administrator was careless enough to let them be made."""
    async with connection_to(filled["admin"]) as admin:
        await admin.execute(LOOK_ALIKES)
        await admin.execute(
            f'grant temporary on database "{await admin.fetchval("select current_database()")}" to public'
        )
    connection = await _hostile_session(filled["writer"])
    async with await Ledger.open(filled["reader"], allow_unsafe_fsync=True) as ledger:
        row = await ledger.binding(BINDING)
        assert row is not None
        lease = Lease(row.id, row.url, row.branch, row.writer_epoch, OWNER, 60.0, None, 0.0)
        writer = await WriterStore.open(filled["writer"], allow_unsafe_fsync=True)
        await writer.close()
        monkeypatch.setattr(writer, "_connection", connection)
        await writer.append(lease, [unknown(lease, 1)], in_flight=None, settle=0.0)
        await writer.append(lease, [applied(lease, 1, attempt=2)], in_flight=None)
        await writer.renew(lease)
        await writer.release(lease)
        assert await connection.fetchval("select 1 from ledger.binding b where b.id = $1", row.id) is None, (
            "no look-alike"
        )
        opened = json.dumps({"epoch": row.writer_epoch + 1, "role": "ledger_writer"})
        await connection.execute(
            "select ledger.claim_v1($1, 'writer-9', 60, 0, 'host', $2, $3, 1, $4)",
            row.id,
            row.writer_epoch,
            uuid.uuid4(),
            opened,
        )
        assert await chain_is_whole(ledger, row.id) == row.head_position + 3
    await connection.close()


SETTINGS = {
    "timezone": "Asia/Tokyo",
    "datestyle": "German, DMY",
    "intervalstyle": "iso_8601",
    "extra_float_digits": "-15",
    "bytea_output": "escape",
    "array_nulls": "off",
    "quote_all_identifiers": "on",
    "transform_null_equals": "on",
    "check_function_bodies": "off",
    "row_security": "off",
    "synchronous_commit": "off",
    "default_transaction_isolation": "serializable",
    "default_transaction_deferrable": "on",
    "plan_cache_mode": "force_generic_plan",
    "enable_indexscan": "off",
    "enable_indexonlyscan": "off",
    "enable_nestloop": "off",
    "jit_above_cost": "0",
    "work_mem": "64",
    "xmloption": "document",
    "default_text_search_config": "pg_catalog.simple",
    "client_min_messages": "debug1",
}
"""Settings that any role may choose for its session, or for all its sessions to come."""


@pytest.mark.rules("G8")
async def test_g08_no_setting_of_a_session_changes_what_is_recorded(
    filled: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = await asyncpg.connect(filled["writer"], server_settings=SETTINGS)
    async with (
        await Ledger.open(filled["reader"], allow_unsafe_fsync=True) as ledger,
        open_writer(filled["writer"]) as plain,
    ):
        binding_id = await _free_binding(filled["writer"])
        writer = await WriterStore.open(filled["writer"], allow_unsafe_fsync=True)
        await writer.close()
        monkeypatch.setattr(writer, "_connection", connection)
        lease = await claim(writer, binding_id)
        first = await writer.append(lease, [applied(lease, 0)], in_flight=None)
        assert await plain.append(lease, [applied(lease, 0)], in_flight=None) == first
        assert await writer.append(lease, [applied(lease, 0)], in_flight=None) == first
        assert await chain_is_whole(ledger, binding_id) == 2
    await connection.close()


async def _free_binding(dsn: str) -> int:
    async with connection_to(dsn) as connection:
        return int(await connection.fetchval("select ledger.register_binding_v1('http://free.example', 'main')"))
