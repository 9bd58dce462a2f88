"""What is recorded of runs that a real server, or a peer that is missing, ends: each operation by its own name."""

from __future__ import annotations

import pytest

from tests.live.objects import changed_site, deleted, site
from tests.live.writing import LiveWriter, create
from tests.support.committed_plans import tag
from tests.support.http_relay import HttpRelay
from tests.support.inventory_operations import device_type, manufacturer
from tests.support.operations import create as planned
from tests.support.operations import one

pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]


def written(relay: HttpRelay) -> int:
    return sum(b"mutation" in request for request in relay.requests)


async def ends(writer: LiveWriter) -> str:
    ending: str = (await writer.writer().drain("run-1", by="ada")).ending
    return ending


@pytest.mark.rules("P37", "P65", "P66", "P86", "P87", "G3", "G5")
async def test_g03_applied_refused_and_not_attempted_are_told_apart(live_writer: LiveWriter, relay: HttpRelay) -> None:
    """By its explicit order the plan makes a device type before its maker, whom nobody else has made."""
    known = create(live_writer.live, "OrganizationManufacturer", name={"value": "Known"})
    stored = await live_writer.commit(
        "run-1", [manufacturer("Known", description="ours"), device_type("Late", "7050"), manufacturer("Late")]
    )
    assert await ends(live_writer) == "run.failed"
    assert await live_writer.outcomes("run-1") == [(0, "applied", 1), (1, "failed", 1)]
    events = [event for event in await live_writer.events("run-1") if event.operation_id is not None]
    assert [event.operation_id for event in events] == [operation.operation_id for operation in stored[:2]]
    assert (await live_writer.body("run-1", "operation.applied"))["node_id"] == known
    refused = await live_writer.body("run-1", "operation.failed")
    assert refused["error"] == "PeerNotFoundError"
    assert stored[1].operation_id in refused["message"]
    assert (await live_writer.body("run-1", "run.failed"))["failed_operation"] == stored[1].operation_id
    assert written(relay) == 1, "nothing was sent for the refused one, and nothing after it"
    assert live_writer.names("OrganizationManufacturer") == ["Known"]
    assert live_writer.names("DcimDeviceType") == []


@pytest.mark.rules("P55", "P66", "G3", "G5")
async def test_g05_a_stale_id_is_recorded_as_not_written_and_ends_the_run(live_writer: LiveWriter) -> None:
    gone = create(live_writer.live, "LocationSite", name={"value": "gone"})
    deleted(live_writer.live, "LocationSite", gone)
    stored = await live_writer.commit("run-1", [site("first"), changed_site("gone", gone), tag("behind")])
    assert await ends(live_writer) == "run.failed"
    assert await live_writer.outcomes("run-1") == [(0, "applied", 1), (1, "failed", 1)]
    failed = await live_writer.body("run-1", "operation.failed")
    assert failed["error"] == "StaleDestinationIdError"
    assert "fresh plan" in failed["next_action"]
    assert (await live_writer.body("run-1", "run.failed"))["failed_operation"] == stored[1].operation_id
    assert live_writer.names("LocationSite") == ["first"]
    assert live_writer.names("BuiltinTag") == []


@pytest.mark.rules("P65", "P66", "G3", "G5", "G11")
async def test_g05_a_create_without_a_key_is_refused_with_the_whole_plan_before_the_first_write(
    live_writer: LiveWriter, relay: HttpRelay
) -> None:
    """The gate asks what the write surface would ask, so no operation of such a plan is written."""
    maker = one("manufacturer", "OrganizationManufacturer", name="Arista")
    unkeyed = planned("DcimDeviceType", {"name": "7050"}, {"name": "7050"}, maker)
    await live_writer.commit("run-1", [manufacturer("Arista"), unkeyed, tag("behind")])
    assert await ends(live_writer) == "plan.refused"
    refused = await live_writer.body("run-1", "plan.refused")
    assert [finding["name"] for finding in refused["findings"]] == ["UnkeyedCreateRefusedError"]
    assert await live_writer.outcomes("run-1") == []
    assert written(relay) == 0
    assert live_writer.names("OrganizationManufacturer") == []
