-- Who wrote which object. The shape of these queries is fixed on purpose: each lateral part is one look-up in one
-- index, whatever the planner believes. Where a table is young its statistics are missing or those of an empty table,
-- every index looks alike, and flat joins read all events of a run for each line: minutes instead of milliseconds. So
-- an order is asked for that only the right index has, and a value that is looked up is written as a range, because an
-- order by something that is equal to a value would be no order.

-- name: foreign_writes
-- Which of these objects ($4) other sources than $2 wrote on binding $1 after position $3.
with foreign_run as materialized (
    select i.run_id, i.plan_checksum, i.source
    from ledger.inbox i
    cross join lateral (
        select e.position from ledger.event e
        where e.binding_id = $1 and e.run_id between i.run_id and i.run_id and e.kind = 'operation.applied'
          and e.position > $3
        order by e.run_id desc, e.position desc limit 1
    ) last
    where i.binding_id = $1 and i.kind = 'commit' and i.source <> $2
)
select k.object_key, r.source, r.run_id, e.position, o.operation_id, o.line
from foreign_run r
cross join unnest($4::bytea[]) k (object_key)
cross join lateral (
    select o.operation_id, o.line from ledger.plan_operation o
    where (o.object_key, o.plan_checksum) >= (k.object_key, r.plan_checksum)
      and (o.object_key, o.plan_checksum) <= (k.object_key, r.plan_checksum) offset 0
) o
cross join lateral (
    select e.position, e.kind, e.operation_id from ledger.event e
    where e.binding_id = $1 and e.run_id between r.run_id and r.run_id and e.operation_id >= o.operation_id
      and e.kind in ('operation.applied', 'operation.skipped')
    order by e.run_id, e.operation_id limit 1
) e
where e.operation_id = o.operation_id and e.kind = 'operation.applied' and e.position > $3
order by e.position;

-- name: last_writers
-- Who wrote each of these objects ($2) last on binding $1, whatever the source.
select distinct on (k.object_key) k.object_key, i.source, i.run_id, e.position
from unnest($2::bytea[]) k (object_key)
cross join lateral (
    select o.operation_id, o.plan_checksum from ledger.plan_operation o
    where o.object_key = k.object_key offset 0
) o
cross join lateral (
    select i.run_id, i.source from ledger.inbox i
    where i.plan_checksum = o.plan_checksum and i.kind = 'commit' and i.binding_id = $1 offset 0
) i
cross join lateral (
    select e.position, e.kind, e.operation_id from ledger.event e
    where e.binding_id = $1 and e.run_id between i.run_id and i.run_id and e.operation_id >= o.operation_id
      and e.kind in ('operation.applied', 'operation.skipped')
    order by e.run_id, e.operation_id limit 1
) e
where e.operation_id = o.operation_id and e.kind = 'operation.applied'
order by k.object_key, e.position desc;

-- name: all_last_writers
-- The same for every object that was ever written on binding $1.
select distinct on (o.object_key) o.object_key, i.source, i.run_id, e.position
from ledger.inbox i
cross join lateral (
    select e.position, e.ordinal from ledger.event e
    where e.binding_id = $1 and e.run_id between i.run_id and i.run_id and e.kind = 'operation.applied'
    order by e.run_id, e.position offset 0
) e
cross join lateral (
    select o.object_key from ledger.plan_operation o
    where o.plan_checksum = i.plan_checksum and o.ordinal = e.ordinal offset 0
) o
where i.binding_id = $1 and i.kind = 'commit'
order by o.object_key, e.position desc;

-- name: newer_apply
-- The last position after $4 at which another run of source $2 than $3 applied something on binding $1.
select last.position
from ledger.inbox i
cross join lateral (
    select e.position from ledger.event e
    where e.binding_id = $1 and e.run_id between i.run_id and i.run_id and e.kind = 'operation.applied'
      and e.position > $4
    order by e.run_id desc, e.position desc limit 1
) last
where i.binding_id = $1 and i.kind = 'commit' and i.source = $2 and i.run_id <> $3
order by last.position desc limit 1;

-- name: last_applied_manifest
-- The manifest of the last run of source $2 that was applied to its end on binding $1.
select a.manifest
from ledger.inbox i
cross join lateral (
    select e.position from ledger.event e
    where e.binding_id = $1 and e.run_id between i.run_id and i.run_id
      and e.kind in ('plan.committed', 'plan.refused', 'run.started', 'run.resumed', 'run.stopped', 'run.applied',
                     'run.failed', 'run.interrupted')
      and e.kind = 'run.applied'
    order by e.run_id desc, e.position desc limit 1
) last
join ledger.artifact a on a.binding_id = $1 and a.run_id = i.run_id
where i.binding_id = $1 and i.kind = 'commit' and i.source = $2
order by last.position desc limit 1;

-- name: object_history
-- Outcomes of operations on one object ($2) on binding $1, with the plan's line and the commit of its run: the newest
-- $4 before position $3, all of them where $4 is null; the newest first.
select e.position, e.event_id, e.kind, e.recorded_at, e.run_id, e.operation_id, e.ordinal, e.attempt, e.writer_epoch,
       e.body, o.plan_checksum, o.line, i.body as commit_body
from (select plan_checksum, operation_id, line from ledger.plan_operation
      where object_key = $2 order by object_key, plan_checksum) o
cross join lateral (
    select i.run_id, i.body from ledger.inbox i
    where i.plan_checksum = o.plan_checksum and i.kind = 'commit' and i.binding_id = $1 offset 0
) i
cross join lateral (
    select e.position, e.event_id, e.kind, e.recorded_at, e.run_id, e.operation_id, e.ordinal, e.attempt,
           e.writer_epoch, e.body
    from ledger.event e
    where e.binding_id = $1 and e.run_id between i.run_id and i.run_id
      and e.operation_id between o.operation_id and o.operation_id
      and e.kind in ('operation.applied', 'operation.skipped', 'operation.failed', 'operation.unknown')
    order by e.binding_id, e.run_id, e.operation_id, e.attempt offset 0
) e
where e.position < $3
order by e.position desc limit $4;

-- name: recent_outcomes
-- Outcomes of operations among the last $2 events of binding $1, with the lines of their plans, the newest first.
select e.position, e.kind, e.recorded_at, e.run_id, o.object_key, o.line
from (
    select position, kind, recorded_at, run_id, ordinal from ledger.event
    where binding_id = $1 order by binding_id desc, position desc limit $2
) e
cross join lateral (
    select i.plan_checksum from ledger.inbox i
    where i.binding_id = $1 and i.run_id = e.run_id and i.kind = 'commit' offset 0
) i
cross join lateral (
    select o.object_key, o.line from ledger.plan_operation o
    where o.plan_checksum = i.plan_checksum and o.ordinal = e.ordinal offset 0
) o
where e.kind in ('operation.applied', 'operation.skipped', 'operation.failed', 'operation.unknown')
order by e.position desc;

-- name: resumptions
-- Who may have had a run go on, and why: a start says it where the run had been refused before.
select position, recorded_at, body from ledger.event
where binding_id = $1 and run_id between $2 and $2
  and kind in ('plan.committed', 'plan.refused', 'run.started', 'run.resumed', 'run.stopped', 'run.applied',
               'run.failed', 'run.interrupted')
  and kind in ('run.started', 'run.resumed')
order by run_id, position;
