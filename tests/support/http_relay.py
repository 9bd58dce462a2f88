"""A relay in front of an HTTP server that loses, holds back or cuts what passes through it, exactly as a test says.

It speaks just enough HTTP to know where a request and an answer end. A test gives fates to mutations and, apart from
these, to everything else: look-ups, read-backs and the schema; without one a request passes. What a fate withholds from
the client has still reached the server where the fate's name says so, so a test knows the truth that the client cannot
know.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

CERTIFICATE = Path(__file__).with_name("localhost.pem")
"""What the relay shows where it is asked to speak TLS; it stands for its own authority."""

Kind = Literal[
    "pass",
    "lose request",  # the connection ends, the server has seen nothing
    "cut request",  # the server has seen half of it
    "hold request",  # the server sees it later, when the client may have gone
    "hold for next",  # the same, and at once when the next mutation arrives: the server works on both together
    "lose answer",  # the server has answered, the connection ends without a byte
    "cut answer",  # half of the answer comes, then the end
    "hold answer",  # the server has answered, the client hears it later, when it may have gone
    "unavailable",  # the server has seen nothing, the client hears that it is unavailable
    "shed",  # the server has seen nothing, the client hears that it sheds load
]

_LONGEST = 64 * 1024 * 1024
"""Bytes of an answer in chunks that is read at most."""


def _told(status: str, headers: str, body: str) -> bytes:
    return f"HTTP/1.1 {status}\r\n{headers}content-length: {len(body)}\r\n\r\n{body}".encode()


_INSTEAD: dict[Kind, bytes] = {
    "unavailable": _told("503 Service Unavailable", "content-type: text/plain\r\n", "no healthy upstream"),
    "shed": _told(
        "429 Too Many Requests",
        "content-type: application/json\r\nretry-after: 1\r\nx-infrahub-admission: shed\r\n",
        '{"data":null,"errors":[{"message":"Server is shedding load; retry later.","extensions":{"code":429}}]}',
    ),
}
"""What the client hears although the server was never asked."""


@dataclass(frozen=True)
class Fate:
    """What becomes of one request.

    ``seconds`` is for fates that hold something back. ``strike`` is done while the server works on the request: it has
    all of it, and its answer is not yet looked for; where the answer is lost, when the relay has the whole of it.
    """

    kind: Kind
    seconds: float = 0.0
    strike: Callable[[], Awaitable[None]] | None = None


@dataclass
class HttpRelay:
    """What a test tells the relay and learns from it."""

    server: tuple[str, int]
    port: int = 0
    scheme: str = "http"
    fates: deque[Fate] = field(default_factory=deque)
    """Of the next mutations, in order; then everything passes."""
    read_fates: dict[bytes, deque[Fate]] = field(default_factory=dict)
    """Of the next requests that are no mutations, by a word that such a request holds."""
    requests: list[bytes] = field(default_factory=list)
    """What the client sent, head and body, in order."""
    under_way: int = 0
    """Mutations that the server works on, or will when it gets them."""
    most_under_way: int = 0
    """The highest number of them at the same time."""
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _next: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the next mutation arrives."""

    @property
    def url(self) -> str:
        """The address that leads through the relay."""
        return f"{self.scheme}://127.0.0.1:{self.port}"

    async def quiet(self) -> None:
        """Return when nothing is held back and the server has answered everything that reached it."""
        while self._tasks:
            await asyncio.wait(list(self._tasks))

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One client connection, until the client or a fate ends it."""
        try:
            while (request := await _read_message(reader)) is not None:
                self.requests.append(request)
                is_write = b"mutation" in request
                if not await self._meet(request, self._fate_of(request, is_write=is_write), writer, is_write=is_write):
                    return
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client or the server has left
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    def _fate_of(self, request: bytes, *, is_write: bool) -> Fate:
        waiting = [self.fates] if is_write else [fates for word, fates in self.read_fates.items() if word in request]
        return next((fates.popleft() for fates in waiting if fates), Fate("pass"))

    async def _meet(self, request: bytes, fate: Fate, client: asyncio.StreamWriter, *, is_write: bool) -> bool:
        """Let one request meet its fate; whether the connection goes on."""
        if fate.kind == "lose request":
            return False
        if fate.kind == "cut request":
            await self._send_half(request)
            return False
        if fate.kind in _INSTEAD:
            client.write(_INSTEAD[fate.kind])
            await client.drain()
            return True
        if is_write:
            self._next.set()
            self._next = asyncio.Event()
        answered: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        task = asyncio.ensure_future(self._carry(request, fate, answered, self._next if is_write else None))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        answer = await answered
        if fate.kind == "lose answer":
            return False
        if fate.kind == "cut answer":
            answer = answer[: len(answer) - len(answer.partition(b"\r\n\r\n")[2]) // 2 - 1]
        client.write(answer)
        await client.drain()
        return fate.kind != "cut answer"

    async def _carry(
        self, request: bytes, fate: Fate, answered: asyncio.Future[bytes], following: asyncio.Event | None
    ) -> None:
        """Carry a request to the server and back, whether or not the client is still there.

        ``following`` is set when the mutation after this one arrives; None of what is none.
        """
        is_write = following is not None
        self.under_way += is_write
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            if fate.kind == "hold request":
                await asyncio.sleep(fate.seconds)
            if fate.kind == "hold for next" and following is not None:
                with suppress(TimeoutError):
                    await asyncio.wait_for(following.wait(), fate.seconds)
            answer = await self._ask(request, fate)
        except (OSError, asyncio.IncompleteReadError) as exc:
            if not answered.done():
                answered.set_exception(ConnectionResetError(str(exc)))
            return
        finally:
            self.under_way -= is_write
        if fate.kind == "hold answer":
            await asyncio.sleep(fate.seconds)
        if not answered.done():  # the client's side of the relay may have ended
            answered.set_result(answer)

    async def _ask(self, request: bytes, fate: Fate) -> bytes:
        """One request over a connection of its own; the whole answer as it came."""
        reader, writer = await asyncio.open_connection(*self.server, limit=_LONGEST)
        reading = asyncio.ensure_future(_read_message(reader))
        try:
            writer.write(request)
            await writer.drain()
            if fate.strike is not None and fate.kind != "lose answer":
                await fate.strike()
            answer = await reading
            if answer is None:
                raise ConnectionResetError("the server left without an answer")
            if fate.strike is not None and fate.kind == "lose answer":
                await fate.strike()
            return answer
        finally:
            reading.cancel()
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def _send_half(self, request: bytes) -> None:
        _, writer = await asyncio.open_connection(*self.server)
        writer.write(request[: len(request) - 1 - len(request.partition(b"\r\n\r\n")[2]) // 2])
        await writer.drain()
        writer.close()
        await writer.wait_closed()


async def _read_message(reader: asyncio.StreamReader) -> bytes | None:
    """One request or answer, head and body; None where the other side has ended instead."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as exc:
        if exc.partial:
            raise
        return None
    fields = dict(line.lower().split(b":", 1) for line in head.split(b"\r\n")[1:] if b":" in line)
    if fields.get(b"transfer-encoding", b"").strip() == b"chunked":
        return head + await reader.readuntil(b"0\r\n\r\n")
    return head + await reader.readexactly(int(fields.get(b"content-length", b"0")))


@asynccontextmanager
async def http_relay(server_url: str, *, tls: bool = False) -> AsyncIterator[HttpRelay]:
    """A relay in front of a server, with ``tls`` towards the client; when the block ends nothing of it is left."""
    parts = urlsplit(server_url)
    relay = HttpRelay((parts.hostname or "127.0.0.1", parts.port or 80))
    context = None
    if tls:
        relay.scheme, context = "https", ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATE)
    handlers: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            handlers.add(task)
            task.add_done_callback(handlers.discard)
        with suppress(asyncio.CancelledError):  # the relay ends; a cancelled handler would be reported as an error
            await relay.serve(reader, writer)

    listener = await asyncio.start_server(serve, "127.0.0.1", 0, limit=_LONGEST, ssl=context)
    relay.port = listener.sockets[0].getsockname()[1]
    try:
        yield relay
    finally:
        listener.close()
        for task in list(handlers):
            task.cancel()
        await asyncio.gather(*handlers, return_exceptions=True)
        await relay.quiet()
