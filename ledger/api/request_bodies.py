"""The body of a request: read whole and within its bounds, before anybody decodes it."""

from __future__ import annotations

import asyncio
import re

from starlette.datastructures import Headers
from starlette.types import Message, Receive

from ledger.api.errors import InvalidRequestError, MediaTypeError, RequestTooLargeError
from ledger.api.limits import MAX_NESTING, ApiLimits

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)', re.DOTALL)
"""Possessive, and ended by the end as well: a string that never ends is passed over once, not once for each quote."""
_BRACKETS = re.compile(rb"[\[\]{}]")


async def read_body(headers: Headers, receive: Receive, limits: ApiLimits, media_type: str) -> Receive:
    """Read the body; returns what the application receives it from.

    Args:
        headers: of the request.
        receive: where it comes from.
        limits: of the settings.
        media_type: what it has to be, :data:`JSON` or :data:`FORM`.

    Raises:
        RequestTooLargeError, MediaTypeError, InvalidRequestError: it is none that is taken.
    """
    most = limits.max_body_bytes
    declared = headers.get("content-length", "0")
    if not declared.isascii() or not declared.isdigit() or int(declared) > most:
        raise _too_large(most)
    data = bytearray()
    more = True
    try:
        async with asyncio.timeout(limits.body_seconds):
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    break
                data += message.get("body", b"")
                more = message.get("more_body", False)
                if len(data) > most:
                    raise _too_large(most)
    except TimeoutError:
        raise _unreadable("all of it in time", "a body that does not come to its end") from None
    if data and headers.get("content-type", "").partition(";")[0].strip().lower() != media_type:
        raise MediaTypeError(
            checked="the header Content-Type",
            expected=media_type,
            found="another one",
            next_action="send JSON, and say so" if media_type == JSON else "send the form of the page",
        )
    if media_type == JSON:
        _require_shallow(bytes(data))
    return _replayed(bytes(data), receive)


def _require_shallow(data: bytes) -> None:
    depth = 0
    for found in _BRACKETS.finditer(_STRING.sub(b"", data)):
        depth += 1 if found[0] in b"[{" else -1
        if depth > MAX_NESTING:
            raise _unreadable(f"at most {MAX_NESTING} levels of nesting", "more")


def _replayed(data: bytes, receive: Receive) -> Receive:
    sent = False

    async def replay() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": data, "more_body": False}

    return replay


def _too_large(most: int) -> RequestTooLargeError:
    return RequestTooLargeError(
        checked="the body", expected=f"at most {most} bytes, and its length", found="more", next_action="send less"
    )


def _unreadable(expected: str, found: str) -> InvalidRequestError:
    return InvalidRequestError(checked="the body", expected=expected, found=found, next_action="correct the request")
