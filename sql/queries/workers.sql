-- name: worker_beat
-- Say that this worker is alive, and ask for the others.
select worker_id, serves, held from ledger.worker_beat_v1($1, $2, $3, $4, $5);

-- name: worker_gone
-- Say that it ends.
select ledger.worker_gone_v1($1);
