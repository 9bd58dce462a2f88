-- migrate:up
--
-- The index of 0019 for the list of all runs, over every order and not over commits alone. An index with a condition is
-- considered for every query that has the condition, whatever its columns are; and while the inbox is young it looks as
-- good as the one that leads straight to a run. One without a condition is considered for its own order alone.

set local role ledger_owner;

drop index ledger.inbox_commit_by_time;

create index inbox_by_time on ledger.inbox (received_at, (binding_id + 0), (inbox_id + 0));
