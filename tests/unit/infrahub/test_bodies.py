"""Bodies of answers: bounded, decoded once, complete; and what came behind an answer answers no other request."""

from __future__ import annotations

import asyncio
import gzip
import json
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Iterator

import httpx
import pytest

from consumers.infrahub import bodies
from consumers.infrahub.bodies import MAX_BYTES, MAX_ITEMS, AnswerTooLarge, AnswerUndecodable, read_body
from consumers.infrahub.exchange import Event, FailedExchange
from consumers.infrahub.leftovers import has_leftovers
from consumers.infrahub.transport import PooledTransport
from tests.support.raw_http import Behaviour, answers, raw_server
from tests.support.scripted_infrahub import TOKEN, Guard, ScriptedInfrahub, graphql, lab_settings, text
from tests.unit.infrahub.test_transport import CLEAN, failure, post, transport_to

WORDS = b'{"data": {"LabSite": {"count": 12345}}}'


class _Stream(httpx.AsyncByteStream):
    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self.served = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self._chunks:
            self.served += len(chunk)
            yield chunk


def served(*chunks: bytes, encoding: str | None = None) -> httpx.Response:
    headers = {} if encoding is None else {"content-encoding": encoding}
    return httpx.Response(200, headers=headers, stream=_Stream(iter(chunks)))


def in_pieces(data: bytes, size: int) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]


@pytest.mark.parametrize("encoding", [None, "", "identity", "gzip", "GZIP", "x-gzip"])
@pytest.mark.parametrize("size", [1, 7, 1000])
async def test_a_whole_body_is_read_in_whatever_pieces_it_comes(encoding: str | None, size: int) -> None:
    wire = gzip.compress(WORDS) if encoding and "gzip" in encoding.lower() else WORDS
    assert await read_body(served(*in_pieces(wire, size), encoding=encoding)) == WORDS


@pytest.mark.rules("G5", "G6")
@pytest.mark.parametrize("end", range(1, len(gzip.compress(WORDS))))
async def test_g06_a_gzip_stream_that_was_cut_anywhere_is_no_answer(end: int) -> None:
    with pytest.raises(AnswerUndecodable):
        await read_body(served(gzip.compress(WORDS)[:end], encoding="gzip"))


@pytest.mark.rules("G5")
@pytest.mark.parametrize(
    ("wire", "encoding"),
    [
        (WORDS, "gzip"),
        (gzip.compress(WORDS) + b"x", "gzip"),
        (gzip.compress(WORDS) + gzip.compress(WORDS), "gzip"),
        (gzip.compress(gzip.compress(WORDS)), "gzip, gzip"),
        (zlib.compress(WORDS), "deflate"),
        (WORDS, "br"),
        (WORDS, "lies"),
    ],
    ids=["no gzip", "trailing byte", "two members", "twice", "deflate", "brotli", "unknown"],
)
async def test_g05_an_encoding_that_was_not_asked_for_or_is_broken_is_no_answer(wire: bytes, encoding: str) -> None:
    with pytest.raises(AnswerUndecodable):
        await read_body(served(wire, encoding=encoding))


async def test_an_empty_body_needs_no_encoding() -> None:
    assert await read_body(served(encoding="gzip")) == b""
    assert await read_body(served(b"", encoding="gzip")) == b""


@pytest.mark.parametrize("encoding", [None, "gzip"], ids=["plain", "bomb"])
async def test_a_body_beyond_all_measure_is_left_at_the_limit_in_bounded_memory(encoding: str | None) -> None:
    megabyte = b" " * 2**20
    bomb = gzip.compress(megabyte * 512, compresslevel=1)
    chunks = in_pieces(bomb, 65536) if encoding else [megabyte] * 512
    stream = _Stream(iter(chunks))
    answer = httpx.Response(200, headers={"content-encoding": encoding or "identity"}, stream=stream)
    tracemalloc.start()
    try:
        with pytest.raises(AnswerTooLarge):
            await read_body(answer)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 3 * MAX_BYTES
    assert stream.served <= MAX_BYTES + 2**20


async def test_the_limits_are_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "MAX_BYTES", 10)
    monkeypatch.setattr(bodies, "MAX_ITEMS", 3)
    assert await read_body(served(b"12345", b"67890")) == b"1234567890"
    with pytest.raises(AnswerTooLarge, match="bytes"):
        await read_body(served(b"12345", b"678901"))
    assert await read_body(served(b"[1,2,3]")) == b"[1,2,3]"
    with pytest.raises(AnswerTooLarge, match="items"):
        await read_body(served(b"[1,2,3,4]"))


async def test_many_small_values_are_too_large_as_well() -> None:
    assert MAX_ITEMS * 100 < 2**28, "what a document becomes in memory is bounded too"
    with pytest.raises(AnswerTooLarge, match="items"):
        await read_body(served(b"[" + b"[]," * MAX_ITEMS + b"[]]"))


@pytest.mark.rules("G5")
@pytest.mark.parametrize("status", [302, 401, 404, 429, 500, 503])
async def test_g05_the_status_stands_where_the_body_cannot_be_read(status: int) -> None:
    for headers, wire in (({"content-encoding": "gzip"}, b"no gzip"), ({}, b"," * (MAX_ITEMS + 1))):
        answer = httpx.Response(status, headers=headers, stream=_Stream(iter([wire])))
        server = ScriptedInfrahub()
        server.will_answer(answer)
        transport = PooledTransport(lab_settings(), guard=Guard(), deadline=5, factory=server.new_transport)
        exchange = await failure(transport, "http://infrahub.test")
        assert (exchange.event, exchange.status, exchange.body) == (Event.ANSWERED, status, b"")
        await transport.aclose()


def behind(body: bytes, more: bytes) -> Behaviour:
    """An answer, and more in the same packet."""

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body + more)
        await writer.drain()

    return behave


@pytest.mark.rules("G6")
@pytest.mark.parametrize(
    "more",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 31\r\n\r\n" + b'{"data": {"LabSite": "before"}}',
        b"HTTP/1.1 200 OK\r\ncontent-le",
        b"\r\n",
        b"<!-- served by a proxy -->",
    ],
    ids=["another answer", "half a head", "a blank line", "garbage"],
)
async def test_g06_what_comes_behind_an_answer_is_never_the_answer_to_the_next_request(more: bytes) -> None:
    async with raw_server() as server, transport_to(server.url) as transport:
        server.behaviours.extend([behind(CLEAN, more), answers(WORDS)])
        assert (await post(transport, server.url)).content == CLEAN
        assert (await post(transport, server.url)).content == WORDS
        assert (server.connections, len(server.requests)) == (2, 2)


async def test_a_layer_that_cannot_be_looked_into_is_taken_for_unclean(monkeypatch: pytest.MonkeyPatch) -> None:
    layer = httpx.AsyncHTTPTransport()
    assert not has_leftovers(layer)
    assert not has_leftovers(ScriptedInfrahub().new_transport())
    monkeypatch.delattr(layer, "_pool")
    assert has_leftovers(layer)


@pytest.mark.rules("G12")
@pytest.mark.parametrize("token", [TOKEN, 'qu"ote\\d/t0ken+of=the&lab'], ids=["plain", "odd"])
async def test_g12_an_answer_that_holds_the_token_is_not_used(token: str) -> None:
    spellings = [token, json.dumps(token)[1:-1], "".join(f"\\u{ord(letter):04x}" for letter in token)]
    for spelling in spellings:
        server = ScriptedInfrahub()
        server.will_answer(text(f'{{"data": {{"LabSiteUpsert": {{"ok": true, "object": {{"id": "{spelling}"}}}}}}}}'))
        settings = lab_settings(token=token)
        transport = PooledTransport(settings, guard=Guard(), deadline=5, factory=server.new_transport)
        if '"' in token and spelling == token:
            continue  # no JSON
        with pytest.raises(FailedExchange) as caught:
            await post(transport, "http://infrahub.test")
        assert caught.value.exchange.event is Event.CREDENTIAL_ECHOED
        assert caught.value.exchange.body == b""
        await transport.aclose()


async def test_a_token_that_is_an_ordinary_word_does_not_spoil_every_answer() -> None:
    server = ScriptedInfrahub()
    server.will_answer(graphql({"data": {"LabSite": {"name": "admin"}}}))
    transport = PooledTransport(lab_settings(token="admin"), guard=Guard(), deadline=5, factory=server.new_transport)
    assert (await post(transport, "http://infrahub.test")).status_code == 200
    await transport.aclose()
