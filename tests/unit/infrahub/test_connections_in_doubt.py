"""Connections that may end, or answer, before they are asked again: none of them is used for another request."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import httpx
import pytest
from infrahub_sdk.types import HTTPMethod

from consumers.infrahub.exchange import FailedExchange
from consumers.infrahub.transport import LARGE_REQUEST, PooledTransport
from tests.support.raw_http import Behaviour, RawServer, answers, raw_server
from tests.support.scripted_infrahub import Guard, lab_settings

MADE_UP = b'{"data": {"LabSiteUpsert": {"ok": true, "object": {"id": "made up"}}}}'
TRUE = b'{"data": {"LabSiteUpsert": {"ok": true, "object": {"id": "true"}}}}'


@asynccontextmanager
async def connected() -> AsyncIterator[tuple[RawServer, PooledTransport]]:
    async with raw_server() as server:
        transport = PooledTransport(lab_settings(url=server.url), guard=Guard(), deadline=5)
        try:
            yield server, transport
        finally:
            await transport.aclose()


async def post(server: RawServer, transport: PooledTransport, text: str = "") -> httpx.Response:
    payload = {"query": "mutation Upsert { x }", "variables": {"data": {"notes": {"value": text}}}}
    return await transport(f"{server.url}/graphql/main", HTTPMethod.POST, {}, 10, payload)


def one_behind_the_other(first: bytes, second: bytes, headers: str = "") -> Behaviour:
    """Two answers at once: the second came before it was asked for."""

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads = [f"HTTP/1.1 200 OK\r\n{more}content-length: {{}}\r\n\r\n" for more in (headers, "")]
        bodies = (first, second)
        writer.write(b"".join(head.format(len(body)).encode() + body for head, body in zip(heads, bodies, strict=True)))
        await writer.drain()

    return behave


SPOILT: dict[str, tuple[bytes, str]] = {
    "gzip cut short": (gzip.compress(TRUE)[:-4], "content-encoding: gzip\r\n"),
    "no gzip": (TRUE, "content-encoding: gzip\r\n"),
    "an encoding that was not asked for": (TRUE, "content-encoding: br\r\n"),
    "two million items": (b'{"data": [' + b"0," * 2_000_001 + b"0]}", ""),
    "no JSON": (b"<html>", ""),
    "clean": (TRUE, ""),
}


@pytest.mark.rules("G5", "G6")
@pytest.mark.parametrize(("body", "headers"), SPOILT.values(), ids=SPOILT)
async def test_g06_what_came_with_an_answer_is_never_the_answer_to_the_next_request(body: bytes, headers: str) -> None:
    """Least of all behind an answer that could not be read to its end."""
    async with connected() as (server, transport):
        server.behaviours.extend([one_behind_the_other(body, MADE_UP, headers), answers(TRUE)])
        with suppress(FailedExchange):
            await post(server, transport)
        assert (await post(server, transport)).content == TRUE
        assert server.connections == 2


@pytest.mark.rules("G5")
@pytest.mark.parametrize(("size", "connections"), [(LARGE_REQUEST // 2, 1), (LARGE_REQUEST, 2)])
async def test_g05_the_connection_of_a_large_request_is_not_used_again(size: int, connections: int) -> None:
    """The server closes it behind its answer, in silence, and would never see the next request."""
    async with connected() as (server, transport):
        server.behaviours.extend([answers(TRUE), answers(TRUE)])
        for text in ("x" * size, ""):
            await post(server, transport, text)
        assert (server.connections, len(server.requests)) == (connections, 2)
