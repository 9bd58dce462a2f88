"""What else somebody with all rights puts right after an edit of the log, so that nothing in the database tells."""

from __future__ import annotations

from typing import Any


async def fit_inbox(admin: Any) -> None:
    """Orders and the epoch of the writers, as a log would have left them that had always been like this."""
    for statement in _FITTED_INBOX:
        await admin.execute(statement)


_ENDS = "('plan.refused', 'run.stopped', 'run.applied', 'run.failed', 'run.interrupted')"
_FITTED_INBOX = (
    "delete from ledger.inbox i where i.kind <> 'commit' or not exists (select from ledger.event e"
    " where e.binding_id = i.binding_id and e.run_id = i.run_id and e.kind = 'plan.committed')",
    "update ledger.inbox i set position = e.position from ledger.event e"
    " where e.binding_id = i.binding_id and e.run_id = i.run_id and e.kind = 'plan.committed'",
    # each resumption that the log still has was ordered when its run had ended, in the words that the log has
    f"""
    insert into ledger.inbox (binding_id, inbox_id, order_id, kind, run_id, body, position, state, closed_at)
    select e.binding_id, 2000000 + e.position, gen_random_uuid(), 'resume', e.run_id,
           json_build_object('by', e.body::json ->> 'by', 'reason', e.body::json ->> 'reason',
                             'policy', e.body::json -> 'policy')::text,
           ended.position, 'done', clock_timestamp()
    from ledger.event e
    cross join lateral (
        select max(p.position) as position from ledger.event p
        where p.binding_id = e.binding_id and p.run_id = e.run_id and p.position < e.position and p.kind in {_ENDS}
    ) ended
    where e.kind in ('run.started', 'run.resumed') and ended.position is not null
      and coalesce(e.body::json ->> 'by', 'writer') <> 'writer'
    """,
    "update ledger.inbox set inbox_id = inbox_id + 1000000",
    "update ledger.inbox i set inbox_id = n.turn from (select binding_id, order_id, row_number() over"
    " (partition by binding_id order by position, inbox_id) as turn from ledger.inbox) n"
    " where n.binding_id = i.binding_id and n.order_id = i.order_id",
    f"""
    update ledger.inbox i set state = s.state, closed_at = case s.state when 'open' then null else i.received_at end
    from (select o.binding_id, o.order_id, case
              when l.kind is null then 'open'
              when l.kind = 'plan.refused' then 'refused'
              when b.body like '%"WriterDiedError"%' and o.body not like '%"on_crash":"stop"%' then 'open'
              else 'done' end as state
          from (select r.*, lead(r.position) over (partition by r.binding_id, r.run_id order by r.inbox_id) as until
                from ledger.inbox r) o
          left join lateral (
              select e.kind, e.position from ledger.event e
              where e.binding_id = o.binding_id and e.run_id = o.run_id and e.position > o.position
                and (o.until is null or e.position <= o.until) and e.kind in {_ENDS}
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
