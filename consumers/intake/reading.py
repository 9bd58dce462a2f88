"""The loop of the intake: poll, store the commit, commit its offset, continue.

Kafka only delivers commits. Who writes is decided by the lease in PostgreSQL, so a rebalance during an apply
changes nothing, and a message that comes again is one order all the same (G2, G7). What has to be right here: an
offset is committed explicitly, for one partition, and only when what came before it is durable; an offset that is
gone ends the intake by name; a poll is never cancelled, because the client then stops watching itself.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress

import structlog
from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, ConsumerRecord, TopicPartition
from aiokafka.errors import (
    IllegalStateError,
    KafkaError,
    KafkaTimeoutError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
    UnknownTopicOrPartitionError,
)
from tenacity import AsyncRetrying, RetryError, retry_if_exception_type, stop_after_delay, wait_random_exponential

from consumers.intake.errors import (
    BrokerUnavailableError,
    IntakeError,
    IntakeStuckError,
    MissingTopicError,
    VanishedOffsetsError,
)
from consumers.intake.settings import IntakeSettings
from consumers.intake.taking import ReceivedMessage
from ledger.broker import reason_of, told_by_client
from ledger.kafka_producer import Unreachable
from ledger.stopping import wait_unless_stopped
from ledger.store.errors import TransientStoreError
from ledger.store.records import MessagePlace

_log = structlog.get_logger(__name__)
_PASSES = (KafkaTimeoutError, IllegalStateError)
"""Brokers that are unreachable, a partition that was taken away meanwhile; the client does not call them retriable."""

Take = Callable[[ReceivedMessage], Awaitable[object]]
Alive = Callable[[], None]
TakeTogether = Callable[[Sequence[ReceivedMessage], Alive], Awaitable[object]]


class Intake:
    """Reads one topic as a member of a group until it is told to stop."""

    def __init__(
        self,
        settings: IntakeSettings,
        take: Take,
        *,
        take_together: TakeTogether | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``take`` handles one message and returns once that is durable (:class:`MessageTaker`); ``take_together``
        does so with up to ``take_at_once`` of one partition, calls back whenever some of them are done, and is
        preferred where it is given.
        """
        self._settings = settings
        self._take = take
        self._take_together = take_together
        self._clock = clock
        self._alive_at = clock()
        self._rebalances = _Rebalances()
        self.is_member = False
        """Whether the group has let it in, and it reads."""

    @property
    def silent_for(self) -> float:
        """Seconds since the last poll that came back, with or without messages, or the last message that was taken."""
        return self._clock() - self._alive_at

    async def run_until(self, stop: asyncio.Event) -> None:
        """Take messages until ``stop`` is set.

        Raises:
            BrokerUnavailableError: no broker answered within ``start_within``.
            MissingTopicError: the topic is not there.
            VanishedOffsetsError: messages that were never read are gone.
            IntakeStuckError: no poll came back for ``stuck_after``.
            StoreError: no message can be taken at all.
        """
        consumer = await self._started(stop)
        if consumer is None:
            return
        self._alive_at = self._clock()
        self.is_member = True
        polling = asyncio.create_task(self._poll_until(consumer, stop), name="intake")
        try:
            while not polling.done():
                await asyncio.wait([polling], timeout=min(1.0, self._settings.stuck_after / 4))
                self._require_alive(polling)
            polling.result()
        finally:
            self.is_member = False
            polling.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.wait([polling], timeout=self._settings.call_within)
            await _stopped(consumer, self._settings.call_within)

    def _require_alive(self, polling: asyncio.Task[None]) -> None:
        silent = self.silent_for
        if not polling.done() and silent > self._settings.stuck_after:
            raise IntakeStuckError(
                checked="that the broker's client comes back from a poll",
                expected=f"a poll within {self._settings.stuck_after:g} s, with or without messages",
                found=f"none for {silent:.0f} s",
                next_action="restart the intake; nothing is lost, offsets are committed after the inbox has the commit",
            )

    async def _started(self, stop: asyncio.Event) -> AIOKafkaConsumer | None:
        """A member of the group, or None where the end came before it was one."""
        settings = self._settings
        enough = stop_after_delay(settings.start_within)
        trying = AsyncRetrying(
            stop=lambda state: stop.is_set() or enough(state),
            wait=wait_random_exponential(multiplier=0.1, max=2),
            retry=retry_if_exception_type(Unreachable),
        )
        with told_by_client() as told:
            try:
                async for attempt in trying:
                    with attempt:
                        return await self._start_once()
            except RetryError as exc:
                if stop.is_set():
                    return None
                cause = exc.last_attempt.exception()
                raise self._not_started(cause, told) from cause
        raise RuntimeError("a retry ends with a result or an error")

    def _not_started(self, cause: BaseException | None, told: list[str]) -> IntakeError:
        if isinstance(cause, UnknownTopicOrPartitionError):
            return MissingTopicError(
                checked=f"the topic {self._settings.topic}",
                expected="that it exists",
                found="no such topic at these brokers",
                next_action="create it with `apply-ledger kafka init`",
            )
        return BrokerUnavailableError(
            checked=f"the brokers {self._settings.brokers}",
            expected=f"an answer within {self._settings.start_within:g} s",
            found=reason_of(cause, told),
            next_action="check address, credentials and certificate",
        )

    async def _start_once(self) -> AIOKafkaConsumer:
        settings = self._settings
        consumer = AIOKafkaConsumer(
            bootstrap_servers=settings.brokers,
            client_id=settings.client_id,
            group_id=settings.group,
            enable_auto_commit=False,
            auto_offset_reset="none",
            request_timeout_ms=_ms(settings.request_timeout),
            session_timeout_ms=_ms(settings.session_timeout),
            heartbeat_interval_ms=_ms(settings.heartbeat_interval),
            max_poll_records=settings.poll_records,
            **settings.security.client_options(),
        )
        consumer.subscribe([settings.topic], listener=self._rebalances)
        try:
            async with asyncio.timeout(settings.call_within):
                await consumer.start()
        except BaseException:  # whatever it was, sockets and tasks of a half-started client must not stay
            await _stopped(consumer, settings.call_within)
            raise
        return consumer

    async def _poll_until(self, consumer: AIOKafkaConsumer, stop: asyncio.Event) -> None:
        while not stop.is_set():
            try:
                batches = await consumer.getmany(timeout_ms=_ms(self._settings.poll_wait))
            except NoOffsetForPartitionError:
                await self._begin_at_the_beginning(consumer, stop)
                continue
            except OffsetOutOfRangeError as exc:
                raise _vanished(exc) from exc
            self._alive_at = self._clock()
            epoch = self._rebalances.epoch
            for partition, records in batches.items():
                await self._take_batch(consumer, partition, records, epoch, stop)

    async def _begin_at_the_beginning(self, consumer: AIOKafkaConsumer, stop: asyncio.Event) -> None:
        """A group that never committed begins with the first message. The client itself must not choose: its settings
        for that jump over messages that are gone as well, without a word. Brokers that go away meanwhile are asked
        again, as in a poll.
        """
        try:
            async with asyncio.timeout(self._settings.call_within):
                for partition in consumer.assignment():
                    if await consumer.committed(partition) is None:
                        first = await consumer.beginning_offsets([partition])
                        consumer.seek(partition, first[partition])
        except (KafkaError, TimeoutError) as exc:
            if isinstance(exc, KafkaError) and not (exc.retriable or isinstance(exc, _PASSES)):
                raise
            _log.warning("where the topic begins was not told; it is asked again", why=type(exc).__name__)
            self._tell_alive()
            await wait_unless_stopped(stop, self._settings.retry_wait)
        self._tell_alive()

    async def _take_batch(
        self,
        consumer: AIOKafkaConsumer,
        partition: TopicPartition,
        records: Sequence[ConsumerRecord[bytes, bytes]],
        epoch: int,
        stop: asyncio.Event,
    ) -> None:
        durable: int | None = None
        is_away = False
        at_once = 1 if self._take_together is None else self._settings.take_at_once
        for first in range(0, len(records), at_once):
            # What was read before a rebalance now belongs to another member, or comes again from the committed offset.
            if self._rebalances.epoch != epoch or stop.is_set():
                break
            some = records[first : first + at_once]
            try:
                await self._take_some([_received(record) for record in some])
            except TransientStoreError as exc:
                _log.warning("the ledger is away; the message waits", place=str(_place(some[0])), why=str(exc))
                with suppress(IllegalStateError):  # the partition was taken away meanwhile
                    consumer.seek(partition, some[0].offset)
                is_away = True
                break
            finally:
                self._tell_alive()
            durable = some[-1].offset + 1
        if durable is not None and self._rebalances.epoch == epoch:
            await self._commit(consumer, {partition: durable})
        if is_away:
            await wait_unless_stopped(stop, self._settings.retry_wait)

    async def _take_some(self, messages: Sequence[ReceivedMessage]) -> None:
        if self._take_together is not None:
            await self._take_together(messages, self._tell_alive)
            return
        for message in messages:
            await self._take(message)
            self._tell_alive()

    def _tell_alive(self) -> None:
        self._alive_at = self._clock()

    async def _commit(self, consumer: AIOKafkaConsumer, offsets: dict[TopicPartition, int]) -> None:
        """Exactly these offsets. A commit that fails costs a repetition, which the inbox recognises (FF30, FF31)."""
        try:
            async with asyncio.timeout(self._settings.call_within):
                await consumer.commit(offsets)
        except (KafkaError, TimeoutError) as exc:
            _log.warning("an offset was not committed; its messages may come again", why=type(exc).__name__)
        self._alive_at = self._clock()


class _Rebalances(ConsumerRebalanceListener):  # type: ignore[misc]  # aiokafka has no types
    """Counts them; what was read before one is no longer ours to commit."""

    def __init__(self) -> None:
        self.epoch = 0

    async def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:  # noqa: ARG002 - the client's
        """Note it."""
        self.epoch += 1

    async def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:  # noqa: ARG002 - the client's
        """Note it."""
        self.epoch += 1


async def _stopped(consumer: AIOKafkaConsumer, within: float) -> None:
    """Leave the group and close; with the broker away the client can hang here, or raise a cancellation of its own."""
    try:
        async with asyncio.timeout(within):
            await consumer.stop()
    except (KafkaError, TimeoutError) as exc:
        _log.warning("the broker's client did not close in time", why=type(exc).__name__)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        with suppress(KafkaError, OSError):
            await consumer._client.close()  # its stop() ended before this, and nothing public closes the sockets


def _vanished(error: OffsetOutOfRangeError) -> VanishedOffsetsError:
    gone = error.args[0] if error.args else {}
    told = ", ".join(f"{place.topic}/{place.partition} at {offset}" for place, offset in dict(gone).items())
    return VanishedOffsetsError(
        checked="the next message to read",
        expected="that it is still in the topic",
        found=f"removed by retention, or the topic was recreated: {told}",
        next_action="commit the runs of that time again; then set the group's offsets by hand and start the intake",
    )


def _received(record: ConsumerRecord[bytes, bytes]) -> ReceivedMessage:
    return ReceivedMessage(_place(record), record.key, record.value, tuple(record.headers))


def _place(record: ConsumerRecord[bytes, bytes]) -> MessagePlace:
    return MessagePlace(record.topic, record.partition, record.offset)


def _ms(seconds: float) -> int:
    return max(1, round(seconds * 1000))
