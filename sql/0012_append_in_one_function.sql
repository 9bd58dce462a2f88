-- migrate:up
--
-- The append of a writer in one function, with the promises and errors of 0003 and 0011, and two more:
--
--   * The operation in flight is left with its outcome, in one call, and its outcome leaves it (G4). A mark that was
--     moved without it would take along the one operation that is in doubt.
--   * A call that only marks has no event by which its repeat could be known. A repeat that comes late, from a
--     connection that was given up while its statement waited for the row, would mark an attempt whose outcome is
--     recorded: in doubt for ever, because no outcome can be recorded for it again. Outcomes of a run follow the order
--     of its plan, so a mark that is not behind the last of them is one that was never told.
--
-- Whatever a function evaluates is set up anew in each transaction, and an operation is a transaction of one event. So
-- what counts is how much is set up, not how fast it runs: a row that travels between functions as one value, a set
-- made out of arrays, or a look-up of its own for a check costs more than the insertion it is for. append_v1 therefore
-- locks, compares and looks up by itself, column by column, and calls others only to insert or to refuse.
--
--   append_v1          lock, fence (LG001), shape (LG021, LG008), kinds (LG009), known ids (LG004), head (LG005),
--                      mark (LG021, LG006), doubt (LG022), append_events, orders
--   append_locked      the same without a lease and a mark, for claim_v1, submit_commit_v1, append_control_v1
--   append_events      the one place where events are inserted and where a head or a mark moves

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

create function ledger.check_mark_is_ahead(p_binding_id bigint, p_run text, p_ordinal bigint, p_attempt integer)
returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_ordinal bigint;
    v_attempt integer;
begin
    -- A range instead of "=" keeps the order one of the run's own index (0005).
    select e.ordinal, e.attempt into v_ordinal, v_attempt from ledger.event e
    where e.binding_id = p_binding_id and e.run_id between p_run and p_run and e.ordinal is not null
    order by e.run_id desc, e.position desc limit 1;
    if (v_ordinal, v_attempt) >= (p_ordinal, p_attempt) then
        raise exception using errcode = 'LG004', message = 'an operation was marked whose outcome is recorded',
            detail = json_build_object('run', p_run, 'ordinal', p_ordinal, 'attempt', p_attempt,
                                       'last', json_build_array(v_ordinal, v_attempt))::text;
    end if;
end
$$;

create function ledger.append_events(
    p_binding_id bigint, p_url text, p_branch text, p_head_position bigint, p_head_hash bytea, p_epoch bigint,
    p_event_ids uuid[], p_kinds text[], p_schema_versions integer[], p_run_ids text[], p_operation_ids text[],
    p_ordinals bigint[], p_attempts integer[], p_bodies text[], p_mark_run text, p_mark_ordinal bigint,
    p_mark_attempt integer, p_quiet_until timestamptz,
    out last_position bigint, out head_hash bytea)
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_previous bytea;
    v_recorded timestamptz;
begin
    -- With events, a repeat is known by their ids; a mark alone has none.
    if cardinality(p_event_ids) = 0 and p_mark_run is not null then
        perform ledger.check_mark_is_ahead(p_binding_id, p_mark_run, p_mark_ordinal, p_mark_attempt);
    end if;
    last_position := p_head_position;
    head_hash := p_head_hash;
    for i in 1 .. cardinality(p_event_ids) loop
        if octet_length(p_bodies[i]) > 262144 then
            raise exception using errcode = 'LG007', message = 'an event body is too large',
                detail = json_build_object('limit', 262144, 'found', octet_length(p_bodies[i]))::text;
        end if;
        last_position := last_position + 1;
        v_previous := head_hash;
        v_recorded := clock_timestamp();
        head_hash := ledger.event_hash_v1(
            v_previous, p_url, p_branch, last_position, p_event_ids[i], p_kinds[i], p_schema_versions[i], p_epoch,
            p_run_ids[i], p_operation_ids[i], p_ordinals[i], p_attempts[i], v_recorded, p_bodies[i]);
        insert into ledger.event (binding_id, position, event_id, kind, schema_version, run_id, operation_id, ordinal,
                                  attempt, writer_epoch, recorded_at, body, prev_hash, hash)
        values (p_binding_id, last_position, p_event_ids[i], p_kinds[i], p_schema_versions[i], p_run_ids[i],
                p_operation_ids[i], p_ordinals[i], p_attempts[i], p_epoch, v_recorded, p_bodies[i], v_previous,
                head_hash);
    end loop;
    update ledger.binding b
    set head_position = append_events.last_position, head_hash = append_events.head_hash,
        in_flight_run = p_mark_run, in_flight_ordinal = p_mark_ordinal, in_flight_attempt = p_mark_attempt,
        quiet_until = p_quiet_until
    where b.id = p_binding_id;
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
    perform ledger.check_head(p_binding.head_position, p_binding.head_hash, p_expected_head);
    first_position := p_binding.head_position + 1;
    select a.last_position, a.head_hash into last_position, head_hash
    from ledger.append_events(
        p_binding.id, p_binding.url, p_binding.branch, p_binding.head_position, p_binding.head_hash, p_epoch,
        p_event_ids, p_kinds, p_schema_versions, p_run_ids, p_operation_ids, p_ordinals, p_attempts, p_bodies,
        p_binding.in_flight_run, p_binding.in_flight_ordinal, p_binding.in_flight_attempt, p_binding.quiet_until) a;
end
$$;

create function ledger.check_head(p_position bigint, p_head bytea, p_expected bytea) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    if p_expected <> p_head then
        raise exception using errcode = 'LG005', message = 'the chain has another head than the caller believes',
            detail = json_build_object('position', p_position, 'head', encode(p_head, 'hex'),
                                       'expected', encode(p_expected, 'hex'))::text;
    end if;
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
    v_count integer := cardinality(p_event_ids);
    v_url text;
    v_branch text;
    v_epoch bigint;
    v_owner text;
    v_host text;
    v_run text;
    v_ordinal bigint;
    v_attempt integer;
    v_quiet_until timestamptz;
    v_appended record;
    v_allowed boolean;
    v_next uuid;
    v_told boolean := false;
    v_repeated boolean := false;
begin
    if current_setting('synchronous_commit') not in ('on', 'remote_apply') then
        perform set_config('synchronous_commit', 'on', true);
    end if;
    select b.url, b.branch, b.head_position, b.head_hash, b.writer_epoch, b.lease_owner, b.lease_host, b.in_flight_run,
           b.in_flight_ordinal, b.in_flight_attempt, b.quiet_until
    into v_url, v_branch, last_position, head_hash, v_epoch, v_owner, v_host, v_run,
         v_ordinal, v_attempt, v_quiet_until
    from ledger.binding b where b.id = p_binding_id for update;
    -- A binding that nobody holds has no owner, and no caller without a name is that one.
    if v_owner is null or v_epoch is distinct from p_epoch or v_owner is distinct from p_owner then
        perform ledger.refuse_writer(p_binding_id, p_epoch, v_epoch, v_owner, v_host);
    end if;
    if v_count is null or v_count > 500
       or (cardinality(p_kinds), cardinality(p_schema_versions), cardinality(p_run_ids), cardinality(p_operation_ids),
           cardinality(p_ordinals), cardinality(p_attempts), cardinality(p_bodies))
          is distinct from (v_count, v_count, v_count, v_count, v_count, v_count, v_count) then
        perform ledger.check_batch(p_event_ids, p_kinds, p_bodies, array[
            cardinality(p_kinds), cardinality(p_schema_versions), cardinality(p_run_ids),
            cardinality(p_operation_ids), cardinality(p_ordinals), cardinality(p_attempts), cardinality(p_bodies)]);
    end if;
    for i in 1 .. v_count loop
        select k.by_writer into v_allowed from ledger.event_kind k where k.kind = p_kinds[i];
        if v_allowed is not true then
            perform ledger.check_kinds(p_kinds, false);
        end if;
        -- The entry at or behind its place in the index; an order that only that index has (find_repeat says why).
        select e.event_id into v_next from ledger.event e
        where e.binding_id = p_binding_id and e.event_id >= p_event_ids[i]
        order by e.binding_id, e.event_id limit 1;
        v_repeated := v_repeated or coalesce(v_next = p_event_ids[i], false);
        v_told := v_told or coalesce(p_ordinals[i] = v_ordinal and p_run_ids[i] = v_run and p_attempts[i] = v_attempt
                                     and p_kinds[i] like 'operation.%', false);
    end loop;
    if v_repeated then
        select r.first_position, r.last_position, r.head_hash into first_position, last_position, head_hash
        from ledger.find_repeat(p_binding_id, p_event_ids, p_kinds, p_schema_versions, p_run_ids, p_operation_ids,
                                p_ordinals, p_attempts, p_bodies) r;
        perform ledger.check_repeated_mark(b, p_mark, p_mark_run, p_mark_ordinal, p_mark_attempt)
        from ledger.binding b where b.id = p_binding_id;
    else
        if p_expected_head is not null then
            perform ledger.check_head(last_position, head_hash, p_expected_head);
        end if;
        if p_mark = 'set' and (p_settle is not null or num_nulls(p_mark_run, p_mark_ordinal, p_mark_attempt) > 0
                               or v_quiet_until > clock_timestamp())
           or p_mark is null or p_mark not in ('keep', 'clear', 'set') or p_settle < 0 or p_settle > 86400 then
            perform ledger.refuse_mark(p_mark, p_mark_run, p_mark_ordinal, p_mark_attempt, p_settle, v_quiet_until);
        end if;
        -- What moves the mark tells the outcome of what was marked, and what tells it moves the mark.
        if v_run is not null and v_told <> (p_mark <> 'keep' and (p_mark_run, p_mark_ordinal, p_mark_attempt)
                                            is distinct from (v_run, v_ordinal, v_attempt)) then
            raise exception using errcode = 'LG022',
                message = 'the operation in flight is left together with its outcome',
                detail = json_build_object('run', v_run, 'ordinal', v_ordinal, 'attempt', v_attempt, 'told', v_told,
                                           'mark', p_mark)::text;
        end if;
        if p_mark <> 'keep' then
            v_run := case p_mark when 'set' then p_mark_run end;
            v_ordinal := case p_mark when 'set' then p_mark_ordinal end;
            v_attempt := case p_mark when 'set' then p_mark_attempt end;
        end if;
        if p_settle is not null then
            v_quiet_until := greatest(v_quiet_until, clock_timestamp() + make_interval(secs => p_settle));
        end if;
        first_position := last_position + 1;
        v_appended := ledger.append_events(
            p_binding_id, v_url, v_branch, last_position, head_hash, p_epoch, p_event_ids, p_kinds, p_schema_versions,
            p_run_ids, p_operation_ids, p_ordinals, p_attempts, p_bodies, v_run, v_ordinal, v_attempt, v_quiet_until);
        last_position := v_appended.last_position;
        head_hash := v_appended.head_hash;
    end if;
    for i in 1 .. cardinality(p_close_orders) loop
        perform ledger.close_order_locked(p_binding_id, p_close_orders[i], p_close_states[i]);
    end loop;
end
$$;

create function ledger.refuse_writer(
    p_binding_id bigint, p_epoch bigint, p_found_epoch bigint, p_found_owner text, p_found_host text) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    if p_found_epoch is null then
        raise exception using errcode = 'LG010', message = 'this binding is not registered',
            detail = json_build_object('binding_id', p_binding_id)::text;
    end if;
    raise exception using errcode = 'LG001', message = 'this writer no longer holds the binding',
        detail = json_build_object('own_epoch', p_epoch, 'epoch', p_found_epoch, 'owner', p_found_owner,
                                   'host', p_found_host)::text;
end
$$;

create function ledger.refuse_mark(
    p_mark text, p_run text, p_ordinal bigint, p_attempt integer, p_settle double precision,
    p_quiet_until timestamptz) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    perform ledger.check_seconds(p_settle);
    if p_mark = 'set' and (p_settle is not null or num_nulls(p_run, p_ordinal, p_attempt) > 0)
       or p_mark is null or p_mark <> all (array['keep', 'clear', 'set']) or p_settle < 0 then
        raise exception using errcode = 'LG021', message = 'the operation in flight cannot be set like this',
            detail = json_build_object('mark', p_mark, 'run', p_run, 'ordinal', p_ordinal, 'attempt', p_attempt,
                                       'settle', p_settle)::text;
    end if;
    raise exception using errcode = 'LG006', message = 'an earlier request may still be running in the destination',
        detail = json_build_object('seconds', extract(epoch from p_quiet_until - clock_timestamp()))::text;
end
$$;

drop function ledger.set_in_flight;
