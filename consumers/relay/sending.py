"""The producer of the relay, replaced after every error.

An idempotent client keeps the order of what it sends. After an error it has a gap in its numbers that the brokers
refuse for ever, and what it still holds may be written later; both is harmless here, because everything behind the
cursor is sent again by its successor and a reader knows an event by its position.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

import structlog
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from consumers.relay.errors import EventsNotSentError
from consumers.relay.settings import RelaySettings
from ledger.broker import reason_of, told_by_client
from ledger.event_message import encode_event
from ledger.events import MAX_BODY_BYTES, StoredEvent

_log = structlog.get_logger(__name__)
_FRAME = 32 * 1024
"""Room for key, headers and the frame of a batch beside the body."""


class EventSender:
    """Sends events of any binding. Several tasks may use it at once."""

    def __init__(self, settings: RelaySettings) -> None:
        self._settings = settings
        self._producer: AIOKafkaProducer | None = None
        self._starting = asyncio.Lock()

    async def send(self, events: Sequence[StoredEvent]) -> None:
        """Put events onto the topic in this order; returns when all replicas have all of them.

        Raises:
            EventsNotSentError: not all were acknowledged in time; any of them may be on the topic.
        """
        with told_by_client() as told:
            producer = None
            try:
                async with asyncio.timeout(self._settings.send_within):
                    producer = await self._connected()
                    await self._send(producer, events)
            except (KafkaError, OSError, TimeoutError) as exc:
                await self._drop(producer)
                raise self._not_sent(events, exc, told) from exc
            except BaseException:  # what was cancelled may still be written; this client must not be used again
                await self._drop(producer)
                raise

    async def _send(self, producer: AIOKafkaProducer, events: Sequence[StoredEvent]) -> None:
        acknowledged = []
        for event in events:
            message = encode_event(event)
            acknowledged.append(
                await producer.send(
                    self._settings.topic, value=message.value, key=message.key, headers=list(message.headers)
                )
            )
        for outcome in await asyncio.gather(*acknowledged, return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome

    async def close(self) -> None:
        """Close the connection."""
        producer, self._producer = self._producer, None
        if producer is not None:
            await self._closed(producer)

    async def _connected(self) -> AIOKafkaProducer:
        async with self._starting:
            if self._producer is not None:
                return self._producer
            settings = self._settings
            producer = AIOKafkaProducer(
                bootstrap_servers=settings.brokers,
                client_id=settings.client_id,
                enable_idempotence=True,
                acks="all",
                request_timeout_ms=max(1, round(settings.request_timeout * 1000)),
                max_request_size=MAX_BODY_BYTES + _FRAME,
                **settings.security.client_options(),
            )
            try:
                await producer.start()
            except BaseException:  # whatever it was, sockets and tasks of a half-started client must not stay
                await self._closed(producer)
                raise
            self._producer = producer
            return producer

    async def _drop(self, producer: AIOKafkaProducer | None) -> None:
        """Close a client after an error, unless another task has done so and a new one is in use."""
        if producer is not None and producer is self._producer:
            self._producer = None
            await self._closed(producer)

    async def _closed(self, producer: AIOKafkaProducer) -> None:
        try:
            async with asyncio.timeout(min(2.0, self._settings.request_timeout)):
                await producer.stop()
        except (KafkaError, OSError, TimeoutError) as exc:
            _log.warning("the broker's client did not close in time", why=type(exc).__name__)
            with suppress(KafkaError, OSError):
                await producer.client.close()  # stop() waits for brokers that may never come back

    def _not_sent(self, events: Sequence[StoredEvent], error: BaseException, told: list[str]) -> EventsNotSentError:
        first, last = events[0], events[-1]
        return EventsNotSentError(
            checked=f"events {first.position} to {last.position} of {first.url} [{first.branch}] on topic "
            f"{self._settings.topic}",
            expected=f"an acknowledgement within {self._settings.send_within:g} s",
            found=f"none ({reason_of(error, told)})",
            next_action="nothing: they are sent again; where it stays so, check brokers, topic and its limits",
        )
