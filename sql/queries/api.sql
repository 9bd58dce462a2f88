-- Pages of lists. Each begins behind a key that its index has, never behind a number of rows: the first page and the
-- last one cost the same. A value instead of NULL stands for "from the start", because a condition that may be NULL is
-- none that an index could begin with. Lists by time name their columns as the indexes of 0018 and 0019 do.

-- name: runs_page
-- Committed runs of all bindings, newest first, behind ($1, $2, $3); $4 candidates. The kind is asked for in a way that
-- no index over commits alone has: each of them would have to be sorted.
select i.binding_id, i.inbox_id, i.run_id, i.source, i.received_at, i.state, i.reason, d.document
from (
    select c.binding_id, c.inbox_id, c.run_id, c.source, c.received_at, c.state,
           left(c.body::jsonb ->> 'reason', 300) as reason from ledger.inbox c
    where c.kind || '' = 'commit' and (c.received_at, c.binding_id + 0, c.inbox_id + 0) < ($1, $2, $3)
    order by c.received_at desc, c.binding_id + 0 desc, c.inbox_id + 0 desc limit $4
) i
left join lateral (
    select p.document from ledger.projection_document p
    where p.projection = $5 and p.version = $6 and p.slot = 'live' and p.binding_id = i.binding_id
      and p.subject = i.run_id and p.item = ''
    offset 0
) d on true
order by i.received_at desc, i.binding_id + 0 desc, i.inbox_id + 0 desc;

-- name: runs_page_of_binding
-- The same for binding $1, behind inbox row $2; $3 candidates.
select i.binding_id, i.inbox_id, i.run_id, i.source, i.received_at, i.state, i.reason, d.document
from (
    select c.binding_id, c.inbox_id, c.run_id, c.source, c.received_at, c.state,
           left(c.body::jsonb ->> 'reason', 300) as reason from ledger.inbox c
    where c.kind = 'commit' and c.binding_id between $1 and $1 and c.inbox_id < $2
    order by c.binding_id desc, c.inbox_id desc limit $3
) i
left join lateral (
    select p.document from ledger.projection_document p
    where p.projection = $4 and p.version = $5 and p.slot = 'live' and p.binding_id = i.binding_id
      and p.subject = i.run_id and p.item = ''
    offset 0
) d on true
order by i.binding_id desc, i.inbox_id desc;

-- name: run_row
-- One run of a binding: its commit in the inbox, and what is known of it.
select i.binding_id, i.inbox_id, i.run_id, i.source, i.received_at, i.state, i.body,
       left(i.body::jsonb ->> 'reason', 300) as reason, d.document
from ledger.inbox i
left join lateral (
    select p.document from ledger.projection_document p
    where p.projection = $3 and p.version = $4 and p.slot = 'live' and p.binding_id = i.binding_id
      and p.subject = i.run_id and p.item = ''
    offset 0
) d on true
where (i.binding_id, i.run_id) >= ($1, $2) and (i.binding_id, i.run_id) <= ($1, $2) and i.kind = 'commit'
order by i.binding_id, i.run_id limit 1;

-- name: run_document
-- What the projection of runs says of one run, without its operations.
select document from ledger.projection_document
where projection = $1 and version = $2 and slot = 'live' and binding_id = $3 and subject = $4 and item = '';

-- name: run_end
-- The last event that ended a run.
select position, kind, recorded_at, body from ledger.event
where binding_id = $1 and run_id between $2 and $2
  and kind in ('plan.committed', 'plan.refused', 'run.started', 'run.resumed', 'run.stopped', 'run.applied',
               'run.failed', 'run.interrupted')
  and kind in ('plan.refused', 'run.stopped', 'run.applied', 'run.failed', 'run.interrupted')
order by run_id desc, position desc limit 1;

-- name: newest_run_marks
-- What was recorded of a run as a whole, newest first.
select position, kind, recorded_at, body, writer_epoch from ledger.event
where binding_id = $1 and run_id between $2 and $2
  and kind in ('plan.committed', 'plan.refused', 'run.started', 'run.resumed', 'run.stopped', 'run.applied',
               'run.failed', 'run.interrupted')
order by run_id desc, position desc limit $3;

-- name: succeeded_operations
-- The operations of a run that were applied or skipped, in the order in which they were.
select operation_id, kind from ledger.event
where binding_id = $1 and run_id between $2 and $2 and kind in ('operation.applied', 'operation.skipped')
order by position;

-- name: operations_page
-- Operations of plan $1 behind ordinal $2, $3 of them, with what became of them in run $7 of binding $6.
select o.ordinal, o.operation_id, o.line, d.document
from (
    select q.ordinal, q.operation_id, q.line from ledger.plan_operation q
    where q.plan_checksum = $1 and q.ordinal > $2
    order by q.ordinal limit $3
) o
left join lateral (
    select p.document from ledger.projection_document p
    where p.projection = $4 and p.version = $5 and p.slot = 'live' and p.binding_id = $6
      and p.subject = $7 and p.item = o.operation_id
    offset 0
) d on true
order by o.ordinal;

-- name: operations_at
-- The same for the operations at these ordinals ($2).
select o.ordinal, o.operation_id, o.line, d.document
from unnest($2::bigint[]) as n (ordinal)
cross join lateral (
    select q.ordinal, q.operation_id, q.line from ledger.plan_operation q
    where q.plan_checksum = $1 and q.ordinal = n.ordinal
    offset 0
) o
left join lateral (
    select p.document from ledger.projection_document p
    where p.projection = $3 and p.version = $4 and p.slot = 'live' and p.binding_id = $5
      and p.subject = $6 and p.item = o.operation_id
    offset 0
) d on true
order by o.ordinal;

-- name: events_of_operation
-- The events of one operation of a run, behind position $2, up to $3.
select b.url, b.branch, e.position, e.event_id, e.kind, e.schema_version, e.run_id, e.operation_id, e.ordinal,
       e.attempt, e.writer_epoch, e.recorded_at, e.body, e.prev_hash, e.hash
from ledger.event e join ledger.binding b on b.id = e.binding_id
where e.binding_id = $1 and e.run_id = $5 and e.operation_id = $6
  and e.kind in ('operation.applied', 'operation.skipped', 'operation.failed', 'operation.unknown')
  and e.position > $2 and ($3::bigint is null or e.position <= $3)
order by e.position limit $4;

-- name: events_of_kind
-- The events of binding $1 of one kind ($2) in front of position $3, newest first; of no kind that event_by_kind leaves
-- out. The range instead of "=" keeps the order one of that index alone.
select b.url, b.branch, e.position, e.event_id, e.kind, e.schema_version, e.run_id, e.operation_id, e.ordinal,
       e.attempt, e.writer_epoch, e.recorded_at, e.body, e.prev_hash, e.hash
from ledger.event e join ledger.binding b on b.id = e.binding_id
where e.binding_id = $1 and e.kind between $2 and $2 and e.position < $3
  and e.kind !~~ 'operation.applied' and e.kind !~~ 'operation.skipped'
order by e.kind desc, e.position desc limit $4;

-- name: attempted_ordinals
-- The operations of run $3 of binding $1 with an attempt of this kind of outcome ($2), each once for each such attempt;
-- those behind ordinal $6, of the newest $7 events of the kind behind position $4 and up to $5.
select ordinal from (
    select e.ordinal, e.run_id from ledger.event e
    where e.binding_id = $1 and e.kind between $2 and $2 and e.position > $4 and e.position <= $5
      and e.kind !~~ 'operation.applied' and e.kind !~~ 'operation.skipped'
    order by e.kind desc, e.position desc limit $7
) attempted
where run_id = $3 and ordinal > $6;

-- name: refusals_page
-- Refusals of plans, newest first, behind ($1, $2, $3): every one that was ever recorded, whatever became of its run.
select binding_id, run_id, position, recorded_at, body from ledger.event
where kind = 'plan.refused' and (recorded_at, binding_id + 0, position + 0) < ($1, $2, $3)
order by recorded_at desc, binding_id + 0 desc, position + 0 desc limit $4;

-- name: writer_openings
-- Who claimed each of these bindings ($1) under the epoch at the same place of $2.
select e.binding_id, e.writer_epoch, e.position, e.recorded_at, e.body
from unnest($1::bigint[], $2::bigint[]) as n (id, epoch)
cross join lateral (
    select o.binding_id, o.writer_epoch, o.position, o.recorded_at, o.body from ledger.event o
    where o.binding_id = n.id and o.writer_epoch = n.epoch and o.kind = 'writer.opened'
    offset 0
) e
order by e.binding_id, e.writer_epoch;

-- name: orders_of_run
-- What was ordered for run $2 of binding $1, newest first.
select inbox_id, order_id, kind, run_id, state, body, position, received_at, closed_at from ledger.inbox
where binding_id + 0 = $1 and run_id || '' between $2 and $2
order by binding_id + 0 desc, run_id || '' desc, inbox_id + 0 desc limit $3;

-- name: lines_of_runs
-- What is known of each of these runs: binding ($1) and run id ($2) at the same place.
select n.id as binding_id, n.run_id, d.document
from unnest($1::bigint[], $2::text[]) as n (id, run_id)
cross join lateral (
    select p.document from ledger.projection_document p
    where p.projection = $3 and p.version = $4 and p.slot = 'live' and p.binding_id = n.id
      and p.subject = n.run_id and p.item = ''
    offset 0
) d;

-- name: binding_heads
-- Where the logs of these bindings ($1) end.
select id, head_position from ledger.binding where id = any ($1);

-- name: waiting_orders
-- How many orders wait on each binding, and since when the oldest one does.
select binding_id, count(*) as orders, min(received_at) as since from ledger.inbox
where state = 'open' group by binding_id;

-- name: orders_page
-- Orders for the writer of a binding, newest first, behind inbox row $2.
select inbox_id, order_id, kind, run_id, state, body, position, received_at, closed_at
from ledger.inbox where binding_id between $1 and $1 and inbox_id < $2
order by binding_id desc, inbox_id desc limit $3;

-- name: refused_messages_page
-- Messages that could not become an order, newest first, behind ($1, $2, $3, $4).
select topic, partition, "offset", digest, reason, recorded_at from ledger.intake_refusal
where (recorded_at, topic || '', partition + 0, "offset" + 0) < ($1, $2, $3::bigint, $4)
order by recorded_at desc, topic || '' desc, partition + 0 desc, "offset" + 0 desc limit $5;

-- name: live_workers
-- Processes that said lately that they serve bindings.
select worker_id, host, serves, held, extract(epoch from expires_at - clock_timestamp())::float8 as expires_in
from ledger.worker where expires_at >= clock_timestamp() order by worker_id;

-- name: projection_positions
-- How far a projection has come on each binding.
select binding_id, position from ledger.projection_cursor
where projection = $1 and version = $2 and slot = 'live';

-- name: projections_behind
-- Whether any of these projections ($1, $2) has events to take.
select exists (
    select from ledger.binding b
    cross join unnest($1::text[], $2::integer[]) as n (projection, version)
    left join ledger.projection_cursor c
        on c.projection = n.projection and c.version = n.version and c.slot = 'live' and c.binding_id = b.id
    where coalesce(c.position, 0) < b.head_position);

-- name: create_api_token
-- Make a token; returns until when it works.
select ledger.create_api_token_v1($1, $2, $3, $4, $5);

-- name: revoke_api_token
-- End a token; false where there is none.
select ledger.revoke_api_token_v1($1);

-- name: use_api_token
-- Note that a token was used.
select ledger.use_api_token_v1($1);

-- name: api_token
-- A token by its id, and whether it works now.
select token_id, name, role, digest, created_at, created_by, expires_at, revoked_at, last_used_at,
       revoked_at is null and (expires_at is null or expires_at > clock_timestamp()) as works
from ledger.api_token where token_id = $1;

-- name: api_tokens
-- All tokens, oldest first.
select token_id, name, role, digest, created_at, created_by, expires_at, revoked_at, last_used_at,
       revoked_at is null and (expires_at is null or expires_at > clock_timestamp()) as works
from ledger.api_token order by created_at, token_id;
