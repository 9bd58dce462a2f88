"""A TCP server that does to each connection exactly what a test says: answer, answer half, hang, or close."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

Behaviour = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class RawServer:
    """What a test reads of the server."""

    port: int = 0
    connections: int = 0
    requests: list[bytes] = field(default_factory=list)
    behaviours: deque[Behaviour] = field(default_factory=deque)
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def read_request(self, reader: asyncio.StreamReader) -> bytes:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(
            (int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0
        )
        request = head + await reader.readexactly(length)
        self.requests.append(request)
        return request


@asynccontextmanager
async def raw_server() -> AsyncIterator[RawServer]:
    """A server whose connections each serve requests until the client leaves; each request takes one behaviour."""
    state = RawServer()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        state.connections += 1
        try:
            while not writer.is_closing():
                await state.read_request(reader)
                await state.behaviours.popleft()(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # the client or the test has left
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    state.port = server.sockets[0].getsockname()[1]
    try:
        yield state
    finally:
        state.ended.set()
        server.close()


def answers(body: bytes, status: str = "200 OK", headers: str = "") -> Behaviour:
    """A whole answer over a connection that stays open."""

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(f"HTTP/1.1 {status}\r\n{headers}content-length: {len(body)}\r\n\r\n".encode() + body)
        await writer.drain()

    return behave


def answers_half() -> Behaviour:
    """Headers and a part of the body, then the end."""

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"data"')
        await writer.drain()
        writer.close()

    return behave


def closes() -> Behaviour:
    """Nothing, and the end."""

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    return behave


def hangs(until: asyncio.Event) -> Behaviour:
    """Nothing until the test ends."""

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await until.wait()

    return behave


def dribbles(until: asyncio.Event) -> Behaviour:
    """A body that comes byte by byte, each in time, and never ends."""

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n")
        while not until.is_set():
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(0.02)  # slower would meet the time-out of a single read

    return behave
