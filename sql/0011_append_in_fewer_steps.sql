-- migrate:up
--
-- The append with the same promises and errors (0002, 0003) in fewer steps: what an operation costs is one call with
-- one event, and there most of the time went into statements, not into the row.
--
--   * The head and the operation in flight move in one UPDATE of the binding's row.
--   * Events are checked and inserted one by one, from scalars: a batch is rare, and building sets out of arrays cost
--     a single event more than its insertion.
--   * An id is looked up alone; the comparison of everything that came with it (find_repeat) runs only where one of
--     them is known.
--   * Kinds are looked up one by one.
--
-- append_v1 -> append_marked is the path of an operation. claim_v1, append_control_v1 and submit_commit_v1 go through
-- append_locked, which is the same without a mark.

set local role ledger_owner;

-- The chain's hash (layout in 0002) without a function call for each field.
create or replace function ledger.event_hash_v1(
    p_prev_hash bytea, p_url text, p_branch text, p_position bigint, p_event_id uuid, p_kind text,
    p_schema_version integer, p_writer_epoch bigint, p_run_id text, p_operation_id text, p_ordinal bigint,
    p_attempt integer, p_recorded_at timestamptz, p_body text
) returns bytea
language sql stable parallel safe
begin atomic
    select pg_catalog.sha256(
        '\x01'::bytea || p_prev_hash
        || pg_catalog.int8send(pg_catalog.length(pg_catalog.convert_to(p_url, 'UTF8'))::bigint)
        || pg_catalog.convert_to(p_url, 'UTF8')
        || pg_catalog.int8send(pg_catalog.length(pg_catalog.convert_to(p_branch, 'UTF8'))::bigint)
        || pg_catalog.convert_to(p_branch, 'UTF8')
        || '\x0000000000000008'::bytea || pg_catalog.int8send(p_position)
        || '\x0000000000000010'::bytea || pg_catalog.uuid_send(p_event_id)
        || pg_catalog.int8send(pg_catalog.length(pg_catalog.convert_to(p_kind, 'UTF8'))::bigint)
        || pg_catalog.convert_to(p_kind, 'UTF8')
        || '\x0000000000000004'::bytea || pg_catalog.int4send(p_schema_version)
        || coalesce('\x0000000000000008'::bytea || pg_catalog.int8send(p_writer_epoch), '\xffffffffffffffff'::bytea)
        || coalesce(pg_catalog.int8send(pg_catalog.length(pg_catalog.convert_to(p_run_id, 'UTF8'))::bigint)
                    || pg_catalog.convert_to(p_run_id, 'UTF8'), '\xffffffffffffffff'::bytea)
        || coalesce(pg_catalog.int8send(pg_catalog.length(pg_catalog.convert_to(p_operation_id, 'UTF8'))::bigint)
                    || pg_catalog.convert_to(p_operation_id, 'UTF8'), '\xffffffffffffffff'::bytea)
        || coalesce('\x0000000000000008'::bytea || pg_catalog.int8send(p_ordinal), '\xffffffffffffffff'::bytea)
        || coalesce('\x0000000000000004'::bytea || pg_catalog.int4send(p_attempt), '\xffffffffffffffff'::bytea)
        || '\x0000000000000008'::bytea
        || pg_catalog.int8send((extract(epoch from p_recorded_at) * 1000000)::bigint)
        || pg_catalog.int8send(pg_catalog.length(pg_catalog.convert_to(p_body, 'UTF8'))::bigint)
        || pg_catalog.convert_to(p_body, 'UTF8'));
end;

-- Refuse a mark that cannot be set like this, or not yet.
create function ledger.check_mark(
    p_binding ledger.binding, p_mark text, p_run text, p_ordinal bigint, p_attempt integer, p_settle double precision)
returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    if p_mark = 'set' and (p_settle is not null or num_nulls(p_run, p_ordinal, p_attempt) > 0)
       or p_mark <> all (array['keep', 'clear', 'set']) or p_settle < 0 then
        raise exception using errcode = 'LG021', message = 'the operation in flight cannot be set like this',
            detail = json_build_object('mark', p_mark, 'run', p_run, 'ordinal', p_ordinal, 'attempt', p_attempt,
                                       'settle', p_settle)::text;
    end if;
    if p_mark = 'set' and p_binding.quiet_until > clock_timestamp() then
        raise exception using errcode = 'LG006', message = 'an earlier request may still be running in the destination',
            detail = json_build_object(
                'seconds', extract(epoch from p_binding.quiet_until - clock_timestamp()))::text;
    end if;
end
$$;

-- The one place where events are inserted and a head or a mark moves. The caller holds the lock of the binding's row.
create function ledger.append_marked(
    p_binding ledger.binding, p_epoch bigint, p_event_ids uuid[], p_kinds text[], p_schema_versions integer[],
    p_run_ids text[], p_operation_ids text[], p_ordinals bigint[], p_attempts integer[], p_bodies text[],
    p_expected_head bytea, p_mark text, p_mark_run text, p_mark_ordinal bigint, p_mark_attempt integer,
    p_settle double precision,
    out first_position bigint, out last_position bigint, out head_hash bytea, out repeated boolean)
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_next uuid;
    v_previous bytea;
    v_recorded timestamptz;
begin
    perform ledger.check_batch(p_event_ids, p_kinds, p_bodies, array[
        cardinality(p_kinds), cardinality(p_schema_versions), cardinality(p_run_ids), cardinality(p_operation_ids),
        cardinality(p_ordinals), cardinality(p_attempts), cardinality(p_bodies)]);
    repeated := false;
    for i in 1 .. cardinality(p_event_ids) loop
        -- The entry at or behind its place in the index; an order that only that index has (find_repeat says why).
        select e.event_id into v_next from ledger.event e
        where e.binding_id = p_binding.id and e.event_id >= p_event_ids[i]
        order by e.binding_id, e.event_id limit 1;
        if v_next = p_event_ids[i] then
            select r.first_position, r.last_position, r.head_hash into first_position, last_position, head_hash
            from ledger.find_repeat(p_binding.id, p_event_ids, p_kinds, p_schema_versions, p_run_ids,
                                    p_operation_ids, p_ordinals, p_attempts, p_bodies) r;
            repeated := true;
            return;
        end if;
    end loop;
    if p_expected_head is not null and p_expected_head <> p_binding.head_hash then
        raise exception using errcode = 'LG005', message = 'the chain has another head than the caller believes',
            detail = json_build_object('position', p_binding.head_position,
                                       'head', encode(p_binding.head_hash, 'hex'),
                                       'expected', encode(p_expected_head, 'hex'))::text;
    end if;
    perform ledger.check_mark(p_binding, p_mark, p_mark_run, p_mark_ordinal, p_mark_attempt, p_settle);
    first_position := p_binding.head_position + 1;
    last_position := p_binding.head_position;
    head_hash := p_binding.head_hash;
    for i in 1 .. cardinality(p_event_ids) loop
        last_position := last_position + 1;
        v_previous := head_hash;
        v_recorded := clock_timestamp();
        head_hash := ledger.event_hash_v1(
            v_previous, p_binding.url, p_binding.branch, last_position, p_event_ids[i], p_kinds[i],
            p_schema_versions[i], p_epoch, p_run_ids[i], p_operation_ids[i], p_ordinals[i], p_attempts[i],
            v_recorded, p_bodies[i]);
        insert into ledger.event (binding_id, position, event_id, kind, schema_version, run_id, operation_id, ordinal,
                                  attempt, writer_epoch, recorded_at, body, prev_hash, hash)
        values (p_binding.id, last_position, p_event_ids[i], p_kinds[i], p_schema_versions[i], p_run_ids[i],
                p_operation_ids[i], p_ordinals[i], p_attempts[i], p_epoch, v_recorded, p_bodies[i], v_previous,
                head_hash);
    end loop;
    update ledger.binding b
    set head_position = append_marked.last_position, head_hash = append_marked.head_hash,
        in_flight_run = case p_mark when 'keep' then b.in_flight_run when 'set' then p_mark_run end,
        in_flight_ordinal = case p_mark when 'keep' then b.in_flight_ordinal when 'set' then p_mark_ordinal end,
        in_flight_attempt = case p_mark when 'keep' then b.in_flight_attempt when 'set' then p_mark_attempt end,
        quiet_until = case when p_settle is null then b.quiet_until
                           else greatest(b.quiet_until, clock_timestamp() + make_interval(secs => p_settle)) end
    where b.id = p_binding.id;
end
$$;

create or replace function ledger.append_locked(
    p_binding ledger.binding, p_epoch bigint, p_event_ids uuid[], p_kinds text[], p_schema_versions integer[],
    p_run_ids text[], p_operation_ids text[], p_ordinals bigint[], p_attempts integer[], p_bodies text[],
    p_expected_head bytea, out first_position bigint, out last_position bigint, out head_hash bytea,
    out repeated boolean)
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    select a.first_position, a.last_position, a.head_hash, a.repeated
    into first_position, last_position, head_hash, repeated
    from ledger.append_marked(p_binding, p_epoch, p_event_ids, p_kinds, p_schema_versions, p_run_ids, p_operation_ids,
                              p_ordinals, p_attempts, p_bodies, p_expected_head, 'keep', null, null, null, null) a;
end
$$;

create or replace function ledger.append_v1(
    p_binding_id bigint, p_owner text, p_epoch bigint, p_event_ids uuid[], p_kinds text[],
    p_schema_versions integer[], p_run_ids text[], p_operation_ids text[], p_ordinals bigint[], p_attempts integer[],
    p_bodies text[], p_expected_head bytea, p_mark text, p_mark_run text, p_mark_ordinal bigint,
    p_mark_attempt integer, p_settle double precision, p_close_orders bigint[], p_close_states text[],
    out first_position bigint, out last_position bigint, out head_hash bytea)
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_binding ledger.binding := ledger.lock_as_writer(p_binding_id, p_owner, p_epoch);
    v_appended record;
    v_allowed boolean;
begin
    for i in 1 .. cardinality(p_kinds) loop
        select k.by_writer into v_allowed from ledger.event_kind k where k.kind = p_kinds[i];
        if v_allowed is not true then
            perform ledger.check_kinds(p_kinds, false);
        end if;
    end loop;
    v_appended := ledger.append_marked(
        v_binding, p_epoch, p_event_ids, p_kinds, p_schema_versions, p_run_ids, p_operation_ids, p_ordinals,
        p_attempts, p_bodies, p_expected_head, p_mark, p_mark_run, p_mark_ordinal, p_mark_attempt, p_settle);
    if v_appended.repeated then
        perform ledger.check_repeated_mark(v_binding, p_mark, p_mark_run, p_mark_ordinal, p_mark_attempt);
    end if;
    for i in 1 .. cardinality(p_close_orders) loop
        perform ledger.close_order_locked(p_binding_id, p_close_orders[i], p_close_states[i]);
    end loop;
    first_position := v_appended.first_position;
    last_position := v_appended.last_position;
    head_hash := v_appended.head_hash;
end
$$;

drop function ledger.set_in_flight;
