"""Breaking a connection, which ASGI has no word for."""

from __future__ import annotations

import asyncio
from weakref import WeakSet

from starlette.types import ASGIApp, Receive, Scope, Send

_KEY = "sandbox.transport"


class ConnectionDroppedError(ConnectionError):
    """Raised in place of a broken connection where there is no socket, as under an in-process client."""


class TransportAccess:
    """Hands the server's socket on to the endpoint.

    It has to be the outermost application: only there is ``send`` still the method of uvicorn's request cycle, whose
    transport is the connection.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the application with the transport in its scope."""
        scope[_KEY] = getattr(getattr(send, "__self__", None), "transport", None)
        if scope[_KEY] in _ENDING:
            await close_connection(scope, send)
            return
        await self._app(scope, receive, send)


_ENDING: WeakSet[asyncio.BaseTransport] = WeakSet()
"""Connections whose next request finds nobody."""


def end_with_next_request(scope: Scope) -> None:
    """Leave the client's connection open, and close it without an answer as soon as it is used again.

    The server itself closes it some moments after the answer; a client that is quick enough sees just this.
    """
    if scope.get(_KEY) is not None:
        _ENDING.add(scope[_KEY])


async def close_connection(scope: Scope, _send: Send) -> None:
    """Close the client's connection after what was sent so far.

    Raises:
        ConnectionDroppedError: there is no connection to close.
    """
    transport = scope.get(_KEY)
    if transport is None:
        raise ConnectionDroppedError("the sandbox dropped the connection")
    transport.close()
    # The server learns of it in the loop's next turn; before that it would answer 500 for us.
    await asyncio.sleep(0)
