"""The read side against the log, in the pass that reads the log anyway (G9)."""

from __future__ import annotations

import pytest

from ledger.audit import Level, LevelReport, Status, projections, verify_binding
from ledger.store.ledger import Ledger
from ledger.store.projections import ProjectionStore
from tests.support.recorded_runs import BINDING
from tests.support.store import connection_to

pytestmark = pytest.mark.integration


@pytest.fixture
async def folded_dsns(told_dsns: dict[str, str]) -> dict[str, str]:
    async with await ProjectionStore.open(told_dsns["projector"], allow_unsafe_fsync=True) as store:
        await store.catch_up()
    return told_dsns


async def _level(dsns: dict[str, str]) -> LevelReport:
    async with await Ledger.open(dsns["reader"], allow_unsafe_fsync=True) as ledger:
        return (await verify_binding(ledger, BINDING)).level(Level.PROJECTIONS)


@pytest.mark.rules("G9")
async def test_g09_what_the_read_side_holds_is_what_the_events_fold_to(
    folded_dsns: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # with hardly anything held open, so that documents are closed while runs go on
    monkeypatch.setattr(projections, "_OPEN_ITEMS", 1)
    level = await _level(folded_dsns)
    async with connection_to(folded_dsns["admin"]) as admin:
        documents = await admin.fetchval("select count(*) from ledger.projection_document")
    assert (level.status, level.checked, level.unchecked) == (Status.HELD, documents, [])


@pytest.mark.rules("G9")
async def test_g09_without_a_read_side_nothing_is_claimed(told_dsns: dict[str, str]) -> None:
    level = await _level(told_dsns)
    assert level.status is Status.NOT_CHECKED
    assert level.unchecked


_EDITS = {
    "a document": "update ledger.projection_document set document = replace(document, 'ada', 'eve') where item = ''",
    "an outcome": "update ledger.projection_document set document = replace(document, 'unknown', 'applied')",
    "a document that is gone": "delete from ledger.projection_document where item <> '' and subject = 'run-update'",
    "a document too many": (
        "insert into ledger.projection_document select projection, version, slot, binding_id, 'run-x', item, document"
        " from ledger.projection_document where subject = 'run-create' and item = ''"
    ),
    "two that changed places": (
        "update ledger.projection_document d set document = o.document from ledger.projection_document o"
        " where d.projection = o.projection and d.item = o.item and d.item = '' and d.subject = 'run-create'"
        " and o.subject = 'run-update'"
    ),
    "the cursor's hash": "update ledger.projection_cursor set hash = sha256('x')",
    "the cursor": "update ledger.projection_cursor set position = position - 1",
    "a cursor that is gone": "delete from ledger.projection_cursor where projection = 'runs'",
    "a cursor in front of the log": "update ledger.projection_cursor set position = 0 where projection = 'runs'",
}


@pytest.mark.rules("G9")
@pytest.mark.parametrize("statement", _EDITS.values(), ids=_EDITS)
async def test_g09_an_edit_of_the_read_side_is_found(folded_dsns: dict[str, str], statement: str) -> None:
    async with connection_to(folded_dsns["admin"]) as admin:
        await admin.execute(statement)
    level = await _level(folded_dsns)
    assert level.status is Status.FAILED
    assert {finding.name for finding in level.findings} == {"ProjectionMismatch"}


@pytest.mark.rules("G9")
@pytest.mark.parametrize("how", ["delete from", "update"])
async def test_g09_a_projection_without_documents_is_named_as_not_checked(
    folded_dsns: dict[str, str], how: str
) -> None:
    where = "where projection = 'runs'"
    async with connection_to(folded_dsns["admin"]) as admin:
        await admin.execute(f"delete from ledger.projection_document {where}")
        changed = "set position = 0" if how == "update" else ""
        await admin.execute(f"{how} ledger.projection_cursor {changed} {where}")
    level = await _level(folded_dsns)
    assert level.total == 0
    assert level.checked > 0
    assert [said for said in level.unchecked if said.startswith("runs/")] == level.unchecked != []


@pytest.mark.rules("G9")
async def test_g09_whoever_wrote_the_documents_cannot_know_what_they_add_up_to(folded_dsns: dict[str, str]) -> None:
    # Sums of a hash that anybody can compute are met by documents that are chosen for it.
    async with await Ledger.open(folded_dsns["reader"], allow_unsafe_fsync=True) as ledger:
        row = (await ledger.bindings())[0]
        once, again = [await projections.live_projections(ledger, row) for _ in range(2)]
    assert len(once) == len(again) > 0
    for one, other in zip(once, again, strict=True):
        assert one.live.count == other.live.count
        assert one.live.value != other.live.value
