"""The rules of planned writes, one operation at a time, on a real server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from consumers.infrahub.errors import PeerAmbiguousError, PeerNotFoundError, StaleDestinationIdError
from consumers.infrahub.refusals import (
    NullRelationshipValueError,
    SchemaMismatchError,
    UnaccountedIdentityComponentError,
    UnkeyedCreateRefusedError,
)
from ledger.destination import OutcomeUnknownError, ProvenUnwrittenError
from ledger.plan.model import PlannedOperation
from tests.live.infrahub import LiveBranch
from tests.live.surface import LiveSurface, live_surface
from tests.live.writing import create as put
from tests.support.http_relay import HttpRelay
from tests.support.inventory_operations import device_type, interface_template, manufacturer
from tests.support.operations import create, many, one, update

pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]

OPERATION = "op_0000000000000001"
NAMED = "name { value }"
TAGS = "tags { count edges { node { display_label } } }"


@pytest.fixture
async def live(live_branch: LiveBranch, relay: HttpRelay) -> AsyncIterator[LiveSurface]:
    async with live_surface(live_branch, relay) as surface:
        yield surface


def site(name: str, *references: Any, **payload: Any) -> PlannedOperation:
    return create("LocationSite", {"name": name}, {"name": name, **payload}, *references)


def changed_site(name: str, node_id: str, *references: Any, **payload: Any) -> PlannedOperation:
    return update("LocationSite", {"name": name}, {"name": name, **payload}, *references, destination_id=node_id)


def tags(*names: str) -> Any:
    return many("tags", "BuiltinTag", *({"name": name} for name in names))


def put_tags(branch: LiveBranch, *names: str) -> list[str]:
    return [put(branch, "BuiltinTag", name={"value": name}) for name in names]


def cable_ends(branch: LiveBranch) -> list[dict[str, str]]:
    """Two ports of one device, which a cable needs."""
    maker = put(branch, "OrganizationManufacturer", name={"value": "of cables"})
    model = put(branch, "DcimDeviceType", name={"value": "m"}, manufacturer={"id": maker})
    place = put(branch, "LocationSite", name={"value": "of cables"})
    device = put(branch, "DcimDevice", name={"value": "d"}, device_type={"id": model}, location={"id": place})
    ports = [put(branch, "DcimConsolePort", name={"value": name}, device={"id": device}) for name in ("a", "b")]
    return [{"id": port} for port in ports]


@pytest.mark.rules("P17", "P18", "P19", "P23", "P26", "P32", "P33", "P35", "P42", "P64", "P99")
async def test_one_operation_is_one_mutation_that_carries_the_plan_and_nothing_of_the_libraries(
    live: LiveSurface,
) -> None:
    put_tags(live.branch, "red")
    tenant = put(live.branch, "OrganizationTenant", name={"value": "acme"})
    payload = {"status": "planned", "facility": None, "physical_address": "line 1\nline 2 \U0001f600"}
    (node_id,) = await live.apply(site("s", one("tenant", "OrganizationTenant", name="acme"), tags("red"), **payload))
    (sent,) = live.mutations()
    assert set(sent) == {"data"}
    assert set(sent["data"]) == {"name", *payload, "tenant", "tags"}
    assert sent["data"]["tenant"] == {"id": tenant}
    fields = "name { value } status { value } facility { value } physical_address { value } tenant { node { id } }"
    found = live.read("LocationSite", node_id, f"{fields} {TAGS}")
    assert found == {
        "name": {"value": "s"},
        "status": {"value": "planned"},
        "facility": {"value": None},
        "physical_address": {"value": payload["physical_address"]},
        "tenant": {"node": {"id": tenant}},
        "tags": {"count": 1, "edges": [{"node": {"display_label": "red"}}]},
    }


@pytest.mark.rules("P28", "P36", "P37", "P40", "P68", "P70", "P71")
async def test_a_create_converges_on_the_destinations_key_and_is_known_to_later_references(live: LiveSurface) -> None:
    (maker,) = await live.apply(manufacturer("Arista", description="first"))
    made = await live.apply(device_type("Arista", "7050"), manufacturer("Arista", description="second"))
    assert made[1] == maker
    assert live.read("OrganizationManufacturer", maker, "description { value }") == {"description": {"value": "second"}}
    assert live.count("OrganizationManufacturer") == 1
    (again,) = await live.apply(device_type("Arista", "7050", slug="arista-7050"))
    assert again == made[0], "a key that crosses to a peer converges as well"
    assert live.queries(b"query Peer") == [], "the maker was written by this apply, so nobody was asked for it"


@pytest.mark.rules("P24", "P25", "P31", "P34", "P41", "P52", "P54")
async def test_an_update_is_keyed_by_its_id_alone_and_renames_what_it_means(live: LiveSurface) -> None:
    (node_id,) = await live.apply(site("before", facility="f"))
    assert await live.apply(changed_site("after", node_id, description="d")) == [node_id]
    sent = live.mutations()[-1]["data"]
    assert sent == {"id": node_id, "name": {"value": "after"}, "description": {"value": "d"}}
    assert live.read("LocationSite", node_id, f"{NAMED} facility {{ value }}") == {
        "name": {"value": "after"},
        "facility": {"value": "f"},
    }
    assert live.count("LocationSite") == 1


@pytest.mark.rules("P53", "P60", "P21", "P29", "P63", "P65")
async def test_a_kind_without_any_key_is_updated_by_id_and_never_created(live: LiveSurface) -> None:
    cable = put(live.branch, "DcimCable", color={"value": "red"}, terminations=cable_ends(live.branch))
    before = len(live.queries(b"mutation"))
    with pytest.raises(UnkeyedCreateRefusedError):
        await live.apply(create("DcimCable", {"color": "red"}, {"color": "red"}))
    assert len(live.queries(b"mutation")) == before
    operation = update("DcimCable", {"color": "red"}, {"color": "red", "length": 3}, destination_id=cable)
    assert await live.apply(operation) == [cable]
    assert live.read("DcimCable", cable, "length { value }") == {"length": {"value": 3}}
    assert live.count("DcimCable") == 1


@pytest.mark.rules(
    "P22", "P30", "P44", "P45", "P46", "P47", "P48", "P49", "P50", "P57", "P58", "P63", "P92", "G5", "G11"
)
async def test_g05_what_could_not_be_matched_or_written_is_refused_and_nothing_is_sent(live: LiveSurface) -> None:
    await live.apply(manufacturer("Arista"))
    before = len(live.queries())
    maker = one("manufacturer", "OrganizationManufacturer", name="Arista")
    pair = {"identity": {"name": "Arista"}, "peer_kind": "OrganizationManufacturer"}
    unkeyed = create("DcimDeviceType", {"name": "7050"}, {"name": "7050"}, maker)
    for operation, refusal in (
        (unkeyed, UnkeyedCreateRefusedError),
        (create("BuiltinTag", {"name": " "}, {"name": " "}), UnaccountedIdentityComponentError),
        (create("BuiltinTag", {"name": ""}, {"name": ""}), UnaccountedIdentityComponentError),
        (
            create("DcimDeviceType", {"manufacturer": pair, "name": ""}, {"name": ""}, maker),
            UnaccountedIdentityComponentError,
        ),
        (
            create("DcimInterfaceTemplate", {"name": "eth0"}, {"name": "eth0"}),
            UnkeyedCreateRefusedError,
        ),
        (site("s", status="no such status"), SchemaMismatchError),
        (site("s", no_such_field="x"), SchemaMismatchError),
        (create("IpamASN", {"asn": 2**63}, {"asn": 2**63}), SchemaMismatchError),
        (
            update("DcimDeviceType", {"name": "x"}, {"name": "x", "manufacturer": None}, destination_id="x"),
            NullRelationshipValueError,
        ),
    ):
        with pytest.raises(refusal) as caught:
            await live.apply(operation)
        assert isinstance(caught.value, ProvenUnwrittenError)
    assert len(live.queries()) == before, "not even a look-up"


@pytest.mark.rules("P47")
async def test_zero_and_false_are_values(live: LiveSurface) -> None:
    put(live.branch, "OrganizationRIR", name={"value": "r"})
    asn = create("IpamASN", {"asn": 0}, {"asn": 0}, one("rir", "OrganizationRIR", name="r"))
    role = create("DcimDeviceRole", {"name": "r"}, {"name": "r", "vm_role": False})
    number, flag = await live.apply(asn, role)
    assert live.read("IpamASN", number, "asn { value }") == {"asn": {"value": 0}}
    assert live.read("DcimDeviceRole", flag, "vm_role { value }") == {"vm_role": {"value": False}}


@pytest.mark.rules("P45", "P59", "P66")
async def test_a_kind_keyed_by_a_constraint_alone_is_created_once_under_an_id_of_ours(
    live: LiveSurface, relay: HttpRelay
) -> None:
    operations = (manufacturer("Arista"), device_type("Arista", "7050"), interface_template("Arista", "7050", "eth0"))
    *_, port = await live.apply(*operations)
    assert live.mutations()[-1]["data"]["id"] == port
    async with live_surface(live.branch, relay) as resumed:
        assert (await resumed.apply(operations[2])) == [port], "the same run: our own create, proven by its id"
    async with live_surface(live.branch, relay, run_id="20261129T1200-ffffffff") as other:
        with pytest.raises(OutcomeUnknownError, match="uniqueness"):
            await other.apply(operations[2])
    assert live.count("DcimInterfaceTemplate") == 1


@pytest.mark.rules("P27", "P38", "P39", "P55", "G5")
@pytest.mark.parametrize("case", ["never there", "deleted", "another kind", "deleted, and the key is there again"])
async def test_g05_a_stale_id_is_proven_unwritten_and_creates_nothing(case: str, live: LiveSurface) -> None:
    node_id = "18ec9baa-2624-4515-e315-189fdf3551df"
    if case == "another kind":
        node_id = put(live.branch, "BuiltinTag", name={"value": "s"})
    if case.startswith("deleted"):
        node_id = put(live.branch, "LocationSite", name={"value": "s"})
        live.branch.query("mutation($id: String!) { LocationSiteDelete(data: {id: $id}) { ok } }", {"id": node_id})
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
    (tag,) = put_tags(live.branch, "red")
    (node_id,) = await live.apply(site("s"))
    live.peers.remember("BuiltinTag", {"name": "red"}, tag)
    live.branch.query("mutation($id: String!) { BuiltinTagDelete(data: {id: $id}) { ok } }", {"id": tag})
    with pytest.raises(OutcomeUnknownError) as caught:
        await live.apply(changed_site("s", node_id, tags("red")))
    assert (caught.value.code, caught.value.sent) == ("NODE_NOT_FOUND", True)


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


@pytest.mark.rules("P88", "P89", "P90", "P91")
async def test_a_null_peer_is_left_out_and_a_null_attribute_clears(live: LiveSurface) -> None:
    tenant = put(live.branch, "OrganizationTenant", name={"value": "acme"})
    (absent,) = await live.apply(site("absent", tenant=None))
    assert live.read("LocationSite", absent, "tenant { node { id } }") == {"tenant": {"node": None}}
    (node_id,) = await live.apply(site("s", one("tenant", "OrganizationTenant", name="acme"), facility="f"))
    await live.apply(changed_site("s", node_id, tenant=None, facility=None))
    assert "tenant" not in live.mutations()[-1]["data"]
    assert live.read("LocationSite", node_id, "tenant { node { id } } facility { value }") == {
        "tenant": {"node": {"id": tenant}},
        "facility": {"value": None},
    }


@pytest.mark.rules(
    "P67", "P69", "P72", "P73", "P74", "P75", "P76", "P77", "P78", "P79", "P80", "P81", "P82", "P83", "P84"
)
async def test_peers_are_asked_for_by_the_destinations_key_and_a_miss_is_loud(live: LiveSurface) -> None:
    maker = {"peer_kind": "OrganizationManufacturer", "identity": {"name": "Arista"}}
    model = {"peer_kind": "DcimDeviceType", "identity": {"name": "7050", "manufacturer": maker}}

    async def found(kind: str, **identity: Any) -> str:
        return await live.peers.resolve(peer_kind=kind, identity=identity, referring_operation_id=OPERATION)

    with pytest.raises(PeerNotFoundError) as missed:
        await found("OrganizationManufacturer", name="Arista")
    for word in ("OrganizationManufacturer", "Arista", OPERATION):
        assert word in str(missed.value)
    first = put(live.branch, "OrganizationManufacturer", name={"value": "Arista"})
    assert await found("OrganizationManufacturer", name="Arista") == first, "a miss is never kept"
    asked = len(live.queries())
    assert await found("OrganizationManufacturer", name="Arista") == first
    assert len(live.queries()) == asked, "a hit is"

    # a key that crosses, beside another object of the same name under another maker
    other = put(live.branch, "OrganizationManufacturer", name={"value": "Cisco"})
    types = {
        owner: put(live.branch, "DcimDeviceType", name={"value": "7050"}, manufacturer={"id": owner})
        for owner in (first, other)
    }
    assert await found("DcimDeviceType", name="7050", manufacturer=maker) == types[first]
    # a kind without such a key: its own peer first, then by the peer's id
    port = put(live.branch, "DcimInterfaceTemplate", name={"value": "eth0"}, device_type={"id": types[first]})
    put(live.branch, "DcimInterfaceTemplate", name={"value": "eth0"}, device_type={"id": types[other]})
    assert await found("DcimInterfaceTemplate", name="eth0", device_type=model) == port
    ends = cable_ends(live.branch)
    for color in ("red", "red"):
        put(live.branch, "DcimCable", color={"value": color}, terminations=ends)
    with pytest.raises(PeerAmbiguousError):
        await found("DcimCable", color="red")
    with pytest.raises(PeerNotFoundError):
        await found("OrganizationManufacturer", name="arista")
    assert live.queries(b"mutation") == []


@pytest.mark.rules("P65", "P80", "P83", "P86", "P87")
async def test_a_reference_that_names_nobody_sends_no_write(live: LiveSurface) -> None:
    for operation in (
        device_type("Nobody", "7050"),
        create("LocationRegion", {"slug": "x"}, {"slug": "x", "name": "x"}, one("parent", "LocationRegion", slug="x")),
    ):
        with pytest.raises(PeerNotFoundError):
            await live.apply(operation)
    assert live.queries(b"mutation") == []
    assert live.count("DcimDeviceType") == live.count("LocationRegion") == 0


@pytest.mark.rules("P40", "P43", "P45", "P59")
async def test_which_kind_converges_on_what_is_read_from_the_live_schema(live: LiveSurface) -> None:
    crossing = ("InterfacePhysical", "InterfaceVirtual", "InterfaceLag", "IpamPrefix", "IpamIPAddress")
    for name in crossing:
        kind = live.schema.node(name)
        assert kind is not None
        assert any(path.relationship is not None for path in kind.human_friendly_id), name
    alone = {kind.kind for kind in live.schema.kinds.values() if kind.is_node and kind.keyed_by_constraint_alone}
    assert {"DcimInterfaceTemplate", "DcimCircuitEndpoint", "IpamVLAN", "IpamIPRange"} <= alone


@pytest.mark.rules("P56", "P60")
async def test_what_the_server_cannot_match_it_makes_again_and_says_ok(live: LiveSurface) -> None:
    """Why such a create is refused before it is sent."""
    text = "mutation($data: DcimCableUpsertInput!) { DcimCableUpsert(data: $data) { ok object { id } } }"
    data = {"color": {"value": "red"}, "terminations": cable_ends(live.branch)}
    answers = [live.branch.query(text, {"data": data})["DcimCableUpsert"] for _ in range(2)]
    assert [answer["ok"] for answer in answers] == [True, True]
    assert answers[0]["object"]["id"] != answers[1]["object"]["id"]
    assert live.count("DcimCable") == 2
