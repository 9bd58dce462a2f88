-- migrate:up
--
-- The inbox: orders that wait for the writer of a binding, and the functions that put them there. What waits is durable
-- before anybody is told so, and an order delivered twice is one order (G7).
--
-- A commit is known by its commit id. A repeat is answered with the first row, whatever its time, actor, reason and
-- trace say; while its run is open, everything else must be the same (LG012, LG014). A resume or stop is known by the
-- random id that its sender chose.

set local role ledger_owner;

create table ledger.inbox (
    binding_id bigint not null references ledger.binding (id),
    inbox_id bigint not null check (inbox_id > 0),
    order_id uuid not null,
    kind text collate "C" not null check (kind in ('commit', 'resume', 'stop')),
    run_id text collate "C" not null check (pg_catalog.octet_length(run_id) between 1 and 128),
    state text collate "C" not null default 'open' check (state in ('open', 'done', 'refused')),
    body text collate "C" not null check (pg_catalog.jsonb_typeof(body::jsonb) = 'object'),
    position bigint not null check (position >= 0),
    received_at timestamptz not null default pg_catalog.clock_timestamp(),
    received_by text not null default session_user,
    closed_at timestamptz,
    commit_id uuid,
    plan_checksum bytea check (pg_catalog.length(plan_checksum) = 32),
    artifact_digest bytea check (pg_catalog.length(artifact_digest) = 32),
    source text collate "C" check (pg_catalog.octet_length(source) between 1 and 128),
    primary key (binding_id, inbox_id),
    unique (binding_id, order_id),
    unique (binding_id, commit_id),
    constraint inbox_commit_is_whole check (
        pg_catalog.num_nulls(commit_id, plan_checksum, artifact_digest, source)
            = case kind when 'commit' then 0 else 4 end),
    constraint inbox_closed_has_a_time check ((state = 'open') = (closed_at is null))
);
comment on table ledger.inbox is
    'Orders for the writer of a binding. position: the head when the order came, for a commit its plan.committed.';
create unique index inbox_one_commit_of_a_run on ledger.inbox (binding_id, run_id) where kind = 'commit';
create unique index inbox_one_open_order_of_a_kind on ledger.inbox (binding_id, run_id, kind) where state = 'open';
create index inbox_open on ledger.inbox (binding_id, inbox_id) where state = 'open';
create index inbox_of_source on ledger.inbox (binding_id, source) where kind = 'commit';
create index inbox_of_plan on ledger.inbox (plan_checksum) where kind = 'commit';

-- What was received and could not become an order: where it came from and a digest of its bytes, never the bytes.
create table ledger.intake_refusal (
    topic text collate "C" not null,
    partition integer not null check (partition >= 0),
    "offset" bigint not null check ("offset" >= 0),
    digest bytea not null check (pg_catalog.length(digest) = 32),
    reason text not null,
    recorded_at timestamptz not null default pg_catalog.clock_timestamp(),
    primary key (topic, partition, "offset")
);
select ledger.make_append_only('ledger.intake_refusal');

-- An order may only change its state, and only once; it is never removed.
create function ledger.refuse_order_change() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    if tg_op = 'UPDATE' and old.state = 'open' then
        old.state := new.state;
        old.closed_at := new.closed_at;
        if old is not distinct from new then
            return new;
        end if;
    end if;
    raise exception using errcode = 'LG011', message = 'an order only ever changes its state, once',
        detail = json_build_object('table', 'ledger.inbox', 'command', tg_op)::text;
end
$$;
create trigger refuse_row_change before update or delete on ledger.inbox
    for each row execute function ledger.refuse_order_change();
create trigger refuse_truncate before truncate on ledger.inbox
    for each statement execute function ledger.refuse_change();
alter table ledger.inbox enable always trigger refuse_row_change;
alter table ledger.inbox enable always trigger refuse_truncate;

-- The last event that started, resumed or ended a run; NULL where there is none. A range instead of "=" makes the order
-- one that only the index of these events has: another would be read from the end of the log back to this run.
create function ledger.run_mark(p_binding_id bigint, p_run_id text) returns text
language sql stable
begin atomic
    select e.kind from ledger.event e
    where e.binding_id = p_binding_id and e.run_id between p_run_id and p_run_id
      and e.kind in ('plan.committed', 'plan.refused', 'run.started', 'run.resumed', 'run.stopped', 'run.applied',
                     'run.failed', 'run.interrupted')
    order by e.run_id desc, e.position desc limit 1;
end;

-- Whether a run is being carried out: it has not ended, or an order to carry it out is still open. The second is true
-- of a run that its writer's death interrupted: it has an end, and the next writer goes on with it by itself.
create function ledger.run_goes_on(p_binding_id bigint, p_run_id text) returns boolean
language sql stable
begin atomic
    select coalesce(ledger.run_mark(p_binding_id, p_run_id) in ('plan.committed', 'run.started', 'run.resumed'), false)
        or exists (select from ledger.inbox i
                   where i.binding_id = p_binding_id and i.run_id = p_run_id and i.kind in ('commit', 'resume')
                     and i.state = 'open');
end;

create function ledger.insert_order(
    p_binding ledger.binding, p_order_id uuid, p_kind text, p_run_id text, p_body text, p_position bigint,
    p_commit_id uuid, p_plan_checksum bytea, p_artifact_digest bytea, p_source text) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    insert into ledger.inbox (binding_id, inbox_id, order_id, kind, run_id, body, position, commit_id, plan_checksum,
                              artifact_digest, source)
    select p_binding.id, coalesce(max(i.inbox_id), 0) + 1, p_order_id, p_kind, p_run_id, p_body, p_position,
           p_commit_id, p_plan_checksum, p_artifact_digest, p_source
    from ledger.inbox i where i.binding_id = p_binding.id;
end
$$;

-- A commit that came before: refuse what would silently be lost if the first row were the answer.
create function ledger.check_repeated_commit(p_first ledger.inbox, p_commit jsonb, p_artifact_digest bytea)
returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_is_open boolean := ledger.run_goes_on(p_first.binding_id, p_first.run_id);
    v_free text[] := array['committed_at', 'actor', 'reason', 'traceparent', 'policy'];
    v_fields text[];
begin
    if v_is_open and p_first.body::jsonb -> 'policy' <> p_commit -> 'policy' then
        raise exception using errcode = 'LG014', message = 'an open run was committed with another policy',
            detail = json_build_object('run_id', p_first.run_id, 'policy', p_first.body::jsonb -> 'policy',
                                       'asked', p_commit -> 'policy')::text;
    end if;
    select array_agg(key order by key) into v_fields
    from jsonb_each(p_commit - v_free) c
    where p_first.body::jsonb -> c.key is distinct from c.value and (v_is_open or c.key = 'artifact_digest');
    if v_fields is not null or p_first.artifact_digest <> p_artifact_digest then
        raise exception using errcode = 'LG012', message = 'this commit came before with other content',
            detail = json_build_object('run_id', p_first.run_id, 'fields', v_fields)::text;
    end if;
end
$$;

-- Inbox row and plan.committed in one transaction. p_body is the commit, p_event_body the event that carries it.
create function ledger.submit_commit_v1(
    p_binding_id bigint, p_order_id uuid, p_body text, p_event_id uuid, p_schema_version integer, p_event_body text,
    out order_id uuid, out inbox_id bigint, out first boolean, out "position" bigint)
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_binding ledger.binding := ledger.lock_binding(p_binding_id);
    v_commit jsonb := p_body::jsonb;
    v_run_id text := p_body::jsonb ->> 'run_id';
    v_digest bytea := decode(p_body::jsonb ->> 'artifact_digest', 'hex');
    v_first ledger.inbox;
begin
    if p_event_body::jsonb -> 'commit' is distinct from v_commit then
        raise exception using errcode = 'LG021', message = 'the commit and its event do not belong together',
            detail = json_build_object('run_id', v_run_id)::text;
    end if;
    select i.* into v_first from ledger.inbox i
    where i.binding_id = p_binding_id and i.kind = 'commit' and i.run_id = v_run_id;
    first := not found;
    if first then
        select a.first_position into "position"
        from ledger.append_locked(v_binding, null, array[p_event_id], array['plan.committed'],
                                  array[p_schema_version], array[v_run_id], array[null::text], array[null::bigint],
                                  array[null::integer], array[p_event_body], null) a;
        perform ledger.insert_order(v_binding, p_order_id, 'commit', v_run_id, p_body, "position",
                                    (v_commit ->> 'commit_id')::uuid, decode(v_commit ->> 'plan_checksum', 'hex'),
                                    v_digest, v_commit ->> 'source');
    elsif v_first.plan_checksum <> decode(v_commit ->> 'plan_checksum', 'hex') then
        raise exception using errcode = 'LG013', message = 'this run was committed with another plan',
            detail = json_build_object('run_id', v_run_id, 'checksum', encode(v_first.plan_checksum, 'hex'),
                                       'asked', v_commit ->> 'plan_checksum')::text;
    else
        perform ledger.check_repeated_commit(v_first, v_commit, v_digest);
    end if;
    select i.order_id, i.inbox_id, i.position into strict order_id, inbox_id, "position" from ledger.inbox i
    where i.binding_id = p_binding_id and i.kind = 'commit' and i.run_id = v_run_id;
end
$$;

-- resume goes for a run that ended, is not applied and that nobody goes on with; stop for one that somebody does.
create function ledger.check_run_takes(p_binding_id bigint, p_kind text, p_run_id text) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_mark text := ledger.run_mark(p_binding_id, p_run_id);
    v_is_open boolean := ledger.run_goes_on(p_binding_id, p_run_id);
begin
    if not exists (select from ledger.inbox i
                   where i.binding_id = p_binding_id and i.kind = 'commit' and i.run_id = p_run_id) then
        raise exception using errcode = 'LG015', message = 'no such run was committed on this binding',
            detail = json_build_object('run_id', p_run_id)::text;
    end if;
    if v_mark = 'run.applied' or (p_kind = 'stop' and not v_is_open) then
        raise exception using errcode = 'LG016', message = 'this run has ended',
            detail = json_build_object('run_id', p_run_id, 'state', v_mark, 'order', p_kind)::text;
    end if;
    if p_kind = 'resume' and v_is_open then
        raise exception using errcode = 'LG017', message = 'this run is open; its writer goes on by itself',
            detail = json_build_object('run_id', p_run_id, 'state', v_mark)::text;
    end if;
end
$$;

create function ledger.submit_order_v1(
    p_binding_id bigint, p_order_id uuid, p_kind text, p_run_id text, p_body text,
    out order_id uuid, out inbox_id bigint, out first boolean, out "position" bigint)
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_binding ledger.binding := ledger.lock_binding(p_binding_id);
    v_known ledger.inbox;
begin
    if p_kind not in ('resume', 'stop') or octet_length(p_body) > 262144 then
        raise exception using errcode = 'LG021', message = 'an order is a resume or a stop of at most 256 KiB',
            detail = json_build_object('kind', p_kind, 'bytes', octet_length(p_body))::text;
    end if;
    select i.* into v_known from ledger.inbox i
    where i.binding_id = p_binding_id
      and (i.order_id = p_order_id or (i.run_id = p_run_id and i.kind = p_kind and i.state = 'open'))
    order by (i.order_id = p_order_id) desc limit 1;
    first := not found;
    if first then
        perform ledger.check_run_takes(p_binding_id, p_kind, p_run_id);
        -- A stop that came too late for the run's last end must not end what is ordered now.
        update ledger.inbox i set state = 'done', closed_at = clock_timestamp()
        where p_kind = 'resume' and i.binding_id = p_binding_id and i.run_id = p_run_id and i.kind = 'stop'
          and i.state = 'open';
        perform ledger.insert_order(v_binding, p_order_id, p_kind, p_run_id, p_body, v_binding.head_position,
                                    null, null, null, null);
        select i.* into strict v_known from ledger.inbox i
        where i.binding_id = p_binding_id and i.order_id = p_order_id;
    elsif (v_known.kind, v_known.run_id) is distinct from (p_kind, p_run_id)
       or v_known.body::jsonb -> 'policy' is distinct from p_body::jsonb -> 'policy' then
        raise exception using errcode = 'LG018', message = 'another order stands in its place',
            detail = json_build_object('order_id', v_known.order_id, 'kind', v_known.kind, 'run_id', v_known.run_id,
                                       'state', v_known.state)::text;
    end if;
    order_id := v_known.order_id;
    inbox_id := v_known.inbox_id;
    "position" := v_known.position;
end
$$;

-- Only the writer closes an order, but for a stop that a later resume overtakes. Again with the same state is harmless.
create function ledger.close_order_locked(p_binding_id bigint, p_inbox_id bigint, p_state text) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_state text;
begin
    select i.state into v_state from ledger.inbox i
    where i.binding_id = p_binding_id and i.inbox_id = p_inbox_id for update;
    if v_state = p_state and p_state <> 'open' then
        return;
    end if;
    if v_state is distinct from 'open' or p_state not in ('done', 'refused') then
        raise exception using errcode = 'LG018', message = 'this order cannot be closed like this',
            detail = json_build_object('inbox_id', p_inbox_id, 'state', v_state, 'asked', p_state)::text;
    end if;
    update ledger.inbox i set state = p_state, closed_at = clock_timestamp()
    where i.binding_id = p_binding_id and i.inbox_id = p_inbox_id;
end
$$;

create function ledger.close_order_v1(p_binding_id bigint, p_owner text, p_epoch bigint, p_inbox_id bigint,
                                      p_state text) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    perform ledger.lock_as_writer(p_binding_id, p_owner, p_epoch);
    perform ledger.close_order_locked(p_binding_id, p_inbox_id, p_state);
end
$$;

grant execute on function ledger.submit_commit_v1, ledger.submit_order_v1, ledger.close_order_v1 to ledger_writer;
