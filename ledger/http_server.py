"""One HTTP server in a process of ours, until it is told to stop; whoever needs one puts an application into it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn

_BACKLOG = 1024


@dataclass(frozen=True, slots=True)
class Certificate:
    """Files for TLS."""

    certificate: Path
    key: Path


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens on a host (a name or an address of either kind); port 0 takes a free one.

    Raises:
        OSError: it cannot be listened on.
    """
    listener: socket.socket | None = None
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError:
        if listener is not None:
            listener.close()
        raise
    return listener


def address_of(listener: socket.socket, *, tls: bool = False) -> str:
    """The URL under which a listener answers."""
    shown, bound = listener.getsockname()[:2]
    return f"http{'s' if tls else ''}://{f'[{shown}]' if ':' in shown else shown}:{bound}"


async def serve_until(
    stop: asyncio.Event,
    app: Any,
    listener: socket.socket,
    *,
    name: str,
    end_within: int,
    certificate: Certificate | None = None,
    before_end: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """Serve until ``stop`` is set, or the server ends by itself.

    Args:
        stop: asks for the end.
        app: an ASGI application.
        listener: where; closed at the end.
        name: of the task that serves.
        end_within: seconds that requests have to come to their end.
        certificate: for TLS.
        before_end: awaited first of all, so that what would go on for ever ends by itself.
    """
    server = _Server(
        uvicorn.Config(
            app,
            lifespan="off",
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=end_within,
            ssl_certfile=certificate.certificate if certificate else None,
            ssl_keyfile=certificate.key if certificate else None,
        )
    )
    serving = asyncio.create_task(server.serve(sockets=[listener]), name=name)
    waiting = asyncio.create_task(stop.wait(), name=f"{name}: stop")
    await asyncio.wait([serving, waiting], return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if before_end is not None:
        await before_end()
    server.should_exit = True
    await serving


class _Server(uvicorn.Server):
    """Leaves signals to who started it: other parts of the process have to end in their own order."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
