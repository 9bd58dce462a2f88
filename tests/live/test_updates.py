"""The rules of planned updates, one operation at a time, on a real server."""

from __future__ import annotations

import pytest

from consumers.infrahub.errors import StaleDestinationIdError
from ledger.destination import OutcomeUnknownError
from tests.live.objects import changed_site, deleted, put_cable_ends, put_tags, site, tags
from tests.live.surface import LiveSurface
from tests.live.writing import create as put
from tests.support.operations import update

pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]


@pytest.mark.rules("P24", "P25", "P32", "P33", "P34", "P41", "P54")
async def test_an_update_is_keyed_by_its_id_alone_and_renames_what_it_means(live: LiveSurface) -> None:
    (node_id,) = await live.apply(site("before", facility="f"))
    assert await live.apply(changed_site("after", node_id, description="d")) == [node_id]
    sent = live.mutations()[-1]["data"]
    assert sent == {"id": node_id, "name": {"value": "after"}, "description": {"value": "d"}}
    assert all(b"LocationSiteUpsert" in request for request in live.queries(b"mutation")), "one form for both"
    assert live.queries(b"query ") == [], "the object is not loaded to be changed"
    assert live.read("LocationSite", node_id, "name { value } facility { value }") == {
        "name": {"value": "after"},
        "facility": {"value": "f"},
    }
    assert live.count("LocationSite") == 1


@pytest.mark.rules("P31", "P41")
async def test_an_update_lands_without_its_key_with_a_blank_one_and_without_the_peer_that_the_key_crosses_to(
    live: LiveSurface,
) -> None:
    """Each of these would be refused as a create."""
    (node_id,) = await live.apply(site("s"))
    omitted = update("LocationSite", {"description": "d"}, {"description": "d"}, destination_id=node_id)
    blank = changed_site(" ", node_id)
    assert await live.apply(omitted, blank) == [node_id, node_id]
    assert live.mutations()[-2]["data"] == {"id": node_id, "description": {"value": "d"}}
    found = live.read("LocationSite", node_id, "name { value } description { value }")
    assert found == {"name": {"value": " "}, "description": {"value": "d"}}
    maker = put(live.branch, "OrganizationManufacturer", name={"value": "Arista"})
    model = put(live.branch, "DcimDeviceType", name={"value": "7050"}, manufacturer={"id": maker})
    crossing = update("DcimDeviceType", {"name": "7060"}, {"name": "7060"}, destination_id=model)
    assert await live.apply(crossing) == [model]
    assert live.read("DcimDeviceType", model, "name { value } manufacturer { node { id } }") == {
        "name": {"value": "7060"},
        "manufacturer": {"node": {"id": maker}},
    }


@pytest.mark.rules("P53")
async def test_a_kind_without_any_key_is_updated_by_id(live: LiveSurface) -> None:
    cable = put(live.branch, "DcimCable", color={"value": "red"}, terminations=put_cable_ends(live.branch))
    operation = update("DcimCable", {"color": "red"}, {"color": "red", "length": 3}, destination_id=cable)
    assert await live.apply(operation) == [cable]
    assert live.read("DcimCable", cable, "length { value }") == {"length": {"value": 3}}
    assert live.count("DcimCable") == 1


@pytest.mark.rules("P27", "P38", "P39", "G5")
@pytest.mark.parametrize("case", ["never there", "deleted", "another kind", "deleted, and the key is there again"])
async def test_g05_a_stale_id_is_proven_unwritten_and_creates_nothing(case: str, live: LiveSurface) -> None:
    node_id = "18ec9baa-2624-4515-e315-189fdf3551df"
    if case == "another kind":
        node_id = put(live.branch, "BuiltinTag", name={"value": "s"})
    if case.startswith("deleted"):
        node_id = put(live.branch, "LocationSite", name={"value": "s"})
        deleted(live.branch, "LocationSite", node_id)
    if case.endswith("again"):
        put(live.branch, "LocationSite", name={"value": "s"})
    before = live.count("LocationSite")
    with pytest.raises(StaleDestinationIdError, match="fresh plan"):
        await live.apply(changed_site("s", node_id, description="x"))
    assert live.count("LocationSite") == before
    text = 'query { LocationSite(description__value: "x") { count } }'
    assert live.branch.query(text)["LocationSite"]["count"] == 0


@pytest.mark.rules("P39", "G5")
async def test_g05_a_peer_that_vanishes_before_the_write_proves_nothing(live: LiveSurface) -> None:
    """The same code and status speak of another node than the update's own."""
    (tag,) = put_tags(live.branch, "red")
    (node_id,) = await live.apply(site("s"))
    live.peers.remember("BuiltinTag", {"name": "red"}, tag)
    deleted(live.branch, "BuiltinTag", tag)
    with pytest.raises(OutcomeUnknownError) as caught:
        await live.apply(changed_site("s", node_id, tags("red")))
    assert (caught.value.code, caught.value.sent) == ("NODE_NOT_FOUND", True)
