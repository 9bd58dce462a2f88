"""The asserted state as of a place, and what differs between two: time travel over the log alone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ledger.audit.errors import PlanOfRunMissingError
from ledger.audit.state import asserted_states, state_changes
from ledger.audit.window import before, last_position, place_of
from ledger.errors import UsageError
from ledger.store.ledger import BindingRow, Ledger
from tests.support.store import connection_to

pytestmark = pytest.mark.integration


@pytest.fixture
async def ledger(told_dsns: dict[str, str]) -> AsyncIterator[Ledger]:
    async with await Ledger.open(told_dsns["reader"], allow_unsafe_fsync=True) as opened:
        yield opened


@pytest.fixture
async def row(ledger: Ledger) -> BindingRow:
    return (await ledger.bindings())[0]


async def _states(ledger: Ledger, row: BindingRow, until: int, **options: Any) -> dict[str, dict[str, Any]]:
    found = [state.document() async for state in asserted_states(ledger, row, until=until, **options)]
    assert [state["object_key"] for state in found] == sorted(state["object_key"] for state in found)
    return {state["identity"]["name"]: state for state in found}


async def _end_of(ledger: Ledger, row: BindingRow, run_id: str) -> int:
    return max([event.position async for event in ledger.events(row.id, run_id=run_id)])


@pytest.mark.rules("G6")
async def test_the_state_is_what_was_applied_and_nothing_else(ledger: Ledger, row: BindingRow) -> None:
    states = await _states(ledger, row, row.head_position)
    assert {name: state["fields"] for name, state in states.items()} == {
        "red": {"name": "red", "description": "warm", "tags": ["x"]},
        "blue": {"name": "blue", "description": "b"},
        "green": {"name": "green"},
    }
    assert states["red"]["run_id"] == "run-update"
    assert [doubt["fields"] for doubt in states["red"]["in_doubt"]] == [{"name": "red", "description": "a"}]
    assert states["green"]["delete_recorded"] is not None
    assert states["blue"]["in_doubt"] == []


async def test_the_state_as_of_an_earlier_position_is_that_of_then(ledger: Ledger, row: BindingRow) -> None:
    created = await _end_of(ledger, row, "run-create")
    states = await _states(ledger, row, created)
    assert states["red"]["fields"]["description"] == "a"
    assert states["green"]["delete_recorded"] is None
    assert await _states(ledger, row, 0) == {}
    assert list(await _states(ledger, row, created, kind="NoSuchKind")) == []


@pytest.mark.rules("G5")
async def test_a_doubt_ends_where_something_certain_was_written_over_it(ledger: Ledger, row: BindingRow) -> None:
    in_doubt = [event async for event in ledger.events(row.id, run_id="run-update") if event.kind.endswith("unknown")]
    states = await _states(ledger, row, in_doubt[0].position)
    assert states["red"]["fields"]["description"] == "a"
    assert states["red"]["in_doubt"][0]["fields"]["description"] == "warm"
    after = await _states(ledger, row, await _end_of(ledger, row, "run-update"))
    assert after["red"]["in_doubt"] == []


async def test_a_diff_leads_from_one_place_to_the_other_and_back(ledger: Ledger, row: BindingRow) -> None:
    created = await _end_of(ledger, row, "run-create")
    updated = await _end_of(ledger, row, "run-update")

    async def changes(first: int, second: int) -> list[tuple[str, str, dict[str, Any]]]:
        found = [change async for change in state_changes(ledger, row, first=first, second=second)]
        return [
            (change.document()["change"], change.document()["identity"]["name"], change.document()["fields"])
            for change in found
        ]

    assert await changes(created, updated) == [("changed", "red", {"description": {"before": "a", "after": "warm"}})]
    assert await changes(updated, created) == [("changed", "red", {"description": {"before": "warm", "after": "a"}})]
    assert await changes(updated, updated) == []
    assert {(change, name) for change, name, _ in await changes(0, created)} == {
        ("added", "red"),
        ("added", "blue"),
        ("added", "green"),
    }
    assert {(change, fields.get("name", {}).get("before")) for change, _, fields in await changes(created, 0)} == {
        ("removed", "red"),
        ("removed", "blue"),
        ("removed", "green"),
    }


async def test_a_place_is_a_position_or_a_time(ledger: Ledger, row: BindingRow) -> None:
    events = [event async for event in ledger.events(row.id)]
    for event in (events[0], events[7], events[-1]):
        assert await last_position(ledger, row, event.recorded_at) == event.position
        assert await before(ledger, row, event.recorded_at) == event.position - 1
        just_before = event.recorded_at - timedelta(microseconds=1)
        assert await last_position(ledger, row, just_before) == event.position - 1
    assert await last_position(ledger, row, datetime(1999, 1, 1, tzinfo=UTC)) == 0
    assert await last_position(ledger, row, 10**9) == row.head_position
    assert await last_position(ledger, row, None) == row.head_position
    assert (await before(ledger, row, None), await before(ledger, row, 5)) == (0, 4)


def test_what_is_no_place_is_a_usage_error() -> None:
    assert place_of("17", option="--at") == 17
    assert place_of("2026-11-29", option="--at") == datetime(2026, 11, 29, tzinfo=UTC)
    assert place_of("2026-11-29T18:05:00+01:00", option="--at") == datetime(2026, 11, 29, 17, 5, tzinfo=UTC)
    beyond = ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00")
    for text in ("", "yesterday", "-1", "²", "2026-13-01", "9" * 30, *beyond):
        with pytest.raises(UsageError, match="--at"):
            place_of(text, option="--at")


@pytest.mark.rules("G8")
async def test_outcomes_without_their_plan_are_not_passed_over(
    told_dsns: dict[str, str], ledger: Ledger, row: BindingRow
) -> None:
    async with connection_to(told_dsns["admin"]) as admin:
        await admin.execute("alter table ledger.artifact disable trigger all")
        await admin.execute("delete from ledger.artifact where run_id = 'run-update'")
    with pytest.raises(PlanOfRunMissingError, match="run-update"):
        await _states(ledger, row, row.head_position)
