"""An Infrahub made of prepared answers, below httpx: what was sent can be read, what comes back the test says."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from consumers.infrahub.connection import InfrahubOpener, InfrahubReader, InfrahubSettings, declared, open_reader
from consumers.infrahub.write_surface import InfrahubWriteSurface
from ledger.binding import DestinationBinding
from tests.support.lab_schema import lab_document

URL = "http://infrahub.test"
TOKEN = "s3cr3t-t0ken-of-the-lab"
RUN_ID = "20261129T1200-0a1b2c3d"

Answer = httpx.Response | Exception | Callable[[httpx.Request], httpx.Response]


def graphql(document: Any, status: int = 200, headers: dict[str, str] | None = None) -> httpx.Response:
    """An answer with a JSON body."""
    body = json.dumps(document).encode()  # ASCII escapes, so that any text can be answered
    return httpx.Response(status, content=body, headers={"content-type": "application/json", **(headers or {})})


def text(body: str | bytes, status: int = 200) -> httpx.Response:
    """An answer that is no JSON."""
    return httpx.Response(status, content=body, headers={"content-type": "text/plain"})


def applied(field_name: str, node_id: str) -> httpx.Response:
    """The confirmation of a write."""
    return graphql({"data": {field_name: {"ok": True, "object": {"id": node_id}}}})


def error(message: str, *, field_name: str, code: str, http_status: int, data: dict[str, Any] | None = None) -> Any:
    """One item of ``errors`` as the server words it."""
    return {
        "message": message,
        "locations": [{"line": 1, "column": 1}],
        "path": [field_name],
        "extensions": {"code": code, "http_status": http_status, "data": data or {}},
    }


def refused(field_name: str, *errors: Any) -> httpx.Response:
    """A GraphQL answer that is nothing but errors, with HTTP 200 as the server sends it."""
    return graphql({"data": {field_name: None}, "errors": list(errors)})


def found(kind: str, *nodes: dict[str, Any]) -> httpx.Response:
    """The answer of a look-up."""
    return graphql({"data": {kind: {"count": len(nodes), "edges": [{"node": node} for node in nodes]}}})


@dataclass
class ScriptedInfrahub(httpx.AsyncBaseTransport):
    """Answers ``/api/schema`` by itself and everything else from the script, in order."""

    script: deque[Answer] = field(default_factory=deque)
    requests: list[httpx.Request] = field(default_factory=list)
    schema_document: dict[str, Any] = field(default_factory=lab_document)
    opened: int = 0
    closed: int = 0

    def will_answer(self, *answers: Answer) -> None:
        """Add answers to the script."""
        self.script.extend(answers)

    def new_transport(self) -> httpx.AsyncBaseTransport:
        """A transport of one pool; counts how many were opened and closed."""
        self.opened += 1
        return _Pool(self)

    async def handle(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        if request.url.path == "/api/schema":
            return graphql(self.schema_document)
        if not self.script:
            raise AssertionError(f"a request that no test expected: {request.content.decode()}")
        answer = self.script.popleft()
        if isinstance(answer, Exception):
            raise answer
        return answer(request) if callable(answer) else answer

    @property
    def sent(self) -> list[dict[str, Any]]:
        """Bodies of the GraphQL requests, in order."""
        return [json.loads(request.content) for request in self.requests if request.method == "POST"]

    @property
    def mutations(self) -> list[dict[str, Any]]:
        """Bodies of the writes among them."""
        return [body for body in self.sent if body["query"].startswith("mutation")]


class _Pool(httpx.AsyncBaseTransport):
    def __init__(self, server: ScriptedInfrahub) -> None:
        self._server = server

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return await self._server.handle(request)

    async def aclose(self) -> None:
        self._server.closed += 1


def _already() -> asyncio.Event:
    event = asyncio.Event()
    event.set()
    return event


@dataclass
class Guard:
    """A dispatch guard that counts, and refuses from a given request on."""

    asked: int = 0
    writes: list[bool] = field(default_factory=list)
    """Of each request that asked, whether it was called one that may write."""
    refuse_from: int | None = None
    marked: asyncio.Event = field(default_factory=_already)
    waited_for: asyncio.Event = field(default_factory=asyncio.Event)

    async def ready(self) -> None:
        self.waited_for.set()
        await self.marked.wait()

    def before_send(self, *, write: bool = True) -> None:
        self.asked += 1
        self.writes.append(write)
        if self.refuse_from is not None and self.asked >= self.refuse_from:
            raise LeaseTooShortError


class LeaseTooShortError(Exception):
    """What a guard of the writer raises."""


def lab_settings(**changes: Any) -> InfrahubSettings:
    """Settings of the scripted server; nothing waits."""
    values: dict[str, Any] = {
        "url": URL,
        "branch": "lab1",
        "token": TOKEN,
        "retry_wait": 0,
        "retry_wait_max": 0,
        "request_timeout": 5,
    }
    return InfrahubSettings(**{**values, **changes})


@asynccontextmanager
async def open_surface(
    server: ScriptedInfrahub, *, guard: Guard | None = None, run_id: str = RUN_ID, **changes: Any
) -> Any:
    """The write surface of the scripted server, as the writer opens it."""
    settings = lab_settings(**changes)
    opener = InfrahubOpener(declared(settings), factory=server.new_transport)
    binding = DestinationBinding(url=URL, branch="lab1")
    async with opener(binding, run_id=run_id, guard=guard or Guard()) as destination:
        surface = destination.writes
        assert isinstance(surface, InfrahubWriteSurface)
        yield surface


@asynccontextmanager
async def lab_reader(server: ScriptedInfrahub, **changes: Any) -> Any:
    """A reader of the scripted server."""
    async with open_reader(lab_settings(**changes), factory=server.new_transport) as reader:
        assert isinstance(reader, InfrahubReader)
        yield reader


@contextmanager
def nothing_left(server: ScriptedInfrahub) -> Iterator[None]:
    """Every prepared answer was asked for."""
    yield
    assert not server.script
