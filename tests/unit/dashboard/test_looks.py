"""How values look on a page, what is said of a destination in one word, and how runs are put together over time."""

from __future__ import annotations

import html
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.api.models import BindingView, RunView, WriterView
from ledger.dashboard.assets import Assets
from ledger.dashboard.run_story import changes, parts, refusal_in
from ledger.dashboard.states import STATES
from ledger.dashboard.templating import ago, duration, href, iso_text, local_text, moment_text, new_environment, number
from ledger.dashboard.verdicts import MOST_BUCKETS, activity, newest, verdict
from ledger.projections.binding_status import RunMark

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def _mark(kind: str, position: int) -> RunMark:
    return RunMark(run_id=f"run-{position}", kind=kind, position=position, at="2026-11-30T12:00:00+00:00")


def _binding(*, live: bool = True, orders: int = 0, **marks: RunMark) -> BindingView:
    return BindingView(
        id=1,
        url="http://infrahub.example",
        branch="main",
        head_position=9,
        head_hash="0" * 64,
        projected_position=9,
        writer=WriterView(epoch=1, host="host", taken_at=NOW, lease_expires_in=9.0, live=live),
        in_flight=None,
        quiet_for=0,
        open_orders=orders,
        oldest_open_order_at=NOW if orders else None,
        last_commit=marks.get("last_commit"),
        last_start=marks.get("last_start"),
        last_end=marks.get("last_end"),
        last_applied=marks.get("last_applied"),
    )


def _run(**fields: Any) -> RunView:
    plain: dict[str, Any] = dict.fromkeys(RunView.model_fields)
    counts = {"applied": 0, "skipped": 0, "failed": 0, "unknown": 0, "not_attempted": 0, "planned": 0}
    known = {
        "binding_id": 1,
        "run_id": "run-1",
        "source": "netbox",
        "state": "applied",
        "running": False,
        "order_state": "done",
        "may_have_partially_written": False,
        "received_at": NOW,
    }
    return RunView(**(plain | counts | known | fields))


@pytest.mark.parametrize(
    ("binding", "word"),
    [
        (_binding(), "new"),
        (_binding(orders=1), "waiting"),
        (_binding(orders=1, live=False), "no_writer"),
        (_binding(last_start=_mark("run.started", 3)), "applying"),
        (_binding(last_start=_mark("run.started", 3), live=False), "stalled"),
        (_binding(last_start=_mark("run.started", 3), last_end=_mark("run.applied", 5)), "settled"),
        (_binding(last_start=_mark("run.resumed", 7), last_end=_mark("run.failed", 5), orders=1), "applying"),
        (_binding(last_start=_mark("run.started", 3), last_end=_mark("run.failed", 5)), "failed"),
        (_binding(last_start=_mark("run.started", 3), last_end=_mark("run.interrupted", 5), live=False), "interrupted"),
        (_binding(last_end=_mark("plan.refused", 5)), "refused"),
        (_binding(last_end=_mark("run.stopped", 5)), "stopped"),
    ],
)
def test_a_destination_in_one_word(binding: BindingView, word: str) -> None:
    assert verdict(binding) == word
    assert word in STATES


def test_the_newest_thing_that_happened_is_the_one_with_the_greatest_position() -> None:
    assert newest(_binding()) is None
    found = newest(_binding(last_commit=_mark("plan.committed", 7), last_end=_mark("run.applied", 5)))
    assert found is not None
    assert found.position == 7


@given(st.lists(st.tuples(st.integers(0, 4000 * 86400), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=30))
def test_runs_over_time_lose_nothing_and_leave_no_gap(given_runs: list[tuple[int, int, int]]) -> None:
    runs = [
        _run(ended_at=(NOW - timedelta(seconds=age)).isoformat(), applied=applied, failed=failed)
        for age, applied, failed in given_runs
    ]
    found = activity(runs)
    assert found is not None
    assert sum(bucket.runs for bucket in found.buckets) == len(runs)
    assert sum(bucket.applied for bucket in found.buckets) == sum(run.applied for run in runs)
    assert sum(bucket.failed for bucket in found.buckets) == sum(run.failed for run in runs)
    assert len(found.buckets) <= MOST_BUCKETS
    steps = {later.begins - former.begins for former, later in zip(found.buckets, found.buckets[1:], strict=False)}
    assert len(steps) <= 1


def test_no_run_is_no_chart_and_a_run_counts_where_it_ended() -> None:
    assert activity([]) is None
    found = activity([_run(started_at="2026-11-29T10:59:00+00:00", ended_at="2026-11-29T11:01:00+00:00")])
    assert found is not None
    assert (found.width, [bucket.begins.isoformat() for bucket in found.buckets]) == (
        "hour",
        ["2026-11-29T11:00:00+00:00"],
    )


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 3), st.integers(0, 3), st.integers(0, 10**6))
def test_the_parts_of_a_run_add_up(applied: int, skipped: int, failed: int, unknown: int, rest: int) -> None:
    planned = applied + skipped + failed + unknown + rest
    counts = {"applied": applied, "skipped": skipped, "failed": failed, "unknown": unknown, "not_attempted": rest}
    found = parts(_run(planned=planned, **counts))
    assert {part.name: part.count for part in found} == counts
    assert all(part.width > 0 for part in found if part.count and part.name in ("failed", "unknown"))
    assert sum(part.width for part in found) <= (1010 if planned else 0)


def test_what_differs_stands_first_and_what_is_not_known_is_not_claimed() -> None:
    found = changes({"a": 1, "b": 2, "c": 3}, {"b": 2, "c": 9, "d": "left"})
    seen = [(change.field, change.differs) for change in found]
    assert seen == [("c", True), ("a", False), ("b", False), ("d", False)]
    by_field = {change.field: change for change in found}
    assert (by_field["a"].known, by_field["d"].asserted) == (False, False)


@pytest.mark.rules("G5")
def test_g05_what_a_refusal_does_not_hold_is_not_said_to_stand_on_its_page() -> None:
    found = dict.fromkeys(("name", "checked", "expected", "found", "next_action"), "x")
    cut = {"total": 250, "sha256": "ab"}
    cases: dict[tuple[int, int, str | None, bool], Any] = {
        (100, 0, None, True): {"findings": [found] * 100},
        (101, 0, None, False): {"findings": [found] * 101},
        (3, 247, "ab", False): {"findings": [found] * 3, "cut": cut},
        (1, 249, None, False): {"findings": [found, "text", 1], "cut": {"total": 250, "sha256": 7}},
        (0, 0, None, True): {"findings": "text", "cut": "text"},
    }
    for wanted, body in cases.items():
        refusal = refusal_in(body)
        assert (len(refusal.findings), refusal.more, refusal.whole, refusal.fits_a_page) == wanted
    assert refusal_in({"findings": [{}]}).findings == [dict.fromkeys(found, "?")]


def test_numbers_and_times_as_a_page_shows_them() -> None:
    assert [number(value) for value in (None, 0, 1234567)] == ["–", "0", "1,234,567"]
    assert moment_text("2026-11-30T13:00:00.123456+01:00") == "2026-11-30 12:00:00 UTC"
    assert iso_text("2026-11-30T13:00:00.123456+01:00") == "2026-11-30T12:00:00.123456+00:00"
    assert [duration(value) for value in (None, 0.0421, 3, 59.96, 61, 3600, 90061)] == [
        "–",
        "42 ms",
        "3.0 s",
        "1 min",
        "1 min 1 s",
        "1 h",
        "1 d 1 h",
    ]
    assert [local_text(NOW + timedelta(seconds=rest)) for rest in (0, 7, 7.25)] == [
        "2026-11-30T12:00",
        "2026-11-30T12:00:07",
        "2026-11-30T12:00:07.250",
    ]
    assert ago(NOW - timedelta(minutes=3), NOW) == "3 min ago"
    assert ago(NOW + timedelta(hours=3), NOW) == "just now"


def test_an_address_holds_what_it_is_given_and_nothing_that_is_none() -> None:
    assert href("/a/{b}/c", {"b": "x/y?z&<"}) == "/a/x%2Fy%3Fz%26%3C/c"
    assert href("/a", state=None, source="", kind="x y&z") == "/a?kind=x+y%26z"
    assert href("/a", since=NOW) == "/a?since=2026-11-30T12%3A00%3A00.000000%2B00%3A00"


def test_an_identity_names_what_it_refers_to_in_the_way_it_names_itself() -> None:
    environment = new_environment(Assets())
    template = environment.from_string(
        '{% import "object_macros.html" as o with context %}{{ o.identity(fields, 20) }}'
    )
    site = {"peer_kind": "LocationSite", "identity": {"name": "<atl>"}}
    rack = {"peer_kind": "DcimRack", "identity": {"name": "r1", "site": site}}
    text = re.sub(r"<[^>]*>", "", template.render(fields={"rack": rack, "unit": 3}))
    assert " ".join(html.unescape(text).split()) == "rack (name r1 site (name <atl>)) unit 3"
