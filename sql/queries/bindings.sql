-- name: register_binding
-- The id of a binding, made at its first use.
select ledger.register_binding_v1($1, $2);

-- name: bindings
-- Every binding, or the one of this url ($1) and branch ($2), or of this id ($3). Seconds are counted by this server's clock.
select id, url, branch, head_position, head_hash, writer_epoch, lease_owner, lease_host, lease_taken_at,
       extract(epoch from lease_expires_at - clock_timestamp())::float8 as lease_expires_in,
       in_flight_run, in_flight_ordinal, in_flight_attempt,
       greatest(coalesce(extract(epoch from quiet_until - clock_timestamp()), 0), 0)::float8 as quiet_for
from ledger.binding
where ($1::text is null or (url = $1 and branch = $2)) and ($3::bigint is null or id = $3)
order by id;

-- name: events
-- One page of a binding's events after position $2, up to $3.
select b.url, b.branch, e.position, e.event_id, e.kind, e.schema_version, e.run_id, e.operation_id, e.ordinal,
       e.attempt, e.writer_epoch, e.recorded_at, e.body, e.prev_hash, e.hash
from ledger.event e join ledger.binding b on b.id = e.binding_id
where e.binding_id = $1 and e.position > $2 and ($3::bigint is null or e.position <= $3)
order by e.position limit $4;

-- name: hashed_events
-- The same page as the bytes that each event's hash is taken over, with that hash: two values instead of fifteen. What
-- they are is spelled out here, apart from the function that appends; whoever reads them hashes them and reads the
-- fields in them, so that this text is trusted with nothing. Times are sent as microseconds since 2000; 262,968 hours
-- before that is 1970. One beyond every calendar has the largest number.
select '\x01'::bytea || e.prev_hash
    || int8send(octet_length(b.url)) || textsend(b.url) || int8send(octet_length(b.branch)) || textsend(b.branch)
    || '\x0000000000000008'::bytea || int8send(e.position)
    || '\x0000000000000010'::bytea || uuid_send(e.event_id)
    || int8send(octet_length(e.kind)) || textsend(e.kind)
    || '\x0000000000000004'::bytea || int4send(e.schema_version)
    || coalesce('\x0000000000000008'::bytea || int8send(e.writer_epoch), '\xffffffffffffffff')
    || coalesce(int8send(octet_length(e.run_id)) || textsend(e.run_id), '\xffffffffffffffff')
    || coalesce(int8send(octet_length(e.operation_id)) || textsend(e.operation_id), '\xffffffffffffffff')
    || coalesce('\x0000000000000008'::bytea || int8send(e.ordinal), '\xffffffffffffffff')
    || coalesce('\x0000000000000004'::bytea || int4send(e.attempt), '\xffffffffffffffff')
    || '\x0000000000000008'::bytea
    || case when e.recorded_at < '9999-12-01 00:00:00+00' then timestamptz_send(e.recorded_at + interval '262968 hours')
            else '\x7fffffffffffffff' end
    || int8send(octet_length(e.body)) || textsend(e.body),
    e.hash
from ledger.event e join ledger.binding b on b.id = e.binding_id
where e.binding_id = $1 and e.position > $2 and ($3::bigint is null or e.position <= $3)
order by e.position limit $4;

-- name: events_of_run
-- The same for the events of one run. The range instead of "=" keeps the order one of the run's own index.
select b.url, b.branch, e.position, e.event_id, e.kind, e.schema_version, e.run_id, e.operation_id, e.ordinal,
       e.attempt, e.writer_epoch, e.recorded_at, e.body, e.prev_hash, e.hash
from ledger.event e join ledger.binding b on b.id = e.binding_id
where e.binding_id = $1 and e.run_id between $5 and $5 and e.position > $2 and ($3::bigint is null or e.position <= $3)
order by e.run_id, e.position limit $4;
