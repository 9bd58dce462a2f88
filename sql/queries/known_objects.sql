-- Which kinds and objects a ledger knows, for whoever mistyped one. Bounded: the plans that were committed last, up to a
-- number of lines; a line is a canonical document, so a kind stands in it in one spelling.

-- name: known_kinds
-- The kinds in the first $2 lines of the plans of binding $1, those committed last first.
select distinct pg_catalog.substring(known.line, '"kind":"([^"]*)"') as kind
from (
    select o.line
    from (select plan_checksum from ledger.inbox where binding_id = $1 and kind = 'commit' order by inbox_id desc) i
    cross join lateral (
        select o.line from ledger.plan_operation o where o.plan_checksum = i.plan_checksum order by o.ordinal
    ) o
    limit $2
) known
where known.line like '%"kind":"%'
order by kind;

-- name: known_lines
-- Up to $3 lines in which each of the texts $2 stands, of the first $4 lines of the plans of binding $1, those committed
-- last first: what is not there would otherwise be looked for in every plan.
select known.line
from (
    select o.line
    from (select plan_checksum from ledger.inbox where binding_id = $1 and kind = 'commit' order by inbox_id desc) i
    cross join lateral (
        select o.line from ledger.plan_operation o where o.plan_checksum = i.plan_checksum order by o.ordinal
    ) o
    limit $4
) known
where (select pg_catalog.bool_and(pg_catalog.strpos(known.line, t) > 0) from unnest($2::text[]) as t)
limit $3;
