"""Projections in the database: following, dying, colliding, rebuilding to equal bytes (G9, P125)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest

from ledger.projections.errors import ProjectionCollisionError, ProjectionDriftedError, RebuildBusyError
from ledger.projections.registry import PROJECTIONS
from ledger.projections.run_summary import fold_run
from ledger.store import projections
from ledger.store.projection_rebuild import rebuild
from ledger.store.projections import Place, ProjectionStore
from tests.support.recorded_runs import Recorder, make_plan, recorder

pytestmark = pytest.mark.integration


@pytest.fixture
async def recording(ledger_dsns: dict[str, str]) -> AsyncIterator[Recorder]:
    async with recorder(ledger_dsns) as recorded:
        yield recorded


@pytest.fixture
async def store(ledger_dsns: dict[str, str]) -> AsyncIterator[ProjectionStore]:
    async with await ProjectionStore.open(ledger_dsns["projector"], allow_unsafe_fsync=True) as opened:
        yield opened


async def _contents(dsn: str, table: str = "projection_document") -> list[asyncpg.Record]:
    connection = await asyncpg.connect(dsn)
    try:
        return list(await connection.fetch(f"select * from ledger.{table} order by 1, 2, 3, 4, 5, 6"))
    finally:
        await connection.close()


async def _execute(dsn: str, statement: str) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


async def _several_runs(recording: Recorder) -> None:
    await recording.whole_run(make_plan("run-1"))
    broken = make_plan("run-2", creates=4, deletes=2, source="device-library")
    await recording.commit(broken)
    await recording.started(broken)
    await recording.outcome(broken, 0, "applied")
    await recording.outcome(broken, 1, "unknown")
    await recording.ended(broken, "run.interrupted")
    refused = make_plan("run-3", creates=1)
    await recording.commit(refused, store=False)


@pytest.mark.rules("P125", "P126", "P146", "P147", "G3", "G6")
async def test_g03_the_summary_of_a_stored_run_is_the_fold_of_its_events(
    recording: Recorder, store: ProjectionStore
) -> None:
    await _several_runs(recording)
    await store.catch_up()

    events = [event async for event in recording.ledger.events(recording.binding_id)]
    for run_id in ("run-1", "run-2", "run-3"):
        summary = await store.run_summary(recording.binding_id, run_id)
        assert summary is not None
        assert summary.document() == fold_run(events, run_id).document()
    first = await store.run_summary(recording.binding_id, "run-1")
    assert first is not None
    assert (first.state, first.count("applied"), first.skipped_delete_count, first.not_attempted) == (
        "applied",
        3,
        1,
        0,
    )
    assert await store.run_summary(recording.binding_id, "no-such-run") is None


@pytest.mark.rules("G3", "G6")
async def test_g03_the_list_of_runs_counts_like_the_summaries(recording: Recorder, store: ProjectionStore) -> None:
    await _several_runs(recording)
    again = make_plan("run-4", creates=3, deletes=0)
    await recording.commit(again)
    await recording.started(again)
    await recording.outcome(again, 0, "failed")
    await recording.ended(again, "run.failed")
    await recording.resumed(again, 0)
    await recording.outcome(again, 0, "applied", attempt=2)
    await recording.outcome(again, 1, "unknown")
    await recording.outcome(again, 1, "failed", attempt=2)
    await recording.outcome(again, 2, "failed")
    await store.catch_up()

    overviews = await store.runs(recording.binding_id)

    assert [overview.run.run_id for overview in overviews] == ["run-1", "run-2", "run-3", "run-4"]
    for overview in overviews:
        summary = await store.run_summary(recording.binding_id, overview.run.run_id)
        assert summary is not None
        assert (overview.applied, overview.skipped, overview.failed, overview.unknown, overview.not_attempted) == (
            summary.count("applied"),
            summary.count("skipped"),
            summary.count("failed"),
            summary.count("unknown"),
            summary.not_attempted,
        )
    assert (overviews[3].applied, overviews[3].failed, overviews[3].unknown) == (1, 1, 1)


@pytest.mark.rules("G9")
@pytest.mark.parametrize("page_size", [1, 3, 2000])
async def test_g09_dropped_and_followed_again_every_byte_is_the_same(
    recording: Recorder, store: ProjectionStore, ledger_dsns: dict[str, str], page_size: int
) -> None:
    await _several_runs(recording)
    taken = await store.catch_up()
    live = await _contents(ledger_dsns["reader"])
    assert taken > 0
    assert live

    await _execute(ledger_dsns["projector"], "delete from ledger.projection_document")
    await _execute(ledger_dsns["projector"], "delete from ledger.projection_cursor")
    assert await store.catch_up(page_size=page_size) == taken

    assert await _contents(ledger_dsns["reader"]) == live
    assert await store.catch_up() == 0, "nothing is taken twice"


@pytest.mark.rules("G9")
async def test_g09_followed_while_events_arrive_equals_followed_at_the_end(
    recording: Recorder, store: ProjectionStore, ledger_dsns: dict[str, str]
) -> None:
    plan = make_plan("run-1")
    await recording.commit(plan)
    await store.catch_up()
    await recording.started(plan)
    for ordinal in range(3):
        await recording.outcome(plan, ordinal, "applied")
        await store.catch_up()
    await recording.outcome(plan, 3, "skipped")
    await recording.ended(plan, "run.applied")
    await store.catch_up()

    found = await rebuild(ledger_dsns["projector"], allow_unsafe_fsync=True)

    assert [(one.projection, one.equal) for one in found] == [
        ("runs/1", True),
        ("run_lines/1", True),
        ("bindings/1", True),
    ]
    assert all(one.digest == one.live_digest and one.documents > 0 for one in found)
    assert {row["slot"] for row in await _contents(ledger_dsns["reader"])} == {"live"}
    assert len(await _contents(ledger_dsns["reader"], "projection_cursor")) == len(PROJECTIONS)


@pytest.mark.rules("G9")
async def test_g09_two_rebuilds_in_a_row_give_one_digest(recording: Recorder, ledger_dsns: dict[str, str]) -> None:
    await _several_runs(recording)

    first = await rebuild(ledger_dsns["projector"], allow_unsafe_fsync=True, page_size=2)
    second = await rebuild(ledger_dsns["projector"], allow_unsafe_fsync=True)

    assert [one.equal for one in first] == [None] * len(PROJECTIONS), "there was nothing to compare with"
    assert [one.equal for one in second] == [True] * len(PROJECTIONS)
    assert [one.digest for one in first] == [one.digest for one in second]


@pytest.mark.rules("G9")
async def test_g09_a_live_projection_that_was_edited_is_found_and_replaced(
    recording: Recorder, store: ProjectionStore, ledger_dsns: dict[str, str]
) -> None:
    await _several_runs(recording)
    await store.catch_up()
    right = await _contents(ledger_dsns["reader"])
    await _execute(
        ledger_dsns["projector"],
        "update ledger.projection_document set document = replace(document, 'unknown', 'applied') where item <> ''",
    )

    found = await rebuild(ledger_dsns["projector"], allow_unsafe_fsync=True)

    assert [(one.projection, one.equal) for one in found] == [
        ("runs/1", False),
        ("run_lines/1", True),
        ("bindings/1", True),
    ]
    assert await _contents(ledger_dsns["reader"]) == right


@pytest.mark.rules("G9")
async def test_g09_a_projector_that_dies_between_fold_and_commit_loses_and_doubles_nothing(
    recording: Recorder, store: ProjectionStore, ledger_dsns: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    await _several_runs(recording)

    def dies(*_: object) -> dict[object, object]:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(projections, "_fold", dies)
        # The cursor has moved inside the transaction by then; it must go back with it.
        with pytest.raises(KeyboardInterrupt):
            await store.catch_up()
    assert await _contents(ledger_dsns["reader"]) == []

    await store.catch_up()
    assert [one.equal for one in await rebuild(ledger_dsns["projector"], allow_unsafe_fsync=True)] == [True] * len(
        PROJECTIONS
    )


@pytest.mark.rules("G9", "G3")
async def test_g09_two_projectors_at_once_count_nothing_twice(
    recording: Recorder, store: ProjectionStore, ledger_dsns: dict[str, str]
) -> None:
    await _several_runs(recording)
    async with await ProjectionStore.open(ledger_dsns["projector"], allow_unsafe_fsync=True) as other:
        taken = await asyncio.gather(store.catch_up(page_size=1), other.catch_up(page_size=1))

    head = (await recording.ledger.bindings())[0].head_position
    assert sum(taken) == head * len(PROJECTIONS)
    assert [one.equal for one in await rebuild(ledger_dsns["projector"], allow_unsafe_fsync=True)] == [True] * len(
        PROJECTIONS
    )


@pytest.mark.rules("G9")
async def test_g09_a_cursor_moved_by_somebody_else_is_a_collision(
    recording: Recorder, store: ProjectionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _several_runs(recording)
    stale = projections.Cursor(0, bytes(32))
    place = Place(PROJECTIONS[0], recording.binding_id)
    await store.follow(place)

    async def always_stale(_: Place) -> projections.Cursor:
        return stale

    monkeypatch.setattr(store, "cursor", always_stale)
    with pytest.raises(ProjectionCollisionError, match="another process moved it"):
        await store.follow(place)


@pytest.mark.rules("G8", "G9")
async def test_g09_a_log_that_went_back_behind_the_projection_is_named(
    recording: Recorder, store: ProjectionStore, ledger_dsns: dict[str, str]
) -> None:
    await _several_runs(recording)
    await store.catch_up()
    await _execute(
        ledger_dsns["projector"], "update ledger.projection_cursor set hash = decode(repeat('ab', 32), 'hex')"
    )

    with pytest.raises(ProjectionDriftedError, match="apply-ledger verify"):
        await store.catch_up()

    await rebuild(ledger_dsns["projector"], allow_unsafe_fsync=True)
    assert await store.catch_up() == 0


@pytest.mark.rules("G8", "G9")
@pytest.mark.parametrize(
    "statement",
    ["delete from ledger.event where position = 4", "update ledger.event set prev_hash = hash where position = 4"],
    ids=["a gap", "a broken link"],
)
async def test_g09_a_log_with_a_gap_is_not_folded_over(
    recording: Recorder, store: ProjectionStore, ledger_dsns: dict[str, str], statement: str
) -> None:
    await _several_runs(recording)
    await _execute(ledger_dsns["admin"], "alter table ledger.event disable trigger all")
    await _execute(ledger_dsns["admin"], statement)

    with pytest.raises(ProjectionDriftedError, match="event 4"):
        await store.catch_up()
    assert await _contents(ledger_dsns["reader"]) == []


@pytest.mark.rules("G9")
async def test_g09_a_rebuild_while_events_arrive_compares_at_one_position(
    recording: Recorder, store: ProjectionStore, ledger_dsns: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    await _several_runs(recording)
    await store.catch_up()
    follow, turns = ProjectionStore.follow, 0

    async def follow_and_go_on(self: ProjectionStore, place: Place, **options: Any) -> Any:
        nonlocal turns
        reached = await follow(self, place, **options)
        if place.slot == "rebuild" and turns < 2:
            # The live projection moves on between the reading and the comparison, twice.
            turns += 1
            await recording.whole_run(make_plan(f"later-{turns}"))
            await store.catch_up()
        return reached

    monkeypatch.setattr(ProjectionStore, "follow", follow_and_go_on)
    found = await rebuild(ledger_dsns["projector"], allow_unsafe_fsync=True)

    assert turns == 2
    assert [one.equal for one in found] == [True] * len(PROJECTIONS)
    assert found[0].position == (await recording.ledger.bindings())[0].head_position


async def test_one_rebuild_at_a_time(recording: Recorder, ledger_dsns: dict[str, str]) -> None:
    connection = await asyncpg.connect(ledger_dsns["projector"])
    try:
        await connection.execute("select pg_advisory_lock(hashtextextended('ledger.projection_rebuild', 0))")
        with pytest.raises(RebuildBusyError):
            await rebuild(ledger_dsns["projector"], allow_unsafe_fsync=True)
    finally:
        await connection.close()


@pytest.mark.rules("G8")
@pytest.mark.parametrize(
    "statement",
    [
        "insert into ledger.event select * from ledger.event",
        "update ledger.event set kind = 'run.applied'",
        "delete from ledger.event",
        "truncate ledger.event",
        "update ledger.binding set head_position = 0",
        "select ledger.register_binding_v1('http://x', 'y')",
        "truncate ledger.projection_document",
        "create table ledger.mine (n int)",
    ],
)
async def test_g08_the_projectors_role_changes_projections_and_nothing_else(
    recording: Recorder, ledger_dsns: dict[str, str], statement: str
) -> None:
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await _execute(ledger_dsns["projector"], statement)


@pytest.mark.parametrize("role", ["reader", "writer"])
async def test_other_roles_read_projections_and_change_none(
    recording: Recorder, ledger_dsns: dict[str, str], role: str
) -> None:
    assert await _contents(ledger_dsns[role]) == []
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await _execute(ledger_dsns[role], "delete from ledger.projection_cursor")


@pytest.mark.rules("G9")
async def test_g09_status_of_a_binding(recording: Recorder, store: ProjectionStore) -> None:
    assert await store.binding_statuses([recording.binding_id]) == {}
    await _several_runs(recording)
    await store.catch_up()
    assert await store.binding_statuses([]) == {}
    status = (await store.binding_statuses([recording.binding_id, 99]))[recording.binding_id]

    assert status.position == (await recording.ledger.bindings())[0].head_position
    assert status.writer is not None
    assert status.writer.process_id == "process"
    assert status.last_commit is not None
    assert status.last_commit.run_id == "run-3"
    assert status.last_end is not None
    assert status.last_end.kind == "run.interrupted"
    assert status.last_applied is not None
    assert status.last_applied.run_id == "run-1"
    assert status.unrecognised == {}
