-- migrate:up
--
-- The append functions. The page of design is at the top of 0002.

set local role ledger_owner;

-- What this transaction wrote is on disk when its commit returns, whatever the session asked for. It has to be set
-- here: a SET clause of the function would have ended before the commit.
create function ledger.require_durable_commit() returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    if current_setting('synchronous_commit') not in ('on', 'remote_apply') then
        perform set_config('synchronous_commit', 'on', true);
    end if;
end
$$;

create function ledger.lock_binding(p_binding_id bigint) returns ledger.binding
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_binding ledger.binding;
begin
    perform ledger.require_durable_commit();
    select b.* into v_binding from ledger.binding b where b.id = p_binding_id for update;
    if not found then
        raise exception using errcode = 'LG010', message = 'this binding is not registered',
            detail = json_build_object('binding_id', p_binding_id)::text;
    end if;
    return v_binding;
end
$$;

-- The fence (G2): owner and epoch are compared under the row lock, in the transaction that will write.
create function ledger.lock_as_writer(p_binding_id bigint, p_owner text, p_epoch bigint) returns ledger.binding
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_binding ledger.binding := ledger.lock_binding(p_binding_id);
begin
    if v_binding.writer_epoch is distinct from p_epoch or v_binding.lease_owner is distinct from p_owner then
        raise exception using errcode = 'LG001', message = 'this writer no longer holds the binding',
            detail = json_build_object('own_epoch', p_epoch, 'epoch', v_binding.writer_epoch,
                                       'owner', v_binding.lease_owner, 'host', v_binding.lease_host)::text;
    end if;
    return v_binding;
end
$$;

create function ledger.check_batch(p_event_ids uuid[], p_kinds text[], p_bodies text[], p_lengths integer[])
returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_count integer := cardinality(p_event_ids);
    v_size integer;
begin
    if v_count is null or v_count <> any (p_lengths) or array_position(p_lengths, null) is not null then
        raise exception using errcode = 'LG021', message = 'the arrays of an append differ in length',
            detail = json_build_object('events', v_count, 'lengths', p_lengths)::text;
    end if;
    if v_count > 500 then
        raise exception using errcode = 'LG008', message = 'too many events in one append',
            detail = json_build_object('limit', 500, 'found', v_count)::text;
    end if;
    select max(octet_length(body)) into v_size from unnest(p_bodies) body;
    if v_size > 262144 then
        raise exception using errcode = 'LG007', message = 'an event body is too large',
            detail = json_build_object('limit', 262144, 'found', v_size)::text;
    end if;
end
$$;

-- Known ids: the positions and the hash of the first time, or an alarm. NULL where none of the ids is known.
-- One look-up in (binding_id, event_id) for each id, whatever the planner believes: while the table is small, every
-- index and every scan look alike to it, and a session would keep the wrong one while the log grows. The order asked
-- for is that of the one right index, and whatever would have to sort or scan is switched off.
create function ledger.find_repeat(
    p_binding_id bigint, p_event_ids uuid[], p_kinds text[], p_schema_versions integer[], p_run_ids text[],
    p_operation_ids text[], p_ordinals bigint[], p_attempts integer[], p_bodies text[],
    out first_position bigint, out last_position bigint, out head_hash bytea)
language plpgsql set search_path = pg_catalog, pg_temp
    set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off
as $$
declare
    v_same bigint;
    v_known bigint;
    v_where jsonb;
begin
    select count(*), min(e.position), max(e.position),
           jsonb_agg(jsonb_build_object('event_id', e.event_id, 'position', e.position) order by e.position),
           count(*) filter (where (e.kind, e.schema_version, e.body) = (n.kind, n.schema_version, n.body)
               and (e.run_id, e.operation_id, e.ordinal, e.attempt)
                   is not distinct from (n.run_id, n.operation_id, n.ordinal, n.attempt))
    into v_known, first_position, last_position, v_where, v_same
    from unnest(p_event_ids, p_kinds, p_schema_versions, p_run_ids, p_operation_ids, p_ordinals, p_attempts, p_bodies)
        with ordinality
        as n (event_id, kind, schema_version, run_id, operation_id, ordinal, attempt, body, place)
    cross join lateral (select * from ledger.event e
                        where e.binding_id = p_binding_id and e.event_id >= n.event_id
                        order by e.binding_id, e.event_id limit 1) e
    where e.event_id = n.event_id;
    if v_known = 0 then
        return;
    end if;
    if v_same <> cardinality(p_event_ids)
       or p_event_ids <> array(select e.event_id from ledger.event e
                               where e.binding_id = p_binding_id
                                 and e.position between first_position and last_position
                               order by e.position) then
        raise exception using errcode = 'LG004', message = 'a known event id came with other content or other company',
            detail = json_build_object('known', v_where -> 0, 'known_count', v_known, 'same', v_same,
                                       'asked', cardinality(p_event_ids))::text;
    end if;
    select e.hash into head_hash from ledger.event e
    where e.binding_id = p_binding_id and e.position = last_position;
end
$$;

-- The one place where events are inserted. The caller holds the lock of the binding's row.
create function ledger.append_locked(
    p_binding ledger.binding, p_epoch bigint, p_event_ids uuid[], p_kinds text[], p_schema_versions integer[],
    p_run_ids text[], p_operation_ids text[], p_ordinals bigint[], p_attempts integer[], p_bodies text[],
    p_expected_head bytea, out first_position bigint, out last_position bigint, out head_hash bytea,
    out repeated boolean)
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_hashes bytea[] := '{}';
    v_recorded timestamptz[] := '{}';
    v_count integer := cardinality(p_event_ids);
begin
    perform ledger.check_batch(p_event_ids, p_kinds, p_bodies, array[
        cardinality(p_kinds), cardinality(p_schema_versions), cardinality(p_run_ids), cardinality(p_operation_ids),
        cardinality(p_ordinals), cardinality(p_attempts), cardinality(p_bodies)]);
    select r.first_position, r.last_position, r.head_hash into first_position, last_position, head_hash
    from ledger.find_repeat(p_binding.id, p_event_ids, p_kinds, p_schema_versions, p_run_ids, p_operation_ids,
                            p_ordinals, p_attempts, p_bodies) r;
    repeated := first_position is not null;
    if repeated then
        return;
    end if;
    if p_expected_head is not null and p_expected_head <> p_binding.head_hash then
        raise exception using errcode = 'LG005', message = 'the chain has another head than the caller believes',
            detail = json_build_object('position', p_binding.head_position,
                                       'head', encode(p_binding.head_hash, 'hex'),
                                       'expected', encode(p_expected_head, 'hex'))::text;
    end if;
    first_position := p_binding.head_position + 1;
    last_position := p_binding.head_position + v_count;
    head_hash := p_binding.head_hash;
    for i in 1 .. v_count loop
        v_recorded[i] := clock_timestamp();
        v_hashes[i] := ledger.event_hash_v1(
            head_hash, p_binding.url, p_binding.branch, p_binding.head_position + i, p_event_ids[i], p_kinds[i],
            p_schema_versions[i], p_epoch, p_run_ids[i], p_operation_ids[i], p_ordinals[i], p_attempts[i],
            v_recorded[i], p_bodies[i]);
        head_hash := v_hashes[i];
    end loop;
    insert into ledger.event (binding_id, position, event_id, kind, schema_version, run_id, operation_id, ordinal,
                              attempt, writer_epoch, recorded_at, body, prev_hash, hash)
    select p_binding.id, p_binding.head_position + n.place, n.event_id, n.kind, n.schema_version, n.run_id,
           n.operation_id, n.ordinal, n.attempt, p_epoch, n.recorded_at, n.body,
           case n.place when 1 then p_binding.head_hash else v_hashes[n.place - 1] end, n.hash
    from unnest(p_event_ids, p_kinds, p_schema_versions, p_run_ids, p_operation_ids, p_ordinals, p_attempts, p_bodies,
                v_recorded, v_hashes) with ordinality
        as n (event_id, kind, schema_version, run_id, operation_id, ordinal, attempt, body, recorded_at, hash, place);
    update ledger.binding b set head_position = append_locked.last_position, head_hash = append_locked.head_hash
    where b.id = p_binding.id;
end
$$;

create function ledger.check_kinds(p_kinds text[], p_control boolean) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_refused text[];
begin
    select array_agg(distinct n.kind) into v_refused
    from unnest(p_kinds) n (kind)
    where not exists (select from ledger.event_kind k
                      where k.kind = n.kind and case when p_control then k.by_control else k.by_writer end);
    if v_refused is not null then
        raise exception using errcode = 'LG009', message = 'this function does not append these kinds',
            detail = json_build_object('kinds', v_refused,
                                       'function', case when p_control then 'append_control_v1' else 'append_v1' end
                                      )::text;
    end if;
end
$$;

-- The operation in flight: 'keep' leaves it, 'clear' empties it, 'set' names the one that is dispatched next.
create function ledger.set_in_flight(
    p_binding_id bigint, p_mark text, p_run text, p_ordinal bigint, p_attempt integer, p_settle double precision)
returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_binding ledger.binding;
begin
    if p_mark = 'set' and (p_settle is not null or num_nulls(p_run, p_ordinal, p_attempt) > 0)
       or p_mark <> all (array['keep', 'clear', 'set']) or p_settle < 0 then
        raise exception using errcode = 'LG021', message = 'the operation in flight cannot be set like this',
            detail = json_build_object('mark', p_mark, 'run', p_run, 'ordinal', p_ordinal, 'attempt', p_attempt,
                                       'settle', p_settle)::text;
    end if;
    select b.* into strict v_binding from ledger.binding b where b.id = p_binding_id;
    if p_mark = 'set' and v_binding.quiet_until > clock_timestamp() then
        raise exception using errcode = 'LG006', message = 'an earlier request may still be running in the destination',
            detail = json_build_object(
                'seconds', extract(epoch from v_binding.quiet_until - clock_timestamp()))::text;
    end if;
    update ledger.binding b
    set in_flight_run = case p_mark when 'keep' then b.in_flight_run when 'set' then p_run end,
        in_flight_ordinal = case p_mark when 'keep' then b.in_flight_ordinal when 'set' then p_ordinal end,
        in_flight_attempt = case p_mark when 'keep' then b.in_flight_attempt when 'set' then p_attempt end,
        quiet_until = case when p_settle is null then b.quiet_until
                           else greatest(b.quiet_until, clock_timestamp() + make_interval(secs => p_settle)) end
    where b.id = p_binding_id and (p_mark <> 'keep' or p_settle is not null);
end
$$;

-- A repeat must ask for the mark that stands there: the first time has set it, and only this writer moves it.
create function ledger.check_repeated_mark(
    p_binding ledger.binding, p_mark text, p_run text, p_ordinal bigint, p_attempt integer) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    if p_mark <> 'keep' and (p_binding.in_flight_run, p_binding.in_flight_ordinal, p_binding.in_flight_attempt)
       is distinct from (p_run, p_ordinal, p_attempt) then
        raise exception using errcode = 'LG004', message = 'an append was repeated with another operation in flight',
            detail = json_build_object('in_flight', json_build_array(p_binding.in_flight_run,
                                           p_binding.in_flight_ordinal, p_binding.in_flight_attempt),
                                       'asked', json_build_array(p_run, p_ordinal, p_attempt))::text;
    end if;
end
$$;

-- For the writer that holds the lease. No events, only a mark: also one call. Orders that the events end are closed
-- with them, so that no order of an ended run can be found open.
create function ledger.append_v1(
    p_binding_id bigint, p_owner text, p_epoch bigint, p_event_ids uuid[], p_kinds text[],
    p_schema_versions integer[], p_run_ids text[], p_operation_ids text[], p_ordinals bigint[], p_attempts integer[],
    p_bodies text[], p_expected_head bytea, p_mark text, p_mark_run text, p_mark_ordinal bigint,
    p_mark_attempt integer, p_settle double precision, p_close_orders bigint[], p_close_states text[],
    out first_position bigint, out last_position bigint, out head_hash bytea)
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_binding ledger.binding := ledger.lock_as_writer(p_binding_id, p_owner, p_epoch);
    v_repeated boolean;
begin
    perform ledger.check_kinds(p_kinds, false);
    select a.first_position, a.last_position, a.head_hash, a.repeated
    into first_position, last_position, head_hash, v_repeated
    from ledger.append_locked(v_binding, p_epoch, p_event_ids, p_kinds, p_schema_versions, p_run_ids, p_operation_ids,
                              p_ordinals, p_attempts, p_bodies, p_expected_head) a;
    if v_repeated then
        perform ledger.check_repeated_mark(v_binding, p_mark, p_mark_run, p_mark_ordinal, p_mark_attempt);
    else
        perform ledger.set_in_flight(p_binding_id, p_mark, p_mark_run, p_mark_ordinal, p_mark_attempt, p_settle);
    end if;
    for i in 1 .. cardinality(p_close_orders) loop
        perform ledger.close_order_locked(p_binding_id, p_close_orders[i], p_close_states[i]);
    end loop;
end
$$;

-- For everybody else that has something to record: no epoch, the same lock, control kinds only.
create function ledger.append_control_v1(
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
    select a.first_position, a.last_position, a.head_hash into first_position, last_position, head_hash
    from ledger.append_locked(v_binding, null, p_event_ids, p_kinds, p_schema_versions, p_run_ids,
                              array_fill(null::text, array[v_count]), array_fill(null::bigint, array[v_count]),
                              array_fill(null::integer, array[v_count]), p_bodies, p_expected_head) a;
end
$$;

grant execute on function ledger.append_v1, ledger.append_control_v1 to ledger_writer;
