"""One writer for a binding: claims, epochs, the fence inside the append (G2), the quiet period."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import asyncpg
import pytest

from ledger.exit_codes import ExitCode
from ledger.store.errors import (
    FencedWriterError,
    InvalidCallError,
    LeaseHeldError,
    QuietPeriodError,
    UnknownBindingError,
)
from ledger.store.ledger import Ledger
from ledger.store.writer import InFlight, Lease, WriterStore
from tests.support.store import (
    BINDING,
    RUN,
    applied,
    chain_is_whole,
    claim,
    let_it_settle,
    let_lease_run_out,
    open_writer,
    unknown,
)

pytestmark = pytest.mark.integration


@pytest.mark.rules("G2")
async def test_g02_a_writer_that_lost_its_lease_appends_nothing(
    ledger: Ledger, writer: WriterStore, lease: Lease, admin: Any, ledger_dsns: dict[str, str]
) -> None:
    await writer.append(lease, [applied(lease, 0)])
    await let_lease_run_out(admin, lease.binding_id)
    async with open_writer(ledger_dsns["writer"]) as other:
        successor = await claim(other, lease.binding_id, "writer-2")
        with pytest.raises(FencedWriterError) as refused:
            await writer.append(lease, [applied(lease, 1)])
        await other.append(successor, [applied(successor, 2)])
    assert refused.value.facts["own_epoch"] == 1
    assert refused.value.facts["epoch"] == 2
    assert refused.value.facts["owner"] == "writer-2"
    ordinals = [event.ordinal async for event in ledger.events(lease.binding_id, run_id=RUN)]
    assert ordinals == [0, 2]


@pytest.mark.rules("G2")
async def test_g02_the_epoch_decides_even_where_the_owner_has_the_same_name(
    writer: WriterStore, lease: Lease, admin: Any, ledger_dsns: dict[str, str]
) -> None:
    await let_lease_run_out(admin, lease.binding_id)
    async with open_writer(ledger_dsns["writer"]) as other:
        await claim(other, lease.binding_id, lease.owner)
        with pytest.raises(FencedWriterError):
            await writer.append(lease, [applied(lease, 0)])
        with pytest.raises(FencedWriterError):
            await writer.renew(lease)
        with pytest.raises(FencedWriterError):
            await writer.release(lease)


@pytest.mark.rules("G2")
async def test_g02_even_a_repeat_of_what_it_once_recorded_is_refused_to_a_fenced_writer(
    writer: WriterStore, lease: Lease, admin: Any, ledger_dsns: dict[str, str]
) -> None:
    await writer.append(lease, [applied(lease, 0)])
    await let_lease_run_out(admin, lease.binding_id)
    async with open_writer(ledger_dsns["writer"]) as other:
        await claim(other, lease.binding_id, "writer-2")
    with pytest.raises(FencedWriterError):
        await writer.append(lease, [applied(lease, 0)])


@pytest.mark.rules("G2")
async def test_g02_a_released_lease_fences_its_former_owner_and_is_free_at_once(
    writer: WriterStore, lease: Lease, ledger: Ledger, ledger_dsns: dict[str, str]
) -> None:
    await writer.release(lease)
    await writer.release(lease)
    with pytest.raises(FencedWriterError):
        await writer.append(lease, [applied(lease, 0)])
    row = await ledger.binding(BINDING)
    assert row is not None
    assert (row.lease_owner, row.lease_expires_in, row.has_live_lease) == (None, None, False)
    async with open_writer(ledger_dsns["writer"]) as other:
        assert (await claim(other, lease.binding_id, "writer-2")).epoch == 2


@pytest.mark.rules("G2")
async def test_g02_a_held_lease_is_refused_with_who_since_when_and_how_long(
    lease: Lease, ledger: Ledger, ledger_dsns: dict[str, str]
) -> None:
    async with open_writer(ledger_dsns["writer"]) as other:
        with pytest.raises(LeaseHeldError) as refused:
            await claim(other, lease.binding_id, "writer-2")
        with pytest.raises(LeaseHeldError):
            await claim(other, lease.binding_id, "writer-3")
    facts = refused.value.facts
    assert (facts["owner"], facts["host"], facts["epoch"]) == ("writer-1", "host", 1)
    assert 0 < facts["seconds"] <= 86400
    assert facts["since"] < facts["until"]
    assert refused.value.exit_code is ExitCode.BUSY
    assert [event.kind async for event in ledger.events(lease.binding_id)] == ["writer.opened"]


@pytest.mark.rules("G2")
async def test_g02_of_many_claims_at_once_one_wins(
    binding_id: int, ledger: Ledger, ledger_dsns: dict[str, str]
) -> None:
    async def try_to(owner: str) -> Lease | LeaseHeldError:
        async with open_writer(ledger_dsns["writer"]) as store:
            try:
                return await claim(store, binding_id, owner)
            except LeaseHeldError as held:
                return held

    answers = await asyncio.gather(*(try_to(f"writer-{n}") for n in range(8)))
    assert sum(isinstance(answer, Lease) for answer in answers) == 1
    assert await chain_is_whole(ledger, binding_id) == 1


@pytest.mark.rules("G2", "G8")
async def test_g02_each_claim_raises_the_epoch_and_stands_in_the_log(
    writer: WriterStore, lease: Lease, ledger: Ledger
) -> None:
    await writer.release(lease)
    second = await claim(writer, lease.binding_id, "writer-2")
    events = [event async for event in ledger.events(lease.binding_id)]
    assert [(event.kind, event.writer_epoch) for event in events] == [("writer.opened", 1), ("writer.opened", 2)]
    assert json.loads(events[1].body) == {
        "epoch": second.epoch,
        "host": "host",
        "process_id": "process of writer-2",
        "role": "ledger_writer",
    }
    await chain_is_whole(ledger, lease.binding_id)


@pytest.mark.rules("G2")
async def test_g02_writer_opened_cannot_name_another_epoch_or_role(binding_id: int, admin: Any) -> None:
    for body in ('{"epoch":7,"role":"postgres"}', '{"epoch":1,"role":"nobody"}'):
        with pytest.raises(asyncpg.PostgresError) as refused:
            await admin.fetchrow(
                "select * from ledger.claim_v1($1, 'me', 10, 0, 'h', 0, gen_random_uuid(), 1, $2)", binding_id, body
            )
        assert refused.value.sqlstate == "LG021"


@pytest.mark.rules("G2")
async def test_g02_a_claim_from_an_epoch_that_has_moved_on_is_refused(
    writer: WriterStore, lease: Lease, admin: Any
) -> None:
    await writer.release(lease)
    with pytest.raises(asyncpg.PostgresError) as refused:
        await admin.fetchrow(
            "select * from ledger.claim_v1($1, 'late', 10, 0, 'h', 0, gen_random_uuid(), 1, '{}')", lease.binding_id
        )
    assert refused.value.sqlstate == "LG002"


async def test_g02_only_the_owner_renews_and_the_database_counts_the_time(
    writer: WriterStore, lease: Lease, ledger: Ledger, admin: Any
) -> None:
    await let_lease_run_out(admin, lease.binding_id)
    await writer.renew(lease)
    row = await ledger.binding(BINDING)
    assert row is not None
    assert row.lease_expires_in is not None
    assert 86000 < row.lease_expires_in <= 86400
    assert row.has_live_lease


@pytest.mark.rules("G2")
async def test_g02_a_take_over_finds_the_operation_in_flight_and_waits_until_it_settled(
    writer: WriterStore, lease: Lease, ledger: Ledger, admin: Any, ledger_dsns: dict[str, str]
) -> None:
    mark = InFlight(RUN, 0, 1)
    await writer.append(lease, [], in_flight=mark)
    await let_lease_run_out(admin, lease.binding_id)
    async with open_writer(ledger_dsns["writer"]) as other:
        successor = await claim(other, lease.binding_id, "writer-2")
        assert successor.in_flight == mark
        assert 25 < successor.quiet_for <= 30
        await other.append(successor, [unknown(successor, 0)], in_flight=None)
        with pytest.raises(QuietPeriodError) as refused:
            await other.append(successor, [], in_flight=InFlight(RUN, 0, 2))
        assert 20 < refused.value.facts["seconds"] <= 30
        await let_it_settle(admin, lease.binding_id)
        await other.append(successor, [], in_flight=InFlight(RUN, 0, 2))
    row = await ledger.binding(BINDING)
    assert row is not None
    assert row.in_flight == InFlight(RUN, 0, 2)


@pytest.mark.rules("G2")
async def test_g02_an_unknown_outcome_keeps_everybody_from_dispatching_until_it_settled(
    writer: WriterStore, lease: Lease, ledger: Ledger
) -> None:
    await writer.append(lease, [], in_flight=InFlight(RUN, 0, 1))
    await writer.append(lease, [unknown(lease, 0)], in_flight=None, settle=30.0)
    with pytest.raises(QuietPeriodError):
        await writer.append(lease, [applied(lease, 1)], in_flight=InFlight(RUN, 2, 1))
    row = await ledger.binding(BINDING)
    assert row is not None
    assert row.in_flight is None
    assert row.head_position == 2, "the refused append left an event behind"
    assert 25 < row.quiet_for <= 30


async def test_g02_a_later_and_shorter_quiet_period_does_not_shorten_the_first(
    writer: WriterStore, lease: Lease, ledger: Ledger
) -> None:
    await writer.append(lease, [unknown(lease, 0)], in_flight=None, settle=30.0)
    await writer.append(lease, [unknown(lease, 1)], in_flight=None, settle=0.001)
    row = await ledger.binding(BINDING)
    assert row is not None
    assert row.quiet_for > 25


async def test_a_dispatch_mark_and_a_quiet_period_in_one_call_are_refused(writer: WriterStore, lease: Lease) -> None:
    with pytest.raises(InvalidCallError):
        await writer.append(lease, [], in_flight=InFlight(RUN, 0, 1), settle=1.0)


async def test_claiming_what_was_never_registered_is_refused_by_name(writer: WriterStore) -> None:
    with pytest.raises(UnknownBindingError):
        await claim(writer, 4711)
