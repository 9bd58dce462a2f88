"""Rules that the program keeps by itself and that the database keeps as well, whoever holds the writer's role."""

from __future__ import annotations

import itertools
import json
import uuid
from dataclasses import replace
from typing import Any

import asyncpg
import pytest

from ledger.binding import DestinationBinding
from ledger.store.errors import DoubtDroppedError, EventConflictError, InvalidCallError
from ledger.store.ledger import Ledger
from ledger.store.records import InFlight, Lease
from ledger.store.writer import WriterStore
from tests.support.store import (
    BINDING,
    RUN,
    applied,
    chain_is_whole,
    claim,
    connection_to,
    let_lease_run_out,
    make_commit,
    run_started,
    run_stopped,
    unknown,
)

pytestmark = pytest.mark.integration

MARK = InFlight(RUN, 0, 1)
OPENED = json.dumps({"epoch": 1, "role": "ledger_writer"})


async def _refused(dsn: str, statement: str, *arguments: Any) -> str:
    async with connection_to(dsn) as connection:
        with pytest.raises(asyncpg.PostgresError) as refused:
            await connection.fetch(statement, *arguments)
    return str(refused.value.sqlstate)


@pytest.mark.rules("G4")
@pytest.mark.parametrize("to", [None, InFlight(RUN, 0, 2), InFlight(RUN, 1, 1), InFlight("another-run", 0, 1)])
async def test_g04_the_operation_in_flight_is_not_left_without_its_outcome(
    writer: WriterStore, lease: Lease, ledger: Ledger, to: InFlight | None
) -> None:
    await writer.append(lease, [], in_flight=MARK)
    for events in ([], [run_stopped(lease)], [applied(lease, 1)], [applied(lease, 0, attempt=2)]):
        with pytest.raises(DoubtDroppedError) as refused:
            await writer.append(lease, events, in_flight=to)
        assert (refused.value.facts["ordinal"], refused.value.facts["attempt"]) == (0, 1)
    row = await ledger.binding(BINDING)
    assert row is not None
    assert (row.in_flight, row.head_position) == (MARK, 1)
    await writer.append(lease, [unknown(lease, 0)], in_flight=to)


@pytest.mark.rules("G4")
@pytest.mark.parametrize("to", ["keep", MARK])
async def test_g04_an_outcome_takes_its_operation_out_of_flight(
    writer: WriterStore, lease: Lease, ledger: Ledger, to: Any
) -> None:
    """Left marked, it would be recorded again by whoever takes over."""
    await writer.append(lease, [], in_flight=MARK)
    with pytest.raises(DoubtDroppedError):
        await writer.append(lease, [applied(lease, 0)], in_flight=to)
    await writer.append(lease, [applied(lease, 1)], in_flight=to)
    assert await chain_is_whole(ledger, lease.binding_id) == 2


@pytest.mark.rules("G4")
async def test_g04_a_mark_that_is_repeated_late_marks_nothing_that_was_told(
    writer: WriterStore, lease: Lease, ledger: Ledger
) -> None:
    """A mark alone has no event by which its repeat is known; marked again, it would be in doubt for ever."""
    await writer.append(lease, [run_started(lease)])
    await writer.append(lease, [], in_flight=MARK)
    await writer.append(lease, [], in_flight=MARK)
    await writer.append(lease, [unknown(lease, 0)], in_flight=None)
    with pytest.raises(EventConflictError):
        await writer.append(lease, [], in_flight=MARK)
    await writer.append(lease, [run_stopped(lease)])
    with pytest.raises(EventConflictError):
        await writer.append(lease, [], in_flight=MARK)
    row = await ledger.binding(BINDING)
    assert row is not None
    assert row.in_flight is None
    await writer.append(lease, [], in_flight=InFlight("another-run", 0, 1))
    await writer.append(lease, [applied(lease, 0, run_id="another-run")], in_flight=InFlight(RUN, 0, 2))
    await writer.append(lease, [applied(lease, 0, attempt=2)], in_flight=None)
    await writer.append(lease, [], in_flight=InFlight(RUN, 1, 1))


@pytest.mark.rules("G2")
async def test_g02_nobody_is_no_holder_of_a_binding_that_was_given_back(
    writer: WriterStore, lease: Lease, ledger: Ledger, ledger_dsns: dict[str, str]
) -> None:
    await writer.append(lease, [run_started(lease)])
    await writer.release(lease)
    event = "array[gen_random_uuid()], array['run.stopped'], array[1], array['r'], array[null], array[null::bigint]"
    none = "null, 'keep', null, null, null, null, '{}', '{}'"
    for binding in (lease.binding_id, await ledger.register_binding(DestinationBinding(url=BINDING.url, branch="b"))):
        for epoch in ("0", "1", "null"):
            for call in (
                f"append_v1({binding}, null, {epoch}, {event}, array[null::integer], array['{{}}'], {none})",
                f"renew_v1({binding}, null, {epoch}, 60)",
                f"close_order_v1({binding}, null, {epoch}, 1, 'done')",
            ):
                assert await _refused(ledger_dsns["writer"], f"select ledger.{call}") == "LG001", call
    assert await chain_is_whole(ledger, lease.binding_id) == 2


@pytest.mark.rules("G7")
async def test_g07_an_order_is_as_long_as_an_event_at_most_whatever_its_blanks(
    ledger: Ledger, binding_id: int, ledger_dsns: dict[str, str]
) -> None:
    commit = make_commit()
    body, event = commit.canonical_bytes().decode(), json.dumps({"commit": commit.model_dump(mode="json")})
    submit = "select * from ledger.submit_commit_v1($1, $2, $3, $4, 1, $5)"
    long = body + " " * (256 * 1024)
    assert await _refused(ledger_dsns["writer"], submit, binding_id, uuid.uuid4(), long, uuid.uuid4(), event) == "LG007"
    assert await chain_is_whole(ledger, binding_id) == 0


@pytest.mark.rules("G4")
async def test_g04_a_mark_is_one_of_three(lease: Lease, ledger: Ledger, ledger_dsns: dict[str, str]) -> None:
    none = "'{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', null"
    for mark in ("null", "''", "'CLEAR'"):
        call = f"select ledger.append_v1($1, $2, 1, {none}, {mark}, null, null, null, null, '{{}}', '{{}}')"
        assert await _refused(ledger_dsns["writer"], call, lease.binding_id, lease.owner) == "LG021", mark


@pytest.mark.rules("G2", "G7")
async def test_g02_an_epoch_is_opened_once_under_whatever_id(
    lease: Lease, ledger: Ledger, ledger_dsns: dict[str, str]
) -> None:
    state = await _refused(
        ledger_dsns["writer"],
        "select * from ledger.claim_v1($1, 'writer-1', 60, 30, 'host', 0, $2, 1, $3)",
        lease.binding_id,
        uuid.uuid4(),
        OPENED,
    )
    assert state == "23505"
    assert await chain_is_whole(ledger, lease.binding_id) == 1


@pytest.mark.rules("G7")
async def test_g07_a_commit_is_in_the_log_only_with_its_order_and_once(
    ledger: Ledger, binding_id: int, ledger_dsns: dict[str, str]
) -> None:
    control = (
        "select * from ledger.append_control_v1($1, array[$2::uuid], array['plan.committed'], array[1], array[$3],"
        " array['{}'], null)"
    )
    assert await _refused(ledger_dsns["writer"], control, binding_id, uuid.uuid4(), RUN) == "LG009"
    await ledger.submit_commit(binding_id, make_commit())
    assert await _refused(ledger_dsns["writer"], control, binding_id, uuid.uuid4(), RUN) == "LG009"
    assert await chain_is_whole(ledger, binding_id) == 1


@pytest.mark.rules("G7")
async def test_g07_a_run_is_committed_once_even_where_its_order_is_lost(
    ledger: Ledger, binding_id: int, admin: Any
) -> None:
    """The inbox says first who came first; the log would not believe it twice."""
    await ledger.submit_commit(binding_id, make_commit())
    with pytest.raises(asyncpg.UniqueViolationError, match="event_one_commit"):
        await admin.execute(
            "select ledger.append_locked(b, null, array[gen_random_uuid()], array['plan.committed'], array[1],"
            " array[$1], array[null], array[null::bigint], array[null::integer], array['{}'], null)"
            " from ledger.binding b",
            RUN,
        )


@pytest.mark.rules("G2")
async def test_g02_without_the_lease_nobody_ends_a_run_that_was_committed(
    writer: WriterStore, lease: Lease, ledger: Ledger, ledger_dsns: dict[str, str]
) -> None:
    await ledger.submit_commit(lease.binding_id, make_commit())
    await writer.append(lease, [run_started(lease)])
    control = (
        "select * from ledger.append_control_v1($1, array[$2::uuid, $3], array['plan.refused', 'plan.refused'],"
        " array[1, 1], array['another-run', $4], array['{}', '{}'], null)"
    )
    ids = (uuid.uuid4(), uuid.uuid4())
    assert await _refused(ledger_dsns["writer"], control, lease.binding_id, *ids, RUN) == "LG023"
    assert (await ledger.run_state(lease.binding_id, RUN)).is_open
    async with connection_to(ledger_dsns["writer"]) as connection:
        await connection.fetch(control, lease.binding_id, *ids, "a-third-run")


@pytest.mark.rules("G2")
async def test_g02_no_lease_and_no_quiet_period_lasts_for_years(
    writer: WriterStore, lease: Lease, admin: Any, ledger: Ledger
) -> None:
    await let_lease_run_out(admin, lease.binding_id)
    for seconds in (86_401.0, 1e11, float("inf"), float("nan")):
        for ttl, settle in ((seconds, 1.0), (1.0, seconds)):
            with pytest.raises(InvalidCallError):
                await writer.claim(
                    lease.binding_id, owner="b", ttl=ttl, settle=settle, body_host="host", body_process_id="process"
                )
        with pytest.raises(InvalidCallError):
            await writer.renew(replace(lease, ttl=seconds))
        with pytest.raises(InvalidCallError):
            await writer.append(lease, [unknown(lease, 0)], in_flight=None, settle=seconds)
    row = await ledger.binding(BINDING)
    assert row is not None
    assert (row.writer_epoch, row.has_live_lease, row.quiet_for, row.head_position) == (1, False, 0.0, 1)
    await claim(writer, lease.binding_id, "writer-2", ttl=86_400.0)


@pytest.mark.rules("G8")
async def test_g08_arrays_of_any_shape_leave_a_whole_chain(
    lease: Lease, ledger: Ledger, ledger_dsns: dict[str, str]
) -> None:
    """The hash and the row were once taken from an array in two ways, which differ for these."""
    types = ("uuid", "text", "integer", "text", "text", "bigint", "integer", "text")
    appended = 0
    async with connection_to(ledger_dsns["writer"]) as connection:
        for number, (column, shape) in enumerate(itertools.product(range(8), ("{{{}}}", "[0:0]={}", "[2:2]={}"))):
            values = (str(uuid.uuid4()), "operation.applied", "1", RUN, f"op-{number}", "0", "1", '{"a": 1}')
            texts = [f"{{{json.dumps(value)}}}" for value in values]
            texts[column] = shape.format(texts[column])
            lists = ", ".join(f"'{text}'::{kind}[]" for text, kind in zip(texts, types, strict=True))
            try:
                await connection.fetch(
                    f"select * from ledger.append_v1($1, $2, $3, {lists},"
                    " null, 'keep', null, null, null, null, '{}', '{}')",
                    lease.binding_id,
                    lease.owner,
                    lease.epoch,
                )
                appended += 1
            except asyncpg.PostgresError as error:
                refused = error.sqlstate
                assert refused in ("LG009", "23502", "23514")
            assert await chain_is_whole(ledger, lease.binding_id) == 1 + appended
