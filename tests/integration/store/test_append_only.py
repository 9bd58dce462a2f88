"""What is written stays: roles, triggers, rights of functions (G8), tried on both versions."""

from __future__ import annotations

from typing import Any

import asyncpg
import pytest

from ledger.store.errors import LedgerPermissionError
from ledger.store.ledger import Ledger
from ledger.store.migrate import migrate
from ledger.store.writer import Lease, WriterStore
from tests.support.store import TinyPlan, applied, connection_to, make_commit

pytestmark = pytest.mark.integration

APPEND_ONLY = ("event", "plan", "plan_seal", "plan_operation", "plan_coverage", "artifact", "intake_refusal", "detail")
GUARDED = (*APPEND_ONLY, "binding", "inbox", "relay")
SERVICE_ROLES = ("writer", "projector", "reader")

ATTACKS = {
    "insert": "insert into ledger.event (binding_id, position) values (1, 99)",
    "update": "update ledger.event set body = '{}'",
    "delete": "delete from ledger.event",
    "truncate": "truncate ledger.event",
    "head": "update ledger.binding set head_position = 0",
    "epoch": "update ledger.binding set writer_epoch = 99",
    "inbox": "update ledger.inbox set state = 'done'",
    "detail": "insert into ledger.detail (sha256, data) values (sha256('x'), 'x')",
    "kinds": "insert into ledger.event_kind values ('made.up', true, true)",
    "disable trigger": "alter table ledger.event disable trigger refuse_row_change",
    "drop trigger": "drop trigger refuse_row_change on ledger.event",
    "replica": "set session_replication_role = replica",
    "set role": "set role ledger_owner",
    "session authorization": "set session authorization ledger_owner",
    "create table": "create table public.mine (x int)",
    "create table in ledger": "create table ledger.mine (x int)",
    "temp table": "create temp table mine (x int)",
    "replace function": "create or replace function ledger.lp(bytea) returns bytea language sql return '\\x00'::bytea",
    "inner append": "select ledger.append_locked(b, 1, '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', null)"
    " from ledger.binding b",
    "inner lock": "select ledger.lock_binding(1)",
    "inner mark": "select ledger.append_events(1, 'u', 'b', 0, '', 1, '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}',"
    " null, null, null, null)",
    "inner close": "select ledger.close_order_locked(1, 1, 'done')",
    "inner order": "select ledger.insert_order(b, gen_random_uuid(), 'stop', 'r', '{}', 1, null, null, null, null)"
    " from ledger.binding b",
    "program": "copy ledger.event to program 'cat > /dev/null'",
    "file": "copy ledger.event from '/etc/passwd'",
    "become superuser": "alter role current_user superuser",
    "grant": "grant ledger_owner to current_user",
    "migrations": "insert into ledger.schema_migration values ('0099_x', sha256('x'), 'me', now(), '0')",
}


@pytest.fixture
async def filled(
    ledger: Ledger, writer: WriterStore, lease: Lease, admin: Any, ledger_dsns: dict[str, str]
) -> dict[str, str]:
    """A row in every guarded table. Rights on the database itself are not copied with a template: migrate again."""
    plan = TinyPlan.of(["a"])
    await plan.store(ledger, [b"{}\n"])
    await ledger.store_artifact(
        binding_id=lease.binding_id, run_id="r", checksum=plan.checksum, source="s", manifest=b"{}", digest="0" * 64
    )
    await ledger.store_detail(b"[]")
    await ledger.submit_commit(lease.binding_id, make_commit())
    await writer.append(lease, [applied(lease, 0)])
    await admin.execute(
        'insert into ledger.intake_refusal (topic, partition, "offset", digest, reason)'
        " values ('t', 0, 2147483649, sha256('x'), 'no JSON')"
    )
    relay = await ledger.claim_relay(lease.binding_id, "topic", owner="relay-1", ttl=60.0)
    (first,) = [event async for event in ledger.events(lease.binding_id, until=1)]
    await ledger.advance_relay(relay, position=1, hash_=first.hash, ttl=60.0)
    assert await migrate(ledger_dsns["admin"]) == []
    return ledger_dsns


@pytest.mark.rules("G8")
@pytest.mark.parametrize("role", SERVICE_ROLES)
async def test_g08_no_role_of_the_service_can_reach_round_the_functions(filled: dict[str, str], role: str) -> None:
    async with connection_to(filled[role]) as connection:
        for name, attack in ATTACKS.items():
            with pytest.raises(asyncpg.PostgresError) as refused:
                await connection.execute(attack)
            assert refused.value.sqlstate in {"42501", "42704"}, f"{name}: {refused.value!r}"
        # SET SESSION of a switch that the role may set must change nothing either.
        assert await connection.fetchval("select count(*) from ledger.event") == 3


@pytest.mark.rules("G8")
@pytest.mark.parametrize("mode", ["origin", "replica"])
async def test_g08_triggers_refuse_even_a_superuser_that_plays_a_replica(
    filled: dict[str, str], admin: Any, mode: str
) -> None:
    await admin.execute(f"set session_replication_role = {mode}")
    for table in GUARDED:
        column = await admin.fetchval(
            "select attname from pg_attribute where attrelid = $1::text::regclass and attnum = 1", f"ledger.{table}"
        )
        for statement in (
            f'update ledger.{table} set "{column}" = "{column}"',
            f"delete from ledger.{table}",
            f"truncate ledger.{table} cascade",
        ):
            if table in ("binding", "inbox", "relay") and statement.startswith("update"):
                continue
            with pytest.raises(asyncpg.PostgresError) as refused:
                await admin.execute(statement)
            assert refused.value.sqlstate == "LG011", statement
    for statement in (
        "update ledger.binding set url = 'http://other'",
        "update ledger.binding set head_position = head_position - 1",
        "update ledger.binding set writer_epoch = writer_epoch - 1",
        "update ledger.inbox set run_id = 'other'",
        "update ledger.relay set topic = 'other'",
        "update ledger.relay set position = position - 1",
        "update ledger.relay set epoch = epoch - 1",
        "update ledger.inbox set state = 'done', closed_at = now(), body = '{}'",
    ):
        with pytest.raises(asyncpg.PostgresError) as refused:
            await admin.execute(statement)
        assert refused.value.sqlstate == "LG011", statement


@pytest.mark.rules("G8")
async def test_g08_every_guarding_trigger_is_enabled_always(admin: Any) -> None:
    rows = await admin.fetch(
        "select c.relname, t.tgname, t.tgenabled from pg_trigger t join pg_class c on c.oid = t.tgrelid"
        " where c.relnamespace = 'ledger'::regnamespace and not t.tgisinternal"
    )
    found = {(row["relname"], row["tgname"]) for row in rows if row["tgenabled"] == b"A"}
    for table in GUARDED:
        assert {(table, "refuse_row_change"), (table, "refuse_truncate")} <= found


@pytest.mark.rules("G8")
async def test_g08_every_function_is_closed_to_the_public_and_names_its_search_path(admin: Any) -> None:
    rows = await admin.fetch(
        "select p.oid::regprocedure::text as name, p.prosecdef, p.proconfig, p.prosqlbody is not null as bound,"
        " pg_get_userbyid(p.proowner) as owner, has_function_privilege('public', p.oid, 'execute') as public,"
        " has_function_privilege('ledger_reader', p.oid, 'execute') as reader,"
        " has_function_privilege('ledger_projector', p.oid, 'execute') as projector,"
        " has_function_privilege('ledger_writer', p.oid, 'execute') as writer"
        " from pg_proc p where p.pronamespace = 'ledger'::regnamespace"
    )
    assert len(rows) > 20
    for row in rows:
        assert not row["public"], row["name"]
        assert not row["reader"], row["name"]
        assert not row["projector"], row["name"]
        assert row["owner"] == "ledger_owner", row["name"]
        fixed = "search_path=pg_catalog, pg_temp" in (row["proconfig"] or [])
        # A body that was bound to its objects when it was made cannot be led astray by a search path.
        assert fixed or (row["bound"] and not row["prosecdef"]), row["name"]
        assert row["writer"] == row["prosecdef"], f"{row['name']}: granted and SECURITY DEFINER go together"
        if row["writer"]:
            assert "_v1(" in row["name"], f"{row['name']}: what is granted carries a version"


@pytest.mark.rules("G8")
async def test_g08_the_service_roles_have_select_alone_on_the_ledger_tables(admin: Any) -> None:
    rows = await admin.fetch(
        "select c.relname, r.role, p.privilege, has_table_privilege(r.role, c.oid, p.privilege) as granted"
        " from pg_class c,"
        " unnest(array['ledger_writer', 'ledger_projector', 'ledger_reader', 'public']) r (role),"
        " unnest(array['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'REFERENCES', 'TRIGGER']) p (privilege)"
        " where c.relnamespace = 'ledger'::regnamespace and c.relkind in ('r', 'p') and c.relname = any ($1)",
        [*GUARDED, "event_kind", "schema_migration"],
    )
    for row in rows:
        expected = row["privilege"] == "SELECT" and row["role"] != "public"
        assert row["granted"] == expected, dict(row)


@pytest.mark.rules("G8")
async def test_g08_the_roles_are_nothing_special(admin: Any) -> None:
    rows = await admin.fetch(
        "select rolname, rolsuper, rolcreaterole, rolcreatedb, rolreplication, rolbypassrls, rolcanlogin"
        " from pg_roles where rolname like 'ledger\\_%'"
    )
    assert {row["rolname"] for row in rows} >= {"ledger_owner", "ledger_writer", "ledger_projector", "ledger_reader"}
    for row in rows:
        powers = (row["rolsuper"], row["rolcreaterole"], row["rolcreatedb"], row["rolreplication"], row["rolbypassrls"])
        assert not any(powers), row["rolname"]
        assert row["rolcanlogin"] == (row["rolname"] != "ledger_owner")
    members = await admin.fetchval(
        "select count(*) from pg_auth_members where roleid = 'ledger_owner'::regrole"
        " and member in ('ledger_writer'::regrole, 'ledger_projector'::regrole, 'ledger_reader'::regrole)"
    )
    assert members == 0


@pytest.mark.rules("G8")
async def test_g08_a_hostile_search_path_and_look_alikes_change_nothing(
    filled: dict[str, str], admin: Any, lease: Lease, ledger: Ledger
) -> None:
    await admin.execute("create schema hostile; grant usage on schema hostile to ledger_writer")
    await admin.execute(
        "create function hostile.clock_timestamp() returns timestamptz language sql return '2000-01-01'::timestamptz"
    )
    async with connection_to(filled["writer"]) as connection:
        await connection.execute("set search_path = hostile, pg_catalog")
        await connection.execute("select ledger.renew_v1($1, $2, $3, 60)", lease.binding_id, lease.owner, lease.epoch)
    row = (await ledger.bindings())[0]
    assert row.has_live_lease


async def test_a_reader_that_tries_to_write_is_refused_by_name(ledger_dsns: dict[str, str], binding_id: int) -> None:
    async with await Ledger.open(ledger_dsns["reader"], allow_unsafe_fsync=True) as reader:
        assert [row.id for row in await reader.bindings()] == [binding_id]
        with pytest.raises(LedgerPermissionError):
            await reader.submit_commit(binding_id, make_commit())
