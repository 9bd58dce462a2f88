"""What the pages of destinations, runs and operations say is what the ledger says."""

from __future__ import annotations

import html
import re
from datetime import UTC, datetime

import pytest

from ledger.api import reading
from ledger.api.filters import OperationFilter, RunFilter
from ledger.api.tokens import Role
from ledger.dashboard import run_pages
from tests.support.api import BASE, Served
from tests.support.visitors import Visitor, visitor

pytestmark = pytest.mark.integration

HOSTILE = "/bindings/1/runs/run-hostile"
MOMENT = datetime(2026, 11, 30, tzinfo=UTC)


_WHOLE_LIST = "the whole list is stored beside the events, in ledger.detail under the sha256"


def _words(text: str) -> str:
    """What a page says, without its markup."""
    return " ".join(html.unescape(re.sub(r"(?s)<[^>]*>", " ", text)).split())


def _runs(text: str) -> list[str]:
    return re.findall(r'<a class="run" href="/bindings/\d+/runs/([^"]+)"', text)


async def test_the_overview_says_of_each_destination_what_is_with_it(site: Served) -> None:
    async with visitor(site, Role.READER) as somebody:
        said = _words((await somebody.get("/")).text)
        assert "orders wait" in said
        assert "no writer" in said
        assert "1 order oldest" in said
        bindings = (await somebody.get(f"{BASE}/bindings")).json()
        assert [binding["open_orders"] for binding in bindings] == [1, 1]
        assert all(binding["oldest_open_order_at"] for binding in bindings)
        assert f"{bindings[0]['head_position']:,}" in said
        signed = (await somebody.get(f"{BASE}/bindings/1")).json()["head_position"] - 1
        assert f"for event {signed:,}; no other event later" in said, "what is recorded, and nothing of its truth"
        assert "covers" not in said
        assert 'href="/verification?binding=2">none</a>' in (await somebody.get("/")).text


async def test_the_chart_and_its_table_say_what_the_runs_did(site: Served) -> None:
    async with visitor(site, Role.READER) as somebody:
        text = (await somebody.get("/bindings/1")).text
        table = re.search(r'(?s)<table id="activity-table".*?</table>', text)
        assert table is not None
        cells = [int(value) for value in re.findall(r'data-n="(\d+)"', table[0])]
        runs = (await somebody.get(f"{BASE}/bindings/1/runs?limit=500")).json()["items"]
        for place, name in enumerate(("applied", "skipped", "failed", "unknown")):
            assert sum(cells[place::4]) == sum(run[name] for run in runs), name
        assert 'data-chart="activity-table"' in text


async def test_runs_are_found_by_what_they_are_and_when_they_came(site: Served) -> None:
    async with visitor(site, Role.READER) as somebody:
        every = (await somebody.get(f"{BASE}/runs?limit=500")).json()["items"]
        at = {run["run_id"]: run["received_at"] for run in every}
        names = [run["run_id"] for run in every]
        cases = {
            "": names,
            "?state=failed": ["run-update"],
            "?source=library": ["run-refused", "run-update"],
            "?binding=2": ["run-lost"],
            "?binding=1&state=open": ["run-waits"],
            "?state=&source=&binding=&since=&until=": names,
            f"?since={at['run-waits']}": names[: names.index("run-waits") + 1],
            f"?until={at['run-doubt']}": names[names.index("run-doubt") + 1 :],
            f"?binding=1&since={at['run-update']}&until={at['run-delete']}": ["run-doubt", "run-update"],
            "?since=2099-01-01T00:00": [],
            "?until=2000-01-01T00:00": [],
            "?text=COLOURS%20OF": ["run-update"],
            "?text=ticket": [name for name in names if name in ("run-doubt", "run-refused")],
            "?text=bob&state=failed": ["run-update"],
            "?text=bob&state=applied": [],
            "?text=-del": ["run-delete"],
            "?text=nobody%20said": [],
        }
        for query, wanted in cases.items():
            answer = await somebody.get("/runs" + query.replace("+", "%2B"))
            assert _runs(answer.text) == wanted, query


async def test_words_of_an_old_run_are_found_on_the_first_page(site: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_pages, "RUNS_PER_PAGE", 1)
    async with visitor(site, Role.READER) as somebody:
        for query in ("?text=first%20import", "?text=first%20import&binding=1"):
            assert _runs((await somebody.get(f"/runs{query}")).text) == ["run-create"]


def test_whatever_leaves_something_out_is_looked_for_among_many_rows() -> None:
    assert OperationFilter().takes_all
    assert RunFilter().takes_all
    for wanted in (OperationFilter(had="failed"), OperationFilter("failed"), OperationFilter(but="skipped")):
        assert not wanted.takes_all, wanted
    for runs in (RunFilter(text="a"), RunFilter(state="failed"), RunFilter(source="a"), RunFilter(1, until=MOMENT)):
        assert not runs.takes_all, runs


async def test_a_filter_for_a_time_is_sent_again_as_it_came(site: Served) -> None:
    async with visitor(site, Role.READER) as somebody:
        text = (await somebody.get("/runs?since=2026-11-30T12:00:07.250Z&until=2099-01-01T00:00:59Z")).text
        fields = dict(re.findall(r'step="any" name="(since|until)" value="([^"]*)"', text))
        assert fields == {"since": "2026-11-30T12:00:07.250", "until": "2099-01-01T00:00:59"}


async def test_pages_of_runs_lose_nothing_and_keep_their_filters(site: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_pages, "RUNS_PER_PAGE", 2)
    async with visitor(site, Role.READER) as somebody:
        for query in ("", "?binding=1", "?source=netbox", "?binding=1&until=2099-01-01T00:00"):
            found, path = [], f"/runs{query}"
            while path:
                text = (await somebody.get(path)).text
                found += _runs(text)
                following = re.search(r'rel="next" href="([^"]+)"', text)
                path = html.unescape(following[1]) if following else ""
                assert all(part in path for part in query.strip("?").split("&") if path and "until" not in part)
            listed = (
                await somebody.get(f"{BASE}/runs?limit=500{query.replace('?', '&')}".replace("00:00", "00:00Z"))
            ).json()
            assert found == [run["run_id"] for run in listed["items"]], query


async def test_a_list_by_time_ends_where_it_is_to_end(site: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that is older than ``since`` is looked for, however much of it there is."""
    monkeypatch.setattr(reading, "SCAN", 2)
    async with visitor(site, Role.READER) as somebody:
        runs = (await somebody.get(f"{BASE}/runs?limit=500")).json()["items"]
        since = runs[1]["received_at"].replace("+", "%2B")
        page = (await somebody.get(f"{BASE}/runs?since={since}&limit=2")).json()
        assert [run["run_id"] for run in page["items"]] == [run["run_id"] for run in runs[:2]]
        while page["next"]:
            page = (await somebody.get(f"{BASE}/runs?since={since}&limit=2&cursor={page['next']}")).json()
            assert page["items"] == []
        until = runs[-2]["received_at"].replace("+", "%2B")
        for query in (f"until={until}", f"binding=1&until={until}"):
            page = (await somebody.get(f"{BASE}/runs?{query}&limit=1")).json()
            assert [run["run_id"] for run in page["items"]] == [runs[-1]["run_id"]], (
                "the list begins where it is to end"
            )


@pytest.mark.rules("P125", "P126", "G3")
async def test_g03_a_run_shows_its_six_keys_and_counts_that_add_up(site: Served) -> None:
    async with visitor(site, Role.AUDITOR) as somebody:
        for run_id in ("run-create", "run-update", "run-doubt", "run-delete", "run-hostile", "run-waits"):
            text = (await somebody.get(f"/bindings/1/runs/{run_id}")).text
            summary = (await somebody.get(f"{BASE}/bindings/1/runs/{run_id}/summary")).json()
            shown = dict(re.findall(r"<dt>[^<]*<code>(\w+)</code></dt><dd>(.*?)</dd>", text))
            assert list(shown) == list(summary), run_id
            assert shown["applied_operations"] == f"{len(summary['applied_operations']):,}"
            assert shown["skipped_delete_count"] == f"{summary['skipped_delete_count']:,}"
            assert _words(shown["failed_operation"]) == (summary["failed_operation"] or "none")
            wrote = (
                "none"
                if not summary["failed_operation"]
                else ("no, proven" if summary["failed_operation_wrote"] is False else "not known")
            )
            assert shown["failed_operation_wrote"] == wrote
            assert _words(shown["may_have_partially_written"]) == (
                "yes" if summary["may_have_partially_written"] else "no"
            )
            counts = [int(count.replace(",", "")) for count in re.findall(r'<span class="count">([\d,]+)</span>', text)]
            planned = re.search(r"([\d,]+) operations planned", text)
            assert planned is not None
            assert (len(counts), sum(counts)) == (5, int(planned[1].replace(",", ""))), run_id


@pytest.mark.rules("G5", "G11")
async def test_g05_what_stopped_a_run_stands_first_with_what_to_do_next(site: Served) -> None:
    async with visitor(site, Role.AUDITOR) as somebody:
        failed = _words((await somebody.get("/bindings/1/runs/run-update")).text)
        assert "Stopped at operation 1: PeerNotFoundError" in failed
        assert "nothing: that is proven" in failed
        assert "no such peer" in failed
        assert "plan again" in failed
        assert failed.index("PeerNotFoundError") < failed.index("operations planned")
        doubted = _words((await somebody.get("/bindings/1/runs/run-doubt")).text)
        assert "it may have been" in doubted
        assert "that is proven" not in doubted
        refused = _words((await somebody.get("/bindings/1/runs/run-refused")).text)
        assert refused.index("Refused before anything was written") < refused.index("operations planned")
        assert refused.count("PeerNotFoundError") == 13  # twelve findings, and the step that they ended
        # Those for which the event had no room are counted, and it is said where they stand.
        ending = (await somebody.get(f"{BASE}/bindings/1/runs/run-refused")).json()["ending"]["body"]
        assert f"48 more did not fit into an event: {_WHOLE_LIST} {ending['cut']['sha256']}" in refused
        assert "Stopped at" not in _words((await somebody.get("/bindings/1/runs/run-create")).text)


async def test_a_run_says_who_had_it_go_on_and_how(site: Served) -> None:
    async with visitor(site, Role.AUDITOR) as somebody:
        text = (await somebody.get("/bindings/1/runs/run-update")).text
        table = re.search(r'(?s)<caption id="steps".*?</table>', text)
        assert table is not None
        told = [_words(row) for row in re.findall(r"(?s)<tr>.*?</tr>", table[0])][1:]
        assert [row.split()[0] for row in told][-3:] == ["interrupted", "started", "committed"]
        (resumed,) = [row for row in told if row.startswith("resumed")]
        assert "eve" in resumed
        assert "on unknown" in resumed


async def test_a_run_says_which_process_on_which_host_wrote_it_and_what_was_ordered_for_it(site: Served) -> None:
    async with visitor(site, Role.AUDITOR) as somebody:
        page = (await somebody.get("/bindings/1/runs/run-update")).text
        said = _words(page)
        assert re.search(r"Written by host , process process , epoch 1 since \S+ \S+ UTC , event 1 ", said)
        assert "library · colours of the year · committed by bob" in said
        waits = _words((await somebody.get("/bindings/1/runs/run-waits")).text)
        assert "Written by no process yet" in waits
        orders = re.search(r'(?s)<caption id="orders".*?</table>', page)
        assert orders is not None
        assert "commit closed" in _words(orders[0])


@pytest.mark.rules("G11")
async def test_g11_a_refused_run_says_that_it_can_be_resumed(site: Served) -> None:
    async with visitor(site, Role.OPERATOR) as somebody:
        page = (await somebody.get("/bindings/1/runs/run-refused")).text
        assert "Fix what is named and resume the run" in _words(page)


async def test_only_what_may_still_move_is_followed(site: Served) -> None:
    async with visitor(site, Role.AUDITOR) as somebody:
        waits = await somebody.part("/bindings/1/runs/run-waits")
        assert 'data-live data-hx-get="/bindings/1/runs/run-waits"' in waits.text
        stream = re.search(r'data-stream="([^"]+)"', waits.text)
        assert stream is not None
        head = (await somebody.get(f"{BASE}/bindings/1")).json()["head_position"]
        assert html.unescape(stream[1]) == f"{BASE}/bindings/1/runs/run-waits/events/stream?after={head}"
        assert "data-live" not in (await somebody.part(HOSTILE)).text
    async with visitor(site, Role.READER) as somebody:
        waits = await somebody.part("/bindings/1/runs/run-waits")
        assert "data-live" in waits.text
        assert "data-stream" not in waits.text, "a stream of events is not for readers; they look again now and then"


async def test_operations_come_page_by_page_in_the_order_of_the_plan(
    site: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_pages, "OPERATIONS_PER_PAGE", 2)
    async with visitor(site, Role.READER) as somebody:
        assert await _ordinals(somebody, f"{HOSTILE}/operations") == list(range(6))
        assert await _ordinals(somebody, f"{HOSTILE}/operations?outcome=applied") == [0, 1, 2, 3]
        assert await _ordinals(somebody, f"{HOSTILE}/operations?outcome=failed") == [4]
        assert await _ordinals(somebody, f"{HOSTILE}/operations?kind=LocationSite") == [1]
        assert await _ordinals(somebody, f"{HOSTILE}/operations?outcome=but_skipped") == list(range(6))
        assert await _ordinals(somebody, "/bindings/1/runs/run-delete/operations?outcome=but_skipped") == []
        assert "all but the 1 skipped" in (await somebody.get("/bindings/1/runs/run-delete")).text
        assert await _ordinals(somebody, f"{HOSTILE}/operations?outcome=had_failed") == [4]
        assert await _ordinals(somebody, f"{HOSTILE}/operations?outcome=had_unknown") == [5]
        nothing = await somebody.get(f"{HOSTILE}/operations?kind=DcimDevice")
        assert "No matching operation" in nothing.text


async def test_an_operation_that_was_unknown_and_is_applied_now_is_found_by_what_it_had(site: Served) -> None:
    async with visitor(site, Role.READER) as somebody:
        update = "/bindings/1/runs/run-update/operations"
        now = await somebody.get(f"{update}?outcome=unknown")
        assert "No operation is unknown now" in now.text
        assert f'href="{update}?outcome=had_unknown"' in now.text
        assert await _ordinals(somebody, f"{update}?outcome=had_unknown") == [0]
        assert await _ordinals(somebody, f"{update}?outcome=had_unknown&kind=LocationSite") == []
        assert await _ordinals(somebody, f"{update}?outcome=had_failed") == [1]
        assert await _ordinals(somebody, "/bindings/1/runs/run-create/operations?outcome=had_unknown") == []


async def test_a_page_without_a_match_looks_further_by_itself(site: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "SCAN", 2)
    monkeypatch.setattr(run_pages, "OPERATIONS_PER_PAGE", 1)
    async with visitor(site, Role.READER) as somebody:
        text = (await somebody.part(f"{HOSTILE}/operations?outcome=unknown&kind=BuiltinTag")).text
        assert ">5</a>" in text
        text = (await somebody.part(f"{HOSTILE}/operations?kind=DcimDevice")).text
        assert 'data-hx-trigger="load"' in text
        assert "looking further" in text
        assert await _ordinals(somebody, f"{HOSTILE}/operations?kind=DcimDevice") == []


async def _ordinals(somebody: Visitor, path: str) -> list[int]:
    found: list[int] = []
    while path:
        text = (await somebody.part(path)).text
        found += [int(ordinal) for ordinal in re.findall(r'aria-label="Operation (\d+)"', text)]
        following = re.search(r'rel="next" href="([^"]+)"', text)
        path = html.unescape(following[1]) if following else ""
    return found


@pytest.mark.rules("H16")
async def test_an_operation_shows_what_stood_there_and_what_it_makes_of_it(site: Served) -> None:
    async with visitor(site, Role.AUDITOR) as somebody:
        red = next(
            operation
            for operation in (await somebody.get(f"{BASE}/bindings/1/runs/run-update/operations")).json()["items"]
            if operation["identity"] == {"name": "red"}
        )
        text = (await somebody.get(f"/bindings/1/runs/run-update/operations/{red['ordinal']}")).text
        rows = [_words(row) for row in re.findall(r"(?s)<tr>(.*?)</tr>", text)]
        assert "description a → warm" in rows
        assert 'tags not known → ["x"]' in rows
        assert rows.index("description a → warm") < rows.index('tags not known → ["x"]'), "what differs stands first"
        attempts = [row for row in rows if row.startswith(("1 ", "2 "))]
        assert len(attempts) == len(red["attempts"])
        assert all(re.search(r"ago \S+ \S+ UTC", row) for row in attempts), "when each was recorded"
