-- migrate:up
--
-- The two indexes of 0018 for lists by time, made again so that nothing else can use them. On a young table, whose
-- statistics are those of an empty one, every index that has a column of a condition looks alike: these two would be
-- walked through from end to end to find one run or one message, although another index leads straight to it. A column
-- in an expression matches no condition but that of the list.

set local role ledger_owner;

drop index ledger.inbox_commit_by_time;
drop index ledger.intake_refusal_by_time;

create index inbox_commit_by_time on ledger.inbox (received_at, (binding_id + 0), (inbox_id + 0))
    where kind = 'commit';
create index intake_refusal_by_time
    on ledger.intake_refusal (recorded_at, (topic || ''), (partition + 0), ("offset" + 0));
