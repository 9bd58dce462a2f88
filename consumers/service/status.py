"""``/metrics``, ``/healthz`` and ``/readyz`` on a port of their own.

``/healthz`` says whether the process is worth keeping: it answers at all, and no part of it is stuck. ``/readyz`` says
whether it does its work now: ledger and brokers are there, and every part runs.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from consumers.service.errors import StatusPortError
from consumers.service.metrics import ServiceMetrics
from consumers.service.parts import Part
from ledger.http_server import address_of, listening, serve_until

Faults = Callable[[], dict[str, str]]
"""What is wrong now, by part; empty where nothing is."""


class StatusServer:
    """Serves the state of one process until it is told to stop."""

    def __init__(
        self,
        host: str,
        port: int,
        metrics: ServiceMetrics,
        parts: Sequence[Part],
        *,
        stuck: Faults,
        unready: Faults,
        refresh: Callable[[], Awaitable[None]],
    ) -> None:
        """``port`` 0 takes a free one; :attr:`address` says which. ``refresh`` is called before metrics are shown.

        Raises:
            StatusPortError: it cannot be listened on.
        """
        self._metrics = metrics
        self._parts = parts
        self._stuck = stuck
        self._unready = unready
        self._refresh = refresh
        self._listener = _listen(host, port)
        self.address = address_of(self._listener)

    async def run_until(self, stop: asyncio.Event) -> None:
        """Serve until ``stop`` is set."""
        app = Starlette(
            routes=[
                Route("/metrics", self._show_metrics),
                Route("/healthz", lambda request: self._answer(request, self._stuck)),
                Route("/readyz", lambda request: self._answer(request, self._unready)),
            ]
        )
        await serve_until(stop, app, self._listener, name="status", end_within=1)

    async def _show_metrics(self, _request: Request) -> Response:
        await self._refresh()
        for part in self._parts:
            self._metrics.part_up.labels(part.name).set(not part.trouble)
        return Response(generate_latest(self._metrics.registry), media_type=CONTENT_TYPE_LATEST)

    def _answer(self, _request: Request, faults: Faults) -> Response:
        found = faults()
        state = {part.name: part.trouble or "runs" for part in self._parts} | found
        return JSONResponse({"ok": not found, "parts": state}, status_code=503 if found else 200)


def _listen(host: str, port: int) -> socket.socket:
    try:
        return listening(host, port)
    except OSError as exc:
        raise StatusPortError(
            checked="--metrics-port and --metrics-host",
            expected="an address that can be listened on",
            found=f"{host} port {port}: {exc.strerror or exc}",
            next_action="choose another port, or 0 for a free one",
        ) from exc
