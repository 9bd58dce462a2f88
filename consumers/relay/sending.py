"""The producer of the relay, replaced after every error.

What a client still holds after an error may be written later; that is harmless here, because everything behind the
cursor is sent again by its successor and a reader knows an event by its position.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from consumers.relay.errors import EventsNotSentError
from consumers.relay.settings import RelaySettings
from ledger.broker import reason_of, told_by_client
from ledger.event_message import encode_event
from ledger.events import MAX_BODY_BYTES, StoredEvent
from ledger.kafka_producer import IdempotentProducer, Unreachable

_FRAME = 32 * 1024
"""Room for key, headers and the frame of a batch beside the body."""


class EventSender:
    """Sends events of any binding. Several tasks may use it at once."""

    def __init__(self, settings: RelaySettings) -> None:
        self._settings = settings
        self._client = IdempotentProducer(
            settings.brokers,
            settings.security,
            client_id=settings.client_id,
            request_timeout=settings.request_timeout,
            max_request_size=MAX_BODY_BYTES + _FRAME,
        )

    async def send(self, events: Sequence[StoredEvent]) -> None:
        """Put events onto the topic in this order; returns when all replicas have all of them.

        Raises:
            EventsNotSentError: not all were acknowledged in time; any of them may be on the topic.
        """
        with told_by_client() as told:
            producer = None
            try:
                async with asyncio.timeout(self._settings.send_within):
                    producer = await self._client.connected()
                    await self._send(producer, events)
            except Unreachable as exc:
                await self._client.drop(producer)
                raise self._not_sent(events, exc, told) from exc
            except BaseException:  # what was cancelled may still be written; this client must not be used again
                await self._client.drop(producer)
                raise

    async def _send(self, producer: Any, events: Sequence[StoredEvent]) -> None:
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
        await self._client.close()

    def _not_sent(self, events: Sequence[StoredEvent], error: BaseException, told: list[str]) -> EventsNotSentError:
        first, last = events[0], events[-1]
        return EventsNotSentError(
            checked=f"events {first.position} to {last.position} of {first.url} [{first.branch}] on topic "
            f"{self._settings.topic}",
            expected=f"an acknowledgement within {self._settings.send_within:g} s",
            found=f"none ({reason_of(error, told)})",
            next_action="nothing: they are sent again; if this persists, check brokers, topic and its limits",
        )
