"""Rows that no page shows: a second one where a page ends, and those that stand in front of the first place (G8)."""

from __future__ import annotations

import pytest

from ledger.audit import Level, Status, VerifyReport, verify_binding
from ledger.store.ledger import Ledger
from ledger.store.projections import ProjectionStore
from tests.support.recorded_runs import BINDING
from tests.support.store import connection_to
from tests.support.tampering import unguarded

pytestmark = pytest.mark.integration

_PAGES = (
    "ledger.store.reading_ahead.PAGE",
    "ledger.store.bindings.PAGE",
    "ledger.store.plans.PAGE",
    "ledger.store.live_projections.PAGE",
    "ledger.audit.events._PAGE",
)
_END_OF_PAGE = 4


@pytest.fixture(autouse=True)
def _small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    for place in _PAGES:
        monkeypatch.setattr(place, _END_OF_PAGE)


async def _report(dsns: dict[str, str]) -> VerifyReport:
    async with await Ledger.open(dsns["reader"], allow_unsafe_fsync=True) as ledger:
        return await verify_binding(ledger, BINDING)


async def _edited(dsns: dict[str, str], *statements: str) -> set[Level]:
    """The levels that fail after statements of somebody with all rights."""
    async with connection_to(dsns["admin"]) as admin, unguarded(admin):
        for statement in statements:
            await admin.execute(statement)
    return {level.level for level in (await _report(dsns)).levels if level.status is Status.FAILED}


_WITHOUT_KEY = "alter table ledger.event drop constraint event_pkey"
_MADE_UP = (
    "insert into ledger.event select binding_id, {position}, gen_random_uuid(), 'operation.applied', 1, 'run-2',"
    " 'op_ffffffffffffffff', 2, 1, writer_epoch, recorded_at, body, prev_hash, hash from ledger.event"
    f" where position = {_END_OF_PAGE}"
)
_PLACES = {
    "a second row where a page ends": (
        _WITHOUT_KEY,
        "create index event_pkey on ledger.event (binding_id, position)",
        _MADE_UP.format(position=_END_OF_PAGE),
    ),
    "in front of the first": (
        "alter table ledger.event drop constraint event_position_check",
        _MADE_UP.format(position=0),
    ),
    "far in front of the first": (
        "alter table ledger.event drop constraint event_position_check",
        _MADE_UP.format(position=-(10**12)),
    ),
    "nowhere": (
        _WITHOUT_KEY,
        "alter table ledger.event alter position drop not null",
        _MADE_UP.format(position="null"),
    ),
}


@pytest.mark.rules("G8", "G7")
@pytest.mark.parametrize("statements", _PLACES.values(), ids=_PLACES)
async def test_g08_an_event_that_no_page_shows_is_found(
    recorded_dsns: dict[str, str], statements: tuple[str, ...]
) -> None:
    assert (await _report(recorded_dsns)).holds
    assert Level.POSITIONS in await _edited(recorded_dsns, *statements)


@pytest.mark.rules("G8")
@pytest.mark.parametrize("table", ["plan_operation", "plan_coverage"])
async def test_g08_a_plan_line_that_no_page_shows_is_found(recorded_dsns: dict[str, str], table: str) -> None:
    found = await _edited(
        recorded_dsns,
        f"alter table ledger.{table} drop constraint {table}_pkey",
        f"create index {table}_pkey on ledger.{table} (plan_checksum, ordinal)",
        f"insert into ledger.{table} select o.* from ledger.{table} o where ordinal ="
        f" (select max(ordinal) from ledger.{table} p where p.plan_checksum = o.plan_checksum)",
    )
    assert Level.PLANS in found


@pytest.mark.rules("G8", "G9")
async def test_g09_a_document_that_no_page_shows_is_found(told_dsns: dict[str, str]) -> None:
    async with await ProjectionStore.open(told_dsns["projector"], allow_unsafe_fsync=True) as store:
        await store.catch_up()
    found = await _edited(
        told_dsns,
        "alter table ledger.projection_document drop constraint projection_document_pkey",
        "create index projection_document_pkey on ledger.projection_document"
        " (projection, version, slot, binding_id, subject, item)",
        "insert into ledger.projection_document select projection, version, slot, binding_id, subject, item, document"
        f" from (select *, row_number() over (partition by projection, version, binding_id order by subject, item) as n"
        f" from ledger.projection_document) d where n = {_END_OF_PAGE}",
    )
    assert Level.PROJECTIONS in found


@pytest.mark.rules("G7", "G8")
async def test_g08_every_key_that_is_gone_is_named(recorded_dsns: dict[str, str]) -> None:
    async with connection_to(recorded_dsns["admin"]) as admin:
        keys = await admin.fetch(_KEYS)
        for table, index, constraint, _ in keys:
            await admin.execute(
                f"drop index ledger.{index}"
                if constraint is None
                else f"alter table ledger.{table} drop constraint {constraint} cascade"
            )
            await admin.execute(f"create index {index} on ledger.{table} ((1))")
    async with await Ledger.open(recorded_dsns["reader"], allow_unsafe_fsync=True) as ledger:
        missing = await ledger.missing_keys()
        unkept = await ledger.unguarded_tables()
        guards = (await verify_binding(ledger, BINDING)).level(Level.GUARDS)
    assert sorted(missing) == sorted((table, key) for table, _, _, key in keys)
    assert len(keys) > 25
    assert unkept, "foreign keys went with the keys to which they refer"
    assert guards.total == len(keys) + len(unkept)


_KEYS = """
select t.relname, x.relname, c.conname, split_part(pg_get_indexdef(i.indexrelid), ' USING btree ', 2)
from pg_index i
join pg_class t on t.oid = i.indrelid
join pg_class x on x.oid = i.indexrelid
left join pg_constraint c on c.conindid = i.indexrelid and c.contype in ('p', 'u')
where t.relnamespace = 'ledger'::regnamespace and i.indisunique
"""
