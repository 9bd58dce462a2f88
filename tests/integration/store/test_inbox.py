"""Orders: delivered twice is one order, conflicts are named, only the writer closes them (G7)."""

from __future__ import annotations

import asyncio
import json
import uuid
from typing import Any

import asyncpg
import pytest

from ledger.binding import DestinationBinding
from ledger.commit import Policy
from ledger.exit_codes import ExitCode
from ledger.store.errors import (
    BodyTooLargeError,
    CommitConflictError,
    FencedWriterError,
    InvalidCallError,
    OrderConflictError,
    PolicyConflictError,
    RunChecksumConflictError,
    RunFinishedError,
    RunStillOpenError,
    UnknownBindingError,
    UnknownPositionError,
    UnknownRunError,
)
from ledger.store.ledger import Ledger
from ledger.store.writer import Lease, WriterStore
from tests.support.store import (
    BINDING,
    RUN,
    applied,
    chain_is_whole,
    make_commit,
    run_applied,
    run_interrupted,
    run_resumed,
    run_started,
    run_stopped,
    unknown,
)

pytestmark = pytest.mark.integration

OTHER_POLICY = Policy(on_unknown="converge")


@pytest.mark.rules("G7")
async def test_g07_a_commit_delivered_twice_changes_nothing_the_second_time(ledger: Ledger, binding_id: int) -> None:
    first = await ledger.submit_commit(binding_id, make_commit())
    again = make_commit(
        committed_at="2026-11-30T00:00:00.000000+00:00", actor="other", reason="again", traceparent="00-x"
    )
    second = await ledger.submit_commit(binding_id, again)
    assert first.first
    assert not second.first
    assert (second.order_id, second.inbox_id, second.position) == (first.order_id, first.inbox_id, 1)
    assert await ledger.run_commit(binding_id, RUN) == make_commit()
    assert await chain_is_whole(ledger, binding_id) == 1


@pytest.mark.rules("G7")
async def test_g07_a_commit_delivered_at_once_by_many_is_one_order(ledger: Ledger, binding_id: int) -> None:
    receipts = await asyncio.gather(*(ledger.submit_commit(binding_id, make_commit()) for _ in range(8)))
    assert sum(receipt.first for receipt in receipts) == 1
    assert len({receipt.order_id for receipt in receipts}) == 1
    assert await chain_is_whole(ledger, binding_id) == 1


async def test_the_commit_stands_in_the_log_as_it_was_received(ledger: Ledger, binding_id: int) -> None:
    commit = make_commit(reason="a reason with ☃", binding=DestinationBinding(url=BINDING.url + "/", branch="main"))
    receipt = await ledger.submit_commit(binding_id, commit)
    events = [event async for event in ledger.events(binding_id)]
    assert [(event.kind, event.position, event.writer_epoch) for event in events] == [("plan.committed", 1, None)]
    assert json.loads(events[0].body) == {"commit": commit.model_dump(mode="json")}
    (order,) = await ledger.open_orders(binding_id)
    assert (order.order_id, order.kind, order.run_id, order.state) == (receipt.order_id, "commit", RUN, "open")
    assert order.body == commit.model_dump(mode="json")


@pytest.mark.parametrize("field", ["config_version", "operations_count", "artifact", "source", "format_version"])
@pytest.mark.rules("G7", "G1")
async def test_g07_an_open_run_committed_with_other_content_is_refused_by_field(
    ledger: Ledger, binding_id: int, field: str
) -> None:
    await ledger.submit_commit(binding_id, make_commit())
    changed: dict[str, Any] = {field: 7 if field in {"operations_count", "format_version"} else "other"}
    with pytest.raises(CommitConflictError) as refused:
        await ledger.submit_commit(binding_id, make_commit(**changed))
    assert field in refused.value.facts["fields"]
    assert refused.value.exit_code is ExitCode.REFUSED


@pytest.mark.rules("G1", "G7")
async def test_g01_a_run_committed_with_another_artifact_is_refused_even_when_it_has_ended(
    ledger: Ledger, binding_id: int, writer: WriterStore, lease: Lease
) -> None:
    await ledger.submit_commit(binding_id, make_commit())
    for _ in range(2):
        with pytest.raises(CommitConflictError) as refused:
            await ledger.submit_commit(binding_id, make_commit(artifact_digest="e" * 64))
        assert refused.value.facts["fields"] == ["artifact_digest"]
        await writer.append(lease, [run_applied(lease)], close_orders=[(1, "done")])
    assert not (await ledger.submit_commit(binding_id, make_commit(config_version="later"))).first


@pytest.mark.rules("G7")
async def test_g07_one_run_has_one_plan(ledger: Ledger, binding_id: int) -> None:
    await ledger.submit_commit(binding_id, make_commit())
    with pytest.raises(RunChecksumConflictError) as refused:
        await ledger.submit_commit(binding_id, make_commit(checksum="a" * 64))
    assert refused.value.facts["checksum"] == "c" * 64
    assert await chain_is_whole(ledger, binding_id) == 1


async def test_another_policy_for_an_open_run_is_refused_and_for_an_ended_one_is_not(
    ledger: Ledger, binding_id: int, writer: WriterStore, lease: Lease
) -> None:
    await ledger.submit_commit(binding_id, make_commit())
    with pytest.raises(PolicyConflictError):
        await ledger.submit_commit(binding_id, make_commit(policy=OTHER_POLICY))
    await writer.append(lease, [run_started(lease), run_stopped(lease)], close_orders=[(1, "done")])
    assert not (await ledger.submit_commit(binding_id, make_commit(policy=OTHER_POLICY))).first
    await writer.append(lease, [run_resumed(lease, n=1)])
    with pytest.raises(PolicyConflictError):
        await ledger.submit_commit(binding_id, make_commit(policy=OTHER_POLICY))


async def test_a_commit_for_another_binding_or_none_is_refused(ledger: Ledger, binding_id: int) -> None:
    other = make_commit(binding=DestinationBinding(url=BINDING.url, branch="other"))
    with pytest.raises(InvalidCallError):
        await ledger.submit_commit(binding_id, other)
    with pytest.raises(UnknownBindingError):
        await ledger.submit_commit(4711, make_commit())
    with pytest.raises(UnknownBindingError):
        await ledger.submit_stop(4711, run_id=RUN, by="me", reason="")


async def test_a_reason_above_its_limit_is_refused_before_anything_is_written(ledger: Ledger, binding_id: int) -> None:
    await ledger.submit_commit(binding_id, make_commit("limit", reason="é" * (32 * 1024)))
    with pytest.raises(BodyTooLargeError, match="reason"):
        await ledger.submit_commit(binding_id, make_commit(reason="é" * (32 * 1024) + "x"))
    with pytest.raises(BodyTooLargeError):
        await ledger.submit_stop(binding_id, run_id="limit", by="me", reason="x" * (64 * 1024 + 1))
    with pytest.raises(BodyTooLargeError):
        await ledger.submit_commit(binding_id, make_commit(artifact="x" * (256 * 1024)))
    assert await chain_is_whole(ledger, binding_id) == 1


async def test_a_name_above_its_limit_is_refused_before_anything_is_written(ledger: Ledger, binding_id: int) -> None:
    """What fits into an order must fit into the event that repeats it, or the order could never be carried out."""
    await ledger.submit_commit(binding_id, make_commit("limit", actor="é" * 512))
    with pytest.raises(BodyTooLargeError, match="who asks"):
        await ledger.submit_commit(binding_id, make_commit(actor="é" * 512 + "x"))
    with pytest.raises(BodyTooLargeError, match="who asks"):
        await ledger.submit_stop(binding_id, run_id="limit", by="x" * 1025, reason="")
    assert await chain_is_whole(ledger, binding_id) == 1


@pytest.mark.rules("G11")
async def test_a_plan_made_at_a_position_that_this_ledger_has_not_reached_is_refused(
    ledger: Ledger, binding_id: int
) -> None:
    """It was made beside another ledger: what was written here since would be looked for in vain."""
    with pytest.raises(UnknownPositionError) as refused:
        await ledger.submit_commit(binding_id, make_commit(ledger_position=1))
    assert refused.value.exit_code is ExitCode.REFUSED
    await ledger.submit_commit(binding_id, make_commit("first", ledger_position=0))
    await ledger.submit_commit(binding_id, make_commit("second", ledger_position=1))


async def test_resume_takes_what_ended_and_is_not_applied(
    ledger: Ledger, binding_id: int, writer: WriterStore, lease: Lease
) -> None:
    async def resume(policy: Policy = OTHER_POLICY) -> bool:
        receipt = await ledger.submit_resume(binding_id, run_id=RUN, by="me", reason="go", policy=policy)
        return receipt.first

    with pytest.raises(UnknownRunError):
        await resume()
    await ledger.submit_commit(binding_id, make_commit())
    with pytest.raises(RunStillOpenError):
        await resume()
    await writer.append(lease, [run_started(lease), run_stopped(lease)], close_orders=[(1, "done")])
    assert await resume()
    assert not await resume()
    with pytest.raises(OrderConflictError):
        await resume(Policy())
    (order,) = await ledger.open_orders(binding_id)
    assert (order.kind, order.body["policy"]["on_unknown"], order.position) == ("resume", "converge", 4)
    await writer.append(lease, [run_resumed(lease, n=1), run_applied(lease, n=1)], close_orders=[(2, "done")])
    with pytest.raises(RunFinishedError) as refused:
        await resume()
    assert refused.value.facts["state"] == "run.applied"


async def test_stop_takes_what_is_open_or_about_to_be_resumed(
    ledger: Ledger, binding_id: int, writer: WriterStore, lease: Lease
) -> None:
    async def stop() -> bool:
        return (await ledger.submit_stop(binding_id, run_id=RUN, by="me", reason="enough")).first

    with pytest.raises(UnknownRunError):
        await stop()
    await ledger.submit_commit(binding_id, make_commit())
    assert await ledger.pending_stop(binding_id, RUN) is None
    assert await stop()
    assert not await stop()
    pending = await ledger.pending_stop(binding_id, RUN)
    assert pending is not None
    assert pending.body == {"by": "me", "reason": "enough"}
    await writer.append(lease, [run_started(lease), run_stopped(lease)], close_orders=[(1, "done"), (2, "done")])
    with pytest.raises(RunFinishedError):
        await stop()
    await ledger.submit_resume(binding_id, run_id=RUN, by="me", reason="go", policy=Policy())
    assert await stop()


@pytest.mark.rules("G2")
async def test_g02_a_run_that_its_writers_death_interrupted_is_still_being_carried_out(
    ledger: Ledger, binding_id: int, writer: WriterStore, lease: Lease
) -> None:
    """Its order is open and the next writer goes on: a second order would repeat it, and a stop must reach it."""
    await ledger.submit_commit(binding_id, make_commit())
    await writer.append(lease, [run_started(lease), unknown(lease, 0), run_interrupted(lease)])
    with pytest.raises(RunStillOpenError):
        await ledger.submit_resume(binding_id, run_id=RUN, by="me", reason="", policy=Policy())
    with pytest.raises(PolicyConflictError):
        await ledger.submit_commit(binding_id, make_commit(policy=OTHER_POLICY))
    assert (await ledger.submit_stop(binding_id, run_id=RUN, by="me", reason="enough")).first


async def test_a_stop_that_came_too_late_does_not_stop_what_is_ordered_after_it(
    ledger: Ledger, binding_id: int, writer: WriterStore, lease: Lease
) -> None:
    await ledger.submit_commit(binding_id, make_commit())
    late = await ledger.submit_stop(binding_id, run_id=RUN, by="me", reason="too late")
    await writer.append(lease, [run_started(lease), run_stopped(lease)], close_orders=[(1, "done")])
    await ledger.submit_resume(binding_id, run_id=RUN, by="me", reason="go", policy=Policy())
    assert await ledger.pending_stop(binding_id, RUN) is None
    assert [order.kind for order in await ledger.open_orders(binding_id)] == ["resume"]
    again = await ledger.submit_stop(binding_id, run_id=RUN, by="me", reason="now")
    assert again.first
    assert again.inbox_id > late.inbox_id
    await writer.close_order(lease, late.inbox_id, "done")


@pytest.mark.rules("G7")
async def test_g07_an_order_sent_again_under_its_own_id_is_found_after_it_was_worked(
    ledger: Ledger, binding_id: int, writer: WriterStore, lease: Lease
) -> None:
    await ledger.submit_commit(binding_id, make_commit())
    order_id = uuid.uuid4()
    first = await ledger.submit_stop(binding_id, run_id=RUN, by="me", reason="r", order_id=order_id)
    await writer.append(lease, [run_started(lease), run_stopped(lease)], close_orders=[(first.inbox_id, "done")])
    again = await ledger.submit_stop(binding_id, run_id=RUN, by="me", reason="r", order_id=order_id)
    assert (again.first, again.inbox_id) == (False, first.inbox_id)
    order = await ledger.order(binding_id, order_id)
    assert order is not None
    assert order.state == "done"
    with pytest.raises(OrderConflictError):
        await ledger.submit_resume(binding_id, run_id=RUN, by="me", reason="", policy=Policy(), order_id=order_id)


@pytest.mark.rules("G2")
async def test_g02_only_the_writer_that_holds_the_binding_closes_an_order(
    ledger: Ledger, binding_id: int, writer: WriterStore, lease: Lease
) -> None:
    await ledger.submit_commit(binding_id, make_commit())
    await writer.close_order(lease, 1, "refused")
    await writer.close_order(lease, 1, "refused")
    with pytest.raises(OrderConflictError):
        await writer.close_order(lease, 1, "done")
    with pytest.raises(OrderConflictError):
        await writer.close_order(lease, 99, "done")
    assert await ledger.open_orders(binding_id) == []
    await writer.release(lease)
    with pytest.raises(FencedWriterError):
        await writer.close_order(lease, 1, "refused")


@pytest.mark.rules("G3")
async def test_g03_an_order_is_closed_with_the_event_that_ends_it_or_not_at_all(
    ledger: Ledger, binding_id: int, writer: WriterStore, lease: Lease
) -> None:
    await ledger.submit_commit(binding_id, make_commit())
    with pytest.raises(OrderConflictError):
        await writer.append(lease, [run_applied(lease)], close_orders=[(1, "done"), (99, "done")])
    assert [order.inbox_id for order in await ledger.open_orders(binding_id)] == [1]
    assert (await ledger.run_state(binding_id, RUN)).terminal is None
    first = await writer.append(lease, [run_applied(lease)], close_orders=[(1, "done")])
    assert await writer.append(lease, [run_applied(lease)], close_orders=[(1, "done")]) == first
    assert await ledger.open_orders(binding_id) == []


@pytest.mark.rules("G3")
async def test_g03_run_facts_say_how_a_run_stands_at_each_step(
    ledger: Ledger, binding_id: int, writer: WriterStore, lease: Lease
) -> None:
    facts = await ledger.run_state(binding_id, RUN)
    assert (facts.committed_position, facts.terminal, facts.is_open, facts.starts) == (None, None, False, 0)
    await ledger.submit_commit(binding_id, make_commit())
    facts = await ledger.run_state(binding_id, RUN)
    assert (facts.committed_position, facts.is_open, facts.started, facts.starts) == (2, True, False, 0)
    await writer.append(lease, [run_started(lease), applied(lease, 0), unknown(lease, 1), run_stopped(lease)])
    facts = await ledger.run_state(binding_id, RUN)
    assert (facts.terminal, facts.terminal_position, facts.is_open, facts.starts) == ("run.stopped", 6, False, 1)
    await writer.append(lease, [run_resumed(lease, n=1), applied(lease, 1, attempt=2)])
    facts = await ledger.run_state(binding_id, RUN)
    assert (facts.terminal, facts.is_open, facts.starts, facts.started) == ("run.stopped", True, 2, True)
    outcomes = {fact.ordinal: (fact.kind, fact.attempt) for fact in facts.outcomes.values()}
    assert outcomes == {0: ("operation.applied", 1), 1: ("operation.applied", 2)}


async def test_a_binding_has_one_spelling_and_one_row(ledger: Ledger, binding_id: int) -> None:
    spelled = DestinationBinding(url="HTTP://Infrahub.Example:8000/", branch="main")
    ids = await asyncio.gather(*(ledger.register_binding(spelled) for _ in range(6)))
    assert set(ids) == {binding_id}
    other = DestinationBinding(url=BINDING.url, branch="new")
    assert len(set(await asyncio.gather(*(ledger.register_binding(other) for _ in range(6))))) == 1
    assert [row.branch for row in await ledger.bindings()] == ["main", "new"]
    row = await ledger.binding(spelled)
    assert row is not None
    assert (row.head_position, row.head_hash, row.writer_epoch, row.quiet_for) == (0, bytes(32), 0, 0.0)
    assert row.binding == BINDING


@pytest.mark.rules("G7")
@pytest.mark.parametrize(
    ("run_id", "commit_id", "constraint"),
    [
        ("run_id || '-x'", "commit_id", "inbox_binding_id_commit_id_key"),
        ("run_id", "gen_random_uuid()", "inbox_one_commit_of_a_run"),
    ],
)
async def test_g07_the_database_keeps_one_row_of_a_commit_whoever_inserts_it(
    ledger: Ledger, binding_id: int, admin: Any, run_id: str, commit_id: str, constraint: str
) -> None:
    await ledger.submit_commit(binding_id, make_commit())
    with pytest.raises(asyncpg.UniqueViolationError) as refused:
        await admin.execute(
            "insert into ledger.inbox (binding_id, inbox_id, order_id, kind, run_id, state, closed_at, body, position,"
            " commit_id, plan_checksum, artifact_digest, source)"
            f" select binding_id, inbox_id + 1, gen_random_uuid(), kind, {run_id}, 'done', now(), body, position,"
            f" {commit_id}, plan_checksum, artifact_digest, source from ledger.inbox"
        )
    assert refused.value.constraint_name == constraint
