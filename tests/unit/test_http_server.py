"""The one server of a process: it answers until it is told to stop, lets what goes on end, and takes no signals."""

from __future__ import annotations

import asyncio
import signal
import socket
from typing import Any

import httpx
import pytest

from ledger.http_server import address_of, listening, serve_until


async def _says_its_path(scope: Any, receive: Any, send: Any) -> None:
    assert scope["type"] == "http"
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": scope["path"].encode()})


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_it_answers_until_it_is_told_to_stop_and_closes_its_port(host: str) -> None:
    stop, ended = asyncio.Event(), []
    listener = listening(host, 0)
    address = address_of(listener)
    before = signal.getsignal(signal.SIGTERM)

    async def before_end() -> None:
        ended.append(serving.done())

    serving = asyncio.create_task(
        serve_until(stop, _says_its_path, listener, name="tests", end_within=1, before_end=before_end)
    )
    async with httpx.AsyncClient(trust_env=False) as client:
        answer = await client.get(f"{address}/a/path")
    assert (answer.status_code, answer.text) == (200, "/a/path")
    assert "server" not in answer.headers
    assert signal.getsignal(signal.SIGTERM) is before
    stop.set()
    await serving
    assert ended == [False], "what goes on is ended once, before the server is"
    assert listener.fileno() == -1


async def test_a_port_that_is_taken_is_an_error_and_leaves_no_socket() -> None:
    with listening("127.0.0.1", 0) as taken, pytest.raises(OSError, match="in use"):
        listening("127.0.0.1", taken.getsockname()[1])


@pytest.mark.parametrize(
    ("host", "tls", "said"), [("127.0.0.1", False, "http://127.0.0.1:"), ("::1", True, "https://[::1]:")]
)
def test_an_address_is_one_that_a_browser_takes(host: str, tls: bool, said: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.bind((host, 0))
        assert address_of(listener, tls=tls) == f"{said}{listener.getsockname()[1]}"
