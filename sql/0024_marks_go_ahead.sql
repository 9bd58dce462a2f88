-- migrate:up
--
-- A call that only marks the operation in flight has no event by which its repeat could be known. A repeat that comes
-- late, from a connection that was given up while its statement waited for the row, would mark an attempt whose outcome
-- is recorded: in doubt for ever, because no outcome can be recorded for it again. Outcomes of a run follow the order of
-- its plan, so a mark that is not behind the last of them is one that was never told.

set local role ledger_owner;

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

create or replace function ledger.append_events(
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
