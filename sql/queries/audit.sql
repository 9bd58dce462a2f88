-- name: unguarded_tables
-- Tables whose triggers do not refuse changes in every session, as they must (ENABLE ALWAYS); none is right.
select t.name
from unnest(array['event', 'binding', 'inbox', 'intake_refusal', 'plan', 'plan_seal', 'plan_operation',
                  'plan_coverage', 'artifact', 'detail', 'relay', 'api_token']) as t (name)
where (select count(*) from pg_trigger g
       where g.tgrelid = to_regclass('ledger.' || t.name)
         and g.tgname in ('refuse_row_change', 'refuse_truncate') and g.tgenabled = 'A') <> 2
order by t.name;

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
