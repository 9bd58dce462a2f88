"""Finds connections on which more came than the answer to the last request.

What is left over would be taken for the answer to the *next* request: a confirmation that was there before the question
(G6). The HTTP library looks for unread bytes in the socket before it uses a connection again, but not in its own
buffer, where everything lands that arrived together with an answer.
"""

from __future__ import annotations

import h11
import httpcore
import httpx


def has_leftovers(transport: httpx.AsyncBaseTransport) -> bool:
    """Whether an idle connection holds bytes that belong to no request.

    This looks behind the library's public names. Where they are not found any more the answer is yes: connections are
    then not used again, which is slow and right, and the test that connections are reused fails.
    """
    if not isinstance(transport, httpx.AsyncHTTPTransport):
        return False  # a layer without connections
    pool = getattr(transport, "_pool", None)
    if not isinstance(pool, httpcore.AsyncConnectionPool):
        return True
    return any(connection.is_idle() and not _is_clean(connection) for connection in pool.connections)


def _is_clean(connection: httpcore.AsyncConnectionInterface) -> bool:
    state = getattr(getattr(connection, "_connection", None), "_h11_state", None)
    return isinstance(state, h11.Connection) and not state.trailing_data[0]
