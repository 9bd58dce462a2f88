-- name: foreign_writes
-- Which of these objects ($4) other sources than $2 wrote on binding $1 after position $3.
-- Runs first (few), then one look-up for each of their plans' lines of these objects, then one for its event.
with foreign_run as materialized (
    select i.run_id, i.plan_checksum, i.source
    from ledger.inbox i
    where i.binding_id = $1 and i.kind = 'commit' and i.source <> $2
      and exists (select from ledger.event e
                  where e.binding_id = $1 and e.run_id = i.run_id and e.kind = 'operation.applied'
                    and e.position > $3)
)
select o.object_key, r.source, r.run_id, e.position, o.operation_id, o.line
from foreign_run r
join ledger.plan_operation o on o.plan_checksum = r.plan_checksum and o.object_key = any ($4::bytea[])
join ledger.event e on e.binding_id = $1 and e.run_id = r.run_id and e.operation_id = o.operation_id
                   and e.kind = 'operation.applied' and e.position > $3
order by e.position;

-- name: last_writers
-- Who wrote each of these objects ($2) last on binding $1, whatever the source.
select distinct on (o.object_key) o.object_key, i.source, i.run_id, e.position
from ledger.plan_operation o
join ledger.inbox i on i.binding_id = $1 and i.kind = 'commit' and i.plan_checksum = o.plan_checksum
join ledger.event e on e.binding_id = $1 and e.run_id = i.run_id and e.operation_id = o.operation_id
                   and e.kind = 'operation.applied'
where o.object_key = any ($2::bytea[])
order by o.object_key, e.position desc;

-- name: all_last_writers
-- The same for every object that was ever written on binding $1.
select distinct on (o.object_key) o.object_key, i.source, i.run_id, e.position
from ledger.inbox i
join ledger.event e on e.binding_id = $1 and e.run_id = i.run_id and e.kind = 'operation.applied'
join ledger.plan_operation o on o.plan_checksum = i.plan_checksum and o.ordinal = e.ordinal
where i.binding_id = $1 and i.kind = 'commit'
order by o.object_key, e.position desc;

-- name: newer_apply
-- The last position after $4 at which another run of source $2 than $3 applied something on binding $1.
select last.position
from ledger.inbox i
cross join lateral (
    select e.position from ledger.event e
    where e.binding_id = $1 and e.run_id = i.run_id and e.kind = 'operation.applied' and e.position > $4
    order by e.position desc limit 1
) last
where i.binding_id = $1 and i.kind = 'commit' and i.source = $2 and i.run_id <> $3
order by last.position desc limit 1;

-- name: last_applied_manifest
-- The manifest of the last run of source $2 that was applied to its end on binding $1.
select a.manifest
from ledger.inbox i
cross join lateral (
    select e.position from ledger.event e
    where e.binding_id = $1 and e.run_id = i.run_id
      and e.kind in ('plan.committed', 'plan.refused', 'run.started', 'run.resumed', 'run.stopped', 'run.applied',
                     'run.failed', 'run.interrupted')
      and e.kind = 'run.applied'
    order by e.position desc limit 1
) last
join ledger.artifact a on a.binding_id = $1 and a.run_id = i.run_id
where i.binding_id = $1 and i.kind = 'commit' and i.source = $2
order by last.position desc limit 1;
