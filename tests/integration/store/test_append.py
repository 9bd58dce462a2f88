"""The append: positions, repeats, conflicts, limits (G4, G7, G8)."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import replace
from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from ledger.events import NewEvent, StoredEvent
from ledger.store.errors import (
    BodyRefusedError,
    BodyTooLargeError,
    ConstraintRefusedError,
    DuplicateFactError,
    EventConflictError,
    HeadMismatchError,
    KindNotAllowedError,
    StoreError,
    TooManyEventsError,
)
from ledger.store.ledger import Ledger
from ledger.store.sql_files import query
from ledger.store.writer import InFlight, Lease, WriterStore
from tests.support.store import (
    BINDING,
    RUN,
    applied,
    chain_is_whole,
    connection_to,
    make_commit,
    open_writer,
    run_stopped,
    unknown,
)

pytestmark = pytest.mark.integration


@pytest.mark.rules("G8")
async def test_g08_bytes_come_back_as_they_went_in_and_times_are_utc(
    writer: WriterStore, lease: Lease, ledger: Ledger
) -> None:
    body = '{"b":1.0,"a":1E+2,"a":2,"q":-0.0,"é":"☃ \\\\u0000","u":"\u2028"}'.encode()
    event = replace(applied(lease, 0), body=body)
    await writer.append(lease, [event])
    stored = [event async for event in ledger.events(lease.binding_id)][-1]
    assert stored.body == body
    assert stored.recorded_at.utcoffset() == timedelta(0)
    assert await chain_is_whole(ledger, lease.binding_id) == 2


@pytest.mark.rules("G8")
async def test_g08_positions_have_no_gaps_when_writers_and_committers_append_at_once(
    writer: WriterStore, lease: Lease, ledger: Ledger, ledger_dsns: dict[str, str]
) -> None:
    async def commit(n: int) -> None:
        for m in range(5):
            await ledger.submit_commit(lease.binding_id, make_commit(f"run-{n}-{m}"))

    async def apply() -> None:
        for ordinal in range(40):
            await writer.append(lease, [applied(lease, ordinal)], in_flight=InFlight(RUN, ordinal + 1, 1))
            if ordinal % 10 == 9:
                with pytest.raises(KindNotAllowedError):
                    await writer.append(lease, [replace(applied(lease, 99), kind="plan.committed")])

    await asyncio.gather(apply(), *(commit(n) for n in range(6)))
    assert await chain_is_whole(ledger, lease.binding_id) == 1 + 40 + 30


@pytest.mark.rules("G8")
async def test_g08_recorded_at_is_the_moment_of_each_event_not_of_its_transaction(
    writer: WriterStore, lease: Lease, ledger: Ledger
) -> None:
    await writer.append(lease, [applied(lease, n) for n in range(200)])
    moments = [event.recorded_at async for event in ledger.events(lease.binding_id, run_id=RUN)]
    assert len(set(moments)) > 1
    assert moments == sorted(moments)


@pytest.mark.rules("G7")
async def test_g07_the_same_events_again_get_the_answer_of_the_first_time(
    writer: WriterStore, lease: Lease, ledger: Ledger
) -> None:
    batch = [applied(lease, 0), applied(lease, 1)]
    mark = InFlight(RUN, 2, 1)
    first = await writer.append(lease, batch, in_flight=mark)
    await ledger.submit_commit(lease.binding_id, make_commit("another-run"))
    assert await writer.append(lease, batch, in_flight=mark) == first
    assert (first.first_position, first.last_position) == (2, 3)
    assert await chain_is_whole(ledger, lease.binding_id) == 4


@pytest.mark.parametrize(
    "change",
    [
        {"body": b'{"other":1}'},
        {"ordinal": 7},
        {"attempt": 2},
        {"run_id": "another"},
        {"operation_id": "op_ffffffffffffffff"},
        {"kind": "operation.unknown"},
        {"schema_version": 2},
    ],
    ids=lambda change: next(iter(change)),
)
@pytest.mark.rules("G7", "G8")
async def test_g07_a_known_event_id_with_other_content_is_an_alarm(
    writer: WriterStore, lease: Lease, ledger: Ledger, change: dict[str, Any]
) -> None:
    event = applied(lease, 0)
    await writer.append(lease, [event])
    with pytest.raises(EventConflictError) as refused:
        await writer.append(lease, [replace(event, **change)])
    assert refused.value.facts["known"] == {"event_id": str(event.event_id), "position": 2}
    assert await chain_is_whole(ledger, lease.binding_id) == 2


@pytest.mark.rules("G7")
async def test_g07_known_events_in_other_company_are_an_alarm(
    writer: WriterStore, lease: Lease, ledger: Ledger
) -> None:
    await writer.append(lease, [applied(lease, 0)])
    await writer.append(lease, [applied(lease, 1)])
    await writer.append(lease, [applied(lease, 2)])
    for batch in ([0, 3], [1, 0], [0, 2]):
        with pytest.raises(EventConflictError):
            await writer.append(lease, [applied(lease, ordinal) for ordinal in batch])
    assert await chain_is_whole(ledger, lease.binding_id) == 4


@pytest.mark.rules("G4", "G7")
async def test_g04_a_repeat_with_another_operation_in_flight_is_an_alarm(
    writer: WriterStore, lease: Lease, ledger: Ledger
) -> None:
    await writer.append(lease, [applied(lease, 0)], in_flight=InFlight(RUN, 1, 1))
    for other in (InFlight(RUN, 2, 1), None):
        with pytest.raises(EventConflictError):
            await writer.append(lease, [applied(lease, 0)], in_flight=other)
    row = await ledger.binding(BINDING)
    assert row is not None
    assert row.in_flight == InFlight(RUN, 1, 1)


@pytest.mark.rules("G7", "G3")
async def test_g07_an_operation_has_one_success_and_an_attempt_one_outcome(writer: WriterStore, lease: Lease) -> None:
    def another_id(event: NewEvent) -> NewEvent:
        return replace(event, event_id=uuid.uuid4())

    await writer.append(lease, [unknown(lease, 0, attempt=1)])
    with pytest.raises(DuplicateFactError) as refused:
        await writer.append(lease, [another_id(unknown(lease, 0, attempt=1))])
    assert refused.value.facts == {"constraint": "event_one_outcome"}
    await writer.append(lease, [applied(lease, 0, attempt=2)])
    with pytest.raises(DuplicateFactError) as refused:
        await writer.append(lease, [another_id(applied(lease, 0, attempt=3))])
    assert refused.value.facts == {"constraint": "event_one_success"}
    with pytest.raises(DuplicateFactError):
        await writer.append(lease, [applied(lease, 1), applied(lease, 1)])


@pytest.mark.rules("G4", "G7")
async def test_g04_outcome_and_next_mark_travel_in_one_commit_or_not_at_all(
    writer: WriterStore, lease: Lease, ledger: Ledger
) -> None:
    await writer.append(lease, [applied(lease, 0)], in_flight=InFlight(RUN, 1, 1))
    with pytest.raises(ConstraintRefusedError):
        await writer.append(lease, [applied(lease, 1)], in_flight=InFlight(RUN, 2, 0))
    row = await ledger.binding(BINDING)
    assert row is not None
    assert row.in_flight == InFlight(RUN, 1, 1)
    assert row.head_position == 2
    await writer.append(lease, [applied(lease, 1)], in_flight=None)
    await writer.append(lease, [run_stopped(lease)], in_flight="keep")
    row = await ledger.binding(BINDING)
    assert row is not None
    assert row.in_flight is None


@pytest.mark.rules("G8")
async def test_g08_an_append_on_another_head_than_the_caller_believes_in_is_refused(
    writer: WriterStore, lease: Lease, ledger: Ledger
) -> None:
    seen = await writer.append(lease, [applied(lease, 0)])
    await ledger.submit_commit(lease.binding_id, make_commit())
    with pytest.raises(HeadMismatchError) as refused:
        await writer.append(lease, [applied(lease, 1)], expected_head=seen.head_hash)
    assert refused.value.facts["position"] == 3
    row = await ledger.binding(BINDING)
    assert row is not None
    assert refused.value.facts["head"] == row.head_hash.hex()
    await writer.append(lease, [applied(lease, 1)], expected_head=row.head_hash)


async def test_too_many_events_and_too_large_bodies_are_refused_at_their_limits(
    writer: WriterStore, lease: Lease, ledger: Ledger
) -> None:
    frame = len(b'{"x":""}')

    def sized(size: int, ordinal: int) -> NewEvent:
        return replace(applied(lease, ordinal), body=b'{"x":"%s"}' % (b"x" * (size - frame)))

    await writer.append(lease, [applied(lease, n) for n in range(500)])
    with pytest.raises(TooManyEventsError):
        await writer.append(lease, [applied(lease, n) for n in range(500, 1001)])
    await writer.append(lease, [sized(256 * 1024, 2000)])
    with pytest.raises(BodyTooLargeError) as refused:
        await writer.append(lease, [applied(lease, 2001), sized(256 * 1024 + 1, 2002)])
    assert refused.value.facts == {"limit": 262144, "found": 262145}
    assert await chain_is_whole(ledger, lease.binding_id) == 502


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b'"{\\"doubly\\":1}"', ConstraintRefusedError),
        (b"[1]", ConstraintRefusedError),
        (b"{", BodyRefusedError),
        (b'{"x":"\\u0000"}', BodyRefusedError),
        (b'{"x":"\\ud800"}', BodyRefusedError),
        (b'{"x":NaN}', BodyRefusedError),
        (b'{"x":"\x00"}', BodyRefusedError),
    ],
    ids=["dumped twice", "a list", "no JSON", "escaped U+0000", "lone surrogate", "NaN", "raw U+0000"],
)
@pytest.mark.rules("G8")
async def test_g08_a_body_that_no_reader_could_use_is_refused(
    writer: WriterStore, lease: Lease, ledger: Ledger, body: bytes, error: type[StoreError]
) -> None:
    with pytest.raises(error):
        await writer.append(lease, [replace(applied(lease, 0), body=body)])
    assert await chain_is_whole(ledger, lease.binding_id) == 1


@pytest.mark.parametrize("missing", ["run_id", "operation_id", "ordinal", "attempt"])
@pytest.mark.rules("G7")
async def test_g07_an_outcome_names_its_run_operation_ordinal_and_attempt(
    writer: WriterStore, lease: Lease, missing: str
) -> None:
    # A NULL in a unique key is equal to nothing, so an outcome without one of them could be recorded twice.
    without: dict[str, Any] = {missing: None}
    with pytest.raises(ConstraintRefusedError):
        await writer.append(lease, [replace(applied(lease, 0), **without)])


@pytest.mark.rules("G2")
async def test_g02_without_a_lease_nobody_records_an_outcome_or_a_start(
    ledger_dsns: dict[str, str], binding_id: int
) -> None:
    async with connection_to(ledger_dsns["writer"]) as connection:
        for kind in ("operation.applied", "run.started", "run.applied", "writer.opened", "made.up"):
            with pytest.raises(asyncpg.PostgresError) as refused:
                await connection.fetchrow(
                    "select * from ledger.append_control_v1($1, $2, $3, $4, $5, $6, null)",
                    binding_id,
                    [uuid.uuid4()],
                    [kind],
                    [1],
                    ["run"],
                    ["{}"],
                )
            assert refused.value.sqlstate == "LG009"


async def test_a_refusal_of_a_run_may_be_recorded_without_a_lease(
    ledger_dsns: dict[str, str], binding_id: int, ledger: Ledger
) -> None:
    async with connection_to(ledger_dsns["writer"]) as connection:
        row = await connection.fetchrow(
            "select * from ledger.append_control_v1($1, $2, $3, $4, $5, $6, null)",
            binding_id,
            [uuid.uuid4()],
            ["plan.refused"],
            [1],
            ["run"],
            ["{}"],
        )
    assert (row["first_position"], row["last_position"]) == (1, 1)
    stored = [event async for event in ledger.events(binding_id)]
    assert stored[0].writer_epoch is None
    await chain_is_whole(ledger, binding_id)


async def test_each_binding_has_a_chain_of_its_own(
    writer: WriterStore, lease: Lease, ledger: Ledger, ledger_dsns: dict[str, str]
) -> None:
    other = await ledger.register_binding(BINDING.model_copy(update={"branch": "other"}))
    async with open_writer(ledger_dsns["writer"]) as second:
        other_lease = await second.claim(
            other, owner="o", ttl=60, settle=1, body_host="host", body_process_id="process"
        )
        await asyncio.gather(
            writer.append(lease, [applied(lease, 0)]), second.append(other_lease, [applied(other_lease, 0)])
        )
    assert await chain_is_whole(ledger, lease.binding_id) == 2
    assert await chain_is_whole(ledger, other) == 2


@pytest.mark.parametrize("name", ["events", "events_of_run"])
async def test_events_are_read_in_the_order_of_their_fields(ledger_dsns: dict[str, str], name: str) -> None:
    async with connection_to(ledger_dsns["reader"]) as connection:
        columns = (await connection.prepare(query(name))).get_attributes()
    assert tuple(column.name for column in columns) == StoredEvent._fields
