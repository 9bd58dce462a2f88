"""Publishing a plan commit to the topic of commits (design 5).

The producer is idempotent and waits for all replicas; every call stands under a deadline, and after any error the
client is thrown away. Publishing again is always safe: the inbox knows a commit by its id.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any, ClassVar, Self

from aiokafka.errors import KafkaError, KafkaTimeoutError, MessageSizeTooLargeError, UnknownTopicOrPartitionError
from pydantic import BaseModel, ConfigDict, Field

from ledger.broker import TOPIC_NAME, BrokerSecurity, reason_of, told_by_client
from ledger.commit import PlanCommit
from ledger.commit_message import MAX_MESSAGE_BYTES, Message, encode_commit
from ledger.errors import ApplyLedgerError
from ledger.exit_codes import ExitCode
from ledger.kafka_producer import IdempotentProducer, Unreachable
from ledger.store.records import MessagePlace

_OVERHEAD = 16 * 1024
"""Room for key, headers and the frame of a batch beside the body."""


class PublishSettings(BaseModel):
    """Where commits go. Times are seconds.

    Attributes:
        brokers: ``host:port`` pairs, separated by commas.
        security: TLS and SASL.
        topic: of plan commits.
        client_id: as the broker's log shows it.
        request_timeout: of one request to the broker.
        publish_within: how long one commit may take altogether.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    brokers: str = Field(min_length=1)
    security: BrokerSecurity = BrokerSecurity()
    topic: str = Field(default="plan-commits", pattern=TOPIC_NAME)
    client_id: str = "apply-ledger-commit"
    request_timeout: float = Field(default=10.0, gt=0)
    publish_within: float = Field(default=30.0, gt=0)


class PublishError(ApplyLedgerError):
    """Base of what keeps a commit from being published."""


class BrokerNotReachedError(PublishError):
    """No broker took the connection; nothing was published."""

    exit_code: ClassVar[ExitCode] = ExitCode.BUSY


class CommitRejectedError(PublishError):
    """The broker refused the message; nothing was published."""


class PublishUnknownError(PublishError):
    """No acknowledgement came; the commit may be on the topic or still get there."""

    exit_code: ClassVar[ExitCode] = ExitCode.BUSY


class CommitPublisher:
    """One connection to the brokers. Use it as an asynchronous context manager, or close it."""

    def __init__(self, settings: PublishSettings) -> None:
        self._settings = settings
        self._client = IdempotentProducer(
            settings.brokers,
            settings.security,
            client_id=settings.client_id,
            request_timeout=settings.request_timeout,
            max_request_size=MAX_MESSAGE_BYTES + _OVERHEAD,
        )

    async def publish(self, commit: PlanCommit) -> MessagePlace:
        """Publish one commit and wait until all replicas have it.

        Raises:
            MessageTooLargeError: it is too long; nothing was sent (FF28).
            BrokerNotReachedError, CommitRejectedError: nothing was published.
            PublishUnknownError: it may have been published; publishing it again is safe (G7).
        """
        message = encode_commit(commit)
        producer = await self._connected()
        try:
            async with asyncio.timeout(self._settings.publish_within):
                place = await self._send(producer, message)
        except (MessageSizeTooLargeError, UnknownTopicOrPartitionError, KafkaTimeoutError) as exc:
            await self.close()
            raise self._rejected(commit, exc) from exc
        except (KafkaError, TimeoutError) as exc:
            await self.close()
            raise self._unknown(commit, exc) from exc
        except BaseException:  # a cancelled send may still be written; this client must not be used again
            await self.close()
            raise
        return place

    async def _send(self, producer: Any, message: Message) -> MessagePlace:
        sent = await producer.send_and_wait(
            self._settings.topic, value=message.value, key=message.key, headers=list(message.headers)
        )
        return MessagePlace(sent.topic, sent.partition, sent.offset)

    async def _connected(self) -> Any:
        settings = self._settings
        with told_by_client() as told:
            try:
                async with asyncio.timeout(settings.publish_within):
                    return await self._client.connected()
            except Unreachable as exc:
                raise BrokerNotReachedError(
                    checked=f"the brokers {settings.brokers}",
                    expected="a connection",
                    found=reason_of(exc, told),
                    next_action="check address, credentials and certificate; nothing was published",
                ) from exc

    async def close(self) -> None:
        """Close the connection. What was published stays so."""
        await self._client.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _rejected(self, commit: PlanCommit, error: KafkaError) -> CommitRejectedError:
        return CommitRejectedError(
            checked=f"the commit of run {commit.run_id} on topic {self._settings.topic}",
            expected="that the broker takes it",
            found=type(error).__name__,
            next_action="create the topic, or allow it messages of "
            f"{MAX_MESSAGE_BYTES + _OVERHEAD:,} bytes; nothing was published",
        )

    def _unknown(self, commit: PlanCommit, error: Exception) -> PublishUnknownError:
        return PublishUnknownError(
            checked=f"the commit of run {commit.run_id} on topic {self._settings.topic}",
            expected=f"an acknowledgement within {self._settings.publish_within:g} s",
            found=f"none ({type(error).__name__}); it may have been published",
            next_action="publish it again; a commit that arrives twice is one order",
        )
