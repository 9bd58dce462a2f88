-- migrate:up
--
-- What the functions still took on trust. This program keeps each of these rules by itself; from here on the database
-- keeps them, whoever holds the writer's role.
--
--   * A fact has one event, also under another id: one writer.opened for an epoch, one plan.committed for a run.
--   * plan.committed comes with its inbox row or not at all, so submit_commit_v1 alone appends it.
--   * Without the lease nobody ends a run: a refusal that comes from elsewhere cannot name a run that was committed.
--   * A binding that was given back has no owner. "No owner" compared with "no owner" was equal, so a caller without a
--     name and with the last epoch wrote to it without a lease.
--   * The texts of an order are as long as an event at most, also where they are the same value with more blanks in it.
--   * Leases and quiet periods end. A slip in a unit would hold a binding for years, and no function takes it back.

set local role ledger_owner;

create unique index event_one_opening on ledger.event (binding_id, writer_epoch) where kind = 'writer.opened';
create unique index event_one_commit on ledger.event (binding_id, run_id) where kind = 'plan.committed';

update ledger.event_kind set by_control = false where kind = 'plan.committed';

-- The longest lease and the longest quiet period are a day. NULL asks for none.
create function ledger.check_seconds(p_seconds double precision) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    if p_seconds > 86400 then
        raise exception using errcode = 'LG021', message = 'no lease and no quiet period lasts longer than a day',
            detail = json_build_object('seconds', p_seconds::text, 'limit', 86400)::text;
    end if;
end
$$;

create or replace function ledger.claim_v1(
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
    perform ledger.check_seconds(p_ttl);
    perform ledger.check_seconds(p_settle);
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

create or replace function ledger.renew_v1(p_binding_id bigint, p_owner text, p_epoch bigint, p_ttl double precision)
returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    if not (p_ttl > 0) then
        raise exception using errcode = 'LG021', message = 'a lease needs a time above zero',
            detail = json_build_object('ttl', p_ttl)::text;
    end if;
    perform ledger.check_seconds(p_ttl);
    perform ledger.lock_as_writer(p_binding_id, p_owner, p_epoch);
    update ledger.binding b set lease_expires_at = clock_timestamp() + make_interval(secs => p_ttl)
    where b.id = p_binding_id;
end
$$;

create function ledger.check_runs_are_free(p_binding_id bigint, p_run_ids text[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_run_id text;
begin
    select i.run_id into v_run_id from ledger.inbox i
    where i.binding_id = p_binding_id and i.kind = 'commit' and i.run_id = any (p_run_ids) limit 1;
    if found then
        raise exception using errcode = 'LG023', message = 'only its writer ends a run that was committed',
            detail = json_build_object('run_id', v_run_id)::text;
    end if;
end
$$;

create or replace function ledger.append_control_v1(
    p_binding_id bigint, p_event_ids uuid[], p_kinds text[], p_schema_versions integer[], p_run_ids text[],
    p_bodies text[], p_expected_head bytea,
    out first_position bigint, out last_position bigint, out head_hash bytea)
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_binding ledger.binding := ledger.lock_binding(p_binding_id);
    v_count integer := cardinality(p_event_ids);
begin
    perform ledger.check_kinds(p_kinds, true);
    perform ledger.check_runs_are_free(p_binding_id, p_run_ids);
    select a.first_position, a.last_position, a.head_hash into first_position, last_position, head_hash
    from ledger.append_locked(v_binding, null, p_event_ids, p_kinds, p_schema_versions, p_run_ids,
                              array_fill(null::text, array[v_count]), array_fill(null::bigint, array[v_count]),
                              array_fill(null::integer, array[v_count]), p_bodies, p_expected_head) a;
end
$$;

-- The fence (G2): owner and epoch are compared under the row lock, in the transaction that will write.
create or replace function ledger.lock_as_writer(p_binding_id bigint, p_owner text, p_epoch bigint)
returns ledger.binding
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_binding ledger.binding := ledger.lock_binding(p_binding_id);
begin
    if v_binding.lease_owner is null or v_binding.lease_owner is distinct from p_owner
       or v_binding.writer_epoch is distinct from p_epoch then
        raise exception using errcode = 'LG001', message = 'this writer no longer holds the binding',
            detail = json_build_object('own_epoch', p_epoch, 'epoch', v_binding.writer_epoch,
                                       'owner', v_binding.lease_owner, 'host', v_binding.lease_host)::text;
    end if;
    return v_binding;
end
$$;

create or replace function ledger.insert_order(
    p_binding ledger.binding, p_order_id uuid, p_kind text, p_run_id text, p_body text, p_position bigint,
    p_commit_id uuid, p_plan_checksum bytea, p_artifact_digest bytea, p_source text) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    if octet_length(p_body) > 262144 then
        raise exception using errcode = 'LG007', message = 'an order is too large',
            detail = json_build_object('limit', 262144, 'found', octet_length(p_body))::text;
    end if;
    insert into ledger.inbox (binding_id, inbox_id, order_id, kind, run_id, body, position, commit_id, plan_checksum,
                              artifact_digest, source)
    select p_binding.id, coalesce(max(i.inbox_id), 0) + 1, p_order_id, p_kind, p_run_id, p_body, p_position,
           p_commit_id, p_plan_checksum, p_artifact_digest, p_source
    from ledger.inbox i where i.binding_id = p_binding.id;
end
$$;
