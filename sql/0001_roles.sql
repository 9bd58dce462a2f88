-- migrate:up
--
-- Who may do what. Four roles, all without a password until an administrator gives them one:
--
--   ledger_owner      owns every object, never logs in. Migrations create objects as this role.
--   ledger_writer     EXECUTE on the functions and SELECT. It commits plans and applies them.
--   ledger_projector  SELECT, and changes projection tables and their cursors. It cannot reach an event.
--   ledger_reader     SELECT.
--
-- Roles belong to the whole server, databases do not: a second database on one server finds them there, perhaps
-- made a moment ago by another session. That is the one error which is passed over here.

do $roles$
declare
    v_role text;
begin
    foreach v_role in array array['ledger_owner', 'ledger_writer', 'ledger_projector', 'ledger_reader'] loop
        if not exists (select from pg_catalog.pg_roles where rolname = v_role) then
            begin
                execute pg_catalog.format('create role %I nologin', v_role);
            exception when duplicate_object or unique_violation then
                raise notice 'role % was made by another session', v_role;
            end;
        end if;
    end loop;
    -- From 16 on, whoever makes a role administers it but may not become it without a grant of its own.
    if not pg_catalog.pg_has_role(current_user, 'ledger_owner',
            case when pg_catalog.current_setting('server_version_num')::integer < 160000 then 'member' else 'set' end)
    then
        execute pg_catalog.format('grant ledger_owner to %I', current_user);
    end if;
end
$roles$;

create schema ledger authorization ledger_owner;

set local role ledger_owner;

revoke all on schema ledger from public;
grant usage on schema ledger to ledger_writer, ledger_projector, ledger_reader;

-- New functions can be run by their owner alone until they are granted; new tables can be read by the three roles.
-- The first statement must not name a schema: the built-in grant to PUBLIC is global and only a global entry undoes it.
alter default privileges for role ledger_owner revoke execute on functions from public;
alter default privileges for role ledger_owner in schema ledger
    grant select on tables to ledger_writer, ledger_projector, ledger_reader;

create table ledger.schema_migration (
    version text collate "C" primary key check (version ~ '^[0-9]{4}_[a-z0-9_]+$'),
    checksum bytea not null check (pg_catalog.length(checksum) = 32),
    applied_by text not null,
    applied_at timestamptz not null,
    duration interval not null
);
comment on table ledger.schema_migration is
    'Migrations of this database: sha256 of each file as it was applied. An edited file is refused by the runner.';
