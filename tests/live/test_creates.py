"""The rules of planned creates, one operation at a time, on a real server."""

from __future__ import annotations

import pytest

from consumers.infrahub.refusals import (
    NullRelationshipValueError,
    OperationRefusedError,
    SchemaMismatchError,
    UnaccountedIdentityComponentError,
    UnkeyedCreateRefusedError,
)
from ledger.destination import OutcomeUnknownError, ProvenUnwrittenError
from ledger.plan import errors as planning
from ledger.plan.keying import check_key_coverage, check_key_values
from ledger.plan.model import PlannedOperation
from tests.live.objects import put_device, put_tags, site, tags
from tests.live.surface import LiveSurface, live_surface
from tests.live.writing import create as put
from tests.support.http_relay import HttpRelay
from tests.support.inventory_operations import device_type, interface_template, manufacturer
from tests.support.operations import create, one, update

pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]


@pytest.mark.rules("P17", "P18", "P19", "P20", "P23", "P26", "P34", "P42", "P64", "P99")
async def test_one_operation_is_one_mutation_that_carries_the_plan_and_nothing_of_the_libraries(
    live: LiveSurface, relay: HttpRelay
) -> None:
    (red,) = put_tags(live.branch, "red")
    tenant = put(live.branch, "OrganizationTenant", name={"value": "acme"})
    payload = {"status": "planned", "facility": None, "physical_address": "line 1\nline 2 \U0001f600"}
    (node_id,) = await live.apply(site("s", one("tenant", "OrganizationTenant", name="acme"), tags("red"), **payload))
    assert relay.requests[0].startswith(b"GET /api/schema"), "first the schema"
    (sent,) = live.mutations()
    assert set(sent) == {"data"}
    assert sent["data"].keys() == {"name", *payload, "tenant", "tags"}, "no id and no key beside the plan's fields"
    assert (sent["data"]["tenant"], sent["data"]["tags"]) == ({"id": tenant}, [{"id": red}])
    fields = "name { value } status { value } facility { value } physical_address { value } tenant { node { id } }"
    assert live.read("LocationSite", node_id, f"{fields} tags {{ count edges {{ node {{ id }} }} }}") == {
        "name": {"value": "s"},
        "status": {"value": "planned"},
        "facility": {"value": None},
        "physical_address": {"value": payload["physical_address"]},
        "tenant": {"node": {"id": tenant}},
        "tags": {"count": 1, "edges": [{"node": {"id": red}}]},
    }


@pytest.mark.rules("P28", "P68", "P71")
async def test_what_was_written_is_known_to_later_references(live: LiveSurface) -> None:
    maker, model = await live.apply(manufacturer("Arista"), device_type("Arista", "7050"))
    assert live.mutations()[-1]["data"]["manufacturer"] == {"id": maker}
    assert live.queries(b"query Peer") == [], "the maker was written by this apply, so nobody was asked for it"
    assert live.read("DcimDeviceType", model, "manufacturer { node { id } }") == {
        "manufacturer": {"node": {"id": maker}}
    }


@pytest.mark.rules("P36", "P37", "P40")
async def test_a_create_converges_on_the_destinations_key_whatever_else_differs(live: LiveSurface) -> None:
    theirs = put(live.branch, "OrganizationManufacturer", name={"value": "Arista"}, description={"value": "theirs"})
    # the plan tells makers apart by name and description; the destination by the name alone
    identity = {"name": "Arista", "description": "ours"}
    assert await live.apply(create("OrganizationManufacturer", identity, identity)) == [theirs]
    assert live.queries(b"query ") == [], "nobody looked at the object that is there"
    found = live.read("OrganizationManufacturer", theirs, "description { value }")
    assert found == {"description": {"value": "ours"}}
    assert live.count("OrganizationManufacturer") == 1
    # a key that crosses to a peer, from another apply's point of view
    model = put(live.branch, "DcimDeviceType", name={"value": "7050"}, manufacturer={"id": theirs})
    assert await live.apply(device_type("Arista", "7050", slug="arista-7050")) == [model]
    assert live.count("DcimDeviceType") == 1


@pytest.mark.rules("P40", "P43")
async def test_the_five_kinds_whose_key_only_the_schema_tells_converge_on_it(live: LiveSurface) -> None:
    """Interfaces on device and name, addresses and prefixes on themselves and their namespace."""
    put_device(live.branch, "d")
    device, namespace = one("device", "DcimDevice", name="d"), one("ip_namespace", "IpamNamespace", name="default")
    of_device = {"device": {"peer_kind": "DcimDevice", "identity": {"name": "d"}}}
    of_namespace = {"ip_namespace": {"peer_kind": "IpamNamespace", "identity": {"name": "default"}}}
    for kind, name, value, reference, nested in (
        ("InterfacePhysical", "name", "eth0", device, of_device),
        ("InterfaceVirtual", "name", "vlan1", device, of_device),
        ("InterfaceLag", "name", "ae0", device, of_device),
        ("IpamPrefix", "prefix", "10.0.0.0/24", namespace, of_namespace),
        ("IpamIPAddress", "address", "10.0.0.1/32", namespace, of_namespace),
    ):
        declared = live.schema.node(kind)
        assert declared is not None
        assert {path.field for path in declared.human_friendly_id} == {name, *nested}
        operation = create(kind, {name: value, **nested}, {name: value, "description": "first"}, reference)
        again = create(kind, {name: value, **nested}, {name: value, "description": "second"}, reference)
        first, second = await live.apply(operation, again)
        assert first == second
        assert live.read(kind, first, "description { value }") == {"description": {"value": "second"}}
        assert live.count(kind) == 1


UNKEYED, UNACCOUNTED = UnkeyedCreateRefusedError, UnaccountedIdentityComponentError
ARISTA = one("manufacturer", "OrganizationManufacturer", name="Arista")
BLANK = one("manufacturer", "OrganizationManufacturer", name=" ")


def made_by(name: str) -> dict[str, object]:
    return {"manufacturer": {"identity": {"name": name}, "peer_kind": "OrganizationManufacturer"}}


KEY_FAULTS: list[tuple[PlannedOperation, type[OperationRefusedError], str]] = [
    # coverage: the identity alone is asked, and before any value
    (create("DcimDeviceType", {"name": "7050"}, {"name": "7050"}, ARISTA), UNKEYED, "manufacturer__name__value"),
    (create("DcimDeviceType", {"name": ""}, {"name": ""}, ARISTA), UNKEYED, "manufacturer__name__value"),
    (create("DcimInterfaceTemplate", {"name": "eth0"}, {"name": "eth0"}), UNKEYED, "device_type"),
    (create("DcimCable", {"color": "red"}, {"color": "red"}), UNKEYED, "every write would make one more"),
    # values: own ones from the payload, those across a relationship from the peer's identity
    (create("BuiltinTag", {"name": " "}, {"name": " "}), UNACCOUNTED, "name__value is blank"),
    (create("BuiltinTag", {"name": ""}, {"name": ""}), UNACCOUNTED, "name__value is empty"),
    (create("BuiltinTag", {"name": None}, {"name": None}), UNACCOUNTED, "name__value is null"),
    (
        create("DcimDeviceType", {"name": "", **made_by("Arista")}, {"name": ""}, ARISTA),
        UNACCOUNTED,
        "name__value is empty",
    ),
    (
        create("DcimDeviceType", {"name": "7050", **made_by(" ")}, {"name": "7050"}, BLANK),
        UNACCOUNTED,
        "manufacturer__name__value is blank",
    ),
]


@pytest.mark.rules(
    "P21", "P22", "P29", "P30", "P44", "P45", "P46", "P47", "P48", "P49", "P50", "P57", "P58", "P60", "P63", "G5", "G11"
)
async def test_g05_a_create_without_a_proven_key_is_refused_as_planning_refuses_it_and_nothing_is_sent(
    live: LiveSurface,
) -> None:
    await live.apply(manufacturer("Arista"))
    before = len(live.queries())
    for operation, refusal, component in KEY_FAULTS:
        with pytest.raises(refusal) as caught:
            await live.apply(operation)
        assert isinstance(caught.value, ProvenUnwrittenError)
        assert operation.kind in caught.value.checked
        assert component in caught.value.found
        kind = live.schema.node(operation.kind)
        assert kind is not None
        with pytest.raises(planning.PlanArtifactError) as planned:
            check_key_coverage(operation, kind)
            check_key_values(operation, kind)
        assert isinstance(caught.value, type(planned.value))
        assert planned.value.findings[0].found == caught.value.findings[0].found
    assert len(live.queries()) == before, "not even a look-up"


@pytest.mark.rules("P92", "G5", "G11")
async def test_g05_what_the_live_schema_does_not_take_is_refused_and_nothing_is_sent(live: LiveSurface) -> None:
    before = len(live.queries())
    nobody = {"name": "x", "manufacturer": None}
    for operation, refusal in (
        (site("s", status="no such status"), SchemaMismatchError),
        (site("s", no_such_field="x"), SchemaMismatchError),
        (create("IpamASN", {"asn": 2**63}, {"asn": 2**63}), SchemaMismatchError),
        (update("DcimDeviceType", {"name": "x"}, nobody, destination_id="x"), NullRelationshipValueError),
    ):
        with pytest.raises(refusal) as caught:
            await live.apply(operation)
        assert isinstance(caught.value, ProvenUnwrittenError)
    assert len(live.queries()) == before


@pytest.mark.rules("P47")
async def test_zero_and_false_are_values(live: LiveSurface) -> None:
    put(live.branch, "OrganizationRIR", name={"value": "r"})
    asn = create("IpamASN", {"asn": 0}, {"asn": 0}, one("rir", "OrganizationRIR", name="r"))
    role = create("DcimDeviceRole", {"name": "r"}, {"name": "r", "vm_role": False})
    number, flag = await live.apply(asn, role)
    assert live.read("IpamASN", number, "asn { value }") == {"asn": {"value": 0}}
    assert live.read("DcimDeviceRole", flag, "vm_role { value }") == {"vm_role": {"value": False}}


@pytest.mark.rules("P45", "P59")
async def test_a_kind_keyed_by_a_constraint_alone_is_created_once_under_an_id_of_ours(
    live: LiveSurface, relay: HttpRelay
) -> None:
    alone = {kind.kind for kind in live.schema.kinds.values() if kind.is_node and kind.keyed_by_constraint_alone}
    assert {"DcimInterfaceTemplate", "DcimCircuitEndpoint", "IpamVLAN", "IpamIPRange"} <= alone
    operations = (manufacturer("Arista"), device_type("Arista", "7050"), interface_template("Arista", "7050", "eth0"))
    *_, port = await live.apply(*operations)
    assert live.mutations()[-1]["data"]["id"] == port
    async with live_surface(live.branch, relay) as resumed:
        assert (await resumed.apply(operations[2])) == [port], "the same run: our own create, proven by its id"
    async with live_surface(live.branch, relay, run_id="20261129T1200-ffffffff") as other:
        with pytest.raises(OutcomeUnknownError, match="uniqueness") as caught:
            await other.apply(operations[2])
    assert (caught.value.http_status, caught.value.code) == (200, "UNDEFINED_ERROR")
    assert live.count("DcimInterfaceTemplate") == 1
