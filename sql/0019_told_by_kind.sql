-- migrate:up
--
-- What pages for people ask of the log and of the inbox, each from an index of its own: the events of one kind, every
-- refusal of a plan by when it was, the orders of one run.
--
-- The two kinds of which a log is full are left out of the first one: whoever looks for one of them begins with a run.
-- They are left out by a pattern that is none, because no other condition proves one: an index that leaves them out by
-- "<>" would be considered for every query that names other kinds, and on a young table all indexes look alike. The
-- columns of the others are expressions for the same reason, as in 0018.

set local role ledger_owner;

create index event_by_kind on ledger.event (binding_id, kind, position)
    where kind !~~ 'operation.applied' and kind !~~ 'operation.skipped';
create index event_refusal_by_time on ledger.event (recorded_at, (binding_id + 0), (position + 0))
    where kind = 'plan.refused';
create index inbox_of_run on ledger.inbox ((binding_id + 0), (run_id || ''), (inbox_id + 0));
