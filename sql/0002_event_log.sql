-- migrate:up
--
-- The event log: one chain of events for each destination binding.
--
-- What it promises
--   * One writer. Every claim of a binding raises its epoch; an append says the epoch it was given, and the epoch is
--     compared here, under the row lock, in the same transaction that inserts. A process that lost its lease can
--     therefore append nothing, however late it wakes up (G2).
--   * Order without gaps. A position is handed out under the lock of the binding's row, so positions follow the order
--     of commits and no reader can pass over an event that commits late. No sequence: it would hand out numbers before
--     the commit and keep the gaps of rollbacks.
--   * At least once in, once recorded. An event's id says what it is about. The same ids with the same content get the
--     answer of the first time; a known id with other content is an alarm (LG004). Nothing is ever passed over
--     silently: a unique violation surfaces (G7).
--   * What is in flight is durable. The outcome of one operation and the mark of the next travel in one call, so an
--     apply costs one commit for an operation, and after a crash exactly one operation is in doubt (G4).
--   * Nobody dispatches before quiet_until: after an answer was lost, the request may still be running in the
--     destination, so the mark of the next dispatch is refused until it has settled.
--   * Append-only, provably. Triggers refuse UPDATE, DELETE and TRUNCATE, also in a session that plays a replica, and
--     each event carries the sha256 of its own fields and of the event before it (G8). A superuser can drop a trigger
--     and recompute a chain; heads that were published elsewhere are the answer to that.
--
-- How an append runs (append_v1 -> lock_as_writer -> append_locked)
--   1. lock the binding's row                         the second of two writers waits here
--   2. compare owner and epoch                        LG001 fenced
--   3. known ids: compare, answer as the first time   LG004 other content
--   4. compare the head the caller believes in        LG005, where one is given
--   5. chain, insert, move the head
--   6. set, keep or clear the operation in flight     LG006 before quiet_until
--   7. close an inbox order, where one is given       (0005)
-- One statement and one round trip; an error rolls everything back, so nothing is caught here.
--
-- Layout of the hash (format byte 0x01); vectors are in the tests
--   sha256(0x01 || prev_hash || lp(url) || lp(branch) || lp(position int8) || lp(event_id 16) || lp(kind)
--          || lp(schema_version int4) || lp(epoch int8) || lp(run_id) || lp(operation_id) || lp(ordinal int8)
--          || lp(attempt int4) || lp(recorded_at microseconds int8) || lp(body))
--   lp(x) is the length of x as eight bytes, big-endian, then x; lp(NULL) is eight bytes ff. prev_hash is 32 bytes
--   without a length; before the first event it is 32 zero bytes.
--
-- Bodies are text, not jsonb: jsonb would rewrite numbers and keys, and the bytes are what is hashed. The check that
-- casts to jsonb also refuses what no reader could use later: U+0000, lone surrogates, NaN.
--
-- Own SQLSTATEs have class LG, which no retry helper repeats; DETAIL is JSON. The table of all of them with their
-- meaning is ledger/store/sqlstates.py.
--
-- Every unique key leads with binding_id, so that partitioning by binding stays possible.

set local role ledger_owner;

create table ledger.event_kind (
    kind text collate "C" primary key check (kind ~ '^[a-z]+\.[a-z]+$'),
    by_writer boolean not null,
    by_control boolean not null
);
comment on table ledger.event_kind is
    'Which function may append which kind. A kind with neither flag is appended by a function of its own.';
insert into ledger.event_kind (kind, by_writer, by_control) values
    ('writer.opened', false, false),
    ('plan.committed', false, true),
    ('plan.refused', true, true),
    ('run.started', true, false),
    ('run.resumed', true, false),
    ('operation.applied', true, false),
    ('operation.skipped', true, false),
    ('operation.failed', true, false),
    ('operation.unknown', true, false),
    ('run.stopped', true, false),
    ('run.applied', true, false),
    ('run.failed', true, false),
    ('run.interrupted', true, false);

-- One hot row for each binding. The low fillfactor leaves room for HOT updates: no indexed column ever changes.
create table ledger.binding (
    id bigint generated always as identity primary key,
    url text collate "C" not null check (pg_catalog.octet_length(url) between 1 and 2000),
    branch text collate "C" not null check (pg_catalog.octet_length(branch) between 1 and 255),
    registered_at timestamptz not null default pg_catalog.clock_timestamp(),
    head_position bigint not null default 0 check (head_position >= 0),
    head_hash bytea not null default pg_catalog.decode(pg_catalog.repeat('00', 32), 'hex')
        check (pg_catalog.length(head_hash) = 32),
    writer_epoch bigint not null default 0 check (writer_epoch >= 0),
    lease_owner text collate "C",
    lease_host text,
    lease_taken_at timestamptz,
    lease_expires_at timestamptz,
    in_flight_run text collate "C",
    in_flight_ordinal bigint check (in_flight_ordinal >= 0),
    in_flight_attempt integer check (in_flight_attempt > 0),
    quiet_until timestamptz,
    unique (url, branch),
    constraint binding_lease_is_whole check (
        pg_catalog.num_nulls(lease_owner, lease_host, lease_taken_at, lease_expires_at) in (0, 4)),
    constraint binding_in_flight_is_whole check (
        pg_catalog.num_nulls(in_flight_run, in_flight_ordinal, in_flight_attempt) in (0, 3))
) with (fillfactor = 10);
comment on table ledger.binding is 'One destination (url and branch): head of its chain, lease, operation in flight.';

-- No foreign key to binding: the append has locked that row, and a key would be looked up again for every event.
create table ledger.event (
    binding_id bigint not null,
    position bigint not null check (position > 0),
    event_id uuid not null,
    kind text collate "C" not null check (kind ~ '^[a-z]+\.[a-z]+$'),
    schema_version integer not null check (schema_version > 0),
    run_id text collate "C" check (pg_catalog.octet_length(run_id) between 1 and 128),
    operation_id text collate "C" check (pg_catalog.octet_length(operation_id) between 1 and 128),
    ordinal bigint check (ordinal >= 0),
    attempt integer check (attempt > 0),
    writer_epoch bigint check (writer_epoch > 0),
    recorded_at timestamptz not null,
    body text collate "C" not null,
    prev_hash bytea not null check (pg_catalog.length(prev_hash) = 32),
    hash bytea not null check (pg_catalog.length(hash) = 32),
    primary key (binding_id, position),
    unique (binding_id, event_id),
    constraint event_body_is_an_object check (pg_catalog.jsonb_typeof(body::jsonb) = 'object'),
    constraint event_outcome_is_whole check (
        kind not like 'operation.%' or pg_catalog.num_nulls(run_id, operation_id, ordinal, attempt) = 0),
    constraint event_run_is_named check (kind not like 'run.%' or run_id is not null)
);
comment on table ledger.event is 'What happened, in order, for good. Written by the append functions alone.';

-- One success for an operation of a run, whatever its attempt; one outcome for each attempt.
create unique index event_one_success on ledger.event (binding_id, run_id, operation_id)
    where kind in ('operation.applied', 'operation.skipped');
create unique index event_one_outcome on ledger.event (binding_id, run_id, operation_id, attempt)
    where kind in ('operation.applied', 'operation.skipped', 'operation.failed', 'operation.unknown');
-- Replay of one run; the state of a run without reading its operations; the last write of a run.
create index event_of_run on ledger.event (binding_id, run_id, position);
create index event_run_mark on ledger.event (binding_id, run_id, position)
    where kind in ('plan.committed', 'plan.refused', 'run.started', 'run.resumed', 'run.stopped', 'run.applied',
                   'run.failed', 'run.interrupted');
create index event_applied on ledger.event (binding_id, run_id, position) where kind = 'operation.applied';

-- ---------------------------------------------------------------------------------------------------------------------
-- Triggers that refuse. ENABLE ALWAYS: a plain trigger does not fire with session_replication_role = replica.

create function ledger.refuse_change() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    raise exception using errcode = 'LG011', message = 'this table is append-only',
        detail = json_build_object('table', tg_table_schema || '.' || tg_table_name, 'command', tg_op)::text;
end
$$;

create function ledger.make_append_only(p_table regclass) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    execute format('create trigger refuse_row_change before update or delete on %s'
                   ' for each row execute function ledger.refuse_change()', p_table);
    execute format('create trigger refuse_truncate before truncate on %s'
                   ' for each statement execute function ledger.refuse_change()', p_table);
    execute format('alter table %s enable always trigger refuse_row_change', p_table);
    execute format('alter table %s enable always trigger refuse_truncate', p_table);
end
$$;

select ledger.make_append_only('ledger.event');

-- A binding is never removed or renamed, and neither its head nor its epoch goes back.
create function ledger.refuse_binding_change() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    if tg_op = 'UPDATE' and new.id = old.id and new.url = old.url and new.branch = old.branch
       and new.head_position >= old.head_position and new.writer_epoch >= old.writer_epoch then
        return new;
    end if;
    raise exception using errcode = 'LG011',
        message = 'a binding is never removed or renamed, and its head and epoch never go back',
        detail = json_build_object('table', 'ledger.binding', 'command', tg_op)::text;
end
$$;
create trigger refuse_row_change before update or delete on ledger.binding
    for each row execute function ledger.refuse_binding_change();
create trigger refuse_truncate before truncate on ledger.binding
    for each statement execute function ledger.refuse_change();
alter table ledger.binding enable always trigger refuse_row_change;
alter table ledger.binding enable always trigger refuse_truncate;

-- ---------------------------------------------------------------------------------------------------------------------
-- The chain

create function ledger.lp(p_value bytea) returns bytea
language sql immutable parallel safe
begin atomic
    select coalesce(pg_catalog.int8send(pg_catalog.length(p_value)::bigint) || p_value,
                    '\xffffffffffffffff'::bytea);
end;

create function ledger.event_hash_v1(
    p_prev_hash bytea, p_url text, p_branch text, p_position bigint, p_event_id uuid, p_kind text,
    p_schema_version integer, p_writer_epoch bigint, p_run_id text, p_operation_id text, p_ordinal bigint,
    p_attempt integer, p_recorded_at timestamptz, p_body text
) returns bytea
language sql stable parallel safe
begin atomic
    select pg_catalog.sha256(
        '\x01'::bytea || p_prev_hash
        || ledger.lp(pg_catalog.convert_to(p_url, 'UTF8'))
        || ledger.lp(pg_catalog.convert_to(p_branch, 'UTF8'))
        || ledger.lp(pg_catalog.int8send(p_position))
        || ledger.lp(pg_catalog.uuid_send(p_event_id))
        || ledger.lp(pg_catalog.convert_to(p_kind, 'UTF8'))
        || ledger.lp(pg_catalog.int4send(p_schema_version))
        || ledger.lp(pg_catalog.int8send(p_writer_epoch))
        || ledger.lp(pg_catalog.convert_to(p_run_id, 'UTF8'))
        || ledger.lp(pg_catalog.convert_to(p_operation_id, 'UTF8'))
        || ledger.lp(pg_catalog.int8send(p_ordinal))
        || ledger.lp(pg_catalog.int4send(p_attempt))
        || ledger.lp(pg_catalog.int8send((extract(epoch from p_recorded_at) * 1000000)::bigint))
        || ledger.lp(pg_catalog.convert_to(p_body, 'UTF8')));
end;
