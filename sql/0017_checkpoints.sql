-- migrate:up
--
-- Checkpoints: heads of a log that were signed and published. Their events are control events, appended through
-- append_control_v1 by whoever holds the signing key: not by a writer, and without a lease.
--
--   plan.sealed           commits to the lines of a plan one by one, so that one of them can be shown without the others
--   checkpoint.published  the signed note, as it was written to the file that is kept elsewhere
--
-- Whether a note is genuine is decided by its signature, never by who appended it.

set local role ledger_owner;

insert into ledger.event_kind (kind, by_writer, by_control) values
    ('plan.sealed', false, true),
    ('checkpoint.published', false, true);

-- They are few among many events, and are looked for from the end of the log.
create index event_checkpoint on ledger.event (binding_id, position)
    where kind in ('plan.sealed', 'checkpoint.published');
