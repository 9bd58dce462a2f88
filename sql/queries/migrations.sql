-- name: has_migrations
-- Whether this database was ever migrated.
select to_regclass('ledger.schema_migration') is not null;

-- name: applied_migrations
-- What was applied, oldest first.
select version, checksum from ledger.schema_migration order by version;

-- name: record_migration
-- One file was applied, in the transaction that applied it.
insert into ledger.schema_migration (version, checksum, applied_by, applied_at, duration)
values ($1, $2, session_user, clock_timestamp(), clock_timestamp() - transaction_timestamp());

-- name: lock_migrations
-- One upgrader at a time, for as long as the transaction of this statement is open.
select pg_advisory_xact_lock(hashtextextended('ledger.migrations', 0));

-- name: narrow_database
-- Rights that belong to the database and are not copied with a template: no temporary tables, nothing in public, and,
-- where a superuser migrates, no large objects: everybody may make those, and nobody would ever see them here.
do $$
declare
    v_function regprocedure;
begin
    execute format('revoke create, temporary on database %I from public', current_database());
    if to_regnamespace('public') is not null then
        revoke create on schema public from public;
    end if;
    for v_function in
        select p.oid from pg_proc p
        where p.pronamespace = 'pg_catalog'::regnamespace and p.proname in ('lo_creat', 'lo_create', 'lo_from_bytea')
          and pg_has_role(p.proowner, 'usage')
    loop
        execute format('revoke execute on function %s from public', v_function);
    end loop;
end
$$;

-- name: restore_rights
-- What the roles have in the schema, as the migrations granted it. A role can give up its own part (DROP OWNED BY), and
-- then every process that shares it stands still; migrating again makes that good.
do $$
declare
    v_table regclass;
    v_function regprocedure;
begin
    set local role ledger_owner;
    grant usage on schema ledger to ledger_writer, ledger_projector, ledger_reader;
    for v_table in
        select c.oid from pg_class c
        where c.relnamespace = 'ledger'::regnamespace and c.relkind in ('r', 'p') and c.relowner = 'ledger_owner'::regrole
    loop
        execute format('grant select on %s to ledger_writer, ledger_projector, ledger_reader', v_table);
    end loop;
    alter default privileges for role ledger_owner in schema ledger
        grant select on tables to ledger_writer, ledger_projector, ledger_reader;
    if to_regclass('ledger.projection_document') is not null then
        grant insert, update, delete on ledger.projection_cursor, ledger.projection_document to ledger_projector;
    end if;
    for v_function in
        select p.oid from pg_proc p
        where p.pronamespace = 'ledger'::regnamespace and p.prosecdef and p.proowner = 'ledger_owner'::regrole
    loop
        execute format('grant execute on function %s to ledger_writer', v_function);
    end loop;
end
$$;

-- name: role_password_statement
-- Text of the statement that gives a role a password; $2 is a SCRAM verifier, never the password.
select format('alter role %I with login password %L', $1::text, $2::text);

-- name: server_settings
-- What durability rests on, which texts the database can hold, and who we are.
select current_setting('fsync') as fsync, current_setting('full_page_writes') as full_page_writes,
       current_setting('synchronous_commit') as synchronous_commit,
       current_setting('server_encoding') as server_encoding,
       current_setting('server_version_num')::int as server_version;
