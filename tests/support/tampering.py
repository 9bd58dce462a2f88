"""What somebody with all rights can do to a ledger: edit, cover the tracks, compute every hash anew."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

TABLES = ("event", "binding", "inbox", "plan", "plan_operation", "plan_coverage", "artifact", "detail")


@asynccontextmanager
async def unguarded(admin: Any) -> AsyncIterator[None]:
    """Switch the triggers off, and on again as they were: whoever edits a record covers the tracks."""
    for table in TABLES:
        await admin.execute(f"alter table ledger.{table} disable trigger all")
    try:
        yield
    finally:
        for table in TABLES:
            for trigger in ("refuse_row_change", "refuse_truncate"):
                await admin.execute(f"alter table ledger.{table} enable always trigger {trigger}")


async def cut_off(admin: Any, position: int) -> None:
    """Remove the end of every log behind a position, and set the heads back to it."""
    await admin.execute("delete from ledger.event where position > $1", position)
    await admin.execute(_HEADS)


async def rechain(admin: Any) -> None:
    """Compute every hash of every log anew, and set the heads."""
    await admin.execute(_RECHAIN)
    await admin.execute(_HEADS)


_HEADS = """
update ledger.binding b set head_position = e.position, head_hash = e.hash
from (select distinct on (binding_id) binding_id, position, hash from ledger.event order by binding_id, position desc) e
where e.binding_id = b.id
"""

_RECHAIN = """
do $$
declare
    v_event ledger.event;
    v_binding ledger.binding;
    v_position bigint := 0;
    v_head bytea;
    v_hash bytea;
begin
    for v_binding in select * from ledger.binding loop
        v_head := decode(repeat('00', 32), 'hex');
        v_position := 0;
        for v_event in select * from ledger.event where binding_id = v_binding.id order by position loop
            v_position := v_position + 1;
            v_hash := ledger.event_hash_v1(v_head, v_binding.url, v_binding.branch, v_position,
                v_event.event_id, v_event.kind, v_event.schema_version, v_event.writer_epoch, v_event.run_id,
                v_event.operation_id, v_event.ordinal, v_event.attempt, v_event.recorded_at, v_event.body);
            update ledger.event set position = v_position, prev_hash = v_head, hash = v_hash
            where binding_id = v_binding.id and position = v_event.position;
            v_head := v_hash;
        end loop;
    end loop;
end $$
"""
