-- Size of each table of the ledger with its indexes and long values, largest first. Any role that may read may run it.
select c.relname as "table",
       pg_size_pretty(pg_total_relation_size(c.oid)) as size,
       pg_total_relation_size(c.oid) as bytes,
       greatest(c.reltuples, 0)::bigint as estimated_rows
from pg_class c
where c.relnamespace = 'ledger'::regnamespace and c.relkind in ('r', 'p')
order by pg_total_relation_size(c.oid) desc;
