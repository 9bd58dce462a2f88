"""The relay on a real broker and a real ledger: every event, in order, at least once, and only one relay moves on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from consumers.relay.errors import EventsNotSentError
from consumers.relay.relaying import EventOutlet, Relay
from consumers.relay.sending import EventSender
from consumers.relay.settings import RelaySettings
from consumers.relay.topic_reader import read_topic
from ledger.audit.topic import TopicAudit
from ledger.binding import DestinationBinding
from ledger.events import StoredEvent
from ledger.store.errors import RelayCursorError, RelayFencedError, RelayHeldError
from ledger.store.ledger import Ledger
from tests.support.commit_topic import CommitTopic
from tests.support.store import BINDING, connection_to, make_commit
from tests.support.waiting import until_true

pytestmark = [pytest.mark.integration, pytest.mark.broker, pytest.mark.rules("G8", "G10")]

OTHER = BINDING.model_copy(update={"branch": "other"})


@pytest.fixture
def settings(topic: CommitTopic) -> RelaySettings:
    return RelaySettings(
        brokers=topic.brokers,
        topic=topic.name,
        request_timeout=3.0,
        send_within=5.0,
        batch_events=7,
        poll_interval=0.05,
        retry_wait=0.05,
    )


async def fill(ledger: Ledger, count: int, binding: DestinationBinding = BINDING, *, first: int = 0) -> int:
    """Commits, each of which is an event; returns the binding's id."""
    binding_id = await ledger.register_binding(binding)
    for number in range(first, first + count):
        run_id = f"20261129T1900-{number:08x}"
        await ledger.submit_commit(binding_id, make_commit(run_id, f"{number:064x}", binding=binding))
    return binding_id


async def stored(ledger: Ledger, binding_id: int) -> list[StoredEvent]:
    return [event async for event in ledger.events(binding_id)]


async def cursor(ledger: Ledger, topic: str, binding_id: int) -> int:
    return next(each.relayed_position for each in await ledger.relay_cursors(topic) if each.binding_id == binding_id)


async def audit_of(settings: RelaySettings) -> TopicAudit:
    audit = TopicAudit()
    await read_topic(settings, audit.feed)
    return audit


@asynccontextmanager
async def relaying(
    settings: RelaySettings, ledger: Ledger, outlet: EventOutlet | None = None
) -> AsyncIterator[asyncio.Task[None]]:
    stop, sender = asyncio.Event(), EventSender(settings)
    task = asyncio.create_task(Relay(settings, ledger, outlet or sender).run_until(stop))
    try:
        yield task
    finally:
        stop.set()
        await task
        await sender.close()


async def relay_everything(settings: RelaySettings, ledger: Ledger, outlet: EventOutlet | None = None) -> None:
    async def is_done() -> bool:
        cursors = await ledger.relay_cursors(settings.topic)
        return all(each.relayed_position == each.head_position for each in cursors)

    async with relaying(settings, ledger, outlet):
        await until_true(is_done)


async def test_g08_the_topic_alone_proves_each_binding_and_its_end_is_the_ledgers(
    settings: RelaySettings, inbox: Ledger
) -> None:
    one, two = await fill(inbox, 20), await fill(inbox, 9, OTHER, first=100)

    await relay_everything(settings, inbox)

    audit = await audit_of(settings)
    assert audit.holds
    assert audit.messages == 29
    for binding_id, binding in ((one, BINDING), (two, OTHER)):
        found = audit.bindings[binding.url, binding.branch].document()
        head = (await stored(inbox, binding_id))[-1]
        assert (found["events"], found["repeats"]) == (head.position, 0)
        assert (found["head_position"], found["head_hash"]) == (head.position, head.hash.hex())


async def test_g10_what_comes_while_it_runs_and_a_binding_that_is_new_are_found(
    settings: RelaySettings, inbox: Ledger
) -> None:
    async with relaying(settings, inbox):
        one, two = await fill(inbox, 3), await fill(inbox, 2, OTHER, first=100)

        async def is_done() -> bool:
            cursors = {each.binding_id: each.relayed_position for each in await inbox.relay_cursors(settings.topic)}
            return (cursors[one], cursors[two]) == (3, 2)

        await until_true(is_done)
    assert (await audit_of(settings)).messages == 5


class DiesBehind:
    """Sends so many batches, and one more whose acknowledgement never comes back."""

    def __init__(self, sender: EventSender, batches: int) -> None:
        self._sender = sender
        self._batches = batches

    async def send(self, events: Sequence[StoredEvent]) -> None:
        await self._sender.send(events)
        self._batches -= 1
        if self._batches < 0:
            raise EventsNotSentError(checked="a batch", expected="an answer", found="none", next_action="again")


async def test_g10_a_batch_whose_acknowledgement_was_lost_comes_again_and_nothing_is_passed_over(
    settings: RelaySettings, inbox: Ledger
) -> None:
    await fill(inbox, 20)
    sender = EventSender(settings)
    try:
        patient = settings.model_copy(update={"retry_wait": 3600.0})
        async with relaying(patient, inbox, DiesBehind(sender, 1)):

            async def has_sent_two() -> bool:
                return (await audit_of(settings)).messages == 14

            await until_true(has_sent_two)
    finally:
        await sender.close()
    assert await cursor(inbox, settings.topic, 1) == 7

    await relay_everything(settings, inbox)

    audit = await audit_of(settings)
    found = audit.bindings[BINDING.url, BINDING.branch].document()
    assert (audit.holds, found["events"], found["repeats"], audit.messages) == (True, 20, 7, 27)


class Frozen:
    """Stops in the middle of a batch until it is thawed, as a process under SIGSTOP does."""

    def __init__(self, sender: EventSender) -> None:
        self._sender = sender
        self.reached, self.thawed = asyncio.Event(), asyncio.Event()

    async def send(self, events: Sequence[StoredEvent]) -> None:
        self.reached.set()
        await self.thawed.wait()
        await self._sender.send(events)


async def test_g08_a_relay_that_was_frozen_sends_again_but_cannot_move_the_cursor(
    settings: RelaySettings, inbox: Ledger, postgres18_ledger_dsns: dict[str, str]
) -> None:
    binding_id = await fill(inbox, 10)
    sender = EventSender(settings)
    frozen = Frozen(sender)
    async with relaying(settings, inbox, frozen):
        await frozen.reached.wait()
        async with connection_to(postgres18_ledger_dsns["admin"]) as admin:
            await admin.execute("update ledger.relay set expires_at = clock_timestamp() - interval '1 ms'")
        await relay_everything(settings, inbox)
        assert await cursor(inbox, settings.topic, binding_id) == 10
        frozen.thawed.set()

        async def has_sent_again() -> bool:
            return (await audit_of(settings)).messages == 17

        await until_true(has_sent_again)
        assert await cursor(inbox, settings.topic, binding_id) == 10
    await sender.close()
    audit = await audit_of(settings)
    found = audit.bindings[BINDING.url, BINDING.branch].document()
    assert (audit.holds, found["events"], found["repeats"]) == (True, 10, 7)


async def test_g08_one_relay_at_a_time_and_its_cursor_goes_forward_only(inbox: Ledger) -> None:
    binding_id = await fill(inbox, 3)
    events = await stored(inbox, binding_id)
    first = await inbox.claim_relay(binding_id, "events", owner="one", ttl=60.0)
    assert (first.epoch, first.position, first.hash) == (1, 0, bytes(32))
    assert await inbox.claim_relay(binding_id, "events", owner="one", ttl=60.0) == first
    with pytest.raises(RelayHeldError):
        await inbox.claim_relay(binding_id, "events", owner="two", ttl=60.0)
    await inbox.advance_relay(first, position=2, hash_=events[1].hash, ttl=60.0)
    for position, hash_ in ((1, events[0].hash), (3, events[1].hash), (4, events[2].hash), (0, bytes(32))):
        with pytest.raises(RelayCursorError):
            await inbox.advance_relay(first, position=position, hash_=hash_, ttl=60.0)
    await inbox.release_relay(first)
    await inbox.release_relay(first)
    with pytest.raises(RelayFencedError):
        await inbox.advance_relay(first, position=3, hash_=events[2].hash, ttl=60.0)

    second = await inbox.claim_relay(binding_id, "events", owner="two", ttl=60.0)
    assert (second.epoch, second.position, second.hash) == (2, 2, events[1].hash)
    with pytest.raises(RelayFencedError):
        await inbox.advance_relay(first, position=3, hash_=events[2].hash, ttl=60.0)
    await inbox.release_relay(first)
    await inbox.advance_relay(second, position=3, hash_=events[2].hash, ttl=60.0)
