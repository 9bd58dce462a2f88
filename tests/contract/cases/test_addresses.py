"""Updates of prefixes and addresses by the write surface: they stay in their namespace, at the right place there."""

from __future__ import annotations

import pytest
from pydantic import SecretStr

from consumers.infrahub.connection import InfrahubOpener, InfrahubSettings, declared
from consumers.infrahub.errors import StaleDestinationIdError
from consumers.infrahub.write_surface import InfrahubWriteSurface
from ledger.plan.model import PlannedOperation
from tests.contract.cases.talk import Talk, peer, values
from tests.support.operations import update
from tests.support.scripted_infrahub import RUN_ID, Guard

pytestmark = pytest.mark.contract

KINDS = pytest.mark.parametrize(
    ("kind", "field", "text"),
    [("IpamPrefix", "prefix", "198.18.40.0/24"), ("IpamIPAddress", "address", "198.18.41.1/32")],
)


async def apply(talk: Talk, operation: PlannedOperation) -> str:
    settings = InfrahubSettings(
        url=talk.place.url, branch=talk.place.branch, token=SecretStr(talk.place.token), request_timeout=60
    )
    async with InfrahubOpener(declared(settings))(settings.binding, run_id=RUN_ID, guard=Guard()) as destination:
        assert isinstance(destination.writes, InfrahubWriteSurface)
        peers = destination.writes.new_peer_resolver()
        return await destination.writes.apply_planned_operation(operation=operation, peers=peers)


def in_a_namespace(talk: Talk, kind: str, field: str, text: str) -> str:
    """An object in a namespace that is not the default one."""
    space = talk.write("IpamNamespaceUpsert", values(name=talk.name("space"))).id
    return talk.write(f"{kind}Upsert", {**values(**{field: text}), "ip_namespace": peer(space)}).id


def described(kind: str, field: str, text: str, node_id: str) -> PlannedOperation:
    return update(kind, {field: text}, {field: text, "description": "new"}, destination_id=node_id)


@pytest.mark.rules("P32", "P41", "G6")
@KINDS
async def test_g06_an_update_that_does_not_name_the_namespace_moves_nothing(
    talk: Talk, kind: str, field: str, text: str
) -> None:
    node_id = in_a_namespace(talk, kind, field, text)
    assert await apply(talk, described(kind, field, text, node_id)) == node_id
    below = "description { value } ip_namespace { node { display_label } }"
    assert talk.read(kind, node_id, below).node == {
        "description": {"value": "new"},
        "ip_namespace": {"node": {"display_label": talk.name("space")}},
    }


@pytest.mark.rules("P27", "P39", "P55", "G5")
@KINDS
async def test_g05_an_id_that_is_gone_is_proven_unwritten(talk: Talk, kind: str, field: str, text: str) -> None:
    node_id = in_a_namespace(talk, kind, field, text)
    talk.write(f"{kind}Delete", {"id": node_id})
    with pytest.raises(StaleDestinationIdError):
        await apply(talk, described(kind, field, text, node_id))


@pytest.mark.rules("P41")
async def test_a_prefix_that_becomes_another_one_finds_its_new_parent(talk: Talk) -> None:
    small = in_a_namespace(talk, "IpamPrefix", "prefix", "10.1.0.0/16")
    for text in ("10.0.0.0/8", "172.16.0.0/12"):
        talk.write("IpamPrefixUpsert", {**values(prefix=text), "ip_namespace": {"hfid": [talk.name("space")]}})
    payload = {"description": "small", "prefix": "172.16.1.0/24"}
    await apply(talk, update("IpamPrefix", {"description": "small"}, payload, destination_id=small))
    below = "prefix { value } parent { node { display_label } }"
    assert talk.read("IpamPrefix", small, below).node == {
        "prefix": {"value": "172.16.1.0/24"},
        "parent": {"node": {"display_label": "172.16.0.0/12"}},
    }
