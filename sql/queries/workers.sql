-- name: worker_beat
-- Say that this worker is alive, and ask for the others.
select worker_id, serves, held from ledger.worker_beat_v1($1, $2, $3, $4, $5);

-- name: worker_gone
-- Say that it ends.
select ledger.worker_gone_v1($1);

-- name: other_sessions
-- Who else is connected to this database, by the names that programs give themselves, without those called $1. What
-- kind of process it is, a role without rights is not told; those of the server itself have no name.
select application_name as name, count(*) as sessions
from pg_stat_activity
where datname = current_database() and application_name not in ('', $1)
group by 1 order by 1;
