-- migrate:up
--
-- What a writer nearly always appends: the operation in flight was applied, and the next one is in flight. For each
-- operation this is on the way between an answer and the next request, and a function that handles every append has to
-- set up the handling of every append. So this one has a function of its own, which does it or leaves it to append_v1:
--
--   * It holds one condition, of what has to be true and not of what may be wrong. Where it does not hold, append_v1 is
--     called with the same event, and answers, refuses, or knows the repeat, as it would have without this function.
--   * The operation that is told must be the one in flight, and another one must be marked. An outcome leaves the mark
--     in the transaction that records it (0012), so one that is repeated is not in flight any more and is no case here.
--     Its id is looked for all the same: an event that has it must be another one, and append_v1 says so.
--   * The row is locked first and read in the same statement; a statement that had to wait reads it anew.

set local role ledger_owner;

create function ledger.applied_and_next_v1(
    p_binding_id bigint, p_owner text, p_epoch bigint, p_event_id uuid, p_schema_version integer, p_run_id text,
    p_operation_id text, p_ordinal bigint, p_attempt integer, p_body text, p_mark_run text, p_mark_ordinal bigint,
    p_mark_attempt integer, out first_position bigint, out last_position bigint, out head_hash bytea)
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_usual boolean;
    v_url text;
    v_branch text;
    v_previous bytea;
    v_recorded timestamptz;
begin
    if current_setting('synchronous_commit') not in ('on', 'remote_apply') then
        perform set_config('synchronous_commit', 'on', true);
    end if;
    select b.url, b.branch, b.head_position + 1, b.head_hash, clock_timestamp(),
           b.lease_owner = p_owner
           and b.writer_epoch = p_epoch
           and b.in_flight_run = p_run_id and b.in_flight_ordinal = p_ordinal and b.in_flight_attempt = p_attempt
           and (p_mark_run <> p_run_id or p_mark_ordinal <> p_ordinal or p_mark_attempt <> p_attempt)
           and num_nulls(p_mark_run, p_mark_ordinal, p_mark_attempt) = 0
           and (b.quiet_until is null or b.quiet_until <= clock_timestamp())
           and octet_length(p_body) <= 262144
           and (select e.event_id from ledger.event e where e.binding_id = p_binding_id and e.event_id >= p_event_id
                order by e.binding_id, e.event_id limit 1) is distinct from p_event_id
    into v_url, v_branch, last_position, v_previous, v_recorded, v_usual
    from ledger.binding b where b.id = p_binding_id for update;
    if v_usual is not true then
        select a.first_position, a.last_position, a.head_hash into first_position, last_position, head_hash
        from ledger.append_v1(
            p_binding_id, p_owner, p_epoch, array[p_event_id], array['operation.applied'], array[p_schema_version],
            array[p_run_id], array[p_operation_id], array[p_ordinal], array[p_attempt], array[p_body], null,
            'set', p_mark_run, p_mark_ordinal, p_mark_attempt, null, '{}', '{}') a;
        return;
    end if;
    first_position := last_position;
    head_hash := ledger.event_hash_v1(
        v_previous, v_url, v_branch, last_position, p_event_id, 'operation.applied', p_schema_version, p_epoch,
        p_run_id, p_operation_id, p_ordinal, p_attempt, v_recorded, p_body);
    insert into ledger.event (binding_id, position, event_id, kind, schema_version, run_id, operation_id, ordinal,
                              attempt, writer_epoch, recorded_at, body, prev_hash, hash)
    values (p_binding_id, last_position, p_event_id, 'operation.applied', p_schema_version, p_run_id, p_operation_id,
            p_ordinal, p_attempt, p_epoch, v_recorded, p_body, v_previous, head_hash);
    update ledger.binding b
    set head_position = applied_and_next_v1.last_position, head_hash = applied_and_next_v1.head_hash,
        in_flight_run = p_mark_run, in_flight_ordinal = p_mark_ordinal, in_flight_attempt = p_mark_attempt
    where b.id = p_binding_id;
end
$$;

grant execute on function ledger.applied_and_next_v1 to ledger_writer;
