"""A relay in front of an HTTP server that loses, holds back or cuts what passes through it, exactly as a test says.

It speaks just enough HTTP to know where a request and an answer end. Only requests that carry a mutation meet a fate;
everything else, look-ups and the schema, passes. What a fate withholds from the client has still reached the server
where the fate's name says so, so a test knows the truth that the client cannot know.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

Kind = Literal[
    "pass",
    "lose request",  # the connection ends, the server has seen nothing
    "cut request",  # the server has seen half of it
    "hold request",  # the server sees it later, when the client may have gone
    "lose answer",  # the server has answered, the connection ends without a byte
    "cut answer",  # half of the answer comes, then the end
    "hold answer",  # the server has answered, the client hears it later, when it may have gone
]

_LONGEST = 64 * 1024 * 1024
"""Bytes of an answer in chunks that is read at most."""


@dataclass(frozen=True)
class Fate:
    """What becomes of one mutation; ``seconds`` for those that hold something back."""

    kind: Kind
    seconds: float = 0.0


@dataclass
class HttpRelay:
    """What a test tells the relay and learns from it."""

    server: tuple[str, int]
    port: int = 0
    fates: deque[Fate] = field(default_factory=deque)
    """Of the next mutations, in order; then everything passes."""
    requests: list[bytes] = field(default_factory=list)
    """What the client sent, head and body, in order."""
    under_way: int = 0
    """Mutations that the server works on, or will when it gets them."""
    most_under_way: int = 0
    """The highest number of them at the same time."""
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def url(self) -> str:
        """The address that leads through the relay."""
        return f"http://127.0.0.1:{self.port}"

    async def quiet(self) -> None:
        """Return when nothing is held back and the server has answered everything that reached it."""
        while self._tasks:
            await asyncio.wait(list(self._tasks))

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One client connection, until the client or a fate ends it."""
        try:
            while (request := await _read_message(reader)) is not None:
                self.requests.append(request)
                if b"mutation" not in request:
                    answer = await self._ask(request)
                    writer.write(answer)
                    await writer.drain()
                elif not await self._meet(request, writer):
                    return
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client or the server has left
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def _meet(self, request: bytes, client: asyncio.StreamWriter) -> bool:
        """Let one mutation meet its fate; whether the connection goes on."""
        fate = self.fates.popleft() if self.fates else Fate("pass")
        if fate.kind == "lose request":
            return False
        if fate.kind == "cut request":
            await self._send_half(request)
            return False
        answered: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        task = asyncio.ensure_future(self._carry(request, fate, answered))
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

    async def _carry(self, request: bytes, fate: Fate, answered: asyncio.Future[bytes]) -> None:
        """Carry a mutation to the server and back, whether or not the client is still there."""
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            if fate.kind == "hold request":
                await asyncio.sleep(fate.seconds)
            answer = await self._ask(request)
        except (OSError, asyncio.IncompleteReadError) as exc:
            if not answered.done():
                answered.set_exception(ConnectionResetError(str(exc)))
            return
        finally:
            self.under_way -= 1
        if fate.kind == "hold answer":
            await asyncio.sleep(fate.seconds)
        if not answered.done():  # the client's side of the relay may have ended
            answered.set_result(answer)

    async def _ask(self, request: bytes) -> bytes:
        """One request over a connection of its own; the whole answer as it came."""
        reader, writer = await asyncio.open_connection(*self.server, limit=_LONGEST)
        try:
            writer.write(request)
            await writer.drain()
            answer = await _read_message(reader)
            if answer is None:
                raise ConnectionResetError("the server left without an answer")
            return answer
        finally:
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
async def http_relay(server_url: str) -> AsyncIterator[HttpRelay]:
    """A relay in front of a server; when the block ends nothing of it is left."""
    parts = urlsplit(server_url)
    relay = HttpRelay((parts.hostname or "127.0.0.1", parts.port or 80))
    handlers: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            handlers.add(task)
            task.add_done_callback(handlers.discard)
        with suppress(asyncio.CancelledError):  # the relay ends; a cancelled handler would be reported as an error
            await relay.serve(reader, writer)

    listener = await asyncio.start_server(serve, "127.0.0.1", 0, limit=_LONGEST)
    relay.port = listener.sockets[0].getsockname()[1]
    try:
        yield relay
    finally:
        listener.close()
        for task in list(handlers):
            task.cancel()
        await asyncio.gather(*handlers, return_exceptions=True)
        await relay.quiet()
