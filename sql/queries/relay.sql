-- name: claim_relay
-- Be the relay of a binding to a topic.
select epoch, "position", hash from ledger.claim_relay_v1($1, $2, $3, $4);

-- name: advance_relay
-- Note what the topic is known to hold, and prolong the claim.
select ledger.advance_relay_v1($1, $2, $3, $4, $5, $6, $7);

-- name: release_relay
-- Give the relay back.
select ledger.release_relay_v1($1, $2, $3, $4);

-- name: relay_cursors
-- How far each binding is on a topic, beside its head.
select b.id, b.url, b.branch, b.head_position, coalesce(r.position, 0) as relayed_position
from ledger.binding b left join ledger.relay r on r.binding_id = b.id and r.topic = $1
order by b.id;
