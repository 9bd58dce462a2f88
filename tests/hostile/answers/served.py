"""One answer as a destination serves it, and the layer below the HTTP client that serves it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

import httpx

Raise = Callable[[], BaseException]


@dataclass(frozen=True)
class Served:
    """What comes back for one request.

    Attributes:
        name: the class of answers that it was drawn from.
        status: of the answer.
        headers: as on the wire, in order.
        chunks: the body as on the wire.
        fault: raised instead of an answer.
        breaks: raised after the chunks.
        truth: the body that a careful reader sees; None where there is no whole answer.
        left: whether a byte of the request can have left.
    """

    name: str
    status: int = 200
    headers: tuple[tuple[bytes, bytes], ...] = ()
    chunks: tuple[bytes, ...] = ()
    fault: Raise | None = None
    breaks: Raise | None = None
    truth: bytes | None = None
    left: bool = True

    @property
    def size(self) -> int:
        return sum(map(len, self.chunks))


class _Body(httpx.AsyncByteStream):
    def __init__(self, served: Served) -> None:
        self._served = served

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self._served.chunks:
            yield chunk
        if self._served.breaks is not None:
            raise self._served.breaks()


@dataclass
class HostileLayer(httpx.AsyncBaseTransport):
    """Asks ``answer`` for what to serve to each request."""

    answer: Callable[[httpx.Request], Served]
    requests: list[httpx.Request] = field(default_factory=list)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        served = self.answer(request)
        self.requests.append(request)
        trace = request.extensions["trace"]
        await trace("connection.connect_tcp.started", {})
        if served.left:
            await trace("http11.send_request_headers.started", {})
        if served.fault is not None:
            raise served.fault()
        return httpx.Response(served.status, headers=list(served.headers), stream=_Body(served))
