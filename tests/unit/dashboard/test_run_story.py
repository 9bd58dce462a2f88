"""What is to be done about a run, how fast it goes, who wrote it: from what was recorded, whatever that is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from consumers.infrahub.classification import TABLE, Row
from ledger.api.models import OrderView, RunView
from ledger.dashboard.run_story import (
    is_ordered,
    only_a_fresh_plan_helps,
    pace_of,
    refusal_in,
    without_advice,
    writers_of,
)
from ledger.store.pages import RunMark
from ledger.store.story_pages import OpeningMark

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


@pytest.mark.rules("G11")
@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_g11_a_fresh_plan_is_put_first_exactly_where_nothing_else_helps(row: Row) -> None:
    assert only_a_fresh_plan_helps(row.next_action) == row.is_final


@pytest.mark.parametrize(
    ("advice", "fresh"),
    [
        ("make a fresh plan; it will contain an update or nothing for this object", True),
        ("make a fresh plan, or resume with --allow-stale to apply this one anyway", False),
        ("restore the files that were reviewed, or make, review and commit a fresh plan", False),
        ("apply the plan with a version that knows this action, or make a fresh plan", False),
        ("", False),
    ],
)
def test_an_advice_that_names_another_way_too_leaves_it_to_its_reader(advice: str, fresh: bool) -> None:
    assert only_a_fresh_plan_helps(advice) == fresh
    assert refusal_in({"findings": [{"next_action": "x"}, {"next_action": advice}]}).is_of_the_plan == fresh


def test_what_to_do_next_is_taken_out_of_a_message_that_says_it_as_refusals_do() -> None:
    assert without_advice("gone. Next: plan again", "plan again") == "gone."
    assert without_advice("gone. Next: plan again It may have written.", "plan again") == "gone. It may have written."
    assert without_advice("Next: plan again is what it said", "plan again") == "Next: plan again is what it said"
    assert without_advice("gone. Next: plan again", None) == "gone. Next: plan again"
    assert without_advice(None, "plan again") is None


def _run(**fields: Any) -> RunView:
    plain: dict[str, Any] = dict.fromkeys(RunView.model_fields)
    known = {
        "binding_id": 1,
        "run_id": "run-1",
        "source": "netbox",
        "state": "open",
        "order_state": "open",
        "may_have_partially_written": False,
        "received_at": NOW,
    }
    counts = {"applied": 0, "skipped": 0, "failed": 0, "unknown": 0}
    return RunView(**(plain | known | counts | fields))


def _mark(kind: str, seconds: float, body: bytes = b"{}") -> RunMark:
    return RunMark(7, kind, NOW - timedelta(seconds=seconds), body, 1)


def test_a_pace_counts_from_the_last_start_or_resumption() -> None:
    run = _run(running=True, planned=100, not_attempted=40)
    started, committed = _mark("run.started", 30), _mark("plan.committed", 90)
    assert pace_of(run, [started, committed], NOW) == (2.0, 20.0)
    resumed = _mark("run.resumed", 5, b'{"from_ordinal":50}')
    assert pace_of(run, [resumed, started, committed], NOW) == (2.0, 20.0)
    for nothing in (
        pace_of(run, [committed], NOW),
        pace_of(run, [_mark("run.started", 0.5)], NOW),
        pace_of(run, [_mark("run.resumed", 5, b'{"from_ordinal":60}')], NOW),
        pace_of(_run(running=False, planned=100, not_attempted=40), [started], NOW),
        pace_of(_run(running=True, planned=None, not_attempted=None), [started], NOW),
    ):
        assert nothing is None
    assert pace_of(run, [_mark("run.resumed", 30, b'{"from_ordinal":"x"}')], NOW) == (2.0, 20.0)


def test_writers_come_with_what_they_said_of_themselves_newest_first() -> None:
    said = [b'{"host":"a","process_id":"p"}', b'{"host":7}', b"none"]
    marks = [OpeningMark(1, epoch, epoch * 10, NOW, body) for epoch, body in enumerate(said, 1)]
    assert [(writer.epoch, writer.host, writer.process_id) for writer in writers_of(marks)] == [
        (3, "?", "?"),
        (2, "?", "?"),
        (1, "a", "p"),
    ]


def test_a_stop_orders_nobody_to_go_on() -> None:
    def order(kind: str, state: str) -> OrderView:
        plain: dict[str, Any] = dict.fromkeys(OrderView.model_fields)
        known = {"inbox_id": 1, "order_id": "o", "run_id": "run-1", "position": 1, "received_at": NOW, "body": {}}
        return OrderView(**(plain | known | {"kind": kind, "state": state}))

    assert is_ordered([order("stop", "open"), order("resume", "open")])
    assert not is_ordered([order("stop", "open"), order("resume", "done"), order("commit", "refused")])
