"""A relay in front of a PostgreSQL socket that loses one answer, loses one request, or holds everything back.

The server has committed exactly when it says ReadyForQuery outside a transaction, so an answer that is dropped then is
the lost COMMIT, without luck.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Literal
from urllib.parse import parse_qs, urlencode, urlsplit, urlunsplit

_PARSE = b"P"
_LOG_IN = (b"\x00", b"p")
_READY = b"Z\x00\x00\x00\x05"
"""ReadyForQuery; one byte follows, which says whether a transaction is open."""
Fault = Literal["lose answer", "lose request", "hold"]


class PostgresRelay:
    """Passes bytes on until a fault is armed; the fault meets the next message of the client, once."""

    def __init__(self, server_socket: str) -> None:
        self._server_socket = server_socket
        self._fault: Fault | None = None
        self._after = 0
        self._connections: set[asyncio.Task[None]] = set()
        self._let_go = asyncio.Event()
        self.accepted = 0
        self.met = asyncio.Event()

    def arm(self, fault: Fault, *, after: int = 0) -> None:
        """Let the next message of a client meet this fault, or one that comes ``after`` so many others.

        Messages that only prepare a statement do not count.
        """
        self._fault = fault
        self._after = after
        self.met.clear()
        self._let_go.clear()

    def disarm(self) -> None:
        """Pass everything on from now, also what is held."""
        self._fault = None
        self._let_go.set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One client connection, until one side ends or a fault ends both."""
        self.accepted += 1
        try:
            server_reader, server_writer = await asyncio.open_unix_connection(self._server_socket)
        except OSError:  # no server there just now: the client sees its connection end
            writer.close()
            return
        lost = asyncio.Event()
        directions = {
            asyncio.ensure_future(self._back(server_reader, writer, lost)),
            asyncio.ensure_future(self._forth(reader, server_writer, lost)),
        }
        task = asyncio.current_task()
        if task is not None:
            self._connections.add(task)
            task.add_done_callback(self._connections.discard)
        with suppress(asyncio.CancelledError):  # the relay ends; a cancelled handler would be reported as an error
            await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
        for direction in directions:
            direction.cancel()
        await asyncio.gather(*directions, return_exceptions=True)
        for stream in (writer, server_writer):
            stream.close()
            with suppress(OSError):
                await stream.wait_closed()

    async def end(self) -> None:
        """End all connections of this moment and return when they are closed."""
        connections = list(self._connections)
        for task in connections:
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)

    def _due(self, data: bytes) -> Fault | None:
        if self._fault is None or data.startswith(_PARSE):
            return None
        if self._fault == "lose answer" and data.startswith(_LOG_IN):
            return None  # its answer ends in a question of the server, and a lost one would only be silence
        if self._after > 0:
            self._after -= 1
            return None
        fault, self._fault = self._fault, None
        self.met.set()
        return fault

    async def _forth(self, reader: asyncio.StreamReader, server: asyncio.StreamWriter, lost: asyncio.Event) -> None:
        while data := await reader.read(1 << 16):
            fault = self._due(data)
            if fault == "lose request":
                return
            if fault == "hold":
                await self._let_go.wait()
            if fault == "lose answer":
                lost.set()
            server.write(data)
            await server.drain()

    async def _back(self, server: asyncio.StreamReader, writer: asyncio.StreamWriter, lost: asyncio.Event) -> None:
        swallowed = b""
        while data := await server.read(1 << 16):
            if lost.is_set():
                swallowed += data
                if swallowed[-len(_READY) - 1 : -1] == _READY:
                    return
                continue
            writer.write(data)
            await writer.drain()


@asynccontextmanager
async def relay_to(dsn: str) -> AsyncIterator[tuple[PostgresRelay, str]]:
    """A relay in front of the server of ``dsn``, and the DSN that leads through it."""
    parts = urlsplit(dsn)
    query = {name: values[0] for name, values in parse_qs(parts.query).items()}
    port = query.get("port", "5432")
    with tempfile.TemporaryDirectory(prefix="relay-") as folder:
        relay = PostgresRelay(str(Path(query["host"]) / f".s.PGSQL.{port}"))
        server = await asyncio.start_unix_server(relay.serve, path=str(Path(folder) / f".s.PGSQL.{port}"))
        try:
            yield relay, urlunsplit(parts._replace(query=urlencode(query | {"host": folder})))
        finally:
            server.close()
            await relay.end()
