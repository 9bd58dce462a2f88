"""What a role of the service could try with SQL alone, and the one answer to each.

Where the answer is no SQLSTATE, the statement is one that PostgreSQL lets everybody run: ``NOTHING`` has no effect at
all; ``POSSIBLE`` has one that no grant can take away, and is tried in a transaction that is rolled back. What is
possible costs availability or a role's own password, never a fact: docs/roles.md says what it is.
"""

from __future__ import annotations

from dataclasses import dataclass, field

NOTHING = "nothing happens"
POSSIBLE = "possible"
DENIED = "42501"
_FUNCTION = "ledger.refuse_change()"


@dataclass(frozen=True)
class Attack:
    """A statement and its answer, the same for each role but for those in ``unlike``."""

    name: str
    statement: str
    answer: str = DENIED
    unlike: dict[str, str] = field(default_factory=dict)
    only: str | None = None
    in_transaction: bool = False

    def answer_to(self, role: str) -> str:
        """What this role is answered."""
        return self.unlike.get(role, self.answer)


def _writes(table: str, column: str) -> list[Attack]:
    """All ways to change a table."""
    name = f"ledger.{table}"
    own = {"projector": NOTHING} if table.startswith("projection_") else {}
    return [
        Attack(
            f"insert into {table}",
            f"insert into {name} overriding user value select * from {name} where false on conflict do nothing",
            unlike=own,
        ),
        Attack(f"update {table}", f"update {name} set {column} = {column} where false", unlike=own),
        Attack(f"delete from {table}", f"delete from {name} where false returning *", unlike=own),
        Attack(f"truncate {table}", f"truncate {name} cascade"),
        Attack(f"copy into {table}", f"copy {name} from program 'cat /dev/null'"),
        Attack(
            f"merge into {table}",
            f"merge into {name} t using (select 1) s on false when not matched then do nothing"
            f" when matched then update set {column} = t.{column}",
            unlike=own,
        ),
        Attack(f"lock the rows of {table}", f"select * from {name} for update", unlike=own),
        Attack(
            f"lock {table}",
            f"lock table {name} in access exclusive mode",
            unlike=dict.fromkeys(own, POSSIBLE),
            in_transaction=True,
        ),
        Attack(f"alter {table}", f"alter table {name} add column mine integer"),
        Attack(f"drop {table}", f"drop table {name} cascade"),
        Attack(f"disable the triggers of {table}", f"alter table {name} disable trigger all"),
        Attack(f"row security on {table}", f"alter table {name} enable row level security"),
        Attack(f"a policy on {table}", f"create policy mine on {name} using (true)"),
        Attack(f"a rule on {table}", f"create rule mine as on insert to {name} do instead nothing"),
        Attack(
            f"a trigger on {table}",
            f"create trigger mine before insert on {name} execute function {_FUNCTION}",
        ),
        Attack(f"an index on {table}", f"create index mine on {name} ({column})"),
        Attack(f"a comment on {table}", f"comment on table {name} is 'mine'"),
        Attack(f"own {table}", f"alter table {name} owner to current_user"),
    ]


TABLES = {
    "event": "body",
    "binding": "head_position",
    "inbox": "state",
    "intake_refusal": "reason",
    "plan": "body",
    "plan_seal": "checksum",
    "plan_operation": "line",
    "plan_coverage": "line",
    "artifact": "manifest",
    "detail": "data",
    "relay": "position",
    "worker": "held",
    "event_kind": "by_control",
    "schema_migration": "checksum",
    "projection_cursor": "position",
    "projection_document": "document",
}

POWERS = [
    Attack("set role", "set role ledger_owner"),
    Attack("set session authorization", "set session authorization ledger_owner"),
    Attack("become the superuser", "set session authorization postgres"),
    Attack("superuser", "alter role current_user superuser"),
    Attack("createrole", "alter role current_user createrole"),
    Attack("bypass row security", "alter role current_user bypassrls"),
    Attack("replication", "alter role current_user replication"),
    Attack("grant the owner", "grant ledger_owner to current_user"),
    Attack("grant what it has", "grant select on ledger.event to public", NOTHING),
    Attack("grant what it has not", "grant insert on ledger.event to current_user", NOTHING),
    Attack("grant execute", "grant execute on all functions in schema ledger to public", unlike={"writer": DENIED}),
    Attack("create a role", "create role mine"),
    Attack("drop a role", "drop role ledger_reader"),
    Attack("another's password", "alter role ledger_owner login password 'mine'"),
    Attack("another's settings", "alter role ledger_owner set search_path = pg_temp"),
    Attack("the database's settings", "alter database postgres set search_path = pg_temp"),
    Attack("the server's settings", "alter system set fsync = off"),
    Attack("play a replica", "set session_replication_role = replica"),
    Attack("play a replica, otherwise", "select set_config('session_replication_role', 'replica', false)"),
    Attack("play a replica, from now on", "alter role current_user set session_replication_role = replica"),
    Attack("large objects' checks", "set lo_compat_privileges = on"),
    Attack("superuser's passwords", "select * from pg_authid"),
    Attack("superuser's settings", "select current_setting('data_directory')"),
    Attack("reassign", "reassign owned by ledger_owner to current_user"),
    Attack("drop what others own", "drop owned by ledger_owner"),
    Attack(
        "default rights of others", "alter default privileges for role ledger_owner grant insert on tables to public"
    ),
]

OBJECTS = [
    Attack("a database", "create database mine"),
    Attack("a schema", "create schema mine"),
    Attack("a table in public", "create table public.mine (x integer)"),
    Attack("a table in ledger", "create table ledger.mine (x integer)"),
    Attack("a temporary table", "create temporary table mine (x integer)"),
    Attack("a temporary view", "create temporary view mine as select 1"),
    Attack("a temporary function", "create function pg_temp.mine() returns integer language sql return 1"),
    Attack("a view", "create view ledger.mine as select * from ledger.event"),
    Attack("a materialised view", "create materialized view public.mine as select 1"),
    Attack("select into", "select 1 as x into public.mine"),
    Attack("a function in ledger", "create function ledger.mine() returns integer language sql return 1"),
    Attack(
        "a function in another's place",
        "create or replace function ledger.lp(bytea) returns bytea language sql return '\\x00'::bytea",
    ),
    Attack("an operator", "create operator ledger.= (function = pg_catalog.texteq, leftarg = text, rightarg = text)"),
    Attack("a type", "create type ledger.mine as enum ('a')"),
    Attack("a domain", "create domain public.mine as text"),
    Attack("a cast", "create cast (text as integer) with inout as implicit"),
    Attack("a sequence", "create sequence ledger.mine"),
    Attack("a rule-like trigger function", "alter function ledger.refuse_change() rename to mine"),
    Attack("an extension", "create extension hstore", only="15"),
    Attack("dblink", "create extension dblink", only="15"),
    Attack("a foreign server", "create server mine foreign data wrapper mine", "42704"),
    Attack("a foreign data wrapper", "create foreign data wrapper mine"),
    Attack("a publication", "create publication mine"),
    Attack("a subscription", "create subscription mine connection 'dbname=x' publication y with (connect = false)"),
    Attack("a slot", "select pg_create_logical_replication_slot('mine', 'pgoutput')"),
    Attack("an event trigger", f"create event trigger mine on ddl_command_start execute function {_FUNCTION}"),
    Attack("a language", "create language mine handler plpgsql_call_handler"),
    Attack("a tablespace", "create tablespace mine location '/tmp'"),
    Attack("a large object", "select lo_create(0)"),
    Attack("a large object, otherwise", "select lo_from_bytea(0, 'x')"),
    Attack("a large object, the old way", "select lo_creat(-1)"),
    Attack("drop the schema", "drop schema ledger cascade"),
    Attack("drop a function", "drop function ledger.refuse_change() cascade"),
    Attack("drop a trigger", "drop trigger refuse_row_change on ledger.event"),
    Attack("drop an index", "drop index ledger.event_one_outcome"),
    Attack("next value", "select nextval('ledger.binding_id_seq')"),
    Attack("set a value", "select setval('ledger.binding_id_seq', 1)"),
    Attack("read a value", "select last_value from ledger.binding_id_seq"),
]

SERVER = [
    Attack("a program", "copy (select 1) to program 'cat > /dev/null'"),
    Attack("a program's words", "copy ledger.projection_document from program 'id'"),
    Attack("a file out", "copy (select 1) to '/tmp/apply-ledger-mine'"),
    Attack("a file in", "copy ledger.projection_document from '/etc/passwd'"),
    Attack("read a file", "select pg_read_file('/etc/passwd')"),
    Attack("read a binary file", "select pg_read_binary_file('/etc/passwd')"),
    Attack("list a folder", "select pg_ls_dir('.')"),
    Attack("file of a large object", "select lo_import('/etc/passwd')"),
    Attack("large object to a file", "select lo_export(1, '/tmp/apply-ledger-mine')"),
    Attack("load a library", "load 'plpgsql'"),
    Attack("load any library", "load '/tmp/mine.so'"),
    Attack("reload", "select pg_reload_conf()"),
    Attack("rotate the log", "select pg_rotate_logfile()"),
    Attack("switch the WAL", "select pg_switch_wal()"),
    Attack("checkpoint", "checkpoint"),
    Attack("promote", "select pg_promote()"),
    Attack("a restore point", "select pg_create_restore_point('mine')"),
    Attack("reset statistics", "select pg_stat_reset()"),
    Attack("replication origin", "select pg_replication_origin_create('mine')"),
    Attack("reindex", "reindex table ledger.event"),
    Attack("cluster", "cluster ledger.event using event_pkey"),
    Attack("a guarded value of another role", "select rolpassword from pg_authid where rolname = 'ledger_writer'"),
]

FREE_FOR_ALL = [
    Attack("own password", "alter role current_user password 'mine'", POSSIBLE),
    Attack("own settings", "alter role current_user set search_path = pg_temp", POSSIBLE),
    Attack("own default rights", "alter default privileges grant select on tables to public", POSSIBLE),
    Attack("give up what it was granted", "drop owned by current_user", POSSIBLE),
    Attack(
        "an advisory lock", "select pg_advisory_xact_lock(hashtextextended('ledger.register_binding', 0))", POSSIBLE
    ),
    Attack("a message in the WAL", "select pg_logical_emit_message(false, 'mine', 'x')", NOTHING),
    Attack("a notification", "notify ledger_events, 'mine'", NOTHING),
    Attack("vacuum", "vacuum ledger.event", NOTHING),
    Attack("anonymous code", "do 'begin null; end'", NOTHING),
]

ATTACKS = [
    *(attack for table, column in TABLES.items() for attack in _writes(table, column)),
    *POWERS,
    *OBJECTS,
    *SERVER,
    *FREE_FOR_ALL,
]
