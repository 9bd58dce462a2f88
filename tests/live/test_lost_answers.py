"""Requests and answers that are lost, cut or late on the way to a real server: what is recorded is true or unknown."""

from __future__ import annotations

from collections import deque

import pytest

from ledger.plan.model import PlannedOperation
from tests.live.writing import PATIENT, LiveWriter, create
from tests.support.http_relay import Fate, HttpRelay, Kind
from tests.support.inventory_operations import device_type, interface_template, manufacturer
from tests.support.operations import many, update

pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]

HASTY = {"request_timeout": 1.0, "lease_ttl": 6.0, "settle_seconds": 3.0}
"""Gives up before the relay does; nothing that the relay holds is still held when the quiet time is over."""
HELD = 2.0
READS = (b"GET /api/schema", b"query Peer", b"query OwnId")
"""What an apply asks beside its writes: the schema, a peer, and whether a create under an id of ours is there."""
FATES: dict[Kind, dict[str, float]] = {
    "lose request": PATIENT,
    "cut request": PATIENT,
    "hold request": HASTY,
    "lose answer": PATIENT,
    "cut answer": PATIENT,
    "hold answer": HASTY,
}


def site_with_tags(writer: LiveWriter) -> tuple[PlannedOperation, list[str]]:
    """An update that gives a site another set of tags, and the ids of these."""
    ids = {name: create(writer.live, "BuiltinTag", name={"value": name}) for name in ("old", "red", "blue")}
    site = create(writer.live, "LocationSite", name={"value": "s1"}, tags=[{"id": ids["old"]}])
    tags = many("tags", "BuiltinTag", {"name": "red"}, {"name": "blue"})
    payload = {"name": "s1", "description": "changed"}
    operation = update("LocationSite", {"name": "s1"}, payload, tags, destination_id=site)
    return operation, sorted([ids["red"], ids["blue"]])


async def endings_of(writer: LiveWriter, stored: list[PlannedOperation]) -> list[str]:
    """Apply a run, resuming it until it is applied; whatever is recorded on the way is true or unknown."""
    endings: list[str] = []
    while True:
        endings.append((await writer.writer().drain("run-1", by="ada")).ending)
        for ordinal, recorded, _ in await writer.outcomes("run-1"):
            assert recorded in ("applied", "unknown"), "a lost answer proves nothing"
            if recorded == "applied":
                assert ordinal is not None
                assert writer.holds(stored[ordinal])
        if endings[-1] != "run.interrupted":
            return endings
        await writer.resume("run-1")


@pytest.mark.rules("P127", "P128", "P129", "G3", "G4", "G5", "G6")
@pytest.mark.parametrize("fate", FATES)
async def test_ff22_what_is_recorded_after_a_lost_answer_is_true_and_the_run_ends_right(
    fate: Kind, live_writer: LiveWriter, relay: HttpRelay
) -> None:
    live_writer.changes = dict(FATES[fate])
    changed, tags = site_with_tags(live_writer)
    # one create matched by its key, one update by id with a set of peers, one create that only our own id can match
    planned = [
        manufacturer("Arista"),
        changed,
        device_type("Arista", "7050"),
        interface_template("Arista", "7050", "eth0"),
    ]
    stored = await live_writer.commit("run-1", planned)
    for _ in stored:  # each operation meets the fate once, and then passes
        relay.fates += [Fate(fate, HELD), Fate("pass")]

    endings = await endings_of(live_writer, stored)
    assert endings[-1] == "run.applied"
    assert len(endings) > len(stored)
    assert relay.most_under_way == 1, "two attempts at one object were under way at once"
    assert live_writer.names("OrganizationManufacturer") == ["Arista"]
    assert live_writer.names("DcimDeviceType") == ["7050"]
    assert live_writer.names("DcimInterfaceTemplate") == ["eth0"]
    assert live_writer.site(str(changed.destination_id)) == {"description": "changed", "tags": tags, "count": 2}


@pytest.mark.rules("P128", "P129", "G3", "G4", "G5", "G6")
@pytest.mark.parametrize("fate", ["lose answer", "unavailable"])
async def test_ff22_a_lost_schema_look_up_or_read_back_writes_nothing_twice(
    fate: Kind, live_writer: LiveWriter, relay: HttpRelay
) -> None:
    create(live_writer.live, "OrganizationManufacturer", name={"value": "Arista"})
    stored = await live_writer.commit(
        "run-1", [device_type("Arista", "7050"), interface_template("Arista", "7050", "eth0")]
    )
    relay.read_fates = {word: deque([Fate(fate)]) for word in READS}
    relay.fates += [Fate("pass"), Fate("lose answer")]  # so the template is there, and its create is repeated
    endings = await endings_of(live_writer, stored)
    assert endings[-1] == "run.applied"
    assert not any(relay.read_fates.values()), "each of them was lost once"
    assert live_writer.names("DcimDeviceType") == ["7050"]
    assert live_writer.names("DcimInterfaceTemplate") == ["eth0"]
