"""Everything that an attack could change, as one text: rows, sequences, definitions, rights, roles, settings."""

from __future__ import annotations

from typing import Any

_TABLES = """
select c.oid::regclass::text as name from pg_class c
where c.relnamespace = 'ledger'::regnamespace and c.relkind in ('r', 'p') order by 1
"""
_ROWS = "select count(*) || ':' || coalesce(md5(string_agg(md5(t::text), '' order by md5(t::text))), '') from {table} t"

CATALOGUE = {
    "relations": "select relname, relkind, relowner, relacl, relrowsecurity, relforcerowsecurity, relhasrules,"
    " relpersistence, reloptions from pg_class where relnamespace not in ('pg_toast'::regnamespace)",
    "columns": "select attrelid::regclass, attname, atttypid, attnotnull, attisdropped, attacl from pg_attribute"
    " where attrelid in (select oid from pg_class where relnamespace = 'ledger'::regnamespace)",
    "functions": "select oid::regprocedure, prosrc, proacl, proowner, prosecdef, proconfig from pg_proc"
    " where pronamespace <> 'pg_catalog'::regnamespace or proacl is not null",
    "triggers": "select tgrelid::regclass, tgname, tgenabled, tgfoid from pg_trigger",
    "rules": "select ev_class::regclass, rulename, ev_enabled from pg_rewrite",
    "policies": "select polname from pg_policy",
    "constraints": "select conname, conrelid::regclass, pg_get_constraintdef(oid) from pg_constraint"
    " where connamespace = 'ledger'::regnamespace",
    "schemas": "select nspname, nspowner, nspacl from pg_namespace where nspname !~ '^pg_(toast_)?temp_'",
    "defaults": "select * from pg_default_acl",
    "settings": "select * from pg_db_role_setting",
    "roles": "select rolname, rolpassword, rolsuper, rolcanlogin, rolcreaterole, rolcreatedb, rolreplication,"
    " rolbypassrls, rolconnlimit, rolvaliduntil from pg_authid",
    "memberships": "select roleid, member, admin_option from pg_auth_members",
    "database": "select datname, datdba, datacl from pg_database where datname = current_database()",
    "large objects": "select oid, lomowner, lomacl from pg_largeobject_metadata",
    "comments": "select objoid, classoid, description from pg_description where classoid <> 'pg_proc'::regclass",
    "extensions": "select extname, extversion from pg_extension",
    "languages": "select lanname, lanacl from pg_language",
    "operators and types": "select oid::regoperator::text from pg_operator where oprnamespace <> 11"
    " union all select typname from pg_type where typnamespace not in (11, 99)",
    "event triggers": "select evtname from pg_event_trigger",
    "replication": "select pubname from pg_publication union all select slot_name from pg_replication_slots",
    "foreign servers": "select srvname from pg_foreign_server union all select fdwname from pg_foreign_data_wrapper",
    "prepared": "select gid from pg_prepared_xacts",
    "sequences": "select last_value, is_called from ledger.binding_id_seq",
}


def changes(before: dict[str, str], after: dict[str, str], *, but: str = "") -> list[str]:
    """What differs; ``but`` is left out."""
    return [name for name in after if after[name] != before.get(name) and name != but]


async def fingerprint(admin: Any) -> dict[str, str]:
    """One short text for each table and each part of the catalogue."""
    tables = [row["name"] for row in await admin.fetch(_TABLES)]
    rows = " union all ".join(f"select '{table}', ({_ROWS.format(table=table)})" for table in tables)
    parts = " union all ".join(
        f"select '{name}', ({_ROWS.format(table=f'({text})')})" for name, text in CATALOGUE.items()
    )
    return dict(await admin.fetch(f"{rows} union all {parts}"))
