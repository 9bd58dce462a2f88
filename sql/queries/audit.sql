-- name: unguarded_tables
-- Tables whose triggers do not refuse changes in every session, as they must (ENABLE ALWAYS); none is right.
select t.name
from unnest(array['event', 'binding', 'inbox', 'intake_refusal', 'plan', 'plan_seal', 'plan_operation',
                  'plan_coverage', 'artifact', 'detail', 'relay']) as t (name)
where (select count(*) from pg_trigger g
       where g.tgrelid = to_regclass('ledger.' || t.name)
         and g.tgname in ('refuse_row_change', 'refuse_truncate') and g.tgenabled = 'A') <> 2
order by t.name;
