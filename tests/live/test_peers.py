"""How the peers that a plan names are found on a real server, and what a miss says."""

from __future__ import annotations

import json
from typing import Any

import pytest

from consumers.infrahub.errors import PeerAmbiguousError, PeerNotFoundError
from ledger.destination import PeerResolver
from ledger.errors import ApplyLedgerError
from ledger.plan.model import PlannedOperation
from tests.live.objects import deleted, put_cable_ends
from tests.live.surface import LiveSurface
from tests.live.writing import create as put
from tests.support.inventory_operations import device_type
from tests.support.operations import create, one

pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]

OPERATION = "op_0000000000000001"
MAKER = {"peer_kind": "OrganizationManufacturer", "identity": {"name": "Arista"}}


async def found(live: LiveSurface, kind: str, *, by: PeerResolver | None = None, **identity: Any) -> str:
    return await (by or live.peers).resolve(peer_kind=kind, identity=identity, referring_operation_id=OPERATION)


def last_query(live: LiveSurface) -> tuple[str, dict[str, Any]]:
    """The document and the values of the last look-up."""
    body = json.loads(live.queries(b"query Peer")[-1].partition(b"\r\n\r\n")[2])
    return body["query"], body["variables"]


def assert_says(error: ApplyLedgerError, *words: str, next_action: str) -> None:
    for word in (*words, OPERATION):
        assert word in error.checked
    assert next_action in error.next_action


@pytest.mark.rules("P67", "P70", "P72", "P73", "P76", "P77", "P79", "P80", "P82")
async def test_a_peer_is_asked_for_by_its_key_until_it_is_there_and_then_never_again(live: LiveSurface) -> None:
    for _ in range(2):
        with pytest.raises(PeerNotFoundError) as missed:
            await found(live, "OrganizationManufacturer", name="Arista")
    assert_says(missed.value, "OrganizationManufacturer", "Arista", next_action="create the peer")
    assert len(live.queries(b"query Peer")) == 2, "a miss is never kept"
    document, values = last_query(live)
    assert "OrganizationManufacturer(name__value: $v0" in document
    assert values == {"v0": "Arista"}
    maker = put(live.branch, "OrganizationManufacturer", name={"value": "Arista"})
    assert await found(live, "OrganizationManufacturer", name="Arista") == maker
    asked = len(live.queries())
    assert await found(live, "OrganizationManufacturer", name="Arista") == maker
    assert len(live.queries()) == asked, "a hit is"
    # what is kept is kept for that kind and that very identity
    for kind, name in (("OrganizationManufacturer", "arista"), ("OrganizationProvider", "Arista")):
        with pytest.raises(PeerNotFoundError):
            await found(live, kind, name=name)


@pytest.mark.rules("P70", "P78", "P79", "P84")
async def test_a_key_that_crosses_is_asked_for_across_and_one_that_is_none_by_the_peers_id(live: LiveSurface) -> None:
    makers = [put(live.branch, "OrganizationManufacturer", name={"value": name}) for name in ("Arista", "Cisco")]
    types = [put(live.branch, "DcimDeviceType", name={"value": "7050"}, manufacturer={"id": maker}) for maker in makers]
    ports = [put(live.branch, "DcimInterfaceTemplate", name={"value": "e"}, device_type={"id": each}) for each in types]
    assert await found(live, "DcimDeviceType", name="7050", manufacturer=MAKER) == types[0]
    document, values = last_query(live)
    assert "manufacturer__name__value" in document
    assert sorted(values.values()) == ["7050", "Arista"]
    asked = len(live.queries())
    assert await found(live, "DcimDeviceType", manufacturer=MAKER, name="7050") == types[0]
    assert len(live.queries()) == asked, "in whatever order an identity is written"
    # a kind without such a key: its own peer first, then by the peer's id
    model = {"peer_kind": "DcimDeviceType", "identity": {"name": "7050", "manufacturer": MAKER}}
    assert await found(live, "DcimInterfaceTemplate", name="e", device_type=model) == ports[0]
    document, values = last_query(live)
    assert "device_type__ids" in document
    assert [types[0]] in values.values()


@pytest.mark.rules("P81", "P82")
async def test_two_objects_of_one_identity_are_no_peer(live: LiveSurface) -> None:
    ends = put_cable_ends(live.branch)
    cables = [put(live.branch, "DcimCable", color={"value": "red"}, terminations=ends) for _ in range(2)]
    with pytest.raises(PeerAmbiguousError) as caught:
        await found(live, "DcimCable", color="red")
    assert_says(caught.value, "DcimCable", "red", next_action="delete or rename all but one")
    for cable in cables:
        assert cable in caught.value.found
    assert live.queries(b"mutation") == []


@pytest.mark.rules("P67", "P69", "P74")
async def test_a_resolver_knows_nothing_of_what_an_earlier_one_or_the_client_has_seen(live: LiveSurface) -> None:
    maker = put(live.branch, "OrganizationManufacturer", name={"value": "Arista"})
    assert await found(live, "OrganizationManufacturer", name="Arista") == maker
    # over the same client and connection, whose store may hold what it likes
    assert await found(live, "OrganizationManufacturer", by=live.surface.new_peer_resolver(), name="Arista") == maker
    assert len(live.queries(b"query Peer")) == 2
    deleted(live.branch, "OrganizationManufacturer", maker)
    with pytest.raises(PeerNotFoundError):
        await found(live, "OrganizationManufacturer", by=live.surface.new_peer_resolver(), name="Arista")


SELF = create("LocationRegion", {"slug": "x"}, {"slug": "x", "name": "x"}, one("parent", "LocationRegion", slug="x"))


@pytest.mark.rules("P80", "P83", "P87")
@pytest.mark.parametrize("operation", [device_type("Nobody", "7050"), SELF], ids=["nobody", "itself"])
async def test_a_reference_that_names_nobody_yet_sends_no_write(operation: PlannedOperation, live: LiveSurface) -> None:
    with pytest.raises(PeerNotFoundError):
        await live.apply(operation)
    assert live.queries(b"mutation") == []
    assert live.count(operation.kind) == 0
