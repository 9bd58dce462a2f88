-- migrate:up
--
-- The lease of a binding: who writes, under which epoch, until when. Times are seconds, by this server's clock.
--
-- claim_v1   takes a lease that is free or has run out, and raises the epoch. writer.opened stands in the same
--            transaction, so the history of writers is itself audited. A claim that finds an operation in flight starts
--            the quiet period: the dead process may have sent a request that still runs.
-- renew_v1   prolongs a lease that is still one's own. An owner is one process; a restarted one claims.
-- release_v1 gives it back at once; the epoch stays, and appends under it are refused from then on.

set local role ledger_owner;

-- The epoch and the role inside the body of writer.opened are compared with what is granted: the caller built the
-- bytes, but cannot record another epoch or role than the true ones.
create function ledger.check_writer_opened(p_body text, p_epoch bigint) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    if (p_body::jsonb -> 'epoch', p_body::jsonb ->> 'role')
       is distinct from (to_jsonb(p_epoch), session_user::text) then
        raise exception using errcode = 'LG021', message = 'writer.opened does not say who claims',
            detail = json_build_object('epoch', p_epoch, 'role', session_user)::text;
    end if;
end
$$;

create function ledger.claim_v1(
    p_binding_id bigint, p_owner text, p_ttl double precision, p_settle double precision, p_host text,
    p_expected_epoch bigint, p_event_id uuid, p_schema_version integer, p_body text,
    out epoch bigint, out in_flight_run text, out in_flight_ordinal bigint, out in_flight_attempt integer,
    out quiet_for double precision)
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_binding ledger.binding := ledger.lock_binding(p_binding_id);
    v_now timestamptz := clock_timestamp();
    v_is_repeat boolean;
begin
    epoch := p_expected_epoch + 1;
    if not (p_ttl > 0 and p_settle >= 0 and p_owner <> '' and p_host is not null) then
        raise exception using errcode = 'LG021', message = 'a claim needs an owner, a host and times above zero',
            detail = json_build_object('ttl', p_ttl, 'settle', p_settle)::text;
    end if;
    v_is_repeat := v_binding.writer_epoch = epoch and v_binding.lease_owner is not distinct from p_owner;
    if not v_is_repeat and v_binding.lease_expires_at > v_now then
        raise exception using errcode = 'LG003', message = 'another process holds the lease of this binding',
            detail = json_build_object(
                'owner', v_binding.lease_owner, 'host', v_binding.lease_host, 'since', v_binding.lease_taken_at,
                'epoch', v_binding.writer_epoch, 'until', v_binding.lease_expires_at,
                'seconds', extract(epoch from v_binding.lease_expires_at - v_now))::text;
    end if;
    if not v_is_repeat and v_binding.writer_epoch <> p_expected_epoch then
        raise exception using errcode = 'LG002', message = 'another claim came first',
            detail = json_build_object('epoch', v_binding.writer_epoch, 'expected', p_expected_epoch)::text;
    end if;
    perform ledger.check_writer_opened(p_body, epoch);
    perform ledger.append_locked(v_binding, epoch, array[p_event_id], array['writer.opened'], array[p_schema_version],
                                 array[null::text], array[null::text], array[null::bigint], array[null::integer],
                                 array[p_body], null);
    update ledger.binding b
    set writer_epoch = claim_v1.epoch, lease_owner = p_owner, lease_host = p_host, lease_taken_at = v_now,
        lease_expires_at = v_now + make_interval(secs => p_ttl),
        quiet_until = case when b.in_flight_run is null then b.quiet_until
                           else greatest(b.quiet_until, v_now + make_interval(secs => p_settle)) end
    where b.id = p_binding_id
    returning b.in_flight_run, b.in_flight_ordinal, b.in_flight_attempt,
              greatest(extract(epoch from b.quiet_until - v_now), 0)
    into in_flight_run, in_flight_ordinal, in_flight_attempt, quiet_for;
    quiet_for := coalesce(quiet_for, 0);
end
$$;

create function ledger.renew_v1(p_binding_id bigint, p_owner text, p_epoch bigint, p_ttl double precision)
returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    if not (p_ttl > 0) then
        raise exception using errcode = 'LG021', message = 'a lease needs a time above zero',
            detail = json_build_object('ttl', p_ttl)::text;
    end if;
    perform ledger.lock_as_writer(p_binding_id, p_owner, p_epoch);
    update ledger.binding b set lease_expires_at = clock_timestamp() + make_interval(secs => p_ttl)
    where b.id = p_binding_id;
end
$$;

-- Giving back twice under one epoch is harmless: the answer to the first time may have been lost.
create function ledger.release_v1(p_binding_id bigint, p_owner text, p_epoch bigint) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_binding ledger.binding := ledger.lock_binding(p_binding_id);
begin
    if v_binding.writer_epoch = p_epoch and v_binding.lease_owner is null then
        return;
    end if;
    perform ledger.lock_as_writer(p_binding_id, p_owner, p_epoch);
    update ledger.binding b
    set lease_owner = null, lease_host = null, lease_taken_at = null, lease_expires_at = null
    where b.id = p_binding_id;
end
$$;

-- The one place where a binding begins. Serialised by a lock of this transaction, so that two callers get one row and
-- no conflict has to be passed over.
create function ledger.register_binding_v1(p_url text, p_branch text) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_id bigint;
begin
    select b.id into v_id from ledger.binding b where b.url = p_url and b.branch = p_branch;
    if found then
        return v_id;
    end if;
    perform ledger.require_durable_commit();
    perform pg_advisory_xact_lock(hashtextextended('ledger.register_binding', 0));
    select b.id into v_id from ledger.binding b where b.url = p_url and b.branch = p_branch;
    if not found then
        insert into ledger.binding (url, branch) values (p_url, p_branch) returning id into v_id;
    end if;
    return v_id;
end
$$;

grant execute on function ledger.claim_v1, ledger.renew_v1, ledger.release_v1, ledger.register_binding_v1
    to ledger_writer;
