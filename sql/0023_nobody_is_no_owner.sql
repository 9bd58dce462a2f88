-- migrate:up
--
-- A binding that was given back has no owner. "No owner" compared with "no owner" was equal, so a caller without a name
-- and with the last epoch wrote to it without a lease. And the two texts of an order are as long as an event at most,
-- also where they are the same value with more blanks in it.

set local role ledger_owner;

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
