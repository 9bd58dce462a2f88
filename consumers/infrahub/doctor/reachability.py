"""Checks that the destination is reachable: name, port, certificate, and how long it keeps an idle connection."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from urllib.parse import urlsplit

import httpx

from consumers.infrahub.settings import InfrahubSettings
from consumers.infrahub.transport import tls_context
from ledger.checkup import Said, failure, good, warning

_WATCHED = 5 / 3
"""For how much longer an idle connection is watched than we would use it again."""

_LOOK_EVERY = 0.02
_EXPIRY_DAYS = 21
_MAX_ADDRESSES = 4


class ReachabilityChecks:
    """Looks below HTTP, with connections of its own."""

    def __init__(self, settings: InfrahubSettings, keepalive: float) -> None:
        parts = urlsplit(settings.url)
        self._settings = settings
        self._keepalive = keepalive
        self._host = parts.hostname or ""
        self.is_tls = parts.scheme.lower() == "https"
        self._port = parts.port or (443 if self.is_tls else 80)

    async def resolved(self) -> Said:
        """The name has addresses."""
        try:
            found = await asyncio.get_running_loop().getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
        except OSError as exc:  # socket.gaierror is one
            return failure(f"{self._host}: {exc.strerror or exc}", "correct the address, or this machine's resolver")
        addresses = list(dict.fromkeys(str(item[4][0]) for item in found))
        shown = ", ".join(addresses[:_MAX_ADDRESSES])
        more = f" and {len(addresses) - _MAX_ADDRESSES} more" if len(addresses) > _MAX_ADDRESSES else ""
        return good(f"{self._host} is {shown}{more}", addresses=addresses)

    async def connected(self) -> Said:
        """Check that the port is open."""
        began = time.monotonic()
        where = f"{self._host} port {self._port}"
        try:
            async with asyncio.timeout(self._settings.connect_timeout):
                _, writer = await asyncio.open_connection(self._host, self._port)
        except TimeoutError:
            advice = "check port and firewall: packets are dropped on the way, or the machine is down"
            return failure(f"{where}: no connection within {self._settings.connect_timeout:g} s", advice)
        except OSError as exc:
            advice = "check that the server runs, and its port"
            reason = os.strerror(exc.errno) if exc.errno is not None else str(exc)
            return failure(f"{where}: {reason}", advice)
        took = (time.monotonic() - began) * 1000
        await _closed(writer)
        return good(f"{where} accepts connections, in {took:.0f} ms", milliseconds=round(took, 1))

    async def trusted(self) -> Said | Sequence[Said]:
        """The certificate is that of the host, by an authority that we trust, for some time yet."""
        context = tls_context(self._settings)
        try:
            async with asyncio.timeout(self._settings.connect_timeout):
                _, writer = await asyncio.open_connection(
                    self._host, self._port, ssl=context, server_hostname=self._host
                )
        except ssl.SSLCertVerificationError as exc:
            return failure(
                f"the certificate is not trusted: {exc.verify_message}",
                "name the file of its authority as ca_file, or the host as the certificate does",
            )
        except (OSError, TimeoutError) as exc:
            return failure(
                f"no TLS on port {self._port}: {getattr(exc, 'reason', None) or type(exc).__name__}",
                "check that the port serves https; a server without it has an address that begins with http://",
            )
        session = writer.get_extra_info("ssl_object")
        protocol, certificate = session.version(), session.getpeercert()
        await _closed(writer)
        if not self._settings.verify_tls:
            return warning(
                f"{protocol}, and nobody checks who answers: verify_tls is off",
                "set verify_tls, with ca_file for an authority of your own",
                protocol=protocol,
            )
        return _expiry(protocol, certificate)

    async def kept_alive(self) -> Said:
        """An idle connection stays open for longer than we use it; else a request may meet its end and be lost."""
        transport = httpx.AsyncHTTPTransport(verify=tls_context(self._settings), trust_env=False)
        request = httpx.Request("GET", f"{self._settings.url}/api/config", extensions={"timeout": self._timeouts()})
        try:
            response = await transport.handle_async_request(request)
            await response.aread()
            await response.aclose()
            idle = await _idle_until_closed(response, self._keepalive * _WATCHED)
        except httpx.HTTPError as exc:
            return failure(f"{type(exc).__name__} while an idle connection was watched", "look at the server's log")
        finally:
            await transport.aclose()
        return _keep_alive_said(
            idle, self._keepalive, says_close="close" in response.headers.get("connection", "").lower()
        )

    def _timeouts(self) -> dict[str, float | None]:
        limit = self._settings.request_timeout
        return httpx.Timeout(limit, connect=min(self._settings.connect_timeout, limit)).as_dict()


async def _idle_until_closed(response: httpx.Response, watched: float) -> float | None:
    """Seconds after which the server closed the connection of an answer; None where it still was open at the end."""
    stream = response.extensions.get("network_stream")
    began = time.monotonic()
    while stream is not None and time.monotonic() - began < watched:
        if stream.get_extra_info("is_readable"):  # nobody asked anything: what can be read is the end
            return time.monotonic() - began
        await asyncio.sleep(_LOOK_EVERY)
    return None


def _keep_alive_said(idle: float | None, keepalive: float, *, says_close: bool) -> Said:
    ours, watched = f"ours are given up after {keepalive:g} s", keepalive * _WATCHED
    if says_close:
        return warning(
            "the server closes the connection after each answer",
            "look for a proxy in between that switches keep-alive off: each operation pays for a connection",
            kept=False,
        )
    if idle is None:
        return good(f"an idle connection was open after {watched:.2g} s; {ours}", kept=True, watched_seconds=watched)
    if idle >= keepalive:
        return good(f"idle connections are closed after {idle:.1f} s; {ours}", kept=True, closed_after=round(idle, 2))
    return warning(
        f"idle connections are closed after {idle:.1f} s; {ours}",
        "set the keep-alive of the server, or of the proxy before it, to two seconds or more: a request that meets the "
        "closing is lost, and its operation is recorded as unknown",
        kept=False,
        closed_after=round(idle, 2),
    )


def _expiry(protocol: str | None, certificate: dict[str, str]) -> Said:
    ends = datetime.fromtimestamp(ssl.cert_time_to_seconds(certificate["notAfter"]), UTC)
    days = (ends - datetime.now(UTC)).days
    said = f"{protocol}, certificate trusted until {ends:%Y-%m-%d}"
    if days < _EXPIRY_DAYS:
        return warning(f"{said}: {days} days", "renew the certificate of the server", days=days, protocol=protocol)
    return good(said, days=days, protocol=protocol)


async def _closed(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
