"""Hostile answers as bytes on real connections: cut at every byte, framed wrongly, doubled, late, or from another time.

What a careful reader of HTTP sees is known for each of them, so the verdict is exact: a whole confirmation is believed,
anything less is unknown, and never is it another exception.
"""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import pytest

from consumers.infrahub.connection import InfrahubOpener, declared
from ledger.binding import DestinationBinding
from ledger.destination import OutcomeUnknownError, ProvenUnwrittenError
from tests.hostile.answers.judged import leak_in
from tests.hostile.answers.writes import FORMS, TOKEN
from tests.support.lab_schema import lab_document
from tests.support.raw_http import Behaviour, RawServer, answers, closes, hangs, raw_server
from tests.support.scripted_infrahub import RUN_ID, Guard, lab_settings

UPDATE, OPERATION = FORMS[0]
CONFIRMED = json.dumps({"data": {UPDATE.field: {"ok": True, "object": {"id": UPDATE.node_id}}}}).encode()
SCHEMA = answers(json.dumps(lab_document()).encode())

OK = b"HTTP/1.1 200 OK\r\n"


def framed(body: bytes, head: bytes = OK, headers: bytes = b"") -> bytes:
    return head + headers + b"content-length: %d\r\n\r\n" % len(body) + body


def chunked(body: bytes, size: int = 40, headers: bytes = b"") -> bytes:
    pieces = [body[start : start + size] for start in range(0, len(body), size)]
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
    return OK + headers + b"transfer-encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n"


def until_closed(body: bytes) -> bytes:
    return b"HTTP/1.0 200 OK\r\n\r\n" + body


ZIPPED = gzip.compress(CONFIRMED, mtime=0)
WHOLE = {
    "length": framed(CONFIRMED),
    "chunks": chunked(CONFIRMED),
    "until closed": until_closed(CONFIRMED),
    "zipped": framed(ZIPPED, headers=b"content-encoding: gzip\r\n"),
    "zipped chunks": chunked(ZIPPED, headers=b"content-encoding: gzip\r\n"),
}


def sends(data: bytes, *, then_close: bool = True) -> Behaviour:
    """Bytes as they are."""

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await writer.drain()
        if then_close:
            writer.close()

    return behave


Apply = Callable[[], Any]


@asynccontextmanager
async def destination(deadline: float = 5) -> AsyncIterator[tuple[RawServer, Apply]]:
    """A server that has given its schema, and a function that writes one update."""
    async with raw_server() as server:
        server.behaviours.append(SCHEMA)
        settings = lab_settings(url=server.url, token=TOKEN, attempts=1, request_timeout=deadline)
        binding = DestinationBinding(url=server.url, branch="lab1")
        async with InfrahubOpener(declared(settings))(binding, run_id=RUN_ID, guard=Guard()) as opened:

            async def apply() -> str:
                surface: Any = opened.writes
                try:
                    await surface.apply_planned_operation(operation=OPERATION, peers=surface.new_peer_resolver())
                except (OutcomeUnknownError, ProvenUnwrittenError) as error:
                    return _said(error)
                return "applied"

            yield server, apply


def _said(error: OutcomeUnknownError | ProvenUnwrittenError) -> str:
    assert leak_in(error, TOKEN) == ""
    if isinstance(error, ProvenUnwrittenError):
        return "unwritten"
    assert error.sent
    return "unknown"


@pytest.mark.rules("G6")
@pytest.mark.parametrize("framing", WHOLE)
async def test_g06_a_whole_answer_is_believed_however_it_is_framed(framing: str) -> None:
    async with destination() as (server, apply):
        server.behaviours.append(sends(WHOLE[framing], then_close=framing == "until closed"))
        assert await apply() == "applied"


@pytest.mark.rules("G5", "G6", "P128")
@pytest.mark.parametrize("framing", WHOLE)
async def test_g06_an_answer_cut_at_any_byte_is_unknown(framing: str) -> None:
    data = WHOLE[framing]
    async with destination() as (server, apply):
        for end in range(len(data)):
            server.behaviours.append(sends(data[:end]))
            assert await apply() == "unknown", f"cut behind byte {end} of {len(data)}: {data[:end][-30:]!r}"


UNKNOWN = {
    "a length too long": framed(CONFIRMED).replace(b"content-length: 9", b"content-length: 99"),
    "a length too short": OK + b"content-length: %d\r\n\r\n" % (len(CONFIRMED) - 1) + CONFIRMED,
    "two lengths": OK + b"content-length: 5\r\ncontent-length: %d\r\n\r\n" % len(CONFIRMED) + CONFIRMED,
    "no length at all": OK + b"content-length: x\r\n\r\n" + CONFIRMED,
    "a negative length": OK + b"content-length: -1\r\n\r\n" + CONFIRMED,
    "a length of forty digits": OK + b"content-length: " + b"9" * 40 + b"\r\n\r\n" + CONFIRMED,
    "a chunk size that is none": OK + b"transfer-encoding: chunked\r\n\r\nxyz\r\n" + CONFIRMED,
    "a chunk size too large": OK + b"transfer-encoding: chunked\r\n\r\nfffffffffffffffffffff\r\n" + CONFIRMED,
    "an unknown transfer encoding": OK + b"transfer-encoding: bogus\r\n\r\n" + CONFIRMED,
    "a head without an end": OK + b"x: " + b"h" * 200_000,
    "a header line without a colon": OK + b"nonsense\r\n\r\n" + CONFIRMED,
    "a header with a null byte": framed(CONFIRMED, headers=b"x: a\x00b\r\n"),
    "a folded first header": OK + b" folded\r\n" + framed(CONFIRMED)[len(OK) :],
    "no protocol": CONFIRMED,
    "ssh": b"SSH-2.0-OpenSSH_9.2\r\n",
    "tls": b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03",
    "a status that is no number": b"HTTP/1.1 OK 200\r\n\r\n" + CONFIRMED,
    "a status of four digits": framed(CONFIRMED, b"HTTP/1.1 2000 OK\r\n"),
    "only informational answers": b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n" * 3,
    "switching protocols": b"HTTP/1.1 101 Switching Protocols\r\nupgrade: h2c\r\nconnection: upgrade\r\n\r\n"
    + CONFIRMED,
    "no content": b"HTTP/1.1 204 No Content\r\n\r\n" + CONFIRMED,
    "not modified": b"HTTP/1.1 304 Not Modified\r\n\r\n" + CONFIRMED,
    "a redirect to ourselves": framed(CONFIRMED, b"HTTP/1.1 307 Temporary Redirect\r\nlocation: /graphql/lab1\r\n"),
    "a gzip lie": framed(CONFIRMED, headers=b"content-encoding: gzip\r\n"),
    "zipped twice": framed(gzip.compress(ZIPPED), headers=b"content-encoding: gzip, gzip\r\n"),
    "a proxy's page": framed(b"<html><title>Sign in</title></html>", headers=b"content-type: text/html\r\n"),
    "only white space": b"\r\n\r\n\r\n",
    "zeroes": bytes(5000),
}

BELIEVED = {
    "informational answers before it": b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n"
    + framed(CONFIRMED),
    "a content type that is wrong": framed(CONFIRMED, headers=b"content-type: text/html; charset=utf-16\r\n"),
    "cookies": framed(CONFIRMED, headers=b"set-cookie: a=b\r\nset-cookie: c=d\r\n"),
    "header bytes beyond ASCII": framed(CONFIRMED, headers=b"x: \xe4\xff\r\n"),
    "a long header": framed(CONFIRMED, headers=b"x: " + b"h" * 60_000 + b"\r\n"),
    "another version": framed(CONFIRMED, b"HTTP/2.0 200 OK\r\n"),
    "no reason phrase": framed(CONFIRMED, b"HTTP/1.1 200\r\n"),
    "trailers behind the chunks": chunked(CONFIRMED)[:-2] + b"x-checksum: 1\r\n\r\n",
    "chunk extensions": OK
    + b"transfer-encoding: chunked\r\n\r\n%x;a=b\r\n" % len(CONFIRMED)
    + CONFIRMED
    + b"\r\n0\r\n\r\n",
    "the length twice": OK + b"content-length: %d\r\n" % len(CONFIRMED) + framed(CONFIRMED)[len(OK) :],
    "white space around it": framed(b"\n \t" + CONFIRMED + b"\r\n"),
}


@pytest.mark.rules("G5", "G6", "P127", "P128")
@pytest.mark.parametrize("name", UNKNOWN)
async def test_g05_bytes_that_are_no_confirmation_are_unknown(name: str) -> None:
    async with destination() as (server, apply):
        server.behaviours.append(sends(UNKNOWN[name]))
        assert await apply() == "unknown"


@pytest.mark.rules("G6")
@pytest.mark.parametrize("name", BELIEVED)
async def test_g06_a_confirmation_is_believed_whatever_stands_around_it(name: str) -> None:
    async with destination() as (server, apply):
        server.behaviours.extend([sends(BELIEVED[name], then_close=False), sends(WHOLE["length"])])
        assert [await apply(), await apply()] == ["applied", "applied"]


@pytest.mark.rules("G6")
@pytest.mark.parametrize("first", [framed(b'{"data": null}'), chunked(b"{}"), framed(b"oops", b"HTTP/1.1 400 Bad\r\n")])
async def test_g06_a_confirmation_that_was_there_before_the_question_confirms_nothing(first: bytes) -> None:
    async with destination() as (server, apply):
        server.behaviours.extend([sends(first + WHOLE["length"], then_close=False), sends(framed(b'{"data": {}}'))])
        assert [await apply(), await apply()] == ["unknown", "unknown"]
        assert len(server.requests) == 3


@pytest.mark.rules("G5", "P128")
@pytest.mark.parametrize("begun", [b"", OK, framed(CONFIRMED)[:-1]], ids=["nothing", "a head", "all but a byte"])
async def test_g05_an_answer_that_does_not_come_in_time_is_unknown_and_none_of_it_is_used_later(begun: bytes) -> None:
    async with destination(deadline=0.3) as (server, apply):

        async def late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(begun)
            await writer.drain()
            await hangs(server.ended)(reader, writer)

        server.behaviours.extend([late, sends(WHOLE["length"])])
        assert [await apply(), await apply()] == ["unknown", "applied"]
        assert server.connections == 2, "a connection that owes an answer is not used again"


@pytest.mark.rules("G5", "P128")
async def test_g05_a_connection_closed_without_a_word_is_unknown() -> None:
    async with destination() as (server, apply):
        server.behaviours.append(closes())
        assert await apply() == "unknown"


@pytest.mark.rules("G5", "G6")
@pytest.mark.parametrize("seed", range(3))
async def test_g06_flipped_bytes_confirm_only_what_they_say(seed: int) -> None:
    random = Random(seed)
    async with destination() as (server, apply):
        for _ in range(120):
            data = bytearray(random.choice([WHOLE["length"], WHOLE["until closed"], chunked(CONFIRMED, size=500)]))
            for _ in range(random.choice([1, 1, 2, 5])):
                data[random.randrange(len(data))] = random.randrange(256)
            server.behaviours.append(sends(bytes(data)))
            said = await apply()
            whole_id = (UPDATE.node_id or "").encode() in data and UPDATE.field.encode() in data
            assert said == "unknown" or (said == "applied" and whole_id and b'"ok": true' in data), bytes(data)
