-- migrate:up
--
-- Which processes serve which bindings, so that they can share them evenly. Nothing here is a fact and nothing is safe
-- because of it: who writes is decided by the lease alone. A row that is not renewed is forgotten.
--
-- worker_beat_v1  says that a worker is alive, what it serves and how many bindings it holds, and returns the others
-- worker_gone_v1  says that it ends

set local role ledger_owner;

create table ledger.worker (
    worker_id text collate "C" primary key check (pg_catalog.octet_length(worker_id) between 1 and 128),
    host text not null check (pg_catalog.octet_length(host) <= 255),
    serves text[] collate "C" not null check (pg_catalog.cardinality(serves) <= 10000),
    held integer not null check (held >= 0),
    expires_at timestamptz not null
) with (fillfactor = 10);
comment on table ledger.worker is 'Processes that serve bindings, as they said last. For sharing evenly, not for safety.';

create function ledger.worker_beat_v1(
    p_worker_id text, p_host text, p_serves text[], p_held integer, p_ttl double precision)
returns table (worker_id text, serves text[], held integer)
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    if (p_ttl > 0 and p_ttl <= 86400) is not true then
        raise exception using errcode = 'LG021', message = 'a worker is known for a time of up to a day',
            detail = json_build_object('ttl', p_ttl)::text;
    end if;
    -- What another beat is about to forget is left to it.
    delete from ledger.worker w
    where w.worker_id in (select e.worker_id from ledger.worker e where e.expires_at < clock_timestamp()
                          and e.worker_id <> p_worker_id for update skip locked);
    update ledger.worker w
    set host = p_host, serves = p_serves, held = p_held, expires_at = clock_timestamp() + make_interval(secs => p_ttl)
    where w.worker_id = p_worker_id;
    if not found then
        insert into ledger.worker (worker_id, host, serves, held, expires_at)
        values (p_worker_id, p_host, p_serves, p_held, clock_timestamp() + make_interval(secs => p_ttl));
    end if;
    return query
        select w.worker_id, w.serves, w.held from ledger.worker w
        where w.worker_id <> p_worker_id and w.expires_at >= clock_timestamp()
        order by w.worker_id;
end
$$;

create function ledger.worker_gone_v1(p_worker_id text) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    if p_worker_id is null then
        raise exception using errcode = 'LG021', message = 'a worker has a name', detail = '{}';
    end if;
    delete from ledger.worker w where w.worker_id = p_worker_id;
end
$$;

grant execute on function ledger.worker_beat_v1, ledger.worker_gone_v1 to ledger_writer;
