-- name: claim
-- Take the lease of a binding whose current epoch is $6.
select epoch, in_flight_run, in_flight_ordinal, in_flight_attempt, quiet_for
from ledger.claim_v1($1, $2, $3, $4, $5, $6, $7, $8, $9);

-- name: renew
-- Prolong one's own lease.
select ledger.renew_v1($1, $2, $3, $4);

-- name: release
-- Give one's own lease back.
select ledger.release_v1($1, $2, $3);

-- name: append
-- Append events under the fence, move the mark, close orders.
select first_position, last_position, head_hash
from ledger.append_v1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19);

-- name: applied_and_next
-- Record that the operation in flight was applied, and mark the next one, under the fence.
select first_position, last_position, head_hash
from ledger.applied_and_next_v1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13);

-- name: close_order
-- Close one inbox order under the fence.
select ledger.close_order_v1($1, $2, $3, $4, $5);

-- name: claimable
-- What a claim has to know before it asks: the binding's names, its epoch and who we are to the server.
select url, branch, writer_epoch, session_user::text as role from ledger.binding where id = $1;
