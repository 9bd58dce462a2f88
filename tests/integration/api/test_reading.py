"""What the API reads out: pages by keys, one run, its operations, the record as it was written."""

from __future__ import annotations

import base64
import json
from typing import Any

import httpx
import pytest

from ledger.api.cursors import new_cursor
from ledger.api.tokens import Role
from ledger.chain import event_hash
from ledger.commit import Policy
from ledger.events import RunResumed
from ledger.projections.run_summary import fold_run
from tests.support.api import BASE, Served
from tests.support.recorded_runs import Recorder, make_plan

pytestmark = pytest.mark.integration


async def _get(client: httpx.AsyncClient, path: str, **query: Any) -> Any:
    response = await client.get(BASE + path, params=query)
    assert response.status_code == 200, response.text
    return response.json()


async def _all(client: httpx.AsyncClient, path: str, **query: Any) -> list[dict[str, Any]]:
    """Every item of a list, page by page."""
    items: list[dict[str, Any]] = []
    cursor: dict[str, str] = {}
    for _ in range(200):
        page = await _get(client, path, **query, **cursor)
        items += page["items"]
        if page["next"] is None:
            return items
        cursor = {"cursor": page["next"]}
    raise AssertionError("the list does not come to its end")


@pytest.mark.rules("P125", "P126", "G3", "G6")
async def test_g03_a_run_counts_like_the_fold_of_its_events(api: Served, recording: Recorder) -> None:
    events = [event async for event in recording.ledger.events(recording.binding_id)]
    async with api.client() as client:
        for run_id in ("run-1", "run-2", "run-3"):
            wanted = fold_run(events, run_id)
            run = await _get(client, f"/bindings/1/runs/{run_id}")
            summary = await _get(client, f"/bindings/1/runs/{run_id}/summary")
            assert summary == wanted.keys()
            document = wanted.document()
            for name in ("state", "running", "planned", "applied", "skipped", "failed", "unknown", "not_attempted",
                         "failed_operation", "failed_operation_wrote", "may_have_partially_written", "source",
                         "plan_checksum", "committed_position", "started_position", "ended_position"):  # fmt: skip
                assert run[name] == document[name], (run_id, name)


async def test_runs_are_listed_newest_first_and_filtered(api: Served) -> None:
    async with api.client() as client:
        for path in ("/runs", "/bindings/1/runs"):
            for limit in (1, 2, 50):
                runs = await _all(client, path, limit=limit)
                assert [run["run_id"] for run in runs] == ["run-3", "run-2", "run-1"]
            assert [run["run_id"] for run in await _all(client, path, state="applied", limit=1)] == ["run-1"]
            assert [run["run_id"] for run in await _all(client, path, source="device-library")] == ["run-2"]
            assert await _all(client, path, state="refused") == []
        assert [run["run_id"] for run in await _all(client, "/runs", binding=1, limit=2)] == ["run-3", "run-2", "run-1"]


async def test_nothing_shifts_between_pages_while_runs_are_committed(api: Served, recording: Recorder) -> None:
    async with api.client() as client:
        first = await _get(client, "/runs", limit=2)
        await recording.commit(make_plan("run-4", creates=1), store=False)
        rest = await _get(client, "/runs", limit=2, cursor=first["next"])
        assert [run["run_id"] for run in first["items"] + rest["items"]] == ["run-3", "run-2", "run-1"]
        assert rest["next"] is None


async def test_what_was_appended_a_moment_ago_is_in_the_answer(api: Served, recording: Recorder) -> None:
    plan = make_plan("run-5", creates=2, deletes=0)
    async with api.client() as client:
        await recording.commit(plan)
        await recording.started(plan)
        for ordinal in (0, 1):
            await recording.outcome(plan, ordinal, "applied")
            assert (await _get(client, "/bindings/1/runs/run-5"))["applied"] == ordinal + 1


async def test_operations_page_by_page_with_what_became_of_each(api: Served) -> None:
    plan = make_plan("run-2", creates=4, deletes=2)
    async with api.client() as client:
        path = "/bindings/1/runs/run-2/operations"
        for limit in (1, 4, 50):
            operations = await _all(client, path, limit=limit)
            assert [item["operation_id"] for item in operations] == [item.operation_id for item in plan.operations]
            assert [item["outcome"] for item in operations] == ["applied", "unknown", *["not_attempted"] * 4]
        assert [item["ordinal"] for item in await _all(client, path, outcome="unknown", limit=1)] == [1]
        assert [item["ordinal"] for item in await _all(client, path, outcome="not_attempted", limit=3)] == [2, 3, 4, 5]
        assert await _all(client, path, kind="DcimDevice") == []
        one = await _get(client, f"{path}/1")
        assert one["line"] == plan.operations[1].line().decode()
        assert one["attempts"][0]["error"] == "ReadTimeout"
        assert await _all(client, "/bindings/1/runs/run-3/operations") == []
        assert (await client.get(f"{BASE}{path}/6")).status_code == 404


@pytest.mark.rules("G8")
async def test_g08_events_are_the_recorded_bytes(api: Served, recording: Recorder) -> None:
    stored = [event async for event in recording.ledger.events(recording.binding_id)]
    async with api.client() as client:
        for limit in (1, 7, 500):
            events = await _all(client, "/bindings/1/events", limit=limit)
            assert [event["position"] for event in events] == [event.position for event in stored]
            assert [event["hash"] for event in events] == [event_hash(event).hex() for event in stored]
        for event in stored:
            body = await client.get(f"{BASE}/bindings/1/events/{event.position}/body")
            assert body.content == event.body
            one = await client.get(f"{BASE}/bindings/1/events/{event.position}")
            assert event.body in one.content
        of_run = await _all(client, "/bindings/1/runs/run-2/events", limit=2)
        assert [event["position"] for event in of_run] == [e.position for e in stored if e.run_id == "run-2"]
        plan = make_plan("run-2", creates=4, deletes=2)
        of_one = await _all(client, "/bindings/1/runs/run-2/events", operation=plan.operations[1].operation_id)
        assert [event["kind"] for event in of_one] == ["operation.unknown"]
        assert (await client.get(f"{BASE}/bindings/1/events/{len(stored) + 1}")).status_code == 404
        behind = await _all(client, "/bindings/1/events", after=3, limit=2)
        assert behind[0]["position"] == 4


async def test_a_binding_says_who_writes_and_not_by_which_secret(api: Served, recording: Recorder) -> None:
    async with api.client() as client:
        response = await client.get(f"{BASE}/bindings/1")
        binding = response.json()
        [row] = await recording.ledger.bindings()
        assert (binding["head_position"], binding["head_hash"]) == (row.head_position, row.head_hash.hex())
        assert (binding["projected_position"], binding["writer"]["live"]) == (row.head_position, True)
        assert binding["last_applied"]["run_id"] == "run-1"
        assert recording.lease.owner not in response.text
        [listed] = await _get(client, "/bindings")
        assert listed | {"writer": binding["writer"]} == binding
        assert (await client.get(f"{BASE}/bindings/2")).status_code == 404


async def test_orders_workers_and_refused_messages(api: Served, recording: Recorder) -> None:
    from ledger.errors import Finding
    from ledger.store.records import MessagePlace

    finding = Finding(name="NoJson", checked="the body", expected="JSON", found="none", next_action="commit again")
    for offset in range(5):
        place = MessagePlace("plan-commits", 0, offset)
        await recording.ledger.refuse_message(place, digest=bytes(32), findings=[finding], binding=None)
    binding = (await recording.ledger.bindings())[0].binding
    await recording.ledger.worker_beat("worker-1", host="host", serves=[binding], held=1, ttl=60.0)
    async with api.client() as client:
        orders = await _all(client, "/bindings/1/inbox", limit=2)
        assert [(order["kind"], order["run_id"]) for order in orders] == [
            ("commit", "run-3"),
            ("commit", "run-2"),
            ("commit", "run-1"),
        ]
        refused = await _all(client, "/refused-messages", limit=2)
        assert [message["offset"] for message in refused] == [4, 3, 2, 1, 0]
        assert [worker["serves"] for worker in await _get(client, "/workers")] == [[str(binding)]]


async def test_an_answer_that_is_known_is_not_sent_again(api: Served, recording: Recorder) -> None:
    async with api.client() as client:
        first = await client.get(f"{BASE}/bindings/1/runs/run-1")
        tag = first.headers["etag"]
        again = await client.get(f"{BASE}/bindings/1/runs/run-1", headers={"If-None-Match": f'"other", W/{tag}'})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
        resumed = RunResumed(by="somebody", reason="again", from_ordinal=0, policy=Policy())
        await recording.event("run.resumed", resumed, "run-1", n="again")
        changed = await client.get(f"{BASE}/bindings/1/runs/run-1", headers={"If-None-Match": tag})
        assert changed.status_code == 200


def _forged(cursor: str) -> list[str]:
    data = bytearray(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    flipped = [bytes(data[:place]) + bytes([data[place] ^ 1]) + bytes(data[place + 1 :]) for place in range(len(data))]
    made_up = json.dumps([1, "0" * 16, 5]).encode()
    others = ["", "x", "é", "\0", "A" * 1000, "=" * 8, base64.urlsafe_b64encode(bytes(8) + made_up).decode()]
    return [base64.urlsafe_b64encode(item).decode().rstrip("=") for item in flipped] + others


async def test_a_forged_cursor_is_refused_wherever_it_was_touched(api: Served) -> None:
    async with api.client() as client:
        cursor = (await _get(client, "/runs", limit=1))["next"]
        for forged in _forged(cursor):
            response = await client.get(f"{BASE}/runs", params={"cursor": forged, "limit": 1})
            assert (response.status_code, response.json()["code"]) == (400, "InvalidCursorError"), forged
        for other in ({"source": "netbox"}, {"state": "open"}, {"binding": 1}):
            response = await client.get(f"{BASE}/runs", params={"cursor": cursor, **other})
            assert response.json()["code"] == "InvalidCursorError", other
        events = await client.get(f"{BASE}/bindings/1/events", params={"cursor": cursor})
        assert events.json()["code"] == "InvalidCursorError"


SPAN = ("since", "until")
BEYOND_UTC = ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00")


async def test_a_made_up_cursor_with_what_no_key_holds_is_refused_or_ends_the_list(api: Served) -> None:
    """A cursor is checked and not signed: who reads how can make one, and must not find a defect behind it."""
    now = "2026-11-29T00:00:00+00:00"
    runs: list[Any] = ["runs", None, None, None, None, None]
    made: list[tuple[str, list[Any], list[Any]]] = [
        *(("/runs", runs, [when, 0, 0]) for when in BEYOND_UTC),
        *(("/refused-messages", ["refused-messages"], [when, "t", 0, 0]) for when in BEYOND_UTC),
        ("/refused-messages", ["refused-messages"], [now, "\ud800", 0, 0]),
    ]
    async with api.client() as client:
        for path, scope, parts in made:
            response = await client.get(f"{BASE}{path}", params={"cursor": new_cursor(scope, parts)})
            assert (response.status_code, response.json()["code"]) == (400, "InvalidCursorError"), (path, parts)
        largest = new_cursor(["refused-messages"], [now, "t", 2**63 - 1, 2**63 - 1])
        assert await _get(client, "/refused-messages", cursor=largest) == {"items": [], "next": None}


async def test_a_filter_by_time_takes_every_moment_that_utc_has(api: Served) -> None:
    async with api.client() as client:
        everything = await _get(client, "/runs")
        span = {"since": "0001-01-01T00:00:00Z", "until": "9999-12-31T23:59:59Z"}
        assert await _get(client, "/runs", **span) == everything


@pytest.mark.parametrize(
    ("path", "query"),
    [
        *((path, {name: when}) for path in ("/runs", "/bindings/1/runs") for name in SPAN for when in BEYOND_UTC),
        ("/runs", {"limit": "0"}),
        ("/runs", {"limit": "501"}),
        ("/runs", {"state": "done"}),
        ("/runs", {"source": "a b"}),
        ("/runs", {"binding": "0"}),
        ("/runs", {"sate": "applied"}),
        ("/bindings/1/events", {"after": "-1"}),
        ("/bindings/1/events", {"run": "run-1"}),
        ("/bindings/0/events", {}),
        ("/bindings/99999999999999999999/events", {}),
        ("/bindings/1/runs/run-1/events", {"operation": "op_1"}),
        ("/bindings/1/runs/%00", {}),
        ("/bindings/1/runs/run-1/operations", {"outcome": "done"}),
        ("/bindings/1/runs/run-1/operations", {"kind": "a;b"}),
        ("/bindings/1/events/stream", {"after": "x"}),
    ],
)
@pytest.mark.rules("G11")
async def test_g11_a_filter_that_is_none_is_refused_by_name(api: Served, path: str, query: dict[str, str]) -> None:
    async with api.client() as client:
        response = await client.get(BASE + path, params=query)
        assert response.status_code == 422
        assert response.headers["content-type"] == "application/problem+json"
        problem = response.json()
        assert (problem["code"], problem["status"]) == ("InvalidRequestError", 422)
        for name in query:
            assert name in problem["found"]


@pytest.mark.rules("G11")
@pytest.mark.parametrize(
    "path",
    [
        "/bindings?limit=1",
        "/bindings/1?run=run-1",
        "/workers?state=live",
        "/runs?colour=red",
        "/bindings/1/runs/run-1?x",
    ],
)
async def test_g11_a_parameter_that_an_address_does_not_know_is_refused(api: Served, path: str) -> None:
    async with api.client(Role.READER) as client:
        answer = await client.get(f"{BASE}{path}")
    assert answer.status_code == 422, answer.text
    assert path.partition("?")[2].partition("=")[0] in answer.json()["found"]


@pytest.mark.rules("G11")
async def test_g11_events_of_a_run_that_is_not_there_are_not_an_empty_list(api: Served) -> None:
    async with api.client(Role.AUDITOR) as client:
        answer = await client.get(f"{BASE}/bindings/1/runs/run-nowhere/events")
    assert (answer.status_code, answer.json()["type"]) == (404, "urn:apply-ledger:problem:not-there")
