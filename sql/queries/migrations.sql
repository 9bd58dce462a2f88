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
-- Rights that belong to the database and are not copied with a template: no temporary tables, nothing in public.
do $$
begin
    execute format('revoke create, temporary on database %I from public', current_database());
    if to_regnamespace('public') is not null then
        revoke create on schema public from public;
    end if;
end
$$;

-- name: role_password_statement
-- Text of the statement that gives a role a password; $2 is a SCRAM verifier, never the password.
select format('alter role %I with login password %L', $1::text, $2::text);

-- name: server_settings
-- What durability rests on, and who we are.
select current_setting('fsync') as fsync, current_setting('full_page_writes') as full_page_writes,
       current_setting('synchronous_commit') as synchronous_commit,
       current_setting('server_version_num')::int as server_version;
