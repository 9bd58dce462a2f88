"""A relay that counts what passes: connections, requests and bytes. It alters nothing and keeps no answer.

It stands before the server in a round whose time is not taken, so it slows nothing that is measured.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

_CHUNK = 65536
_HEAD_END = b"\r\n\r\n"


@dataclass
class Traffic:
    """What passed: ``sent`` and ``received`` are bytes on the wire, as the client sees them, heads included."""

    url: str = ""
    connections: int = 0
    requests: int = 0
    mutations: int = 0
    sent: int = 0
    received: int = 0
    faults: list[ValueError] = field(default_factory=list)
    """Why something could not be counted; nobody is to believe the rest then."""


class _Requests:
    """Finds requests in what a client sends; each has a body of a given length, as JSON over HTTP/1.1 has."""

    def __init__(self, traffic: Traffic) -> None:
        self._traffic = traffic
        self._buffer = b""

    def feed(self, data: bytes) -> None:
        """Count what is complete now."""
        self._buffer += data
        while (end := self._buffer.find(_HEAD_END)) >= 0:
            whole = end + len(_HEAD_END) + _body_length(self._buffer[:end])
            if len(self._buffer) < whole:
                return
            self._traffic.requests += 1
            self._traffic.mutations += b"mutation" in self._buffer[end:whole]
            self._buffer = self._buffer[whole:]


def _body_length(head: bytes) -> int:
    fields = dict(line.lower().split(b":", 1) for line in head.split(b"\r\n")[1:])
    if b"transfer-encoding" in fields:
        raise ValueError("a request without a length: it cannot be counted")
    return int(fields.get(b"content-length", b"0"))


@asynccontextmanager
async def counted(server_url: str) -> AsyncIterator[Traffic]:
    """Serve on a free port of loopback until the block ends; ``url`` of what is yielded leads through."""
    parts = urlsplit(server_url)
    server = (parts.hostname or "127.0.0.1", parts.port or 80)
    traffic = Traffic()
    handlers: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            handlers.add(task)
            task.add_done_callback(handlers.discard)
        with suppress(asyncio.CancelledError, ConnectionError):
            await _carry(server, reader, writer, traffic)

    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    traffic.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    try:
        yield traffic
    finally:
        listener.close()
        for task in list(handlers):
            task.cancel()
        await asyncio.gather(*handlers, return_exceptions=True)
    if traffic.faults:
        raise RuntimeError("what passed could not be counted") from traffic.faults[0]


async def _carry(
    server: tuple[str, int], client_in: asyncio.StreamReader, client_out: asyncio.StreamWriter, traffic: Traffic
) -> None:
    """One connection of a client and the one to the server that belongs to it, until either side ends."""
    traffic.connections += 1
    server_in, server_out = await asyncio.open_connection(*server)
    requests = _Requests(traffic)

    async def up() -> None:
        while data := await client_in.read(_CHUNK):
            traffic.sent += len(data)
            try:
                requests.feed(data)
            except ValueError as exc:
                traffic.faults.append(exc)
            server_out.write(data)
            await server_out.drain()
        if server_out.can_write_eof():
            server_out.write_eof()

    async def down() -> None:
        while data := await server_in.read(_CHUNK):
            traffic.received += len(data)
            client_out.write(data)
            await client_out.drain()

    upward = asyncio.create_task(up())
    try:
        await down()
    finally:
        upward.cancel()
        for side in (client_out, server_out):  # both before anything is waited for: the wait may be cancelled
            side.close()
        await asyncio.gather(upward, return_exceptions=True)
        for side in (client_out, server_out):
            with suppress(ConnectionError):
                await side.wait_closed()
