"""What else somebody with all rights puts right after an edit of the log, so that nothing in the database tells."""

from __future__ import annotations

from typing import Any


async def fit_inbox(admin: Any) -> None:
    """Orders and the epoch of the writers, as a log would have left them that had always been like this."""
    for statement in _FITTED_INBOX:
        await admin.execute(statement)


_FITTED_INBOX = (
    "delete from ledger.inbox i where i.kind <> 'commit' or not exists (select from ledger.event e"
    " where e.binding_id = i.binding_id and e.run_id = i.run_id and e.kind = 'plan.committed')",
    "update ledger.inbox set inbox_id = inbox_id + 1000000",
    "update ledger.inbox i set inbox_id = n.turn from (select binding_id, order_id, row_number() over"
    " (partition by binding_id order by inbox_id) as turn from ledger.inbox) n"
    " where n.binding_id = i.binding_id and n.order_id = i.order_id",
    "update ledger.inbox i set position = e.position from ledger.event e"
    " where e.binding_id = i.binding_id and e.run_id = i.run_id and e.kind = 'plan.committed'",
    """
    update ledger.inbox i set state = s.state, closed_at = case s.state when 'open' then null else i.received_at end
    from (select o.binding_id, o.order_id, case
              when l.kind is null then 'open'
              when l.kind = 'plan.refused' then 'refused'
              when b.body like '%"WriterDiedError"%' and o.body not like '%"on_crash":"stop"%' then 'open'
              else 'done' end as state
          from ledger.inbox o
          left join lateral (
              select e.kind, e.position from ledger.event e
              where e.binding_id = o.binding_id and e.run_id = o.run_id
                and e.kind in ('plan.refused', 'run.stopped', 'run.applied', 'run.failed', 'run.interrupted')
              order by e.position desc limit 1) l on true
          left join ledger.event b on b.binding_id = o.binding_id and b.position = l.position - 1) s
    where s.binding_id = i.binding_id and s.order_id = i.order_id
    """,
    "update ledger.binding b set writer_epoch = coalesce((select e.writer_epoch from ledger.event e"
    " where e.binding_id = b.id and e.kind = 'writer.opened' order by e.position desc limit 1), 0)",
)


async def forget_read_side(admin: Any) -> None:
    """It would tell; whoever thinks of it has it computed anew."""
    await admin.execute("delete from ledger.projection_document")
    await admin.execute("delete from ledger.projection_cursor")
