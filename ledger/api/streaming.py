"""The ledger as server-sent events: each event of a log once and in order, over reconnects and restarts.

The id of an event is its position, and positions have no gaps; so a reader that comes back with the last id that it saw
goes on exactly behind it, whichever process answers. A stream reads a page, hands it to the connection, and reads the
next one only when that one is taken: what a slow reader costs is one page, and one that takes nothing is let go.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress

from starlette.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from ledger.api import views
from ledger.api.errors import ApiError
from ledger.api.limits import StreamSlots
from ledger.api.metrics import ApiMetrics
from ledger.errors import ApplyLedgerError
from ledger.events import StoredEvent
from ledger.store.served import ServedLedger

PAGE = 100
KEEP_ALIVE = 15.0
"""Seconds without an event after which a comment is sent, so that nobody in between takes the connection for dead; and
how often a reader's token and session are looked up again, so that a stream does not outlive them."""

RETRY = 1000
"""Milliseconds after which a browser comes back."""


StillWorks = Callable[[], Awaitable[bool]]
"""Whether what a reader came in by still works; may raise ``StoreError``."""


class HeadWatch:
    """Asks for the heads of all watched bindings at once, however many streams wait for them."""

    def __init__(self, ledger: ServedLedger, every: float) -> None:
        """``every`` in seconds."""
        self._ledger = ledger
        self._every = every
        self._heads: dict[int, int] = {}
        self._watchers: dict[int, int] = {}
        self._moved = asyncio.Condition()
        self._closing = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def closing(self) -> bool:
        """Whether the streams are to end."""
        return self._closing.is_set()

    async def close(self) -> None:
        """Let every stream end after the page in hand."""
        self._closing.set()
        async with self._moved:
            self._moved.notify_all()
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def beyond(self, binding_id: int, position: int, *, within: float) -> int:
        """Wait until a log goes beyond a position, for at most ``within`` seconds; returns its head as last seen."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._watch(), name="heads")
        self._watchers[binding_id] = self._watchers.get(binding_id, 0) + 1
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(within), self._moved:
                    await self._moved.wait_for(lambda: self._heads.get(binding_id, 0) > position or self.closing)
        finally:
            self._watchers[binding_id] -= 1
            if not self._watchers[binding_id]:
                del self._watchers[binding_id]
        return self._heads.get(binding_id, 0)

    async def _watch(self) -> None:
        """Ends when nobody has waited for a while; the next one who waits begins anew."""
        idle = 0
        while not self.closing and idle < 20:
            idle = 0 if self._watchers else idle + 1
            if self._watchers:
                with suppress(ApplyLedgerError):  # the streams go on waiting; what is wrong shows in /readyz
                    self._heads.update(await self._ledger.heads(list(self._watchers)))
                async with self._moved:
                    self._moved.notify_all()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._every):
                    await self._closing.wait()


class EventStream:
    """The events of one binding, or of one run of it, from behind a position on."""

    def __init__(
        self,
        ledger: ServedLedger,
        watch: HeadWatch,
        metrics: ApiMetrics,
        *,
        binding_id: int,
        after: int,
        run: str | None,
        still_works: StillWorks,
    ) -> None:
        """``still_works``: whether the reader's token, and its session where it has one, is still one."""
        self._ledger = ledger
        self._watch = watch
        self._metrics = metrics
        self._binding_id = binding_id
        self._seen = after
        self._sent = after
        self._run = run
        self._still_works = still_works
        self._told = self._asked = time.monotonic()

    async def chunks(self) -> AsyncIterator[bytes]:
        """What goes over the connection.

        Ends when the server does, when what the reader came in by does, or the ledger cannot be read.
        """
        yield b"retry: %d\n\n" % RETRY
        while not self._watch.closing:
            try:
                if not await self._may_go_on():
                    return
                events = await self._page()
            except ApplyLedgerError:
                return  # the reader comes back by itself, with the last id that it saw
            if events:
                yield b"".join(map(encoded, events))
                self._metrics.streamed.inc(len(events))
                self._told = time.monotonic()
                continue
            due = min(self._told, self._asked) + KEEP_ALIVE
            await self._watch.beyond(self._binding_id, self._seen, within=max(0.0, due - time.monotonic()))
            if time.monotonic() - self._told >= KEEP_ALIVE:
                yield b": still here\n\n"
                self._told = time.monotonic()

    async def _may_go_on(self) -> bool:
        """Looks the reader up anew every ``KEEP_ALIVE`` seconds, whether or not events come."""
        if time.monotonic() - self._asked < KEEP_ALIVE:
            return True
        self._asked = time.monotonic()
        return await self._still_works()

    async def _page(self) -> Sequence[StoredEvent]:
        """The next events. ``_seen`` moves to the head that was read before a page that is not full: what a run's page
        leaves out up to there is of other runs."""
        head = (await self._ledger.heads([self._binding_id])).get(self._binding_id, 0)
        if head <= self._seen:
            return ()
        events = await self._ledger.events_page(
            self._binding_id, after=self._sent, until=head, limit=PAGE, run_id=self._run
        )
        if events:
            self._sent = events[-1].position
        self._seen = self._sent if len(events) == PAGE else head
        return events


def encoded(event: StoredEvent) -> bytes:
    """One event on the wire. Its JSON has no line ends, so one line of data holds it."""
    return f"id: {event.position}\nevent: {event.kind}\ndata: {views.event_json(event)}\n\n".encode()


class StreamResponse(StreamingResponse):
    """Sends chunks for as long as somebody takes them."""

    media_type = "text/event-stream"

    def __init__(
        self,
        chunks: AsyncIterator[bytes],
        *,
        slots: StreamSlots,
        caller: str,
        metrics: ApiMetrics,
        send_seconds: float,
    ) -> None:
        super().__init__(chunks, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        self._slots = slots
        self._caller = caller
        self._metrics = metrics
        self._send_seconds = send_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Stream until the chunks end, the reader goes, or takes nothing for too long."""
        with self._slots.taken(self._caller):
            self._metrics.streams.set(self._slots.open)
            try:
                await super().__call__(scope, receive, bounded(send, self._send_seconds))
            except SlowReaderError:
                self._metrics.slow_readers.inc()
        self._metrics.streams.set(self._slots.open)


def bounded(send: Send, seconds: float) -> Send:
    """Sends as ``send`` does, and gives a reader up that takes nothing for so long.

    What is made of it raises :class:`SlowReaderError`.
    """

    async def sent(message: Message) -> None:
        try:
            async with asyncio.timeout(seconds):
                await send(message)
        except TimeoutError:
            raise SlowReaderError(
                checked="whoever reads this answer",
                expected=f"that something is taken within {seconds:g} s",
                found="nothing taken",
                next_action="connect again; a stream of events goes on behind the last id",
            ) from None

    return sent


class SlowReaderError(ApiError):
    """A reader takes nothing; its connection is given up, and it may come back."""
