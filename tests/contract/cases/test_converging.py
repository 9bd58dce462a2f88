"""Creates of the kinds whose key crosses a relationship, by the write surface on both servers: twice is one object."""

from __future__ import annotations

from typing import Any

import pytest

from ledger.plan.model import PlannedOperation
from tests.contract.cases.surface import Surface
from tests.contract.cases.talk import Talk, peer, values
from tests.support.operations import create, one

pytestmark = pytest.mark.contract

_INTERFACES = ("InterfacePhysical", "InterfaceVirtual", "InterfaceLag")
_ADDRESSES = (("IpamPrefix", "prefix", "198.18.50.0/24"), ("IpamIPAddress", "address", "198.18.51.1/24"))


def a_device(talk: Talk) -> str:
    """The name of a device, with what it needs."""
    maker = talk.write("OrganizationManufacturerUpsert", values(name=talk.name("maker"))).id
    model = talk.write("DcimDeviceTypeUpsert", {**values(name=talk.name("model")), "manufacturer": peer(maker)}).id
    site = talk.write("LocationSiteUpsert", values(name=talk.name("site"))).id
    device = {**values(name=talk.name("device")), "device_type": peer(model), "location": peer(site)}
    talk.write("DcimDeviceUpsert", device)
    return talk.name("device")


def keyed(kind: str, own: dict[str, Any], field: str, peer_kind: str, name: str, description: str) -> PlannedOperation:
    """A create that is identified by a field of its own and by one peer."""
    identity = {**own, field: {"peer_kind": peer_kind, "identity": {"name": name}}}
    return create(kind, identity, {**own, "description": description}, one(field, peer_kind, name=name))


async def twice(talk: Talk, *operations: PlannedOperation) -> None:
    """Two runs write one object, the second one over the first."""
    first, second = [await Surface(talk, f"run-{number}").apply(each) for number, each in enumerate(operations)]
    assert first == second
    kind = operations[0].kind
    read = talk.read(kind, first, "description { value }")
    assert read.node == {"description": {"value": "second"}}


@pytest.mark.rules("P36", "P40", "P43")
@pytest.mark.parametrize("kind", _INTERFACES)
async def test_a_create_of_an_interface_converges_on_device_and_name(talk: Talk, kind: str) -> None:
    device = a_device(talk)
    texts = ("first", "second")
    await twice(talk, *(keyed(kind, {"name": "eth0"}, "device", "DcimDevice", device, text) for text in texts))


@pytest.mark.rules("P36", "P40", "P43")
@pytest.mark.parametrize(("kind", "field", "text"), _ADDRESSES)
async def test_a_create_of_an_address_converges_on_it_and_its_namespace(
    talk: Talk, kind: str, field: str, text: str
) -> None:
    for name in ("here", "there"):
        talk.write("IpamNamespaceUpsert", values(name=talk.name(name)))
    other = talk.write(f"{kind}Upsert", {**values(**{field: text}), "ip_namespace": {"hfid": [talk.name("there")]}}).id
    texts = ("first", "second")
    space = talk.name("here")
    await twice(talk, *(keyed(kind, {field: text}, "ip_namespace", "IpamNamespace", space, each) for each in texts))
    assert talk.read(kind, other, "description { value }").node == {"description": {"value": None}}
