"""What was edited in one binding is said of that binding, by name, and keeps no other from being followed."""

from __future__ import annotations

from collections.abc import AsyncIterator

import asyncpg
import pytest

from ledger.binding import DestinationBinding
from ledger.projections.errors import ProjectionDriftedError, UnreadableDocumentError
from ledger.projections.registry import PROJECTIONS
from ledger.store.errors import UnreadableCommitError, UnreadableValueError
from ledger.store.projections import Place, ProjectionStore
from ledger.store.served import ServedLedger
from tests.support.recorded_runs import Recorder, make_commit, make_plan, recorder

pytestmark = pytest.mark.integration

LATER = DestinationBinding(url="https://later.example", branch="main")


@pytest.fixture
async def recording(ledger_dsns: dict[str, str]) -> AsyncIterator[Recorder]:
    async with recorder(ledger_dsns) as recorded:
        yield recorded


@pytest.fixture
async def store(ledger_dsns: dict[str, str]) -> AsyncIterator[ProjectionStore]:
    async with await ProjectionStore.open(ledger_dsns["projector"], allow_unsafe_fsync=True) as opened:
        yield opened


async def _edit(dsns: dict[str, str], statement: str) -> None:
    connection = await asyncpg.connect(dsns["admin"])
    try:
        for table in ("event", "inbox"):
            await connection.execute(f"alter table ledger.{table} disable trigger all")  # whoever owns them can
        assert await connection.execute(statement) not in ("UPDATE 0", "DELETE 0"), "the edit met nothing"
    finally:
        await connection.close()


@pytest.mark.rules("G9")
async def test_g09_a_binding_that_drifted_keeps_no_other_from_being_followed(
    recording: Recorder, store: ProjectionStore, ledger_dsns: dict[str, str]
) -> None:
    await recording.whole_run(make_plan("run-1"))
    await store.catch_up()
    await _edit(ledger_dsns, "update ledger.projection_cursor set hash = decode(repeat('ab', 32), 'hex')")
    later = make_commit(make_plan("later")).model_copy(update={"binding": LATER})
    healthy = await recording.ledger.register_binding(LATER)
    await recording.ledger.submit_commit(healthy, later)

    with pytest.raises(ProjectionDriftedError):
        await store.catch_up()

    for projection in PROJECTIONS:
        reached = await store.cursor(Place(projection, healthy))
        assert reached is not None
        assert reached.position == 1, f"{projection.name} stopped at the binding before"


@pytest.mark.rules("G9", "G11")
async def test_g11_an_edited_document_is_named(
    recording: Recorder, store: ProjectionStore, ledger_dsns: dict[str, str]
) -> None:
    await recording.whole_run(make_plan("run-1"))
    await store.catch_up()
    await _edit(ledger_dsns, """update ledger.projection_document set document = '{"position": "many"}'""")

    with pytest.raises(UnreadableDocumentError, match="apply-ledger rebuild") as refused:
        await store.run_summary(recording.binding_id, "run-1")
    assert "run run-1 of binding" in str(refused.value), "which document it is"
    assert "many" not in str(refused.value), "values of a document may be anything"


@pytest.mark.rules("G8", "G11")
async def test_g11_an_edited_commit_is_named(recording: Recorder, ledger_dsns: dict[str, str]) -> None:
    await recording.commit(make_plan("run-1"))
    await _edit(ledger_dsns, """update ledger.inbox set body = '{"commit_id": 5}'""")

    async with await ServedLedger.open(ledger_dsns["reader"], allow_unsafe_fsync=True) as served:
        with pytest.raises(UnreadableCommitError, match=r"run-1.*apply-ledger verify"):
            await served.committed_run(recording.binding_id, "run-1")


@pytest.mark.rules("G8", "G11")
async def test_g08_a_time_that_no_calendar_has_is_named(
    recording: Recorder, store: ProjectionStore, ledger_dsns: dict[str, str]
) -> None:
    await recording.commit(make_plan("run-1"))
    await _edit(ledger_dsns, "update ledger.event set recorded_at = '20000-01-01' where position = 1")

    with pytest.raises(UnreadableValueError, match="apply-ledger verify"):
        await store.catch_up()
