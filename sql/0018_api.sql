-- migrate:up
--
-- What the HTTP API needs: tokens, and indexes for lists that go over all destinations.
--
-- A token is a name for people, a role, and the sha256 of 256 random bits; the bits themselves are shown once, when it is
-- made, and stand nowhere. A token is never removed: that it was there, and until when it worked, is part of who did
-- what. The role of a token says what its bearer may ask of the API and has nothing to do with the roles of this server.
--
-- create_api_token_v1  makes one                            LG030 where a token that works has this name
-- revoke_api_token_v1  ends one; again changes nothing      false where there is none
-- use_api_token_v1     notes that one was used, at most once a minute

set local role ledger_owner;

create table ledger.api_token (
    token_id text collate "C" primary key check (token_id ~ '^[0-9a-f]{16}$'),
    name text collate "C" not null check (pg_catalog.octet_length(name) between 1 and 128),
    role text collate "C" not null check (role in ('reader', 'auditor', 'operator')),
    digest bytea not null unique check (pg_catalog.length(digest) = 32),
    created_at timestamptz not null default pg_catalog.clock_timestamp(),
    created_by text not null default session_user,
    expires_at timestamptz,
    revoked_at timestamptz,
    last_used_at timestamptz
) with (fillfactor = 50);
comment on table ledger.api_token is 'Tokens of the HTTP API: digests alone. A revoked one stays.';
create unique index api_token_one_of_a_name on ledger.api_token (name) where revoked_at is null;

create function ledger.create_api_token_v1(
    p_token_id text, p_name text, p_role text, p_digest bytea, p_seconds double precision) returns timestamptz
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_expires timestamptz;
begin
    if p_seconds is not null and (p_seconds > 0 and p_seconds <= 316224000) is not true then
        raise exception using errcode = 'LG021', message = 'a token works for a time of up to ten years, or without end',
            detail = json_build_object('seconds', p_seconds)::text;
    end if;
    v_expires := clock_timestamp() + make_interval(secs => p_seconds);
    -- A name is free again once its token is revoked or has run out.
    update ledger.api_token t set revoked_at = t.expires_at
    where t.name = p_name and t.revoked_at is null and t.expires_at < clock_timestamp();
    if exists (select from ledger.api_token t where t.name = p_name and t.revoked_at is null) then
        raise exception using errcode = 'LG030', message = 'a token that works has this name',
            detail = json_build_object('name', p_name)::text;
    end if;
    insert into ledger.api_token (token_id, name, role, digest, expires_at)
    values (p_token_id, p_name, p_role, p_digest, v_expires);
    return v_expires;
end
$$;

create function ledger.check_token_id(p_token_id text) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    if p_token_id is null then
        raise exception using errcode = 'LG021', message = 'a token is named by its id';
    end if;
end
$$;

create function ledger.revoke_api_token_v1(p_token_id text) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    perform ledger.check_token_id(p_token_id);
    update ledger.api_token t set revoked_at = clock_timestamp() where t.token_id = p_token_id and t.revoked_at is null;
    return exists (select from ledger.api_token t where t.token_id = p_token_id);
end
$$;

-- Waits for nobody: where another request notes the same just now, it is noted.
create function ledger.use_api_token_v1(p_token_id text) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    perform ledger.check_token_id(p_token_id);
    update ledger.api_token t set last_used_at = clock_timestamp()
    where t.token_id in (
        select u.token_id from ledger.api_token u
        where u.token_id = p_token_id and u.revoked_at is null
          and (u.last_used_at is null or u.last_used_at < clock_timestamp() - interval '1 minute')
        for update skip locked);
end
$$;

-- A token changes in when it was used and in that it ends, and is never removed.
create function ledger.refuse_token_change() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    if tg_op = 'UPDATE' and (old.revoked_at is null or new.revoked_at is not distinct from old.revoked_at) then
        old.revoked_at := new.revoked_at;
        old.last_used_at := new.last_used_at;
        if old is not distinct from new then
            return new;
        end if;
    end if;
    raise exception using errcode = 'LG011', message = 'a token is used and ended, and never changed or removed',
        detail = json_build_object('table', 'ledger.api_token', 'command', tg_op)::text;
end
$$;
create trigger refuse_row_change before update or delete on ledger.api_token
    for each row execute function ledger.refuse_token_change();
create trigger refuse_truncate before truncate on ledger.api_token
    for each statement execute function ledger.refuse_change();
alter table ledger.api_token enable always trigger refuse_row_change;
alter table ledger.api_token enable always trigger refuse_truncate;

grant execute on function ledger.create_api_token_v1, ledger.revoke_api_token_v1, ledger.use_api_token_v1
    to ledger_writer;

-- Lists over all destinations go by time, for display; the other columns make the order total. They are expressions, so
-- that nothing but the list can use them: on a young table, whose statistics are those of an empty one, every index that
-- has a column of a condition looks alike, and these would be walked through from end to end to find one run. The first
-- one is over every order and not over commits alone, because an index with a condition is considered for every query
-- that has the condition, whatever its columns are.
create index inbox_by_time on ledger.inbox (received_at, (binding_id + 0), (inbox_id + 0));
create index intake_refusal_by_time
    on ledger.intake_refusal (recorded_at, (topic || ''), (partition + 0), ("offset" + 0));
