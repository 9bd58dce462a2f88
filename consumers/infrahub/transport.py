"""The HTTP client under infrahub-sdk: pooled, without surprises, and honest about what was sent.

infrahub-sdk opens a connection per request and reports "never sent" and "maybe applied" with one class. This requester
takes its place. It keeps connections for less time than the server does, and uses none again that is in doubt: after an
answer of 5xx and after a large write the server closes its side without saying so, and the next request would be lost;
after an answer that was not read to a clean end, or one with bytes behind it, what is left would be taken for the next
answer. Nothing but clean answers of a bounded size reaches the SDK. Requests go straight to httpx's transport: the
client above it would add redirects, cookies, proxies and credentials of the environment, each of which would have to be
switched off again.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import lru_cache
from typing import Any

import httpx
from infrahub_sdk.types import HTTPMethod

from consumers.infrahub.answers import Shape, read_answer
from consumers.infrahub.bodies import AnswerTooLarge, AnswerUndecodable, read_body
from consumers.infrahub.exchange import Event, Exchange, FailedExchange, event_of
from consumers.infrahub.leftovers import has_leftovers
from consumers.infrahub.redaction import Redactor
from consumers.infrahub.settings import InfrahubSettings
from ledger import spans
from ledger.destination import DispatchGuard
from ledger.errors import ConfigurationError
from ledger.tls import trusting

KEEPALIVE_SECONDS = 1.5
"""Below the two seconds after which the server's own HTTP layer drops an idle connection."""

LARGE_REQUEST = 256 * 1024
"""Bytes of a request after whose answer its connection is not used again.

The server closes the connection behind the answer to a write whose event is above a million and a half; the event holds
each value twice and the old ones beside the new, so the bound lies well below that. Where a small value takes the place
of a very large one nothing in the request tells of it; see :meth:`PooledTransport.leave_connections`.
"""

_MAX_CONNECTIONS = 4
_CLEAN = {HTTPMethod.POST: frozenset({Shape.DATA}), HTTPMethod.GET: frozenset({Shape.NEITHER, Shape.DATA})}

_HEADERS = {"accept": "*/*", "accept-encoding": "gzip", "user-agent": "apply-ledger"}
_FRAMING = frozenset({b"content-encoding", b"content-length", b"transfer-encoding"})
"""Headers that speak of the body as it was on the wire, not as it was read."""
_parsed_url = lru_cache(maxsize=64)(httpx.URL)

TransportFactory = Callable[[], httpx.AsyncBaseTransport]


class _Pool:
    """One pool of connections and the number of requests that are on it."""

    def __init__(self, transport: httpx.AsyncBaseTransport) -> None:
        self.transport = transport
        self.in_use = 0
        self.retired = False


class PooledTransport:
    """The requester handed to infrahub-sdk; lives in one event loop and for one run.

    Args:
        settings: of the destination.
        guard: asked as the last step before a request is handed to httpx (G2); what it raises passes unchanged.
        deadline: seconds for a whole request.
        factory: makes the layer below httpx; tests put a scripted server there.
    """

    def __init__(
        self,
        settings: InfrahubSettings,
        *,
        guard: DispatchGuard,
        deadline: float,
        factory: TransportFactory | None = None,
    ) -> None:
        self._guard = guard
        self._deadline = deadline
        self._redactor = Redactor(settings.secrets)
        self._timeout = httpx.Timeout(deadline, connect=min(settings.connect_timeout, deadline)).as_dict()
        tls = tls_context(settings)
        limits = httpx.Limits(max_connections=_MAX_CONNECTIONS, keepalive_expiry=KEEPALIVE_SECONDS)
        self._factory = factory or (lambda: httpx.AsyncHTTPTransport(verify=tls, limits=limits, trust_env=False))
        self._pool = _Pool(self._factory())

    async def __call__(
        self,
        url: str,
        method: HTTPMethod,
        headers: dict[str, Any],
        timeout: int,  # noqa: ARG002 - part of the SDK's contract for requesters
        payload: dict[str, Any] | None = None,
    ) -> httpx.Response:
        """Send one request for infrahub-sdk; ``timeout`` is the SDK's and is not used, the deadline here is total.

        Raises:
            FailedExchange: anything but HTTP 200 with a clean JSON object.
        """
        if not spans.is_on():
            return await self._request(url, method, headers, payload)
        told = {"http.request.method": method.value.upper(), "server.address": _parsed_url(url).host}
        with spans.span("request", kind="client", attributes=told) as span:
            return await self._request(url, method, headers | span.headers(), payload)

    async def _request(
        self, url: str, method: HTTPMethod, headers: dict[str, Any], payload: dict[str, Any] | None
    ) -> httpx.Response:
        sent = _SendWatch()
        request = httpx.Request(
            method.value.upper(),
            _parsed_url(url),
            headers=_HEADERS | headers,
            content=None if payload is None else _encode(payload),
            extensions={"trace": sent.trace, "timeout": self._timeout},
        )
        await self._guard.ready()
        async with self._leased() as transport:
            self._guard.before_send(write=_may_write(method, payload))
            response = await self._send(transport, request, sent)
            if _is_in_doubt(transport, request, response):
                await self.leave_connections()
        exchange = Exchange(Event.ANSWERED, response.status_code, response.headers, response.content)
        if exchange.status != 200:
            raise FailedExchange(exchange)
        answer = read_answer(exchange)
        if answer.shape not in _CLEAN[method]:
            raise FailedExchange(exchange)
        if self._redactor.is_echoed_in(exchange.body):
            raise FailedExchange(Exchange(Event.CREDENTIAL_ECHOED))
        response.document = answer.document
        return response

    async def leave_connections(self) -> None:
        """Send nothing more over the present connections; they close when the last request on them has ended."""
        await self._retire()

    async def aclose(self) -> None:
        """Close every connection."""
        await self._retire(replace=False)

    async def _send(
        self, transport: httpx.AsyncBaseTransport, request: httpx.Request, sent: _SendWatch
    ) -> _ReadResponse:
        """The whole answer, its body read; without one, no connection of a request that left is used again."""
        try:
            return await self._answer(transport, request, sent)
        except FailedExchange as failed:
            if failed.exchange.sent:
                await self.leave_connections()
            raise

    async def _answer(
        self, transport: httpx.AsyncBaseTransport, request: httpx.Request, sent: _SendWatch
    ) -> _ReadResponse:
        try:
            async with asyncio.timeout(self._deadline):
                return await _exchange(transport, request)
        except TimeoutError as exc:
            event = Event.DEADLINE_UNSENT if sent.provably_not else Event.TIMED_OUT
            raise FailedExchange(Exchange(event=event, detail=f"after {self._deadline:g} s")) from exc
        except AnswerTooLarge as exc:
            raise FailedExchange(Exchange(Event.TOO_LARGE, detail=str(exc))) from None
        except AnswerUndecodable as exc:
            raise FailedExchange(Exchange(Event.UNDECODABLE, detail=str(exc))) from None
        except httpx.RequestError as exc:
            raise FailedExchange(Exchange(event=event_of(exc), detail=f"{type(exc).__name__}: {exc}")) from exc

    @asynccontextmanager
    async def _leased(self) -> AsyncIterator[httpx.AsyncBaseTransport]:
        pool = self._pool
        pool.in_use += 1
        try:
            yield pool.transport
        finally:
            pool.in_use -= 1
            if pool.retired and pool.in_use == 0:
                await pool.transport.aclose()

    async def _retire(self, *, replace: bool = True) -> None:
        old = self._pool
        old.retired = True
        if replace:
            self._pool = _Pool(self._factory())
        if old.in_use == 0:
            await old.transport.aclose()


class _ReadResponse(httpx.Response):
    """An answer whose body was taken apart already, strictly; infrahub-sdk would have it read a second time."""

    document: Mapping[str, Any]

    def json(self, **_options: Any) -> Any:
        """The body of a clean answer."""
        return self.document


def _is_in_doubt(transport: httpx.AsyncBaseTransport, request: httpx.Request, response: httpx.Response) -> bool:
    """Whether the connection of an answered request may end, or answer, before it is asked again."""
    return response.status_code >= 500 or len(request.content) > LARGE_REQUEST or has_leftovers(transport)


async def _exchange(transport: httpx.AsyncBaseTransport, request: httpx.Request) -> _ReadResponse:
    """The answer with its body read and decoded; a connection with half an answer on it is closed with it."""
    response = await transport.handle_async_request(request)
    try:
        body = await read_body(response)
    except (AnswerTooLarge, AnswerUndecodable):
        if response.status_code == 200:
            raise
        body = b""  # the status alone decides
    finally:
        await response.aclose()
    headers = [(name, value) for name, value in response.headers.raw if name.lower() not in _FRAMING]
    return _ReadResponse(response.status_code, headers=headers, content=body, request=request)


class _SendWatch:
    """Knows from httpcore's trace whether a byte of the request can have left."""

    def __init__(self) -> None:
        self._traced = False
        self._started = False

    async def trace(self, name: str, info: object) -> None:  # noqa: ARG002 - httpcore calls it with both
        self._traced = True
        if name.endswith(".send_request_headers.started"):
            self._started = True

    @property
    def provably_not(self) -> bool:
        """True only where the layer below was seen at work and had not begun to send."""
        return self._traced and not self._started


def _may_write(method: HTTPMethod, payload: dict[str, Any] | None) -> bool:
    """Whether a request can change anything: every one but a GET and a document that is one query by its first word."""
    return method is not HTTPMethod.GET and not (payload is not None and only_reads(payload.get("query")))


def only_reads(document: object) -> bool:
    """Whether a GraphQL document says by its first word that it changes nothing."""
    return isinstance(document, str) and document.startswith("query ")


def _encode(payload: dict[str, Any]) -> bytes:
    return json.dumps(payload, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def tls_context(settings: InfrahubSettings) -> ssl.SSLContext:
    """Whom this destination's connections trust.

    Raises:
        ConfigurationError: the file of authorities cannot be read, or holds none.
    """
    if not settings.url.lower().startswith("https:"):
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # never used, and cheap; httpx would load all authorities
    try:
        context = trusting(settings.ca_file)
    except OSError as exc:  # ssl.SSLError is one
        raise ConfigurationError(
            checked=f"the file of authorities for {settings.binding}",
            expected="a readable file of PEM certificates",
            found=f"{settings.ca_file}: {exc.strerror or exc}",
            next_action="correct ca_file in the destination's settings",
        ) from exc
    if not settings.verify_tls:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
