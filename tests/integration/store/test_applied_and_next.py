"""The append of a success with the next mark: a function of its own that gives the answers of the general one."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import Any

import pytest

from ledger.events import NewEvent
from ledger.store.errors import (
    BodyTooLargeError,
    DoubtDroppedError,
    DuplicateFactError,
    EventConflictError,
    FencedWriterError,
    QuietPeriodError,
    StoreError,
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
)

pytestmark = pytest.mark.integration

FIRST, SECOND, THIRD = (InFlight(RUN, ordinal, 1) for ordinal in range(3))


@pytest.fixture
async def marked(writer: WriterStore, lease: Lease) -> Lease:
    """A lease with operation 0 in flight."""
    await writer.append(lease, [], in_flight=FIRST)
    return lease


async def _mark(ledger: Ledger) -> InFlight | None:
    row = await ledger.binding(BINDING)
    assert row is not None
    return row.in_flight


@pytest.mark.rules("G4", "G8")
async def test_g08_outcome_after_outcome_the_chain_is_whole_and_the_mark_moves(
    writer: WriterStore, marked: Lease, ledger: Ledger
) -> None:
    first = await writer.append(marked, [applied(marked, 0)], in_flight=SECOND)
    second = await writer.append(marked, [applied(marked, 1)], in_flight=THIRD)
    assert (first.first_position, first.last_position) == (2, 2)
    assert (second.first_position, second.last_position) == (3, 3)
    assert await chain_is_whole(ledger, marked.binding_id) == 3
    stored = [event async for event in ledger.events(marked.binding_id, run_id=RUN)]
    assert [event.hash for event in stored] == [first.head_hash, second.head_hash]
    assert [event.writer_epoch for event in stored] == [marked.epoch] * 2
    assert [event.body for event in stored] == [applied(marked, ordinal).body for ordinal in range(2)]
    assert await _mark(ledger) == THIRD


@pytest.mark.rules("G7")
async def test_g07_the_same_success_again_gets_the_answer_of_the_first_time(
    writer: WriterStore, marked: Lease, ledger: Ledger
) -> None:
    first = await writer.append(marked, [applied(marked, 0)], in_flight=SECOND)
    assert await writer.append(marked, [applied(marked, 0)], in_flight=SECOND) == first
    assert await chain_is_whole(ledger, marked.binding_id) == 2


@pytest.mark.rules("G2")
async def test_g02_a_success_of_an_earlier_epoch_is_refused_even_under_the_same_name(
    writer: WriterStore, marked: Lease, admin: Any, ledger_dsns: dict[str, str], ledger: Ledger
) -> None:
    await let_lease_run_out(admin, marked.binding_id)
    async with open_writer(ledger_dsns["writer"]) as other:
        await claim(other, marked.binding_id, marked.owner)
    await let_it_settle(admin, marked.binding_id)  # or the mark would be refused for that reason
    with pytest.raises(FencedWriterError):
        await writer.append(marked, [applied(marked, 0)], in_flight=SECOND)
    assert await _mark(ledger) == FIRST


@pytest.mark.rules("G2")
async def test_g02_a_success_of_another_owner_is_refused(writer: WriterStore, marked: Lease, ledger: Ledger) -> None:
    with pytest.raises(FencedWriterError):
        await writer.append(replace(marked, owner="somebody"), [applied(marked, 0)], in_flight=SECOND)
    await writer.release(marked)
    with pytest.raises(FencedWriterError):
        await writer.append(marked, [applied(marked, 0)], in_flight=SECOND)
    assert await _mark(ledger) == FIRST


def _large(event: NewEvent) -> NewEvent:
    return replace(event, body=b'{"a":"' + b"x" * 262144 + b'"}')


@pytest.mark.rules("G3", "G4", "G7")
@pytest.mark.parametrize(
    ("ordinal", "attempt", "run_id", "mark", "error"),
    [
        (1, 1, RUN, THIRD, DoubtDroppedError),
        (0, 2, RUN, SECOND, DoubtDroppedError),
        (0, 1, "another", SECOND, DoubtDroppedError),
        (0, 1, RUN, FIRST, DoubtDroppedError),
    ],
    ids=["another operation", "another attempt", "another run", "the same mark again"],
)
async def test_g04_the_success_of_what_is_not_in_flight_is_refused_as_ever(
    writer: WriterStore, marked: Lease, ledger: Ledger, ordinal: int, attempt: int, run_id: str, mark: InFlight,
    error: type[StoreError],
) -> None:  # fmt: skip
    with pytest.raises(error):
        await writer.append(marked, [applied(marked, ordinal, attempt=attempt, run_id=run_id)], in_flight=mark)
    assert await _mark(ledger) == FIRST
    assert await chain_is_whole(ledger, marked.binding_id) == 1


async def test_g04_too_large_a_success_is_refused(writer: WriterStore, marked: Lease, ledger: Ledger) -> None:
    with pytest.raises(BodyTooLargeError):
        await writer.append(marked, [_large(applied(marked, 0))], in_flight=SECOND)
    assert await _mark(ledger) == FIRST


@pytest.mark.rules("G7")
async def test_g07_a_known_id_with_another_outcome_is_an_alarm(writer: WriterStore, marked: Lease) -> None:
    first = applied(marked, 0)
    await writer.append(marked, [first], in_flight=SECOND)
    with pytest.raises(EventConflictError):
        await writer.append(marked, [replace(applied(marked, 1), event_id=first.event_id)], in_flight=THIRD)


@pytest.mark.rules("G7", "G3")
async def test_g03_a_second_success_of_one_operation_is_refused(writer: WriterStore, marked: Lease) -> None:
    await writer.append(marked, [applied(marked, 0)], in_flight=InFlight(RUN, 0, 2))
    again = replace(applied(marked, 0, attempt=2), event_id=uuid.uuid4())
    with pytest.raises(DuplicateFactError):
        await writer.append(marked, [again], in_flight=SECOND)


async def test_nothing_is_marked_before_the_destination_is_quiet(
    writer: WriterStore, marked: Lease, admin: Any, ledger: Ledger
) -> None:
    await admin.execute(
        "update ledger.binding set quiet_until = clock_timestamp() + interval '1 min' where id = $1", marked.binding_id
    )
    with pytest.raises(QuietPeriodError):
        await writer.append(marked, [applied(marked, 0)], in_flight=SECOND)
    assert await _mark(ledger) == FIRST
    await let_it_settle(admin, marked.binding_id)
    await writer.append(marked, [applied(marked, 0)], in_flight=SECOND)
    assert await _mark(ledger) == SECOND
