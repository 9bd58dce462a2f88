"""In front of every route: headers of safety, limits, and who is asking. Pure ASGI, so that streams pass untouched."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import Protocol
from urllib.parse import urlsplit

import structlog
from fastapi import FastAPI
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from ledger.api.callers import Callers
from ledger.api.errors import ForeignOriginError, TooManyRequestsError
from ledger.api.limits import ApiLimits
from ledger.api.metrics import ApiMetrics
from ledger.api.problems import problem_response
from ledger.api.request_bodies import FORM, JSON, read_body
from ledger.api.rights import NOBODY_ASKED
from ledger.api.tokens import Caller, without_tokens
from ledger.errors import ApplyLedgerError

_log = structlog.get_logger(__name__)

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Nothing to another site. "no-referrer" would do that as well, and make browsers send our own forms with
    # "Origin: null", which is what another site's page looks like.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
STREAMED = ("text/event-stream", "application/x-ndjson", "application/x-tar")
"""What goes on for as long as somebody reads: how long that took says nothing about this server."""

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_UNSAFE = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_PROGRAMS = ("/api/", "/healthz", "/readyz", "/metrics")


class Pages(Protocol):
    """What answers people: everything that is no address of the API."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""

    def is_open(self, path: str) -> bool:
        """Whether a path is answered to everybody: where one logs in, and what that page looks like."""

    def refused(self, error: ApplyLedgerError, scope: Scope) -> Response:
        """The answer to a request that is refused here already."""


@dataclass(frozen=True, slots=True)
class Gate:
    """Wraps an application.

    Attributes:
        app: what answers programs who may ask: the routes with their own errors.
        pages: what answers people, or None: then every address is the API's.
        callers: who finds out who asks.
        limits: of the settings.
        metrics: what is counted.
    """

    app: FastAPI
    pages: Pages | None
    callers: Callers
    limits: ApiLimits
    metrics: ApiMetrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; anything that is no HTTP passes (the start and end of the application)."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        answer = _Answer(send, self._hsts(scope))
        began = time.monotonic()
        pages = None if scope["path"].startswith(_PROGRAMS) else self.pages
        try:
            try:
                receive = await self._admitted(scope, receive, pages)
            except ApplyLedgerError as exc:
                if isinstance(exc, TooManyRequestsError):
                    self.metrics.rate_limited.inc()
                response = problem_response(exc, scope["path"]) if pages is None else pages.refused(exc, scope)
                await response(scope, receive, answer)
                return
            await (pages or self.app)(scope, receive, answer)
        finally:
            self._count(scope, answer, time.monotonic() - began)

    async def _admitted(self, scope: Scope, receive: Receive, pages: Pages | None) -> Receive:
        """Name the caller, and hand on what the application is to receive from."""
        headers = Headers(scope=scope)
        self._require_known_name(headers)
        if pages is not None:
            if not pages.is_open(scope["path"]):
                scope["caller"], scope["session"] = await self.callers.of_person(scope, headers)
        else:
            if self.limits.cors_origins and scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
                return receive  # a browser asks, without a token, whether it may ask; no route sees it
            if scope["path"] not in NOBODY_ASKED:
                caller = scope["caller"] = await self.callers.of_program(scope, headers)
                scope["still_works"] = partial(self.callers.still_works, caller, scope, headers)
        if scope["method"] in _UNSAFE:
            _require_own_page(headers)
            return await read_body(headers, receive, self.limits, JSON if pages is None else FORM)
        return receive

    def _hsts(self, scope: Scope) -> str | None:
        """Only over TLS, as RFC 6797 7.2 has it; and only where wanted, for it binds every service of the host."""
        wanted = self.limits.hsts_seconds if self.callers.speaks_tls(scope) else 0
        return f"max-age={wanted}" if wanted else None

    def _require_known_name(self, headers: Headers) -> None:
        """A name of somebody else's that leads here is how a foreign page gets to a server on this machine."""
        local = self.callers.tokens is None
        names = frozenset(self.limits.host_names) or (LOOPBACK_NAMES if local else frozenset())
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

    def __init__(self, send: Send, hsts: str | None) -> None:
        self._send = send
        self._hsts = hsts
        self.status = 500
        self.streams = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers[name] = value
            if self._hsts:
                headers["Strict-Transport-Security"] = self._hsts
            headers.setdefault("Cache-Control", "no-store")
            self.streams = headers.get("content-type", "").startswith(STREAMED)
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
            next_action="give orders from this server's own page, or from a program; "
            "a proxy in front of this server has to pass the header Host on unchanged",
        )
