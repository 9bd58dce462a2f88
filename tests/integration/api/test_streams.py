"""Events as they come: each once and in order, whatever happens to the connection or the server."""

from __future__ import annotations

import asyncio
import json
import socket
from typing import Any
from unittest.mock import AsyncMock

import httpx
import pytest

from ledger.api import streaming
from ledger.api.limits import ApiLimits
from ledger.api.tokens import Role, new_token
from ledger.events import RunStopped
from ledger.store.served import ServedLedger
from tests.support.api import BASE, Served, listening, served
from tests.support.recorded_runs import Recorder, make_plan
from tests.support.store import until
from tests.support.stream_readers import LIMITS, StreamReader, follow_with_restarts
from tests.support.visitors import visitor

pytestmark = pytest.mark.integration


@pytest.mark.rules("G8")
async def test_g08_every_reader_sees_every_position_once_while_the_server_is_restarted_twice(
    postgres18_ledger_dsns: dict[str, str], recording: Recorder
) -> None:
    followed = await follow_with_restarts(postgres18_ledger_dsns, recording, readers=8, operations=300, restarts=2)

    assert followed.head == 304
    for reader in followed.readers:
        assert reader.seen == list(range(1, followed.head + 1))
    assert max(reader.connections for reader in followed.readers) >= 3


async def _first(served_: Served, address: str, count: int, **options: Any) -> list[dict[str, str]]:
    """The first events of a stream, as blocks of fields."""
    async with httpx.AsyncClient(timeout=60.0) as client:
        headers = {"Authorization": f"Bearer {served_.tokens[Role.AUDITOR]}"} | options.pop("headers", {})
        found: list[dict[str, str]] = []
        block: dict[str, str] = {}
        async with client.stream("GET", address, headers=headers, **options) as response:
            assert response.headers["content-type"].startswith("text/event-stream")
            async for line in response.aiter_lines():
                if line:
                    name, _, value = line.partition(": ")
                    block[name] = value
                    continue
                if "id" in block:
                    found.append(block)
                block = {}
                if len(found) == count:
                    return found
    raise AssertionError("the stream ended")


async def test_an_event_of_the_stream_is_the_event_of_the_list(api: Served, recording: Recorder) -> None:
    async with api.client() as client:
        listed = (await client.get(f"{BASE}/bindings/1/events?limit=500")).json()["items"]
    async with listening(api) as url:
        found = await _first(api, f"{url}{BASE}/bindings/1/events/stream", len(listed))
    assert [int(block["id"]) for block in found] == [event["position"] for event in listed]
    assert [block["event"] for block in found] == [event["kind"] for event in listed]
    assert [json.loads(block["data"]) for block in found] == listed


async def test_a_stream_of_a_run_has_its_events_alone_and_goes_on_where_it_was_left(
    api: Served, recording: Recorder
) -> None:
    wanted = [event.position async for event in recording.ledger.events(recording.binding_id, run_id="run-2")]
    last = {"Last-Event-ID": str(wanted[1])}
    async with listening(api) as url:
        address = f"{url}{BASE}/bindings/1/runs/run-2/events/stream"
        assert [int(block["id"]) for block in await _first(api, address, len(wanted))] == wanted
        rest = await _first(api, address, len(wanted) - 2, headers=last, params={"after": 0})
    assert [int(block["id"]) for block in rest] == wanted[2:]


async def test_a_run_that_goes_on_shows_while_other_runs_fill_the_log(api: Served, recording: Recorder) -> None:
    reader = StreamReader("", api.tokens[Role.AUDITOR])
    end: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    async with listening(api) as url:
        reader.url = f"{url}{BASE}/bindings/1/runs/run-2/events/stream"
        task = asyncio.create_task(reader.follow(end))
        await recording.whole_run(make_plan("run-4", creates=150, deletes=0))
        again = make_plan("run-2", creates=4, deletes=2)
        resumed = await recording.resumed(again, 1)
        end.set_result(resumed.last_position + 1)
        await recording.outcome(again, 1, "applied", attempt=2)
        await task
    wanted = [event.position async for event in recording.ledger.events(recording.binding_id, run_id="run-2")]
    assert reader.seen == wanted


async def test_a_position_that_this_log_never_had_is_refused(api: Served) -> None:
    async with api.client() as client:
        for options in ({"headers": {"Last-Event-ID": "99"}}, {"params": {"after": "99"}}):
            response = await client.get(f"{BASE}/bindings/1/events/stream", **options)  # type: ignore[arg-type]
            assert (response.status_code, response.json()["code"]) == (409, "PositionAheadError")
        bad = await client.get(f"{BASE}/bindings/1/events/stream", headers={b"Last-Event-ID": b"1\xb2"})
        assert bad.status_code == 422


async def test_more_streams_than_are_allowed_are_refused(
    postgres18_ledger_dsns: dict[str, str], recording: Recorder
) -> None:
    limits = LIMITS.model_copy(update={"max_streams": 2, "max_streams_each": 1})
    async with served(postgres18_ledger_dsns, limits=limits) as opened, listening(opened) as url:
        async with httpx.AsyncClient(timeout=60.0) as client:

            def stream(role: Role) -> Any:
                headers = {"Authorization": f"Bearer {opened.tokens[role]}"}
                return client.stream("GET", f"{url}{BASE}/bindings/1/events/stream", headers=headers)

            async with stream(Role.AUDITOR) as first:
                assert first.status_code == 200
                async with stream(Role.AUDITOR) as second:
                    assert second.status_code == 429
                    assert "retry-after" in second.headers
                async with stream(Role.OPERATOR) as other:
                    assert other.status_code == 200
        await until(lambda: _closed(opened))


async def _until_it_ends(url: str, headers: dict[str, str], come: asyncio.Event) -> int:
    """Read a stream until the server ends it; tells when it is known to go on. Returns the status of coming back."""
    still = 0
    async with httpx.AsyncClient(timeout=60.0) as client:
        async with client.stream("GET", url, headers=headers) as response:
            async for line in response.aiter_lines():
                still += line == ": still here"
                if still == 3:
                    come.set()
        return (await client.get(url, headers=headers)).status_code


@pytest.mark.parametrize("way", ["revoked", "logged out", "revoked while logged in"])
async def test_a_stream_ends_with_the_token_or_the_session_that_it_was_asked_for_with(
    postgres18_ledger_dsns: dict[str, str], recording: Recorder, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setattr(streaming, "KEEP_ALIVE", 0.05)
    await recording.commit(make_plan("run-1", creates=1))
    made = new_token()
    async with (
        await ServedLedger.open(postgres18_ledger_dsns["writer"], allow_unsafe_fsync=True) as ledger,
        served(postgres18_ledger_dsns, limits=LIMITS) as opened,
        listening(opened) as url,
        visitor(opened, None) as somebody,
    ):
        await ledger.create_token(made.token_id, name="short", role="auditor", digest=made.digest, seconds=None)
        headers = {"Authorization": f"Bearer {made.text}"}
        if way != "revoked":
            await somebody.log_in(made.text)
            headers = {"Cookie": "; ".join(f"{name}={value}" for name, value in somebody.client.cookies.items())}
        come = asyncio.Event()
        task = asyncio.create_task(_until_it_ends(f"{url}{BASE}/bindings/1/events/stream", headers, come))
        await asyncio.wait_for(come.wait(), 60)
        if way == "logged out":
            await somebody.send("/logout", await somebody.form("/runs"))
        else:
            await ledger.revoke_token(made.token_id)
        assert await asyncio.wait_for(task, 60) == 401


async def test_events_that_come_without_end_keep_no_stream_open_that_may_not_go_on(
    api: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming, "KEEP_ALIVE", 0.0)
    monkeypatch.setattr(streaming, "PAGE", 1)
    service, asked = api.service, AsyncMock(side_effect=[True, True, False])
    stream = streaming.EventStream(
        service.reader.ledger, service.watch, service.metrics, binding_id=1, after=0, run=None, still_works=asked
    )
    async with asyncio.timeout(60):  # else it would never end
        sent = b"".join([chunk async for chunk in stream.chunks()])
    assert [line for line in sent.splitlines() if line.startswith(b"id: ")] == [b"id: 1", b"id: 2"]


async def _closed(opened: Served) -> bool:
    return opened.service.slots.open == 0


async def test_a_reader_that_takes_nothing_is_let_go(
    postgres18_ledger_dsns: dict[str, str], recording: Recorder
) -> None:
    plan = make_plan("run-1", creates=1)
    await recording.commit(plan)
    body = RunStopped(by="somebody", reason="x" * 60_000, last_ordinal=None)
    for number in range(200):
        await recording.event("run.stopped", body, "run-1", n=number)
    limits = ApiLimits(stream_send_seconds=0.3, stream_poll_seconds=0.02)
    async with served(postgres18_ledger_dsns, limits=limits) as opened, listening(opened) as url:
        address = httpx.URL(url)
        with socket.create_connection((address.host, address.port)) as connection:
            connection.sendall(
                f"GET {BASE}/bindings/1/events/stream HTTP/1.1\r\nHost: localhost\r\n"
                f"Authorization: Bearer {opened.tokens[Role.AUDITOR]}\r\n\r\n".encode()
            )
            await until(lambda: _let_go(opened))


async def _let_go(opened: Served) -> bool:
    return opened.service.metrics.slow_readers._value.get() == 1.0 and opened.service.slots.open == 0
