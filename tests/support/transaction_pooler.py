"""A pooler in transaction mode, as far as a client can tell: after each transaction the session is another one.

Real poolers hand out another backend. Here it is the same one, made to forget: its locks are freed, its settings are
those of the start, and, with an old pooler, its prepared statements are gone.
"""

from __future__ import annotations

import asyncio
import struct
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit, urlunsplit

_IDLE = b"I"
_FORGET_ALL = "discard all"
_KEEP_STATEMENTS = "reset all; select pg_advisory_unlock_all(); unlisten *"


class TransactionPooler:
    """Serves clients; ``keeps_statements`` as newer poolers do."""

    def __init__(self, server_socket: str, *, keeps_statements: bool) -> None:
        self._server_socket = server_socket
        text = (_KEEP_STATEMENTS if keeps_statements else _FORGET_ALL).encode() + b"\x00"
        self._forget = b"Q" + struct.pack("!I", len(text) + 4) + text
        self._sessions: set[asyncio.Task[None]] = set()
        self.exchanged = 0
        """How often a session was exchanged for another one."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One client."""
        task = asyncio.current_task()
        if task is not None:
            self._sessions.add(task)
        server_reader, server_writer = await asyncio.open_unix_connection(self._server_socket)
        directions = {
            asyncio.ensure_future(_pass_on(reader, server_writer)),
            asyncio.ensure_future(self._answers(server_reader, server_writer, writer)),
        }
        with suppress(asyncio.CancelledError):
            await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
        for direction in directions:
            direction.cancel()
        await asyncio.gather(*directions, return_exceptions=True)
        for stream in (writer, server_writer):
            stream.close()
            with suppress(OSError):
                await stream.wait_closed()

    async def end(self) -> None:
        """End all sessions."""
        for session in self._sessions:
            session.cancel()
        await asyncio.gather(*self._sessions, return_exceptions=True)

    async def _answers(
        self, server: asyncio.StreamReader, back: asyncio.StreamWriter, client: asyncio.StreamWriter
    ) -> None:
        ready = 0
        while True:
            message = await _message(server)
            if message[:1] == b"Z" and message[-1:] == _IDLE:
                ready += 1
                if ready > 1:  # the first one ends the log-in
                    await self._exchange(server, back)
            client.write(message)
            await client.drain()

    async def _exchange(self, server: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        self.exchanged += 1
        back.write(self._forget)
        await back.drain()
        while (await _message(server))[:1] != b"Z":
            pass


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1 << 16):
        writer.write(data)
        await writer.drain()


async def _message(server: asyncio.StreamReader) -> bytes:
    head = await server.readexactly(5)
    return head + await server.readexactly(struct.unpack("!I", head[1:])[0] - 4)


@asynccontextmanager
async def pooler_to(dsn: str, *, keeps_statements: bool) -> AsyncIterator[tuple[TransactionPooler, str]]:
    """A pooler in front of the server of ``dsn``, and the DSN that leads through it."""
    parts = urlsplit(dsn)
    query = {name: values[0] for name, values in parse_qs(parts.query).items()}
    port = query.get("port", "5432")
    with tempfile.TemporaryDirectory(prefix="pooler-") as folder:
        pooler = TransactionPooler(str(Path(query["host"]) / f".s.PGSQL.{port}"), keeps_statements=keeps_statements)
        server = await asyncio.start_unix_server(pooler.serve, path=str(Path(folder) / f".s.PGSQL.{port}"))
        try:
            yield pooler, urlunsplit(parts._replace(query=urlencode(query | {"host": folder})))
        finally:
            server.close()
            await pooler.end()
