-- name: append_control
-- Append control events, for everybody but a writer.
select first_position, last_position, head_hash from ledger.append_control_v1($1, $2, $3, $4, $5, $6, $7);

-- name: checkpoint_marks
-- The seals and checkpoints of a binding, in order.
select position, event_id, kind, recorded_at, body from ledger.event
where binding_id = $1 and kind in ('plan.sealed', 'checkpoint.published') and position > $2 and position <= $3
order by binding_id, position limit $4;

-- name: last_checkpoint
-- The newest checkpoint of a binding.
select position, event_id, kind, recorded_at, body from ledger.event
where binding_id = $1 and kind in ('plan.sealed', 'checkpoint.published') and kind = 'checkpoint.published'
order by binding_id desc, position desc limit 1;

-- name: last_checkpoints
-- The newest checkpoint of each of these bindings.
select b.id as binding_id, e.position, e.event_id, e.kind, e.recorded_at, e.body
from unnest($1::bigint[]) as b (id)
cross join lateral (
    select position, event_id, kind, recorded_at, body from ledger.event
    where binding_id = b.id and kind in ('plan.sealed', 'checkpoint.published') and kind = 'checkpoint.published'
    order by binding_id desc, position desc limit 1
) e;

-- name: checkpoints_page
-- One page of the checkpoints of a binding, newest first.
select position, event_id, kind, recorded_at, body from ledger.event
where binding_id = $1 and kind in ('plan.sealed', 'checkpoint.published') and kind = 'checkpoint.published'
  and position < $2
order by binding_id desc, position desc limit $3;

-- name: event_hashes
-- One page of the hashes of a binding's events, without anything else of them.
select position, hash from ledger.event
where binding_id = $1 and position > $2 and position <= $3 order by position limit $4;

-- name: verified_plans
-- The plans that were verified for runs on a binding.
select distinct plan_checksum from ledger.artifact where binding_id = $1 order by plan_checksum;
