"""The rules of sets of peers and of peers that are null, on a real server."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from tests.live.objects import changed_site, put_tags, site, tags
from tests.live.surface import LiveSurface
from tests.live.writing import create as put
from tests.support.operations import one

pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]

TAGS = "tags { count edges { node { display_label } } }"
TENANT = "tenant { node { id } }"


@pytest.mark.rules("P20", "P93", "P94", "P95", "P96", "P97", "P98", "P99")
async def test_a_set_ends_holding_exactly_the_peers_that_the_plan_names(live: LiveSurface) -> None:
    ids = dict(zip("abc", put_tags(live.branch, *"abc"), strict=True))
    (node_id,) = await live.apply(site("s", tags("a", "b")))
    for named, expected in ((("a", "c"), "ac"), (("c",), "c"), ((), ""), (("a", "b", "c"), "abc"), (None, "abc")):
        before = len(live.queries(b"mutation"))
        await live.apply(changed_site("s", node_id, *([] if named is None else [tags(*named)])))
        assert len(live.queries(b"mutation")) == before + 1, "one write, whatever the set"
        sent = live.mutations()[-1]["data"]
        if named is None:
            assert "tags" not in sent
        else:
            assert sent["tags"] == [{"id": ids[name]} for name in named], "the whole list, no removal of its own"
        found = live.read("LocationSite", node_id, TAGS)["tags"]
        assert found["count"] == len(expected)
        assert sorted(edge["node"]["display_label"] for edge in found["edges"]) == list(expected)
    asked = [request for request in live.queries(b"query ") if b"LocationSite" in request]
    assert asked == [], "nobody looked at what the set held"


@pytest.mark.rules("P88", "P89")
async def test_a_null_peer_of_a_create_is_absent(live: LiveSurface) -> None:
    (node_id,) = await live.apply(site("s", tenant=None))
    assert "tenant" not in live.mutations()[-1]["data"]
    assert live.read("LocationSite", node_id, TENANT) == {"tenant": {"node": None}}


@pytest.mark.rules("P88", "P90", "P91")
async def test_a_null_peer_of_an_update_is_left_out_with_a_warning_and_cleared_only_at_the_destination(
    live: LiveSurface,
) -> None:
    tenant = put(live.branch, "OrganizationTenant", name={"value": "acme"})
    (node_id,) = await live.apply(site("s", one("tenant", "OrganizationTenant", name="acme"), facility="f"))
    update = changed_site("s", node_id, tenant=None, facility=None)
    with capture_logs() as logs:
        await live.apply(update)
    assert "tenant" not in live.mutations()[-1]["data"]
    assert live.read("LocationSite", node_id, f"{TENANT} facility {{ value }}") == {
        "tenant": {"node": {"id": tenant}},
        "facility": {"value": None},
    }
    (warning,) = (line for line in logs if line["log_level"] == "warning")
    assert (warning["operation_id"], warning["kind"], warning["field"]) == (
        update.operation_id,
        "LocationSite",
        "tenant",
    )
    text = "mutation($id: String!) { LocationSiteUpdate(data: {id: $id, tenant: null}) { ok } }"
    live.branch.query(text, {"id": node_id})
    await live.apply(update)
    assert live.read("LocationSite", node_id, TENANT) == {"tenant": {"node": None}}
