-- migrate:up
--
-- What was received and could not become an order is recorded once, by where it came from (G10). Where it named a
-- binding that is known here, the refusal stands in that binding's log as well, without a run: a message that nobody
-- can trust must not end one.

set local role ledger_owner;

create function ledger.refuse_message_v1(
    p_topic text, p_partition integer, p_offset bigint, p_digest bytea, p_reason text, p_binding_id bigint,
    p_event_id uuid, p_schema_version integer, p_event_body text, out first boolean)
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_binding ledger.binding;
    v_digest bytea;
begin
    perform ledger.require_durable_commit();
    if octet_length(p_topic) not between 1 and 249 or octet_length(p_reason) > 262144
       or (p_binding_id is null) <> (num_nulls(p_event_id, p_schema_version, p_event_body) = 3) then
        raise exception using errcode = 'LG021',
            message = 'a refused message needs a topic, a reason and a whole event',
            detail = json_build_object('topic_bytes', octet_length(p_topic), 'reason_bytes', octet_length(p_reason),
                                       'binding_id', p_binding_id)::text;
    end if;
    if p_binding_id is not null then
        v_binding := ledger.lock_binding(p_binding_id);
    end if;
    -- Two processes that read one partition meet here; the second sees the row of the first.
    perform pg_advisory_xact_lock(hashtextextended(format('%s/%s/%s', p_topic, p_partition, p_offset), 0));
    select r.digest into v_digest from ledger.intake_refusal r
    where r.topic = p_topic and r.partition = p_partition and r."offset" = p_offset;
    first := not found;
    if not first then
        if v_digest <> p_digest then
            raise exception using errcode = 'LG024', message = 'another message was refused from this very place',
                detail = json_build_object('topic', p_topic, 'partition', p_partition, 'offset', p_offset,
                                           'digest', encode(v_digest, 'hex'), 'asked', encode(p_digest, 'hex'))::text;
        end if;
        return;
    end if;
    insert into ledger.intake_refusal (topic, partition, "offset", digest, reason)
    values (p_topic, p_partition, p_offset, p_digest, p_reason);
    if p_binding_id is not null then
        perform ledger.append_locked(v_binding, null, array[p_event_id], array['plan.refused'],
                                     array[p_schema_version], array[null::text], array[null::text],
                                     array[null::bigint], array[null::integer], array[p_event_body], null);
    end if;
end
$$;

grant execute on function ledger.refuse_message_v1 to ledger_writer;
