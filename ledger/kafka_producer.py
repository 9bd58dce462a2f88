"""One idempotent producer of Kafka, thrown away after every error; for those who publish and for those who relay.

Its client has no limit of its own while brokers are away, and after an error its sequence numbers have a gap that the
brokers refuse for ever. So every call stands under a deadline of its caller's, and a client that has failed once is not
used again. What it still held may be written later, or never; both callers send it again and readers know repeats.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import structlog
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from ledger.broker import BrokerSecurity

_log = structlog.get_logger(__name__)

_CLOSE_WITHIN = 2.0
"""Seconds for what is still on its way; a client whose brokers are unreachable never closes by itself."""

Unreachable = (KafkaError, OSError, TimeoutError)
"""What the client raises if brokers are unreachable, refuse, or are too slow for the caller's deadline."""


class IdempotentProducer:
    """One client at a time, started when it is first wanted. Several tasks may use it at once."""

    def __init__(
        self, brokers: str, security: BrokerSecurity, *, client_id: str, request_timeout: float, max_request_size: int
    ) -> None:
        """``request_timeout`` in seconds, of one request; ``max_request_size`` in bytes."""
        self._options: dict[str, Any] = {
            "bootstrap_servers": brokers,
            "client_id": client_id,
            "enable_idempotence": True,
            "acks": "all",
            "request_timeout_ms": max(1, round(request_timeout * 1000)),
            "max_request_size": max_request_size,
        }
        self._security = security
        self._close_within = min(_CLOSE_WITHIN, request_timeout)
        self._producer: AIOKafkaProducer | None = None
        self._starting = asyncio.Lock()

    async def connected(self) -> AIOKafkaProducer:
        """The client, started.

        Raises:
            ConfigurationError: a certificate file cannot be read.
            KafkaError, OSError: no broker took the connection.
        """
        async with self._starting:
            if self._producer is None:
                producer = AIOKafkaProducer(**self._options, **self._security.client_options())
                try:
                    await producer.start()
                except BaseException:  # whatever it was, sockets and tasks of a half-started client must not stay
                    await self._end(producer)
                    raise
                self._producer = producer
            return self._producer

    async def drop(self, producer: AIOKafkaProducer | None) -> None:
        """Close a client after an error, unless another task has done so and a new one is in use."""
        if producer is not None and producer is self._producer:
            await self.close()

    async def close(self) -> None:
        """Close the connection. What was acknowledged stays so."""
        producer, self._producer = self._producer, None
        if producer is not None:
            await self._end(producer)

    async def _end(self, producer: AIOKafkaProducer) -> None:
        try:
            async with asyncio.timeout(self._close_within):
                await producer.stop()
        except Unreachable as exc:
            _log.warning("the broker's client did not close in time", why=type(exc).__name__)
        finally:
            await _end_what_is_left(producer)


async def _end_what_is_left(producer: AIOKafkaProducer) -> None:
    """Sockets, and tasks that wait for brokers that may never come back: a stop that was given up leaves them."""
    with suppress(*Unreachable):
        await producer.client.close()
    owners = (producer._sender, producer._message_accumulator)  # nothing public ends what they started
    left = [task for task in asyncio.all_tasks() if any(_works_for(task) is owner for owner in owners)]
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)


def _works_for(task: asyncio.Task[Any]) -> object:
    """The object whose method a task runs; itself where it runs none."""
    frame = getattr(task.get_coro(), "cr_frame", None)
    return task if frame is None else frame.f_locals.get("self", task)
