"""Answers of audits: whole ones, and ones that go out while they are made.

An answer that goes out while it is made may break off behind its status. Then it is never ended as HTTP ends an answer
(the connection is given up), and what it holds has no end either: lines say in the last one whether they were all, an
archive ends with its manifest and two empty blocks. An audit that fails before it has said anything is a problem
document like any other.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import structlog
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from ledger.api.audit_work import broken_line
from ledger.api.audits import Audit, Work
from ledger.api.problems import problem_of
from ledger.api.service import ApiService
from ledger.api.streaming import KEEP_ALIVE, SlowReaderError, StillWorks, bounded
from ledger.api.tokens import Caller, without_tokens
from ledger.errors import ApplyLedgerError

T = TypeVar("T")
LINES, ARCHIVE = "application/x-ndjson", "application/x-tar"
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Asker:
    """The request that an audit is for."""

    request: Request
    service: ApiService
    caller: Caller
    still_works: StillWorks

    def begin(self, work: Work[T]) -> Audit[T]:
        """Begin an audit; raises :class:`TooManyAuditsError`."""
        return self.service.audits.start(self.caller.token_id or "local", work)

    async def result(self, work: Work[T]) -> T:
        """What comes of an audit; it ends where whoever asked goes away.

        Raises:
            TooManyAuditsError, AuditTooLongError, AuditEndedError: as they say.
            ApplyLedgerError: as the work does.
        """
        audit = self.begin(work)
        return await _unless_gone(self.request.receive, audit, audit.result())

    async def stream(
        self, work: Work[None], *, media_type: str, headers: Mapping[str, str], stream: str | None = None
    ) -> Response:
        """An answer that goes out while it is made; raises as :meth:`result` until there is something to send.

        Args:
            work: what is done.
            media_type: of what it says.
            headers: more headers.
            stream: the name of the stream of lines, where it is one.
        """
        audit = self.begin(work)
        pieces = audit.pieces()
        first = await _unless_gone(self.request.receive, audit, anext(pieces, b""))
        return _AuditResponse(self, audit, first, pieces, media_type=media_type, headers=headers, stream=stream)


async def _unless_gone(receive: Receive, audit: Audit[Any], waiting: Awaitable[T]) -> T:
    """Wait for something of an audit, and end that where whoever asked goes away or where waiting fails."""
    gone, work = asyncio.create_task(_gone(receive)), asyncio.ensure_future(waiting)
    try:
        await asyncio.wait({gone, work}, return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            audit.end()
        return await work
    except BaseException:  # also where this request is cancelled: nobody else would end it
        audit.end()
        raise
    finally:
        await _put_away(gone, work)


async def _gone(receive: Receive) -> None:
    """Until whoever asked goes away."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _put_away(*tasks: asyncio.Future[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


class _AuditResponse(StreamingResponse):
    """Sends what an audit says for as long as somebody takes it and may have it."""

    def __init__(
        self,
        asker: Asker,
        audit: Audit[None],
        first: bytes,
        pieces: AsyncGenerator[bytes, None],
        *,
        media_type: str,
        headers: Mapping[str, str],
        stream: str | None,
    ) -> None:
        super().__init__(pieces, media_type=media_type, headers={"X-Accel-Buffering": "no", **headers})
        self._asker = asker
        self._audit = audit
        self._first = first
        self._pieces = pieces
        self._stream = stream
        self._asked = time.monotonic()

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        """Send until it is done, whoever asked goes away, takes nothing for too long, or may have it no more."""
        gone = asyncio.create_task(_gone(receive))
        sending = asyncio.create_task(self._send(bounded(send, self._asker.service.limits.stream_send_seconds)))
        try:
            await asyncio.wait({gone, sending}, return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                sending.result()
        finally:
            self._audit.end()
            await _put_away(gone, sending)
            await self._pieces.aclose()

    async def _send(self, send: Send) -> None:
        try:
            await self._send_all(send)
        except SlowReaderError:
            self._asker.service.metrics.slow_readers.inc()

    async def _send_all(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        try:
            piece = self._first
            while piece:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
                if not await self._may_go_on():
                    return
                piece = await anext(self._pieces, b"")
        except SlowReaderError:
            raise
        except ApplyLedgerError as exc:
            path = self._asker.request.url.path
            _log.warning("an answer broke off", path=without_tokens(path), error=str(exc))
            if self._stream is not None:
                last = broken_line(self._stream, problem_of(exc, path).model_dump(mode="json"))
                await send({"type": "http.response.body", "body": last, "more_body": True})
            return
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _may_go_on(self) -> bool:
        """Looks the token up anew now and then: what ends it ends what was asked with it."""
        if time.monotonic() - self._asked < KEEP_ALIVE:
            return True
        self._asked = time.monotonic()
        return await self._asker.still_works()
