-- name: submit_commit
-- Put a commit into the inbox and its plan.committed into the log.
select order_id, inbox_id, first, "position" from ledger.submit_commit_v1($1, $2, $3, $4, $5, $6);

-- name: submit_commits
-- The same for several of one binding, in their order. One statement: the binding's row is never locked while the
-- client is waited for.
select s.order_id, s.inbox_id, s.first, s."position"
from unnest($2::uuid[], $3::text[], $4::uuid[], $5::integer[], $6::text[])
    with ordinality c(order_id, body, event_id, schema_version, event_body, place)
cross join lateral ledger.submit_commit_v1($1, c.order_id, c.body, c.event_id, c.schema_version, c.event_body) s
order by c.place;

-- name: submit_order
-- Put a resume or a stop into the inbox.
select order_id, inbox_id, first, "position" from ledger.submit_order_v1($1, $2, $3, $4, $5);

-- name: open_orders
-- What waits on a binding, in the order in which it came.
select inbox_id, order_id, kind, run_id, state, body, position, received_at
from ledger.inbox where binding_id = $1 and state = 'open' order by inbox_id;

-- name: pending_stop
-- The open stop order of a run.
select inbox_id, order_id, kind, run_id, state, body, position, received_at
from ledger.inbox where binding_id = $1 and run_id = $2 and kind = 'stop' and state = 'open';

-- name: order_by_id
-- One order, open or closed.
select inbox_id, order_id, kind, run_id, state, body, position, received_at
from ledger.inbox where binding_id = $1 and order_id = $2;

-- name: run_commit
-- The commit of a run as it was taken.
select body from ledger.inbox where binding_id = $1 and run_id = $2 and kind = 'commit';

-- name: run_marks
-- Everything about a run but its operations, in order.
select kind, position from ledger.event
where binding_id = $1 and run_id between $2 and $2
  and kind in ('plan.committed', 'plan.refused', 'run.started', 'run.resumed', 'run.stopped', 'run.applied',
               'run.failed', 'run.interrupted')
order by run_id, position;

-- name: run_outcomes
-- For each operation of a run its last outcome.
select distinct on (operation_id) operation_id, kind, ordinal, attempt, position
from ledger.event
where binding_id = $1 and run_id between $2 and $2
  and kind in ('operation.applied', 'operation.skipped', 'operation.failed', 'operation.unknown')
order by operation_id, attempt desc;

-- name: refuse_message
-- Record that a message cannot become an order.
select ledger.refuse_message_v1($1, $2, $3, $4, $5, $6, $7, $8, $9);

-- name: message_refusal
-- Why the message in this place could not become an order, where it could not.
select reason from ledger.intake_refusal where topic = $1 and partition = $2 and "offset" = $3;

-- name: committed_order
-- The commit of a run with the columns by which it is looked up.
select body, commit_id, plan_checksum, artifact_digest, source, position
from ledger.inbox where binding_id = $1 and run_id = $2 and kind = 'commit';

-- name: ring
-- Tell the writers of these bindings that something was ordered. A hint: it need not outlive a crash of the server.
select pg_catalog.set_config('synchronous_commit', 'off', true),
    pg_catalog.count(pg_catalog.pg_notify('apply_ledger_orders', id::text))
from pg_catalog.unnest($1::bigint[]) as id;
