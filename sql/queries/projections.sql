-- name: ensure_projection_cursor
-- A cursor before the first event, unless there is one. It says nothing yet, so whose insert came first does not matter.
insert into ledger.projection_cursor (projection, version, slot, binding_id, position, hash)
values ($1, $2, $3, $4, 0, decode(repeat('00', 32), 'hex'))
on conflict do nothing;

-- name: projection_cursor
select position, hash from ledger.projection_cursor
where projection = $1 and version = $2 and slot = $3 and binding_id = $4;

-- name: lock_projection_cursor
select position, hash from ledger.projection_cursor
where projection = $1 and version = $2 and slot = $3 and binding_id = $4
for update;

-- name: move_projection_cursor
-- Compare and set: no row where somebody else moved it.
update ledger.projection_cursor set position = $5, hash = $6
where projection = $1 and version = $2 and slot = $3 and binding_id = $4 and position = $7 and hash = $8
returning position;

-- name: projection_documents
-- Lateral, with offset 0: one look-up in the key for each wanted document. A join may be planned as a walk over all
-- documents for each wanted one, as long as the new table has no statistics.
select d.subject, d.item, d.document
from unnest($5::text[], $6::text[]) as n (subject, item)
cross join lateral (
    select p.subject, p.item, p.document from ledger.projection_document p
    where p.projection = $1 and p.version = $2 and p.slot = $3 and p.binding_id = $4
      and p.subject = n.subject and p.item = n.item
    offset 0
) as d;

-- name: put_projection_documents
insert into ledger.projection_document (projection, version, slot, binding_id, subject, item, document)
select $1, $2, $3, $4, n.subject, n.item, n.document
from unnest($5::text[], $6::text[], $7::text[]) as n (subject, item, document)
on conflict (projection, version, slot, binding_id, subject, item) do update set document = excluded.document;

-- name: all_projection_documents
select subject, item, document from ledger.projection_document
where projection = $1 and version = $2 and slot = $3 and binding_id = $4
order by subject, item;

-- name: drop_projection_documents
delete from ledger.projection_document where projection = $1 and version = $2 and slot = $3 and binding_id = $4;

-- name: drop_projection_cursor
delete from ledger.projection_cursor where projection = $1 and version = $2 and slot = $3 and binding_id = $4;

-- name: promote_projection_documents
update ledger.projection_document set slot = 'live'
where projection = $1 and version = $2 and slot = 'rebuild' and binding_id = $3;

-- name: promote_projection_cursor
update ledger.projection_cursor set slot = 'live'
where projection = $1 and version = $2 and slot = 'rebuild' and binding_id = $3;

-- name: try_lock_rebuild
select pg_try_advisory_xact_lock(hashtextextended('ledger.projection_rebuild', 0));

-- name: documents_of_subject
-- A run and its operations.
select item, document from ledger.projection_document
where projection = $1 and version = $2 and slot = 'live' and binding_id = $3 and subject = $4
order by item;

-- name: documents_of_bindings
-- The one document of each of these bindings, of a projection that has one.
select binding_id, document from ledger.projection_document
where projection = $1 and version = $2 and slot = 'live' and binding_id = any($3::bigint[]) and subject = '';

-- name: documents_without_item
-- The runs alone.
select subject, document from ledger.projection_document
where projection = $1 and version = $2 and slot = 'live' and binding_id = $3 and item = ''
order by subject;

-- name: outcome_counts
-- For each run, how many operations have which outcome over all their attempts: a success decides, else an unknown one.
select subject,
       count(*) filter (where outcomes @> '["applied"]') as applied,
       count(*) filter (where outcomes @> '["skipped"]') as skipped,
       count(*) filter (where outcomes @> '["unknown"]' and not outcomes @> '["applied"]'
                              and not outcomes @> '["skipped"]') as unknown,
       count(*) filter (where not outcomes @> '["applied"]' and not outcomes @> '["skipped"]'
                              and not outcomes @> '["unknown"]') as failed
from (
    select subject, jsonb_path_query_array(document::jsonb, '$.attempts[*].outcome') as outcomes
    from ledger.projection_document
    where projection = $1 and version = $2 and slot = 'live' and binding_id = $3 and item <> ''
) as operation
group by subject;
