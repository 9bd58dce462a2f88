"""FF39: a fold over distinct outcomes: doubled events count once; rebuilt, live and a known number are the same."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest

from ledger.events import StoredEvent
from ledger.projections.errors import RebuildBusyError
from ledger.projections.registry import PROJECTIONS
from ledger.projections.run_summary import RunSummary, fold_run
from ledger.store.projection_rebuild import Rebuilt, rebuild
from ledger.store.projections import ProjectionStore
from tests.support.postgres_relay import relay_to
from tests.support.recorded_runs import Recorder, make_plan, recorder
from tests.support.store import connection_to

pytestmark = pytest.mark.integration

KNOWN = {"applied": 4, "skipped": 2, "failed": 1, "unknown": 0, "not_attempted": 0}
"""Of seven operations: written down before anything is counted."""


@pytest.fixture
async def recording(postgres18_ledger_dsns: dict[str, str]) -> AsyncIterator[Recorder]:
    async with recorder(postgres18_ledger_dsns) as recorded:
        yield recorded


async def seven(recording: Recorder, run_id: str = "run-1") -> None:
    """Five creates and two deletes; the third create is in doubt twice before it is applied, the fifth one fails."""
    plan = make_plan(run_id, creates=5, deletes=2, source=f"source-of-{run_id}")
    await recording.commit(plan)
    await recording.started(plan)
    for ordinal in (0, 1):
        await recording.outcome(plan, ordinal, "applied")
    await recording.outcome(plan, 2, "unknown", attempt=1)
    await recording.outcome(plan, 2, "unknown", attempt=2)
    await recording.ended(plan, "run.interrupted")
    await recording.resumed(plan, 2)
    await recording.outcome(plan, 2, "applied", attempt=3)
    await recording.outcome(plan, 3, "applied")
    for ordinal in (5, 6):
        await recording.outcome(plan, ordinal, "skipped")
    await recording.outcome(plan, 4, "failed")
    await recording.ended(plan, "run.failed", n=1)


async def log(recording: Recorder) -> list[StoredEvent]:
    return [event async for event in recording.ledger.events(recording.binding_id)]


def counts(summary: RunSummary | None) -> dict[str, int | None]:
    assert summary is not None
    found: dict[str, Any] = summary.document()
    return {name: found[name] for name in KNOWN}


def doubled(events: Sequence[StoredEvent]) -> list[StoredEvent]:
    return [event for event in events for _ in range(2)]


def stuttering(events: Sequence[StoredEvent]) -> list[StoredEvent]:
    """Delivered again from some position back, after every few events, as a consumer does that died before its ack."""
    found: list[StoredEvent] = []
    for place in range(0, len(events), 3):
        found += events[max(0, place - 5) : place + 3]
    return found


def whole_twice(events: Sequence[StoredEvent]) -> list[StoredEvent]:
    return [*events, *events]


@pytest.mark.rules("G3", "G9", "P125", "P138")
@pytest.mark.parametrize("delivery", [doubled, stuttering, whole_twice], ids=lambda f: f.__name__)
async def test_ff39_events_that_come_again_are_counted_once(
    recording: Recorder, delivery: Callable[[Sequence[StoredEvent]], list[StoredEvent]]
) -> None:
    await seven(recording)
    await seven(recording, "run-2")
    events = await log(recording)
    again = delivery(events)
    assert len(again) > len(events)
    for run_id in ("run-1", "run-2"):
        assert counts(fold_run(again, run_id)) == counts(fold_run(events, run_id)) == KNOWN
    for fold in itertools.chain.from_iterable(projection.folds for projection in PROJECTIONS):
        once: dict[Any, Any] = {}
        twice: dict[Any, Any] = {}
        for stream, states in ((events, once), (again, twice)):
            for event in stream:
                key = fold.key(event)
                if key is not None:
                    states[key] = fold.take(states.get(key), event)
        assert {key: state.canonical_bytes() for key, state in once.items()} == {
            key: state.canonical_bytes() for key, state in twice.items()
        }


@pytest.mark.rules("G3", "G7", "P125")
async def test_ff39_a_log_that_held_each_outcome_twice_would_not_be_counted_twice(recording: Recorder) -> None:
    """The database refuses it; a summary does not rely on that, and counts distinct attempts at distinct operations."""
    await seven(recording)
    events = await log(recording)
    again = [event._replace(position=event.position + len(events)) for event in events]
    assert counts(fold_run([*events, *again], "run-1")) == KNOWN
    between = [copy for pair in zip(events, again, strict=True) for copy in pair]
    rising = [event._replace(position=place) for place, event in enumerate(between, start=1)]
    summary = fold_run(rising, "run-1")
    assert counts(summary) == KNOWN
    assert [len(operation.attempts) for operation in summary.operations] == [
        len(operation.attempts) for operation in fold_run(events, "run-1").operations
    ]


@pytest.mark.rules("G3", "G9")
@pytest.mark.parametrize("fault", ["lose answer", "lose request"])
async def test_ff39_death_between_the_model_and_its_position(
    recording: Recorder, postgres18_ledger_dsns: dict[str, str], fault: Any
) -> None:
    """The connection of the projector dies at another message of its step each time; nothing is taken twice or not."""
    dsns, met = postgres18_ledger_dsns, 0
    async with relay_to(dsns["projector"]) as (relay, dsn):
        for number in range(6):
            await seven(recording, f"run-{number}")
            relay.arm(fault, after=4 + 3 * number)
            async with await ProjectionStore.open(dsn, allow_unsafe_fsync=True) as store:
                await store.catch_up(page_size=4)
                assert counts(await store.run_summary(recording.binding_id, f"run-{number}")) == KNOWN
            met += relay.met.is_set()
            relay.disarm()
    assert met >= 4
    require_equal(await rebuild(dsns["projector"], allow_unsafe_fsync=True))


def require_equal(found: Sequence[Rebuilt]) -> None:
    assert {one.projection for one in found} == {f"{p.name}/{p.version}" for p in PROJECTIONS}
    for one in found:
        assert (one.equal, one.digest) == (True, one.live_digest)


@pytest.mark.rules("G3", "G9")
async def test_ff39_two_projectors_at_once_count_nothing_twice(
    recording: Recorder, postgres18_ledger_dsns: dict[str, str]
) -> None:
    await seven(recording)

    async def follow() -> None:
        async with await ProjectionStore.open(postgres18_ledger_dsns["projector"], allow_unsafe_fsync=True) as store:
            await store.catch_up(page_size=2)

    await asyncio.gather(*(follow() for _ in range(3)))
    async with await ProjectionStore.open(postgres18_ledger_dsns["reader"], allow_unsafe_fsync=True) as store:
        assert counts(await store.run_summary(recording.binding_id, "run-1")) == KNOWN
        [overview] = await store.runs(recording.binding_id)
        assert {name: getattr(overview, name) for name in KNOWN} == KNOWN
    require_equal(await rebuild(postgres18_ledger_dsns["projector"], allow_unsafe_fsync=True))


@pytest.mark.rules("G9")
async def test_ff39_a_rebuild_while_events_arrive(recording: Recorder, postgres18_ledger_dsns: dict[str, str]) -> None:
    dsn = postgres18_ledger_dsns["projector"]
    await seven(recording)

    async def arriving() -> None:
        for number in range(2, 8):
            await seven(recording, f"run-{number}")

    async with await ProjectionStore.open(dsn, allow_unsafe_fsync=True) as store:
        await store.catch_up()
        arrival = asyncio.create_task(arriving())
        while not arrival.done():
            require_equal(await rebuild(dsn, allow_unsafe_fsync=True, page_size=7))
            await store.catch_up(page_size=5)
        await arrival
        await store.catch_up()
        for number in range(1, 8):
            assert counts(await store.run_summary(recording.binding_id, f"run-{number}")) == KNOWN
    require_equal(await rebuild(dsn, allow_unsafe_fsync=True))


@pytest.mark.rules("G9")
async def test_ff39_two_rebuilds(recording: Recorder, postgres18_ledger_dsns: dict[str, str]) -> None:
    """At once one is told to wait; one after the other they find the same; and an edited number is found and mended."""
    dsn = postgres18_ledger_dsns["projector"]
    await seven(recording)
    async with await ProjectionStore.open(dsn, allow_unsafe_fsync=True) as store:
        await store.catch_up()
    ended = await asyncio.gather(*(rebuild(dsn, allow_unsafe_fsync=True) for _ in range(3)), return_exceptions=True)
    assert {type(end) for end in ended} <= {list, RebuildBusyError}
    assert any(isinstance(end, list) for end in ended)
    first = await rebuild(dsn, allow_unsafe_fsync=True)
    second = await rebuild(dsn, allow_unsafe_fsync=True)
    require_equal(first)
    assert first == second
    async with connection_to(postgres18_ledger_dsns["admin"]) as admin:
        changed = await admin.execute(
            "update ledger.projection_document set document = replace(document, '\"attempt\":1', '\"attempt\":7')"
            " where item <> ''"
        )
        assert changed != "UPDATE 0"
    found = {one.projection: one.equal for one in await rebuild(dsn, allow_unsafe_fsync=True)}
    assert found == {one.projection: one.projection != "runs/1" for one in first}
    require_equal(await rebuild(dsn, allow_unsafe_fsync=True))
