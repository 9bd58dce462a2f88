"""In front of every route: headers of safety, limits, and who is asking. Pure ASGI, so that streams pass untouched."""

from __future__ import annotations

import asyncio
import re
import time
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

import structlog
from fastapi import FastAPI
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import Message, Receive, Scope, Send

from ledger.api.errors import (
    ForeignOriginError,
    InvalidRequestError,
    MediaTypeError,
    RequestTooLargeError,
    TooManyRequestsError,
    UnauthenticatedError,
)
from ledger.api.limits import MAX_NESTING, ApiLimits, RateLimiter
from ledger.api.metrics import ApiMetrics
from ledger.api.problems import problem_response
from ledger.api.rights import NOBODY_ASKED
from ledger.api.tokens import Caller, Role, belongs, token_id_of, without_tokens
from ledger.errors import ApplyLedgerError
from ledger.store.errors import LedgerPermissionError
from ledger.store.tokens import TokenQueries

_log = structlog.get_logger(__name__)

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_UNSAFE = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)', re.DOTALL)
"""Possessive, and ended by the end as well: a string that never ends is passed over once, not once for each quote."""
_BRACKETS = re.compile(rb"[\[\]{}]")
LOCAL = Caller("local", Role.OPERATOR, None)


@dataclass(frozen=True, slots=True)
class Gate:
    """Wraps an application.

    Attributes:
        app: what answers those who may ask: the routes with their own errors.
        tokens: where tokens are looked up, or None in local mode: then everybody on this machine is an operator.
        limits: of the settings.
        rates: of callers that are known.
        failures: of addresses whose tokens do not work.
        metrics: what is counted.
    """

    app: FastAPI
    tokens: TokenQueries | None
    limits: ApiLimits
    rates: RateLimiter
    failures: RateLimiter
    metrics: ApiMetrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; anything that is no HTTP passes (the start and end of the application)."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        answer = _Answer(send)
        began = time.monotonic()
        try:
            try:
                receive = await self._admitted(scope, receive)
            except ApplyLedgerError as exc:
                if isinstance(exc, TooManyRequestsError):
                    self.metrics.rate_limited.inc()
                await problem_response(exc, scope["path"])(scope, receive, answer)
                return
            await self.app(scope, receive, answer)
        finally:
            self._count(scope, answer, time.monotonic() - began)

    async def _admitted(self, scope: Scope, receive: Receive) -> Receive:
        """Name the caller, and hand on what the application is to receive from."""
        headers = Headers(scope=scope)
        self._require_known_name(headers)
        if self.limits.cors_origins and scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
            return receive  # a browser asks, without a token, whether it may ask; no route sees it
        if scope["path"] not in NOBODY_ASKED:
            scope["caller"] = await self._caller(scope, headers)
        if scope["method"] in _UNSAFE:
            _require_own_page(headers)
            return await self._body(headers, receive)
        return receive

    async def _caller(self, scope: Scope, headers: Headers) -> Caller:
        """Who asks, by the token; found out before anything else is, also whether the address exists.

        Failures of an address refuse nobody whose token works: many may come through one proxy.

        Raises:
            UnauthenticatedError: no token, or none that works.
            TooManyRequestsError: of one token, or of an address whose tokens do not work.
        """
        if self.tokens is None:
            self.rates.take("local")
            return LOCAL
        address = (scope.get("client") or ("unknown", 0))[0]
        scheme, _, text = headers.get("authorization", "").partition(" ")
        token_id = token_id_of(text.strip()) if scheme.lower() == "bearer" else None
        stored = None if token_id is None else await self.tokens.token(token_id)
        if not belongs(text.strip(), stored) or stored is None:
            self.failures.take(address)
            self.metrics.refused_tokens.inc()
            raise _unauthenticated(given="authorization" in headers)
        self.rates.take(stored.token_id)
        with suppress(LedgerPermissionError):  # a login role that only reads, for a server that only reads
            await self.tokens.note_token_used(stored.token_id)
        return Caller(stored.name, Role(stored.role), stored.token_id)

    def _require_known_name(self, headers: Headers) -> None:
        """A name of somebody else's that leads here is how a foreign page gets to a server on this machine."""
        names = frozenset(self.limits.host_names) or (LOOPBACK_NAMES if self.tokens is None else frozenset())
        try:
            host = urlsplit(f"//{headers.get('host', '')}").hostname or ""
        except ValueError:
            host = ""
        if names and host not in names:
            raise ForeignOriginError(
                checked="the header Host",
                expected=", ".join(sorted(names)),
                found="another name",
                next_action="ask under such a name, or add this one to host_names in the settings",
            )

    async def _body(self, headers: Headers, receive: Receive) -> Receive:
        """The whole body, read within its bounds before anybody decodes it."""
        most = self.limits.max_body_bytes
        declared = headers.get("content-length", "0")
        if not declared.isascii() or not declared.isdigit() or int(declared) > most:
            raise _too_large(most)
        data = bytearray()
        more = True
        try:
            async with asyncio.timeout(self.limits.body_seconds):
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
        if data and headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise MediaTypeError(
                checked="the header Content-Type",
                expected="application/json",
                found="another one",
                next_action="send JSON, and say so",
            )
        _require_shallow(bytes(data))
        return _replayed(bytes(data), receive)

    def _count(self, scope: Scope, answer: _Answer, seconds: float) -> None:
        route = scope.get("route")
        address = getattr(route, "path", "none")
        method = scope["method"] if scope["method"] in (*_UNSAFE, "GET", "HEAD", "OPTIONS") else "other"
        self.metrics.requests.labels(method, address, str(answer.status)).inc()
        if not answer.streams:
            self.metrics.seconds.labels(method, address).observe(seconds)
        caller = scope.get("caller")
        _log.info(
            "answered",
            method=method,
            path=without_tokens(scope["path"]),
            status=answer.status,
            seconds=round(seconds, 4),
            token=caller.token_id if isinstance(caller, Caller) else None,
        )


class _Answer:
    """Sends, with the headers of safety on every answer."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status = 500
        self.streams = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers[name] = value
            headers.setdefault("Cache-Control", "no-store")
            self.streams = headers.get("content-type", "").startswith("text/event-stream")
        await self._send(message)


def _require_own_page(headers: Headers) -> None:
    """A page of another site must not give orders in the name of who looks at it."""
    origin, host = headers.get("origin"), headers.get("host", "")
    foreign = headers.get("sec-fetch-site", "none") not in ("none", "same-origin")
    try:
        foreign = foreign or (origin is not None and urlsplit(origin).netloc != host)
    except ValueError:
        foreign = True
    if foreign:
        raise ForeignOriginError(
            checked="the headers Origin and Sec-Fetch-Site",
            expected="those of a page of this server, or none",
            found="those of another site",
            next_action="give orders from this server's own page, or from a program",
        )


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


def _unauthenticated(*, given: bool) -> UnauthenticatedError:
    return UnauthenticatedError(
        checked="the header Authorization",
        expected="Bearer, and a token that works",
        found="one that does not work" if given else "none",
        next_action="`apply-ledger token create NAME --role reader` makes one",
    )


def _too_large(most: int) -> RequestTooLargeError:
    return RequestTooLargeError(
        checked="the body", expected=f"at most {most} bytes, and its length", found="more", next_action="send less"
    )


def _unreadable(expected: str, found: str) -> InvalidRequestError:
    return InvalidRequestError(checked="the body", expected=expected, found=found, next_action="correct the request")
