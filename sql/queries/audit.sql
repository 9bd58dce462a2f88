-- name: unguarded_tables
-- Tables whose triggers do not refuse changes in every session, as they must (ENABLE ALWAYS); none is right. A trigger
-- is the function that it calls and what it is called for: before update and delete of each row (27), before truncate (34),
-- without a condition and without a list of columns. And every table of the schema of which any trigger is off: whoever
-- switches all of them off to edit a row has those of the foreign keys off as well, and may forget to switch them on.
select t.name
from (values
    ('event', 'refuse_change'), ('binding', 'refuse_binding_change'), ('inbox', 'refuse_order_change'),
    ('intake_refusal', 'refuse_change'), ('plan', 'refuse_change'), ('plan_seal', 'refuse_change'),
    ('plan_operation', 'refuse_change'), ('plan_coverage', 'refuse_change'), ('artifact', 'refuse_change'),
    ('detail', 'refuse_change'), ('relay', 'refuse_relay_change'), ('api_token', 'refuse_token_change')
) as t (name, guard)
where (select count(*) from pg_trigger g join pg_proc f on f.oid = g.tgfoid
       where g.tgrelid = to_regclass('ledger.' || t.name) and g.tgenabled = 'A'
         and g.tgqual is null and cardinality(g.tgattr::int2[]) = 0 and f.pronamespace = to_regnamespace('ledger')
         and ((g.tgname = 'refuse_row_change' and g.tgtype = 27 and f.proname = t.guard)
              or (g.tgname = 'refuse_truncate' and g.tgtype = 34 and f.proname = 'refuse_change'))) <> 2
union
select t.relname from pg_trigger g join pg_class t on t.oid = g.tgrelid
where t.relnamespace = to_regnamespace('ledger') and g.tgenabled not in ('O', 'A')
union
-- What changes a row on its way in, or hides it: a trigger or a rule of somebody else's, a policy for rows, a table
-- that inherits.
select t.relname from pg_trigger g join pg_class t on t.oid = g.tgrelid
where t.relnamespace = to_regnamespace('ledger') and not g.tgisinternal
  and g.tgname not in ('refuse_row_change', 'refuse_truncate')
union
select t.relname from pg_class t
where t.relnamespace = to_regnamespace('ledger') and t.relkind in ('r', 'p', 'v', 'm', 'f')
  and (t.relkind <> 'r' or t.relrowsecurity or t.relforcerowsecurity
       or exists (select from pg_rewrite w where w.ev_class = t.oid)
       or exists (select from pg_policy p where p.polrelid = t.oid)
       or exists (select from pg_inherits h where t.oid in (h.inhrelid, h.inhparent)))
union
-- A foreign key that is gone, or that was never checked.
select k.name
from (values
    ('artifact', 'FOREIGN KEY (binding_id) REFERENCES ledger.binding(id)'),
    ('artifact', 'FOREIGN KEY (plan_checksum) REFERENCES ledger.plan(checksum)'),
    ('inbox', 'FOREIGN KEY (binding_id) REFERENCES ledger.binding(id)'),
    ('plan', 'FOREIGN KEY (checksum) REFERENCES ledger.plan_seal(checksum) DEFERRABLE INITIALLY DEFERRED'),
    ('plan_seal', 'FOREIGN KEY (checksum) REFERENCES ledger.plan(checksum)'),
    ('projection_cursor', 'FOREIGN KEY (binding_id) REFERENCES ledger.binding(id)'),
    ('relay', 'FOREIGN KEY (binding_id) REFERENCES ledger.binding(id)')
) as k (name, definition)
where not exists (
    select from pg_constraint c
    where c.conrelid = to_regclass('ledger.' || k.name) and c.contype = 'f' and c.convalidated
      and pg_get_constraintdef(c.oid) = k.definition)
order by 1;

-- name: rows_of_no_binding
-- Tables with rows of a binding that is not registered: no verification of a binding reads them. One look-up for each id.
with recursive
    event_of (id) as (
        (select binding_id from ledger.event order by binding_id limit 1)
        union all
        select (select e.binding_id from ledger.event e where e.binding_id > o.id order by e.binding_id limit 1)
        from event_of o where o.id is not null),
    order_of (id) as (
        (select binding_id from ledger.inbox order by binding_id limit 1)
        union all
        select (select i.binding_id from ledger.inbox i where i.binding_id > o.id order by i.binding_id limit 1)
        from order_of o where o.id is not null)
select 'event' as name, id from event_of where id is not null and id not in (select b.id from ledger.binding b)
union all
select 'inbox', id from order_of where id is not null and id not in (select b.id from ledger.binding b)
order by name, id;

-- name: stored_functions
-- Every function of the schema: its body, its language, whose rights it has, and its own settings.
select f.proname as name, f.prosrc as body, l.lanname as language, f.prosecdef as security_definer,
       coalesce(f.proconfig, '{}') as settings
from pg_proc f join pg_language l on l.oid = f.prolang
where f.pronamespace = to_regnamespace('ledger')
order by f.proname, f.oid;

-- name: missing_keys
-- Keys that no index keeps, of all that this schema has: where one is gone, a second row can stand in the place of a row,
-- and a writer may read that one. An index that only has the name of the key is none.
select k.name, k.columns
from (values
    ('event', '(binding_id, "position")'),
    ('event', '(binding_id, event_id)'),
    ('event', '(binding_id, run_id) WHERE (kind = ''plan.committed''::text)'),
    ('event', '(binding_id, writer_epoch) WHERE (kind = ''writer.opened''::text)'),
    ('event', '(binding_id, run_id, operation_id, attempt) WHERE (kind = ANY ('
         || 'ARRAY[''operation.applied''::text, ''operation.skipped''::text, ''operation.failed''::text, ''operation.unknown''::text]))'),
    ('event', '(binding_id, run_id, operation_id) WHERE (kind = ANY ('
         || 'ARRAY[''operation.applied''::text, ''operation.skipped''::text]))'),
    ('event_kind', '(kind)'),
    ('binding', '(id)'),
    ('binding', '(url, branch)'),
    ('inbox', '(binding_id, inbox_id)'),
    ('inbox', '(binding_id, commit_id)'),
    ('inbox', '(binding_id, order_id)'),
    ('inbox', '(binding_id, run_id) WHERE (kind = ''commit''::text)'),
    ('inbox', '(binding_id, run_id, kind) WHERE (state = ''open''::text)'),
    ('intake_refusal', '(topic, partition, "offset")'),
    ('plan', '(checksum)'),
    ('plan_seal', '(checksum)'),
    ('plan_operation', '(plan_checksum, ordinal)'),
    ('plan_coverage', '(plan_checksum, ordinal)'),
    ('artifact', '(binding_id, run_id)'),
    ('detail', '(sha256)'),
    ('relay', '(binding_id, topic)'),
    ('projection_cursor', '(projection, version, slot, binding_id)'),
    ('projection_document', '(projection, version, slot, binding_id, subject, item)'),
    ('api_token', '(token_id)'),
    ('api_token', '(digest)'),
    ('api_token', '(name) WHERE (revoked_at IS NULL)'),
    ('worker', '(worker_id)'),
    ('schema_migration', '(version)')
) as k (name, columns)
where not exists (
    select from pg_index i join pg_class t on t.oid = i.indrelid join pg_namespace n on n.oid = t.relnamespace
    where n.nspname = 'ledger' and t.relname = k.name and i.indisunique and i.indisvalid and i.indisready
      and split_part(pg_get_indexdef(i.indexrelid), ' USING btree ', 2) = k.columns)
order by k.name, k.columns;

-- name: count_events
-- How many rows stand at some positions, those in the place of another one as well.
select count(*) from ledger.event where binding_id = $1 and position > $2 and position <= $3;

-- name: count_misplaced_events
-- How many stand in front of the first position, or at none, which no append has made. Two conditions, not one with
-- "or": each is a look-up in the key.
select (select count(*) from ledger.event where binding_id = $1 and position <= 0)
     + (select count(*) from ledger.event where binding_id = $1 and position is null);

-- name: count_live_documents
-- How many live documents a projection has.
select count(*) from ledger.projection_document
where projection = $1 and version = $2 and slot = 'live' and binding_id = $3;

-- name: plan_rows
-- How many rows a plan's lines and its coverage have, and how many stand at another ordinal than their turn. Pages cannot
-- tell: a line that only moved is read in the same order, and where the key is gone a page may end between two rows of
-- one place.
select o.stored as operations, o.misplaced as operations_misplaced,
       c.stored as coverage, c.misplaced as coverage_misplaced
from (select count(*) as stored, count(*) filter (where r.ordinal is distinct from r.turn) as misplaced
      from (select ordinal, row_number() over (order by ordinal) - 1 as turn
            from ledger.plan_operation where plan_checksum = $1) r) o
cross join (select count(*) as stored, count(*) filter (where r.ordinal is distinct from r.turn) as misplaced
            from (select ordinal, row_number() over (order by ordinal) - 1 as turn
                  from ledger.plan_coverage where plan_checksum = $1) r) c;

-- name: audited_orders
-- One page of a binding's orders behind number $2, each with what the log says of its run between this order and the next
-- one to resume it: in one snapshot, because a writer closes an order in the transaction that ends the run. The body is
-- given where something is judged by it; the window is over all orders of the binding, whose bodies are no part of it.
select i.inbox_id, i.turn, i.kind, i.run_id, i.state, i.position, c.position as committed_at,
       case when i.kind = 'resume' or b.kind = 'operation.unknown' then
           (select o.body from ledger.inbox o where o.binding_id = $1 and o.inbox_id = i.inbox_id limit 1) end as body,
       f.kind as began, case i.kind when 'resume' then f.body end as began_with, l.kind as ended,
       case b.kind when 'operation.unknown' then b.body end as ended_with
from (select o.inbox_id, o.kind, o.run_id, o.state, o.position,
             row_number() over (order by o.inbox_id) as turn,
             min(o.position) filter (where o.kind = 'resume') over (
                 partition by o.run_id order by o.inbox_id rows between 1 following and unbounded following) as until
      from ledger.inbox o where o.binding_id = $1) i
left join lateral (
    select e.position from ledger.event e
    where e.binding_id = $1 and e.run_id = i.run_id and e.kind = 'plan.committed' limit 1) c on true
left join lateral (
    select e.kind, e.body from ledger.event e
    where e.binding_id = $1 and e.run_id between i.run_id and i.run_id and e.position > i.position
      and (i.until is null or e.position <= i.until)
      and e.kind in ('plan.refused', 'run.started', 'run.resumed', 'run.stopped', 'run.applied', 'run.failed',
                     'run.interrupted')
    order by e.run_id, e.position limit 1) f on true
left join lateral (
    select e.kind, e.position from ledger.event e
    where e.binding_id = $1 and e.run_id between i.run_id and i.run_id and e.position > i.position
      and (i.until is null or e.position <= i.until)
      and e.kind in ('plan.refused', 'run.stopped', 'run.applied', 'run.failed', 'run.interrupted')
    order by e.run_id desc, e.position desc limit 1) l on true
left join lateral (
    select e.kind, e.body from ledger.event e
    where e.binding_id = $1 and e.position = l.position - 1 limit 1) b on true
where i.inbox_id > $2 order by i.inbox_id limit $3;

-- name: unordered_marks
-- Commits that no order of the inbox brought, and what began, or was refused, behind an end of its run without an order
-- to resume it since that end: in an untouched ledger only what a writer carried on by itself. Nearly never a row.
select e.position, e.kind, e.run_id, e.body
from ledger.event e
left join lateral (
    select p.position from ledger.event p
    where p.binding_id = $1 and p.run_id between e.run_id and e.run_id and p.position < e.position
      and p.kind in ('plan.refused', 'run.stopped', 'run.applied', 'run.failed', 'run.interrupted')
    order by p.run_id desc, p.position desc limit 1) ended on true
where e.binding_id = $1
  and e.kind in ('plan.committed', 'plan.refused', 'run.started', 'run.resumed', 'run.stopped', 'run.applied',
                 'run.failed', 'run.interrupted')
  and case e.kind
      when 'plan.committed' then not exists (
          select from ledger.inbox i where i.binding_id = $1 and i.run_id = e.run_id and i.kind = 'commit')
      when 'run.applied' then false when 'run.stopped' then false when 'run.failed' then false
      when 'run.interrupted' then false
      else ended.position is not null and not exists (
          select from ledger.inbox i where i.binding_id = $1 and i.run_id = e.run_id and i.kind = 'resume'
            and i.position >= ended.position and i.position < e.position)
      end
order by e.position;

-- name: recorded_at
-- When one event was recorded.
select recorded_at from ledger.event where binding_id = $1 and position = $2;

-- name: outcomes_page
-- One page of events after position $2, up to $3, with what a state is folded from. All kinds, so that a page is full.
select position, kind, run_id, ordinal, recorded_at, body from ledger.event
where binding_id = $1 and position > $2 and position <= $3 order by position limit $4;

-- name: outcome_heads
-- The same page with what the state of an object needs of an event as one value, and none for an event that says nothing
-- about an object: a letter for the kind, microseconds since 1970, the run, the body of one that was applied; the last
-- two with their lengths.
select position, run_id, ordinal,
    case when kind in ('operation.applied', 'operation.unknown', 'operation.skipped') and ordinal is not null then
        case kind when 'operation.applied' then '\x61'::bytea when 'operation.unknown' then '\x75' else '\x64' end
        || case when recorded_at < '9999-12-01 00:00:00+00' then timestamptz_send(recorded_at + interval '262968 hours')
                else '\x7fffffffffffffff' end
        || int4send(octet_length(run_id)) || textsend(run_id)
        || case kind when 'operation.applied' then int4send(octet_length(body)) || textsend(body) else '\x00000000' end
    end
from ledger.event
where binding_id = $1 and position > $2 and position <= $3 order by position limit $4;

-- name: live_documents_page
-- One page of the live documents of a projection: from the first one on, or behind the key ($4, $5).
select subject, item, document from ledger.projection_document
where projection = $1 and version = $2 and slot = 'live' and binding_id = $3
  and ($4::text is null or (subject, item) > ($4, $5::text))
order by subject, item limit $6;

-- name: hashed_documents_page
-- The same as the bytes that a document's hash is taken over: subject, item and text, each with its length before it.
select int8send(octet_length(subject)) || textsend(subject) || int8send(octet_length(item)) || textsend(item)
    || int8send(octet_length(document)) || textsend(document)
from ledger.projection_document
where projection = $1 and version = $2 and slot = 'live' and binding_id = $3
  and ($4::text is null or (subject, item) > ($4, $5::text))
order by subject, item limit $6;
