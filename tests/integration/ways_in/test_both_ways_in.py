"""Written into the inbox by the command, or published and taken by an intake: behind the inbox nothing differs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ledger.commit import PlanCommit, Policy
from ledger.plan.model import PlannedOperation
from tests.support.committed_plans import commit_of, in_order, save, tag
from tests.support.real_writer import RealWriter
from tests.support.ways_in import WayIn

pytestmark = [pytest.mark.integration, pytest.mark.broker]

RUN, OTHER = "20261129T1900-0a1b2c3d", "20261129T2000-0a1b2c3d"


def planned(writer: RealWriter, run_id: str, *names: str, **more: Any) -> PlanCommit:
    """A saved plan of tags, and its commit."""
    operations: list[PlannedOperation] = in_order([tag(name, description=run_id) for name in names])
    source = more.pop("source", "from-netbox")
    run_dir = save(writer.root, run_id, operations, source=source, binding=writer.binding)
    return commit_of(writer.root, run_dir, binding=writer.binding, source=source, **more)


@pytest.mark.rules("G3", "G7")
async def test_g07_what_is_recorded_of_a_commit_is_its_very_bytes(way: WayIn, writer: RealWriter) -> None:
    commit = planned(writer, RUN, "a", "b")
    assert await way.commit(commit) == "taken"

    binding_id = await writer.binding_id()
    (order,) = await writer.ledger.open_orders(binding_id)
    assert (order.kind, order.run_id, order.state, order.inbox_id) == ("commit", RUN, "open", 1)
    kept = await writer.ledger.committed_order(binding_id, RUN)
    assert kept is not None
    assert (kept.body, kept.commit_id, kept.position) == (commit.canonical_bytes(), commit.commit_id, 1)
    (event,) = await writer.events()
    assert (event.kind, event.run_id, event.position, event.writer_epoch) == ("plan.committed", RUN, 1, None)
    assert event.body == b'{"commit":' + commit.canonical_bytes() + b"}"


@pytest.mark.rules("G3")
async def test_g03_a_run_is_applied_to_its_end(way: WayIn, writer: RealWriter) -> None:
    await way.commit(planned(writer, RUN, "a", "b"))

    outcome = await writer.writer().drain(RUN, by="grace")

    assert outcome.ending == "run.applied"
    applied = ["operation.applied"] * 2
    assert await writer.kinds(RUN) == ["plan.committed", "run.started", *applied, "run.applied"]
    assert [node["values"]["name"] for node in writer.content() if node["kind"] == "BuiltinTag"] == ["a", "b"]


@pytest.mark.rules("G7")
async def test_g07_a_repeat_is_one_order_before_and_behind_its_end(way: WayIn, writer: RealWriter) -> None:
    commit = planned(writer, RUN, "a")
    again = commit.model_copy(update={"actor": "grace", "reason": "again", "committed_at": "2026-11-29T19:05:00+00:00"})
    assert [await way.commit(commit), await way.commit(again)] == ["taken", "taken"]
    assert len(await writer.ledger.open_orders(await writer.binding_id())) == 1
    await writer.writer().drain(RUN, by="grace")
    assert await way.commit(again) == "taken"
    assert await writer.ledger.open_orders(await writer.binding_id()) == []
    assert len(writer.sent()) == 1


@pytest.mark.rules("G7", "G10")
@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        ({"policy": Policy(on_unknown="converge")}, "PolicyConflictError"),
        ({"artifact_digest": "e" * 64}, "CommitConflictError"),
        ({"operations_count": 7}, "CommitConflictError"),
    ],
)
async def test_g10_a_repeat_of_other_content_is_the_same_refusal(
    way: WayIn, writer: RealWriter, change: dict[str, Any], refusal: str
) -> None:
    commit = planned(writer, RUN, "a")
    assert await way.commit(commit) == "taken"
    assert await way.commit(commit.model_copy(update=change)) == refusal
    (order,) = await writer.ledger.open_orders(await writer.binding_id())
    assert PlanCommit.model_validate_json(json.dumps(order.body)) == commit


@pytest.mark.rules("G10")
async def test_g10_a_plan_of_another_ledger_is_the_same_refusal(way: WayIn, writer: RealWriter) -> None:
    commit = planned(writer, RUN, "a", ledger_position=7)
    assert await way.commit(commit) == "UnknownPositionError"
    assert await writer.ledger.open_orders(await writer.binding_id()) == []


@pytest.mark.rules("G1")
async def test_g01_a_plan_that_was_changed_behind_its_commit_is_the_same_verdict(
    way: WayIn, writer: RealWriter
) -> None:
    commit = planned(writer, RUN, "a")
    await way.commit(commit)
    (writer.root / commit.artifact / "plan" / "operations.jsonl").write_bytes(b"{}\n")
    outcome = await writer.writer().drain(RUN, by="grace")
    assert outcome.ending == "plan.refused"
    assert await writer.kinds(RUN) == ["plan.committed", "plan.refused"]
    assert writer.sent() == []


async def test_two_sources_are_carried_out_in_the_order_of_their_commits_and_the_overlap_is_named(
    way: WayIn, writer: RealWriter
) -> None:
    first = planned(writer, RUN, "a", "b")
    second = planned(writer, OTHER, "b", "c", source="from-library")
    assert [await way.commit(first), await way.commit(second)] == ["taken", "taken"]

    await writer.writer().drain(OTHER, by="grace")

    assert [event.run_id for event in await writer.events() if event.kind == "run.started"] == [RUN, OTHER]
    overlaps = (await writer.body(OTHER, "run.started"))["overlaps"]
    assert [(overlap["identity"], overlap["source"]) for overlap in overlaps] == [({"name": "b"}, "from-netbox")]


@pytest.mark.rules("G3")
async def test_g03_a_run_is_stopped_and_resumed(way: WayIn, writer: RealWriter) -> None:
    # an order to stop that is found while the destination is still being opened ends in another event
    writer.changes["poll_interval"] = 3600.0
    await way.commit(planned(writer, RUN, "a", "b"))
    await writer.ledger.submit_stop(await writer.binding_id(), run_id=RUN, by="ada", reason="wait")
    stopped = await writer.writer().drain(RUN, by="grace")
    assert (stopped.ending, stopped.findings) == ("run.stopped", ())
    await writer.resume(RUN)
    assert (await writer.writer().drain(RUN, by="grace")).ending == "run.applied"
    assert await writer.outcomes(RUN) == [(0, "applied", 1), (1, "applied", 1)]
