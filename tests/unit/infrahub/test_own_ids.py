"""Creates of kinds that the server cannot match: under an id of ours, and believed only when read back by that id."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from consumers.infrahub import errors
from consumers.infrahub.own_ids import own_node_id
from ledger.binding import DestinationBinding
from ledger.commit import NAMESPACE
from ledger.destination import OutcomeUnknownError, ProvenUnwrittenError
from ledger.plan.model import PlannedOperation
from tests.support.operations import create, one, update
from tests.support.scripted_infrahub import (
    RUN_ID,
    Answer,
    ScriptedInfrahub,
    applied,
    error,
    found,
    graphql,
    open_surface,
    refused,
    text,
)

SITE = found("LabSite", {"id": "s-1", "name": {"value": "dc1"}})
PLACE = {"peer_kind": "LabSite", "identity": {"name": "dc1"}}
VLAN = create("LabVlan", {"vid": 7, "place": PLACE}, {"vid": 7}, one("place", "LabSite", name="dc1"))
OWN_ID = own_node_id(
    DestinationBinding(url="http://infrahub.test", branch="lab1"), run_id=RUN_ID, operation_id=VLAN.operation_id
)


def in_use(node_id: str = OWN_ID, **change: Any) -> Answer:
    item = error(
        f"{node_id} is already in use at id",
        field_name="LabVlanCreate",
        code="ATTRIBUTE_CONSTRAINT_VIOLATION",
        http_status=422,
        data={"node_kind": "LabVlan", "field_name": "id", "constraint": f"{node_id} is already in use", **change},
    )
    return refused("LabVlanCreate", item)


async def apply(server: ScriptedInfrahub, *answers: Answer, operation: PlannedOperation = VLAN) -> str:
    server.will_answer(*answers)
    async with open_surface(server) as surface:
        node_id: str = await surface.apply_planned_operation(operation=operation, peers=surface.new_peer_resolver())
    return node_id


@pytest.mark.rules("P59", "P23", "P26", "P32")
async def test_a_kind_keyed_by_a_constraint_alone_is_created_under_an_id_of_ours() -> None:
    server = ScriptedInfrahub()
    assert await apply(server, SITE, applied("LabVlanCreate", OWN_ID)) == OWN_ID
    assert server.mutations == [
        {
            "query": "mutation Create($data: LabVlanCreateInput!) { LabVlanCreate(data: $data) { ok object { id } } }",
            "variables": {"data": {"vid": {"value": 7}, "place": {"id": "s-1"}, "id": OWN_ID}},
        }
    ]


@pytest.mark.rules("P53", "P32")
async def test_an_update_of_such_a_kind_is_an_upsert_by_its_recorded_id() -> None:
    server = ScriptedInfrahub()
    operation = update("LabVlan", {"vid": 7}, {"vid": 7}, destination_id="v-1")
    assert await apply(server, applied("LabVlanUpsert", "v-1"), operation=operation) == "v-1"
    assert server.mutations[0]["variables"]["data"]["id"] == "v-1"


@pytest.mark.rules("G7")
def test_g07_the_id_is_the_same_for_every_attempt_and_for_nothing_else() -> None:
    places = [("http://a.test", "main"), ("http://a.test", "lab"), ("http://b.test", "main")]
    ids = {
        own_node_id(DestinationBinding(url=url, branch=branch), run_id=run_id, operation_id=operation_id)
        for url, branch in places
        for run_id in ("run-1", "run-2")
        for operation_id in ("op_0000000000000001", "op_0000000000000002")
    }
    assert len(ids) == 12
    again = own_node_id(
        DestinationBinding(url="HTTP://A.test:80/", branch="main"), run_id="run-1", operation_id="op_0000000000000001"
    )
    assert again in ids


def test_the_id_is_a_lower_case_uuid_of_a_written_name() -> None:
    name = f'["http://infrahub.test","lab1","{RUN_ID}","{VLAN.operation_id}"]'
    assert str(uuid.uuid5(NAMESPACE, name)) == OWN_ID == OWN_ID.lower()


@pytest.mark.rules("G6", "P3")
async def test_g06_an_id_in_use_is_ours_when_it_is_read_back_on_this_branch() -> None:
    server = ScriptedInfrahub()
    assert await apply(server, SITE, in_use(), found("LabVlan", {"id": OWN_ID})) == OWN_ID
    assert server.sent[-1] == {
        "query": "query OwnId($ids: [ID!]!) { LabVlan(ids: $ids) { edges { node { id } } } }",
        "variables": {"ids": [OWN_ID]},
    }
    assert str(server.requests[-1].url).endswith("/graphql/lab1")


@pytest.mark.rules("P71", "P28")
async def test_an_object_read_back_is_remembered() -> None:
    server = ScriptedInfrahub()
    server.will_answer(SITE, in_use(), found("LabVlan", {"id": OWN_ID}))
    async with open_surface(server) as surface:
        peers = surface.new_peer_resolver()
        await surface.apply_planned_operation(operation=VLAN, peers=peers)
        wanted = {"peer_kind": "LabVlan", "identity": VLAN.identity, "referring_operation_id": "op_0000000000000001"}
        assert await peers.resolve(**wanted) == OWN_ID


@pytest.mark.rules("G5", "G6")
@pytest.mark.parametrize(
    "read_back",
    [
        found("LabVlan"),
        found("LabVlan", {"id": "another"}),
        found("LabVlan", {"id": OWN_ID}, {"id": OWN_ID}),
        graphql({"data": {"LabVlan": None}}),
        graphql({"data": {}}),
        graphql({"data": None, "errors": [{"message": "At most, one relationship expected"}]}),
        text("broken", 500),
    ],
    ids=["deleted or elsewhere", "another", "twice", "null", "nothing", "errors", "500"],
)
async def test_g05_an_id_in_use_that_cannot_be_read_back_is_unknown(read_back: Answer) -> None:
    with pytest.raises(errors.OwnIdElsewhereError) as caught:
        await apply(ScriptedInfrahub(), SITE, in_use(), read_back)
    assert caught.value.sent is True


@pytest.mark.rules("G5")
@pytest.mark.parametrize(
    "answer",
    [
        in_use("another-id"),
        in_use(field_name="name"),
        in_use(constraint=None),
        refused(
            "LabVlanCreate",
            error(
                "Violates uniqueness constraint 'place-vid'", field_name="x", code="UNDEFINED_ERROR", http_status=422
            ),
        ),
    ],
    ids=["another id", "another field", "no constraint", "uniqueness"],
)
async def test_g05_any_other_refusal_of_the_create_is_unknown_and_nothing_is_read_back(answer: Answer) -> None:
    server = ScriptedInfrahub()
    with pytest.raises(OutcomeUnknownError) as caught:
        await apply(server, SITE, answer)
    assert not isinstance(caught.value, (errors.OwnIdElsewhereError, ProvenUnwrittenError))
    assert len(server.sent) == 2


@pytest.mark.rules("G6")
async def test_g06_another_id_in_the_answer_is_not_believed() -> None:
    with pytest.raises(errors.OtherNodeError):
        await apply(ScriptedInfrahub(), SITE, applied("LabVlanCreate", "another"))
