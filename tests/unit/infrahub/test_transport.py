"""The HTTP layer over real sockets: what was sent, what was not, and what happens to connections."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import httpx
import pytest
from infrahub_sdk.types import HTTPMethod

from consumers.infrahub.exchange import Event, Exchange, FailedExchange, event_of
from consumers.infrahub.transport import KEEPALIVE_SECONDS, PooledTransport
from tests.support.raw_http import Behaviour, answers, answers_half, closes, dribbles, hangs, raw_server
from tests.support.scripted_infrahub import Guard, LeaseTooShortError, ScriptedInfrahub, graphql, lab_settings, text

CLEAN = b'{"data": {"LabSite": {"count": 0}}}'


@asynccontextmanager
async def transport_to(url: str, guard: Guard | None = None, deadline: float = 5) -> AsyncIterator[PooledTransport]:
    settings = lab_settings(url=url)
    transport = PooledTransport(settings, guard=guard or Guard(), deadline=deadline)
    try:
        yield transport
    finally:
        await transport.aclose()


async def post(transport: PooledTransport, url: str) -> httpx.Response:
    return await transport(f"{url}/graphql/main", HTTPMethod.POST, {"x-test": "1"}, 10, {"query": "query Q { x }"})


async def failure(transport: PooledTransport, url: str) -> Exchange:
    with pytest.raises(FailedExchange) as caught:
        await post(transport, url)
    return caught.value.exchange


def closed_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


@pytest.mark.rules("G5")
async def test_g05_a_refused_connection_was_provably_not_sent() -> None:
    url = f"http://127.0.0.1:{closed_port()}"
    async with transport_to(url) as transport:
        exchange = await failure(transport, url)
    assert (exchange.event, exchange.sent, exchange.status) == (Event.REFUSED, False, None)


@pytest.mark.rules("G5")
async def test_g05_an_unknown_host_was_provably_not_sent() -> None:
    url = "http://no-such-host.invalid"
    async with transport_to(url) as transport:
        exchange = await failure(transport, url)
    assert (exchange.event, exchange.sent) == (Event.REFUSED, False)


@pytest.mark.rules("G5", "P128")
@pytest.mark.parametrize("behaviour", [closes(), answers_half()], ids=["closed", "half an answer"])
async def test_g05_a_connection_lost_after_sending_counts_as_sent(behaviour: Behaviour) -> None:
    async with raw_server() as server, transport_to(server.url) as transport:
        server.behaviours.append(behaviour)
        exchange = await failure(transport, server.url)
        assert len(server.requests) == 1, "nothing is sent twice"
    assert (exchange.event, exchange.sent) == (Event.CONNECTION_LOST, True)


@pytest.mark.rules("G5", "P128")
@pytest.mark.parametrize("behaviour", [hangs, dribbles])
async def test_g05_no_answer_within_the_total_deadline_counts_as_sent(
    behaviour: Callable[[asyncio.Event], Behaviour],
) -> None:
    async with raw_server() as server, transport_to(server.url, deadline=0.3) as transport:
        server.behaviours.append(behaviour(server.ended))
        exchange = await failure(transport, server.url)
    assert (exchange.event, exchange.sent) == (Event.TIMED_OUT, True)


@pytest.mark.rules("G5")
async def test_g05_a_deadline_that_passes_before_a_byte_left_is_known_as_unsent() -> None:
    class StuckConnect(httpx.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            await request.extensions["trace"]("connection.connect_tcp.started", {})
            raise TimeoutError

    transport = PooledTransport(lab_settings(), guard=Guard(), deadline=1, factory=StuckConnect)
    exchange = await failure(transport, "http://infrahub.test")
    await transport.aclose()
    assert (exchange.event, exchange.sent) == (Event.DEADLINE_UNSENT, False)


@pytest.mark.rules("G5")
async def test_g05_without_evidence_of_the_layer_below_a_deadline_counts_as_sent() -> None:
    server = ScriptedInfrahub()
    server.will_answer(TimeoutError())
    transport = PooledTransport(lab_settings(), guard=Guard(), deadline=1, factory=server.new_transport)
    exchange = await failure(transport, "http://infrahub.test")
    await transport.aclose()
    assert (exchange.event, exchange.sent) == (Event.TIMED_OUT, True)


@pytest.mark.rules("G5", "P144")
@pytest.mark.parametrize(
    ("error", "event"),
    [
        (httpx.ConnectError, Event.REFUSED),
        (httpx.ConnectTimeout, Event.CONNECT_TIMEOUT),
        (httpx.PoolTimeout, Event.NO_FREE_CONNECTION),
        (httpx.ReadTimeout, Event.TIMED_OUT),
        (httpx.WriteTimeout, Event.TIMED_OUT),
        (httpx.ReadError, Event.CONNECTION_LOST),
        (httpx.WriteError, Event.CONNECTION_LOST),
        (httpx.CloseError, Event.CONNECTION_LOST),
        (httpx.RemoteProtocolError, Event.CONNECTION_LOST),
        (httpx.DecodingError, Event.UNDECODABLE),
        (httpx.LocalProtocolError, Event.OTHER_FAULT),
        (httpx.UnsupportedProtocol, Event.OTHER_FAULT),
        (httpx.ProxyError, Event.OTHER_FAULT),
        (httpx.TooManyRedirects, Event.OTHER_FAULT),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_g05_every_httpx_error_has_an_event(error: type[httpx.RequestError], event: Event) -> None:
    assert event_of(error("words")) is event


def test_the_list_of_httpx_errors_above_is_complete() -> None:
    def leaves(kind: type[Exception]) -> set[str]:
        below = kind.__subclasses__()
        return {name for child in below for name in leaves(child)} or {kind.__name__}

    mark = next(
        mark
        for mark in test_g05_every_httpx_error_has_an_event.pytestmark  # type: ignore[attr-defined]  # set by pytest
        if mark.name == "parametrize"
    )
    assert leaves(httpx.RequestError) == {error.__name__ for error, _ in mark.args[1]}


@pytest.mark.rules("G2")
async def test_g02_the_guard_is_asked_last_and_a_refusal_sends_nothing() -> None:
    guard = Guard(refuse_from=2)
    async with raw_server() as server, transport_to(server.url, guard) as transport:
        server.behaviours.append(answers(CLEAN))
        await post(transport, server.url)
        with pytest.raises(LeaseTooShortError):
            await post(transport, server.url)
        assert len(server.requests) == 1
    assert guard.asked == 2


@pytest.mark.rules("G4")
async def test_g04_a_request_waits_until_its_operation_is_marked() -> None:
    guard = Guard(marked=asyncio.Event())
    async with raw_server() as server, transport_to(server.url, guard) as transport:
        server.behaviours.append(answers(CLEAN))
        posting = asyncio.create_task(post(transport, server.url))
        await guard.waited_for.wait()
        assert (guard.asked, len(server.requests)) == (0, 0)
        guard.marked.set()
        await posting
        assert (guard.asked, len(server.requests)) == (1, 1)


async def test_connections_are_reused() -> None:
    async with raw_server() as server, transport_to(server.url) as transport:
        server.behaviours.extend([answers(CLEAN)] * 3)
        for _ in range(3):
            await post(transport, server.url)
        assert (server.connections, len(server.requests)) == (1, 3)


@pytest.mark.rules("G5")
@pytest.mark.parametrize("status", ["500 Internal Server Error", "503 Unavailable"])
async def test_g05_connections_are_dropped_after_a_server_fault(status: str) -> None:
    async with raw_server() as server, transport_to(server.url) as transport:
        server.behaviours.extend([answers(b"Internal Server Error", status), answers(CLEAN)])
        exchange = await failure(transport, server.url)
        assert (exchange.status, exchange.body) == (int(status[:3]), b"Internal Server Error")
        await post(transport, server.url)
        assert server.connections == 2


async def test_a_redirect_is_not_followed() -> None:
    async with raw_server() as server, transport_to(server.url) as transport:
        server.behaviours.append(answers(b"", "302 Found", f"location: {server.url}/elsewhere\r\n"))
        exchange = await failure(transport, server.url)
        assert (exchange.status, len(server.requests)) == (302, 1)


async def test_proxies_and_netrc_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{closed_port()}")
    async with raw_server() as server, transport_to(server.url) as transport:
        server.behaviours.append(answers(CLEAN))
        assert (await post(transport, server.url)).status_code == 200


def test_idle_connections_are_dropped_before_the_server_does() -> None:
    assert KEEPALIVE_SECONDS < 2


@pytest.mark.parametrize(
    "answer",
    [
        graphql({"data": {}, "errors": []}),
        graphql({"data": None}),
        graphql({}),
        graphql([1]),
        text("<html>"),
        graphql({"data": {"x": 1}}, 201),
        graphql({"data": {"x": 1}}, 500),
        graphql({"errors": ["text"]}),
    ],
    ids=lambda answer: f"{answer.status_code} {answer.text[:20]}",
)
async def test_nothing_but_a_clean_answer_reaches_the_library(answer: httpx.Response) -> None:
    server = ScriptedInfrahub()
    server.will_answer(answer)
    transport = PooledTransport(lab_settings(), guard=Guard(), deadline=1, factory=server.new_transport)
    exchange = await failure(transport, "http://infrahub.test")
    await transport.aclose()
    assert (exchange.event, exchange.status) == (Event.ANSWERED, answer.status_code)


async def test_a_broken_content_encoding_is_an_event_of_its_own() -> None:
    async with raw_server() as server, transport_to(server.url) as transport:
        server.behaviours.append(answers(b"no gzip", headers="content-encoding: gzip\r\n"))
        assert (await failure(transport, server.url)).event is Event.UNDECODABLE


class _BreakingBody(httpx.AsyncByteStream):
    """A body that breaks off after its first bytes."""

    def __init__(self) -> None:
        self.closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield b'{"data"'
        raise httpx.ReadError("gone")

    async def aclose(self) -> None:
        self.closed = True


async def test_a_body_that_breaks_off_is_closed_at_once() -> None:
    body = _BreakingBody()
    layer = httpx.MockTransport(lambda _request: httpx.Response(200, stream=body))
    transport = PooledTransport(lab_settings(), guard=Guard(), deadline=1, factory=lambda: layer)
    assert (await failure(transport, "http://infrahub.test")).event is Event.CONNECTION_LOST
    assert body.closed, "its connection would stay taken until somebody collects garbage"
    await transport.aclose()


def test_no_request_looks_for_a_package_that_is_not_there() -> None:
    assert "sniffio" in sys.modules, "httpcore would search every folder for it, several times in each request"


async def test_every_connection_is_closed_with_the_transport() -> None:
    server = ScriptedInfrahub()
    server.will_answer(text("broken", 500), graphql({"data": {}}))
    transport = PooledTransport(lab_settings(), guard=Guard(), deadline=1, factory=server.new_transport)
    await failure(transport, "http://infrahub.test")
    await post(transport, "http://infrahub.test")
    await transport.aclose()
    assert (server.opened, server.closed) == (2, 2)


async def test_a_pool_that_is_still_used_is_closed_by_its_last_request() -> None:
    async with raw_server() as server, transport_to(server.url) as transport:
        arrived, release = asyncio.Event(), asyncio.Event()

        async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            arrived.set()
            await release.wait()
            await answers(CLEAN)(reader, writer)

        server.behaviours.append(slow)
        waiting = asyncio.create_task(post(transport, server.url))
        await arrived.wait()
        server.behaviours.append(answers(b"broken", "500 Internal Server Error"))
        await failure(transport, server.url)
        release.set()
        assert (await waiting).status_code == 200


@pytest.mark.rules("G5")
@pytest.mark.parametrize(
    ("method", "payload", "may_write"),
    [
        (HTTPMethod.GET, None, False),
        (HTTPMethod.POST, {"query": "query Peer($v0: String!) { LabSite(name__value: $v0) { count } }"}, False),
        (HTTPMethod.POST, {"query": "mutation Upsert { LabSiteUpsert { ok } }"}, True),
        (HTTPMethod.POST, {"query": "{ x }"}, True),
        (HTTPMethod.POST, {"query": " query Q { x }"}, True),
        (HTTPMethod.POST, {"query": "queryQ { x } mutation M { y }"}, True),
        (HTTPMethod.POST, None, True),
    ],
)
async def test_g05_the_guard_is_told_of_every_request_that_may_write(
    method: HTTPMethod, payload: dict[str, str] | None, may_write: bool
) -> None:
    server, guard = ScriptedInfrahub(), Guard()
    server.will_answer(graphql({"data": {}}))
    transport = PooledTransport(lab_settings(), guard=guard, deadline=1, factory=server.new_transport)
    await transport("http://infrahub.test/graphql/main", method, {}, 10, payload)
    assert guard.writes == [may_write]
    await transport.aclose()
