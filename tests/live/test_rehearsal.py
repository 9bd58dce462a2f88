"""A rehearsal on the schema and the objects of a real server beside the run itself: above all, what is refused."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest

from consumers.infrahub.connection import open_reader
from consumers.infrahub.observed import kinds_of_interest, narrowed, observed_now
from consumers.infrahub.rehearsed import open_rehearsal
from consumers.rehearsal import Effect, Rehearsal
from ledger.plan.model import PlannedOperation
from ledger.schema import parse_schema
from tests.live.writing import LiveWriter, create
from tests.support.committed_plans import tag
from tests.support.inventory_operations import device_type, interface_template, manufacturer
from tests.support.operations import update

pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]

_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


async def rehearsed(writer: LiveWriter, operations: Sequence[PlannedOperation]) -> list[Effect]:
    """What would become of each operation on what stands on the branch now."""
    async with open_reader(writer.destination) as reader:
        document = await reader.schema_document()
        schema = parse_schema(document)
        observed = await observed_now(reader, schema, operations, lambda _: None)
    kinds = kinds_of_interest(schema, operations) | {item.kind for item in observed}
    effects: list[Effect] = []
    async with open_rehearsal(narrowed(document, kinds), observed, run_id="run-1", told=effects.append) as opened:
        skipped = opened.destination.skipped
        await Rehearsal(operations, opened.destination, binding=writer.binding, run_id="run-1", skipped=skipped).run()
    return effects


def renamed_site(node_id: str, name: str) -> PlannedOperation:
    return update("LocationSite", {"name": name}, {"name": name}, destination_id=node_id)


def refused(writer: LiveWriter, case: str) -> PlannedOperation:
    """An operation that the server as it stands does not carry out; what it needs for that is put there."""
    if case == "a name that another object has":
        create(writer.live, "LocationSite", name={"value": "taken"})
        return renamed_site(create(writer.live, "LocationSite", name={"value": "s"}), "taken")
    if case == "an object that was deleted":
        site = create(writer.live, "LocationSite", name={"value": "s"})
        writer.live.query("mutation($id: String!) { LocationSiteDelete(data: {id: $id}) { ok } }", {"id": site})
        return renamed_site(site, "s")
    if case == "a peer that is nowhere":
        return device_type("Nobody", "7050")
    maker = create(writer.live, "OrganizationManufacturer", name={"value": "Arista"})
    model = create(writer.live, "DcimDeviceType", name={"value": "7050"}, manufacturer={"id": maker})
    create(writer.live, "DcimInterfaceTemplate", name={"value": "eth0"}, device_type={"id": model})
    return interface_template("Arista", "7050", "eth0")


REFUSALS = {
    "a name that another object has": ("operation.unknown", "UniquenessConflictError"),
    "an object that was deleted": ("operation.failed", "StaleDestinationIdError"),
    "a peer that is nowhere": ("operation.failed", "PeerNotFoundError"),
    "a constraint that somebody else's object holds": ("operation.unknown", "UniquenessConflictError"),
}


@pytest.mark.rules("P36", "G1", "G5", "G11")
@pytest.mark.parametrize("case", REFUSALS)
async def test_what_would_be_refused_is_then_refused_for_the_same_reason(case: str, live_writer: LiveWriter) -> None:
    known = create(live_writer.live, "OrganizationManufacturer", name={"value": "Known"})
    stored = await live_writer.commit(
        "run-1", [manufacturer("Known", description="ours"), refused(live_writer, case), tag("behind")]
    )
    met, stopped, behind = await rehearsed(live_writer, stored)
    outcome = await live_writer.writer().drain("run-1", by="ada")

    kind, error = REFUSALS[case]
    assert outcome.ending == {"operation.failed": "run.failed", "operation.unknown": "run.interrupted"}[kind]
    assert [name for _, name, _ in await live_writer.outcomes("run-1")] == ["applied", kind.removeprefix("operation.")]
    # the create that meets an object: the same object in both, and only what the plan names is another thing
    assert (met.outcome, met.node_id) == ("updated", known)
    assert [(field.field, field.before, field.after) for field in met.fields] == [("description", None, "ours")]
    assert (await live_writer.body("run-1", "operation.applied"))["node_id"] == known
    # the one that is refused: the same event, error and words
    assert stopped.refusal is not None
    recorded = await live_writer.body("run-1", kind)
    assert (stopped.outcome, stopped.recorded_as) == ("refused", kind)
    assert stopped.refusal.name == recorded["error"] == error
    assert _without_ids(stopped.refusal.found) in _without_ids(recorded["message"])
    assert stopped.refusal.next_action == recorded["next_action"]
    # and what stands behind it is told, and not attempted
    assert (behind.outcome, behind.after_stop) == ("created", True)
    assert live_writer.names("BuiltinTag") == []


def _without_ids(text: Any) -> str:
    return _ID.sub("<id>", str(text))
