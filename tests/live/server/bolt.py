"""Whether a Neo4j takes connections: the first exchange of its protocol, spelled out. Standard library only."""

from __future__ import annotations

import socket
import time

_MAGIC = bytes.fromhex("6060b017")
_OFFERED = bytes.fromhex("00020405000000050000000400000003")
"""Four ranges of protocol versions; the server answers with the one it takes, or with zeros."""
_STEP = 0.2


def is_ready(port: int) -> bool:
    """Whether a server on loopback agrees on a version of Bolt."""
    try:
        with socket.create_connection(("127.0.0.1", port), 1) as connection:
            connection.sendall(_MAGIC + _OFFERED)
            return connection.recv(4) not in (b"", b"\0\0\0\0")
    except OSError:
        return False


def wait_for_bolt(port: int, *, seconds: float) -> None:
    """Return when the server answers.

    Raises:
        TimeoutError: it did not in time.
    """
    deadline = time.monotonic() + seconds
    while not is_ready(port):
        if time.monotonic() > deadline:
            raise TimeoutError(f"no Neo4j on port {port} after {seconds:g} s")
        time.sleep(_STEP)
