"""Reads the body of an answer within bounds: nothing that a server sends may fill this process's memory.

The HTTP library would decode whatever it is told to: nested encodings, bombs that grow a thousandfold, and a stream
that was cut before its end. Here gzip alone is asked for and accepted, once, complete, and only up to a size.
"""

from __future__ import annotations

import zlib

import httpx

MAX_BYTES = 32 * 1024 * 1024
"""Bytes of one answer, decoded. A schema takes half a million, a page of 200 objects a hundred thousand."""

MAX_ITEMS = 2_000_000
"""Commas and opening brackets of one answer: a few bytes of JSON can become a hundred bytes of memory."""


class AnswerTooLarge(Exception):
    """More bytes or items than are read."""


class AnswerUndecodable(Exception):
    """The body is not what its content encoding says."""


async def read_body(response: httpx.Response) -> bytes:
    """The whole body, decoded, from the layer below the response; the caller closes the response.

    Raises:
        AnswerTooLarge: :data:`MAX_BYTES` or :data:`MAX_ITEMS` are exceeded; nothing more is read.
        AnswerUndecodable: an encoding other than gzip, or no complete gzip stream.
        httpx.RequestError: the connection failed on the way.
    """
    if not isinstance(response.stream, httpx.AsyncByteStream):
        raise TypeError("the transport answered with a body that is no asynchronous stream")
    decoder = _decoder(response.headers.get("content-encoding", ""))
    parts: list[bytes] = []
    room = MAX_BYTES
    async for chunk in response.stream:
        part = decoder.feed(chunk, room + 1)
        room -= len(part)
        if room < 0:
            raise AnswerTooLarge(f"more than {MAX_BYTES:,} bytes")
        parts.append(part)
    decoder.end()
    body = b"".join(parts)
    if sum(map(body.count, (b",", b"[", b"{"))) > MAX_ITEMS:
        raise AnswerTooLarge(f"more than {MAX_ITEMS:,} items")
    return body


class _Identity:
    def feed(self, chunk: bytes, limit: int) -> bytes:
        return chunk[:limit]

    def end(self) -> None:
        """A body without an encoding ends where the framing says."""


class _Gzip:
    def __init__(self) -> None:
        self._inflate = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        self._begun = False

    def feed(self, chunk: bytes, limit: int) -> bytes:
        if self._inflate.eof and chunk:
            raise AnswerUndecodable("bytes after the end of the gzip stream")
        self._begun = self._begun or bool(chunk)
        try:
            return self._inflate.decompress(chunk, limit)
        except zlib.error as exc:
            raise AnswerUndecodable(str(exc)) from None

    def end(self) -> None:
        if self._begun and (not self._inflate.eof or self._inflate.unused_data):
            raise AnswerUndecodable("a gzip stream that does not end with the body")


def _decoder(encoding: str) -> _Identity | _Gzip:
    match encoding.strip().lower():
        case "" | "identity":
            return _Identity()
        case "gzip" | "x-gzip":
            return _Gzip()
        case _:
            raise AnswerUndecodable("a content encoding that was not asked for")
