"""Serving a sandbox: in the foreground for the command line, in a thread for tests and the demo."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from consumers.infrahub.sandbox.app import VERSION, Sandbox, create_app
from consumers.infrahub.sandbox.faults import SandboxFaults
from consumers.infrahub.sandbox.journal import Journal
from consumers.infrahub.sandbox.store import SandboxStore, utc_now
from consumers.infrahub.sandbox.store_file import StoreFile, store_file
from ledger.errors import ConfigurationError

_START_SECONDS = 30.0
_STOP_SECONDS = 10.0
_KEEP_ALIVE_SECONDS = 5


class SandboxStartError(ConfigurationError):
    """The sandbox could not begin to serve."""


def load_schema_document(path: Path) -> Mapping[str, Any]:
    """Read a schema document from a file.

    Raises:
        ConfigurationError: there is no such file, or it holds no JSON object.
    """
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError) as exc:
        raise _bad_document(path, f"{type(exc).__name__}: {exc}") from exc
    if not isinstance(document, dict):
        raise _bad_document(path, type(document).__name__)
    return document


def serve(
    host: str,
    port: int,
    schema_path: Path,
    token: str,
    *,
    seed: str | None = None,
    store: Path | None = None,
    started: Callable[[str], None] = lambda _url: None,
    restored: Callable[[StoreFile], None] = lambda _kept: None,
) -> None:
    """Serve a sandbox until SIGINT or SIGTERM. ``started`` is called with the address once requests are taken.

    With ``store`` everything that was answered is in that file, and there again when a sandbox starts with it;
    ``restored`` is called with what was read of it.

    Raises:
        ConfigurationError: the schema document is unusable, or the address cannot be listened on.
        StoreFileError: the file is none of a sandbox, or not whole, or cannot be written.
    """
    document = load_schema_document(schema_path)
    if store is None:
        sandbox = create_app(document, token=token, seed=seed)
        listener, url = _listen(host, port)
        _ForegroundServer(sandbox, lambda: started(url)).run(sockets=[listener])
        return
    with store_file(store, document) as kept:
        chosen = kept.seed or seed or uuid.uuid4().hex
        sandbox = create_app(document, token=token, seed=chosen)
        restored(kept)
        kept.attach(sandbox.store, chosen)
        listener, url = _listen(host, port)
        server = _ForegroundServer(KeptSandbox(sandbox, kept), lambda: started(url))
        server.run(sockets=[listener])


class KeptSandbox:
    """A sandbox that answers only after everything it did is in its file."""

    def __init__(self, sandbox: Sandbox, kept: StoreFile) -> None:
        self._sandbox = sandbox
        self._kept = kept

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection's event, as ASGI asks of an application."""
        await self._sandbox(scope, receive, _KeptSend(send, self._kept).send)


class _KeptSend:
    """The server's ``send`` with the file before it; its connection can still be found and broken by a fault."""

    def __init__(self, send: Send, kept: StoreFile) -> None:
        self._send = send
        self._kept = kept
        self.transport = getattr(getattr(send, "__self__", None), "transport", None)

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._kept.save()
        await self._send(message)


class RunningSandbox:
    """A sandbox in a thread with a loop of its own.

    A context manager, synchronous and asynchronous. ``store``, ``faults`` and ``journal`` are the living ones; they may
    be used from any thread. ``port`` 0 takes a free one.
    """

    def __init__(
        self,
        schema_path: Path | Mapping[str, Any],
        *,
        token: str,
        reader_token: str | None = None,
        port: int = 0,
        host: str = "127.0.0.1",
        seed: str | None = None,
        clock: Callable[[], datetime] = utc_now,
        version: str = VERSION,
    ) -> None:
        document = load_schema_document(schema_path) if isinstance(schema_path, Path) else schema_path
        self.token = token
        self._sandbox = create_app(
            document, token=token, reader_token=reader_token, seed=seed, clock=clock, version=version
        )
        self._address = (host, port)
        self._url: str | None = None
        self._server: _ThreadServer | None = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """The address of the running sandbox, without a trailing slash.

        Raises:
            SandboxStartError: it does not run.
        """
        if self._url is None:
            raise _not_running("it was not started, or stopped again")
        return self._url

    @property
    def store(self) -> SandboxStore:
        """What the sandbox holds."""
        return self._sandbox.store

    @property
    def faults(self) -> SandboxFaults:
        """The faults that are switched on."""
        return self._sandbox.faults

    @property
    def journal(self) -> Journal:
        """The mutations that were received."""
        return self._sandbox.journal

    def start(self) -> Self:
        """Listen and serve; returns once requests are taken.

        Raises:
            SandboxStartError: the address is taken, or the server did not come up.
        """
        listener, self._url = _listen(*self._address)
        ready = threading.Event()
        server = self._server = _ThreadServer(self._sandbox, ready.set)
        self._thread = threading.Thread(
            target=lambda: server.run(sockets=[listener]), name="sandbox-infrahub", daemon=True
        )
        self._thread.start()
        if not ready.wait(_START_SECONDS):
            self.stop()
            raise _not_running(f"no start within {_START_SECONDS:.0f} s")
        return self

    def stop(self) -> None:
        """End the server; requests that a fault holds are let go. The store stays readable."""
        self.faults.clear()
        if self._server is not None:
            self._server.request_stop()
        if self._thread is not None:
            self._thread.join(_STOP_SECONDS)
        self._server = self._thread = self._url = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, _type: type[BaseException] | None, _value: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        return self.start()

    async def __aexit__(
        self, _type: type[BaseException] | None, _value: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        self.stop()


class _Server(uvicorn.Server):
    """Says when it takes requests, and leaves no word on stderr."""

    def __init__(self, sandbox: ASGIApp, ready: Callable[[], None]) -> None:
        super().__init__(
            uvicorn.Config(
                sandbox,
                http="h11",
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                date_header=False,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            )
        )
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()


class _ForegroundServer(_Server):
    """Ends on SIGINT and SIGTERM and leaves it at that; uvicorn would raise the signal again behind it."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


class _ThreadServer(_Server):
    """Stops at once: uvicorn looks for a wish to stop ten times a second and then waits for its connections."""

    def __init__(self, sandbox: Sandbox, ready: Callable[[], None]) -> None:
        super().__init__(sandbox, ready)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping = asyncio.Event()

    def request_stop(self) -> None:
        """End the loop, from any thread."""
        if self._loop is not None and self._loop.is_running():
            self._loop.call_soon_threadsafe(self._stopping.set)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)

    async def main_loop(self) -> None:
        await self._stopping.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        for listener in sockets or ():
            listener.close()
        for connection in list(self.server_state.connections):
            if connection.transport is not None:
                connection.transport.abort()


def _listen(host: str, port: int) -> tuple[socket.socket, str]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named, asyncio switches Nagle off; without it each answer waits 40 ms for an acknowledgement.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as exc:
        listener.close()
        raise SandboxStartError(
            checked="the address of the sandbox",
            expected="an address that can be listened on",
            found=f"{host} port {port}: {exc.strerror or exc}",
            next_action="choose another port, or 0 for a free one",
        ) from exc
    shown = f"[{host}]" if family is socket.AF_INET6 else host
    return listener, f"http://{shown}:{listener.getsockname()[1]}"


def _bad_document(path: Path, found: str) -> ConfigurationError:
    return ConfigurationError(
        checked=f"the schema document {path}",
        expected="a JSON object in the shape of Infrahub's GET /api/schema",
        found=found,
        next_action="name a file that was saved from such a server",
    )


def _not_running(found: str) -> SandboxStartError:
    return SandboxStartError(
        checked="the sandbox",
        expected="a running server",
        found=found,
        next_action="start it before use",
    )
