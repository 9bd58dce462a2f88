"""What somebody with all rights can do to a ledger: edit, cover the tracks, compute every hash anew."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from random import Random
from typing import Any

import asyncpg

from tests.support.covered_tracks import fit_inbox, forget_read_side

TABLES = (
    "event",
    "binding",
    "inbox",
    "plan",
    "plan_seal",
    "plan_operation",
    "plan_coverage",
    "artifact",
    "detail",
)


@asynccontextmanager
async def unguarded(admin: Any) -> AsyncIterator[None]:
    """Switch the triggers off, and on again as they were: whoever edits a record covers the tracks."""
    for table in TABLES:
        await admin.execute(f"alter table ledger.{table} disable trigger all")
    try:
        yield
    finally:
        for table in TABLES:
            await admin.execute(f"alter table ledger.{table} enable trigger all")
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


@dataclass(frozen=True, slots=True)
class Edit:
    """One thing that was done to a ledger.

    Attributes:
        what: in words, for whoever has to look at a failure.
        covered: whether every trace inside the database was covered, so that only a checkpoint can tell.
    """

    what: str
    covered: bool


async def tamper(admin: Any, random: Random, *, signed: int) -> Edit:
    """Do one random thing to the ledger, with all rights, and cover the tracks as far as that kind of edit allows.

    Args:
        admin: a superuser's connection.
        random: what is done follows from its seed.
        signed: the position of the checkpoint that is kept elsewhere; what is cut off or rewritten lies before it.
    """
    async with unguarded(admin):
        while True:
            kind = random.choice(_KINDS)
            try:
                async with admin.transaction():
                    what = await kind(admin, random, signed)
            except (asyncpg.IntegrityConstraintViolationError, asyncpg.DataError):
                continue  # the tables' own rules refuse it: that is no edit that could be found
            if what is not None:
                return Edit(what, kind in (_cut_with_head, _rechained))


async def _changed(admin: Any, random: Random, signed: int) -> str | None:
    """One column of one event."""
    position = random.randint(1, signed)
    column, value = random.choice(_COLUMN_CHANGES)
    number = random.randint(1, 10**6)
    expression = value.format(number=number, byte=random.randrange(32))
    done = await admin.execute(
        f"update ledger.event set {column} = {expression}"
        f" where position = $1 and {column} is distinct from {expression}",
        position,
    )
    return f"{column} of event {position}: {expression}" if done == "UPDATE 1" else None


_COLUMN_CHANGES = (
    ("event_id", "gen_random_uuid()"),
    ("kind", "case kind when 'run.failed' then 'run.stopped' else 'run.failed' end"),
    ("schema_version", "schema_version + 1"),
    ("run_id", "coalesce(run_id, '') || 'x'"),
    ("operation_id", "'op_' || lpad(to_hex({number}), 16, '0')"),
    ("ordinal", "coalesce(ordinal, 0) + 1 + {number} % 7"),
    ("attempt", "coalesce(attempt, 0) + 1"),
    ("writer_epoch", "coalesce(writer_epoch, 0) + 1"),
    ("recorded_at", "recorded_at + {number} * interval '1 microsecond'"),
    ("body", "replace(body, 'a', 'b')"),
    ("body", "body || ' '"),
    ("body", "overlay(body placing '9' from position('1' in body) for 1)"),
    ("prev_hash", "set_byte(prev_hash, {byte}, (get_byte(prev_hash, {byte}) + 1) % 256)"),
    ("hash", "set_byte(hash, {byte}, (get_byte(hash, {byte}) + 1) % 256)"),
)


async def _deleted(admin: Any, random: Random, signed: int) -> str | None:
    position = random.randint(1, signed)
    await admin.execute("delete from ledger.event where position = $1", position)
    return f"event {position} deleted"


async def _swapped(admin: Any, random: Random, signed: int) -> str | None:
    one, other = random.sample(range(1, signed + 1), 2)
    for old, new in ((one, 10**6), (other, one), (10**6, other)):
        await admin.execute("update ledger.event set position = $2 where position = $1", old, new)
    return f"events {one} and {other} swapped"


async def _inserted(admin: Any, random: Random, signed: int) -> str | None:
    """An event that was never appended, chained to the one before it as it should be."""
    position = random.randint(2, signed)
    await admin.execute("update ledger.event set position = position + 1000000 where position >= $1::bigint", position)
    await admin.execute("update ledger.event set position = position - 999999 where position > 1000000")
    await admin.execute(
        "insert into ledger.event select binding_id, $1::bigint, gen_random_uuid(), 'run.failed', 1, 'run-made-up',"
        " null, null, null, writer_epoch, recorded_at, body, hash, sha256(hash) from ledger.event"
        " where position = $1::bigint - 1",
        position,
    )
    return f"an event put in at {position}"


async def _cut_without_head(admin: Any, random: Random, signed: int) -> str | None:
    position = random.randint(1, signed)
    await admin.execute("delete from ledger.event where position > $1", position)
    return f"everything behind {position} cut off, the head left"


async def _cut_with_head(admin: Any, random: Random, signed: int) -> str | None:
    position = random.randint(1, signed - 1)
    await cut_off(admin, position)
    await fit_inbox(admin)
    await forget_read_side(admin)
    return f"everything behind {position} cut off, the head with it"


async def _rechained(admin: Any, random: Random, signed: int) -> str | None:
    """A value, a person or an event that somebody would like to have been otherwise, and every hash computed anew."""
    how = random.choice(
        (
            "update ledger.event set body = replace(body, 'node-', 'edon-') where kind = 'operation.applied'",
            "update ledger.event set recorded_at = recorded_at - interval '1 day'",
            "delete from ledger.event where kind in ('operation.failed', 'run.failed')",
            "update ledger.event set writer_epoch = writer_epoch + 1 where writer_epoch is not null",
        )
    )
    await admin.execute("delete from ledger.event where kind in ('plan.sealed', 'checkpoint.published')")
    await admin.execute(how)
    await rechain(admin)
    await fit_inbox(admin)
    await forget_read_side(admin)
    return f"re-chained after: {how}"


async def _plan_edited(admin: Any, random: Random, signed: int) -> str | None:
    statement = random.choice(
        (
            "update ledger.plan_operation set line = replace(line, 'BuiltinTag', 'BuiltinTug') where ordinal = $1",
            "delete from ledger.plan_operation where ordinal = $1",
            "update ledger.plan_operation set object_key = sha256('x') where ordinal = $1",
            "update ledger.plan_operation set operation_id = operation_id || '0' where ordinal = $1",
            "update ledger.plan_coverage set line = replace(line, 'node-', 'edon-') where ordinal >= $1",
            "delete from ledger.plan_coverage where ordinal = $1",
            # further than any plan reaches, so that the key takes it; the order in which lines are read stays the same
            "update ledger.plan_operation set ordinal = ordinal + 1000 where ordinal >= $1",
            "update ledger.plan_coverage set ordinal = ordinal + 1000 where ordinal >= $1",
            "update ledger.plan set body = replace(body, 'v1', 'v2') where $1::bigint >= 0",
            "update ledger.plan set coverage_digest = sha256('x') where $1::bigint >= 0",
            "delete from ledger.plan_seal where checksum in"
            " (select plan_checksum from ledger.artifact order by run_id offset $1 limit 1)",
            "update ledger.artifact set manifest = manifest || ' '::bytea where $1::bigint >= 0",
            "update ledger.artifact set source = 'other' where $1::bigint >= 0",
            "update ledger.inbox set body = replace(body, 'ada', 'eve') where $1::bigint >= 0",
            "update ledger.inbox set source = source || 'x' where $1::bigint >= 0",
        )
    )
    ordinal = random.randint(0, 2)
    done = await admin.execute(statement, ordinal)
    return None if done.endswith(" 0") else f"{statement} ({ordinal})"


async def _order_edited(admin: Any, random: Random, signed: int) -> str | None:
    """What was ordered, by whom, whether it was done; and the epoch under which the next order is carried out."""
    statement = random.choice(
        (
            "update ledger.inbox set state = case state when 'done' then 'refused' else 'done' end,"
            " closed_at = clock_timestamp() where inbox_id = $1 and kind <> 'stop'",
            "update ledger.inbox set state = 'open', closed_at = null"
            " where inbox_id = $1 and kind <> 'stop' and state <> 'open'",
            "update ledger.inbox set body = replace(body, 'eve', 'ada') where inbox_id >= $1 and kind = 'resume'"
            " and body like '%eve%'",
            "delete from ledger.inbox where inbox_id = $1",
            "update ledger.inbox set inbox_id = inbox_id + 1000 where inbox_id >= $1",
            "update ledger.inbox set run_id = run_id || 'x' where inbox_id = $1",
            "update ledger.binding set writer_epoch = writer_epoch + $1::bigint",
        )
    )
    # The last order may be one of which nothing came yet: taken out, it was never there.
    last = await admin.fetchval("select max(inbox_id) from ledger.inbox")
    number = random.randint(1, last - 1)
    done = await admin.execute(statement, number)
    return None if done.endswith(" 0") else f"{statement} ({number})"


async def _guard_edited(admin: Any, random: Random, signed: int) -> str | None:
    """What refuses the next edit lets it pass, under the name that it had."""
    statements = random.choice(
        (
            (
                "create or replace function ledger.refuse_change() returns trigger language plpgsql"
                " set search_path = pg_catalog, pg_temp as $$begin return new; end$$",
            ),
            (
                "drop trigger refuse_row_change on ledger.plan_operation",
                "create trigger refuse_row_change before update or delete on ledger.plan_operation for each row"
                " when (false) execute function ledger.refuse_change()",
            ),
            (
                "drop trigger refuse_row_change on ledger.artifact",
                "create trigger refuse_row_change before delete on ledger.artifact for each row"
                " execute function ledger.refuse_change()",
            ),
            ("alter function ledger.append_v1 set search_path = public, ledger",),
        )
    )
    for statement in statements:
        await admin.execute(statement)
    return statements[-1]


async def _seal_left(admin: Any, random: Random, signed: int) -> str | None:
    """A run that was verified and never begun is taken for one that never was verified; its plan stays sealed.

    Where another run has the same plan, nothing tells the two apart (docs/audit.md).
    """
    done = await admin.execute(
        "delete from ledger.artifact a where not exists (select from ledger.event e where e.binding_id = a.binding_id"
        " and e.run_id = a.run_id and (e.kind = 'run.started' or e.kind like 'operation.%'))"
        " and (select count(*) from ledger.artifact o where o.plan_checksum = a.plan_checksum) = 1"
    )
    return None if done.endswith(" 0") else "the manifest of a run that did not begin"


async def _hidden_row(admin: Any, random: Random, signed: int) -> str | None:
    """A row where there is one, or in front of all: what refuses it is taken away, and its index put back without."""
    table, constraint, places, columns, second = random.choice(_SECOND_ROWS)
    await admin.execute(f"alter table ledger.{table} drop constraint {constraint}")
    if constraint.endswith("_pkey"):
        await admin.execute(f"create index {constraint} on ledger.{table} ({places})")
    done = await admin.execute(
        f"insert into ledger.{table} select {columns} from ledger.{table} offset {random.randint(0, 5)} limit 1"
    )
    return None if done.endswith(" 0") else f"{second} of {table}"


_EVENT_AT = (
    "binding_id, {}, gen_random_uuid(), 'run.failed', 1, 'run-made-up', null, null, null, writer_epoch, recorded_at,"
    " body, prev_hash, hash"
)
_SECOND_ROWS = (
    ("event", "event_pkey", "binding_id, position", _EVENT_AT.format("position"), "a second row"),
    ("event", "event_position_check", "", _EVENT_AT.format("-position"), "a row in front of all"),
    ("plan_operation", "plan_operation_pkey", "plan_checksum, ordinal", "*", "a second row"),
    ("plan_coverage", "plan_coverage_pkey", "plan_checksum, ordinal", "*", "a second row"),
    (
        "projection_document",
        "projection_document_pkey",
        "projection, version, slot, binding_id, subject, item",
        "*",
        "a second row",
    ),
)


async def _read_side_edited(admin: Any, random: Random, signed: int) -> str | None:
    number = random.randint(0, 30)
    place = (
        "(projection, subject, item) in (select projection, subject, item from ledger.projection_document"
        f" order by projection, subject, item offset {number} limit 1)"
    )
    statement = random.choice(
        (
            f"delete from ledger.projection_document where {place}",
            f"update ledger.projection_document set document = replace(document, '1', '2') where {place}"
            " and document <> replace(document, '1', '2')",
            f"update ledger.projection_document set subject = subject || 'x' where {place}",
            f"update ledger.projection_cursor set position = position - {1 + number % 3}",
            "update ledger.projection_cursor set position = 0",
            "delete from ledger.projection_cursor where projection ="
            f" (select projection from ledger.projection_document order by 1 offset {number} limit 1)",
        )
    )
    done = await admin.execute(statement)
    return None if done.endswith(" 0") else statement


_KINDS = (
    _changed,
    _changed,
    _changed,
    _deleted,
    _swapped,
    _inserted,
    _cut_without_head,
    _cut_with_head,
    _rechained,
    _plan_edited,
    _plan_edited,
    _order_edited,
    _order_edited,
    _hidden_row,
    _guard_edited,
    _seal_left,
    _read_side_edited,
)
