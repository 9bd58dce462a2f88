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
        "query": "query OwnId($ids: [ID!]!) { LabVlan(ids: $ids) { count edges { node { id } } } }",
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


@pytest.mark.rules("G5", "G6", "G11")
async def test_g11_an_id_in_use_of_an_object_that_is_not_here_ends_in_a_fresh_plan() -> None:
    """The id follows from the run: every repeat under that run would be told the same, for ever."""
    with pytest.raises(errors.OwnIdElsewhereError, match="already in use") as caught:
        await apply(ScriptedInfrahub(), SITE, in_use(), found("LabVlan"))
    assert (caught.value.sent, caught.value.final) == (True, True)
    assert "fresh plan" in caught.value.next_action
    assert "resume" not in caught.value.next_action


def rows_of(count: Any, *ids: str) -> Answer:
    return graphql({"data": {"LabVlan": {"count": count, "edges": [{"node": {"id": node_id}} for node_id in ids]}}})


@pytest.mark.rules("G5", "G6", "G11")
@pytest.mark.parametrize("ids", [(OWN_ID,), (OWN_ID, OWN_ID)], ids=["one row", "two rows"])
async def test_g06_two_objects_of_our_id_are_never_called_applied(ids: tuple[str, ...]) -> None:
    """Two overlapping attempts may both have made one; the server shows them as one row and counts two."""
    with pytest.raises(errors.OwnIdDoubledError, match="2 objects of our id") as caught:
        await apply(ScriptedInfrahub(), SITE, in_use(), rows_of(2, *ids))
    assert (caught.value.sent, caught.value.final) == (True, True)
    assert all(word in caught.value.next_action for word in ("delete", "fresh plan"))


UNTOLD: dict[str, Answer] = {
    "another": found("LabVlan", {"id": "another"}),
    "another beside": rows_of(2, OWN_ID, "another"),
    "more rows than counted": rows_of(1, OWN_ID, OWN_ID),
    "a row and none counted": rows_of(0, OWN_ID),
    "one counted and no row": rows_of(1),
    "counted as text": rows_of("1", OWN_ID),
    "counted as truth": rows_of(True, OWN_ID),
    "less than nothing": rows_of(-1),
    "not counted": graphql({"data": {"LabVlan": {"edges": [{"node": {"id": OWN_ID}}]}}}),
    "no list": graphql({"data": {"LabVlan": {"count": 0, "edges": None}}}),
    "null": graphql({"data": {"LabVlan": None}}),
    "nothing": graphql({"data": {}}),
    "errors": graphql({"data": None, "errors": [{"message": "At most, one relationship expected"}]}),
    "500": text("broken", 500),
}


@pytest.mark.rules("G5", "G6", "G11")
@pytest.mark.parametrize("read_back", UNTOLD.values(), ids=UNTOLD)
async def test_g05_an_id_in_use_whose_object_is_not_told_is_asked_for_again(read_back: Answer) -> None:
    with pytest.raises(errors.OwnIdUnreadError, match="our id is in use") as caught:
        await apply(ScriptedInfrahub(), SITE, in_use(), *[read_back] * 4)
    assert (caught.value.sent, caught.value.final) == (True, False)
    assert "resume the run" in caught.value.next_action


@pytest.mark.rules("G5", "G6")
async def test_g05_a_read_back_that_fails_once_is_made_again() -> None:
    answers = (SITE, in_use(), text("away", 503), found("LabVlan", {"id": OWN_ID}))
    assert await apply(ScriptedInfrahub(), *answers) == OWN_ID


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
