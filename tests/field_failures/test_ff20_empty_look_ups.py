"""FF20: a look-up for nothing finds nothing: it is refused before a query leaves, and a hit must prove itself."""

from __future__ import annotations

from typing import Any

import pytest

from consumers.infrahub.errors import PeerNotFoundError
from ledger.exit_codes import ExitCode
from tests.support.field_schema import field_schema
from tests.support.graphql_client import GraphQLClient
from tests.support.operations import create, one
from tests.support.scripted_infrahub import ScriptedInfrahub, found
from tests.support.whole_path import WholePath

ASKING = "op_00000000000000aa"
DC1 = {"peer_kind": "LabSite", "identity": {"name": "dc1"}}


def nested(**identity: Any) -> dict[str, Any]:
    return {"peer_kind": "LabSite", "identity": identity}


NOTHING: list[tuple[str, dict[str, Any]]] = [
    ("LabSite", {"name": None}),
    ("LabSite", {"name": ""}),
    ("LabSite", {"name": " \t"}),
    ("LabSite", {}),
    ("LabSite", {"name": []}),
    ("LabSite", {"name": {}}),
    ("LabSite", {"name": ["dc1"]}),
    ("LabSite", {"description": "x"}),  # the key itself is not there
    ("LabSite", {"name": "dc1", "description": None}),  # a part beyond the key is null
    ("LabSite", {"nam": "dc1"}),
    ("LabRack", {"name": "r1"}),
    ("LabRack", {"site": DC1}),
    ("LabRack", {"name": "r1", "site": None}),
    ("LabRack", {"name": "r1", "site": "dc1"}),
    ("LabRack", {"name": "r1", "site": nested(name=None)}),
    ("LabRack", {"name": "r1", "site": nested(name="")}),
    ("LabRack", {"name": "r1", "site": nested()}),
    ("LabPlace", {"name": None, "site": DC1}),
    ("LabPlace", {}),
    ("LabUnit", {"number": 1}),
    ("LabUnit", {"number": None, "live": False}),
    ("LabPort", {"name": None}),
    ("LabLog", {}),
    ("LabLog", {"name": None}),
    ("LabSafe", {"name": "s", "code": "x"}),
    ("LabGone", {"name": "dc1"}),
]


def only_objects(lab: WholePath) -> None:
    """Exactly one object of each kind: what a look-up that asks for nothing would bind."""
    site = lab.add("LabSite", name="dc1", description="x")
    lab.add("LabRack", name="r1", site=site)
    lab.add("LabUnit", number=1, live=False)
    lab.add("LabPort", name="p1", device=lab.add("LabDevice", name="sw1", site=site))
    lab.add("LabLog", name="l")
    lab.add("LabSafe", name="s")


@pytest.mark.rules("P77", "P80", "P82", "P83", "G5")
async def test_ff20_a_look_up_that_lacks_a_part_is_refused_before_a_query_and_advises_no_create(lab: WholePath) -> None:
    only_objects(lab)
    async with lab.resolver() as resolver:
        for kind, identity in NOTHING:
            with pytest.raises(PeerNotFoundError) as caught:
                await resolver.resolve(peer_kind=kind, identity=identity, referring_operation_id=ASKING)
            assert caught.value.exit_code is ExitCode.STOPPED_UNWRITTEN
            assert ASKING in caught.value.checked, identity
            assert "create the peer" not in caught.value.next_action, identity
    assert (lab.sent, lab.mutations()) == ([], [])


async def test_ff20_the_server_does_drop_a_null_filter_and_finds_the_only_object(lab: WholePath) -> None:
    only_objects(lab)
    with GraphQLClient(lab.sandbox, branch=lab.branch) as client:
        query = "query ($v: String) { LabSite(name__value: $v) { edges { node { name { value } } } } }"
        data = client.query(query, {"v": None})
    assert data == {"LabSite": {"edges": [{"node": {"name": {"value": "dc1"}}}]}}


@pytest.mark.rules("P77", "P79", "P47")
async def test_ff20_zero_and_false_are_asked_for_and_matched(lab: WholePath) -> None:
    ids = {(n, live): lab.add("LabUnit", number=n, live=live) for n in (0, 1) for live in (False, True)}
    async with lab.resolver() as resolver:
        for (number, live), node_id in ids.items():
            identity = {"number": number, "live": live}
            assert node_id == await resolver.resolve(
                peer_kind="LabUnit", identity=identity, referring_operation_id=ASKING
            )
        with pytest.raises(PeerNotFoundError):
            await resolver.resolve(
                peer_kind="LabUnit", identity={"number": 2, "live": False}, referring_operation_id=ASKING
            )
    assert [list(body["variables"].values()) for body in lab.sent] == [
        [0, False],
        [0, True],
        [1, False],
        [1, True],
        [2, False],
    ]


@pytest.mark.rules("P79", "P83", "G5")
@pytest.mark.parametrize(
    "node",
    [
        {"id": "other", "name": {"value": "dc2"}},
        {"id": "other", "name": {"value": "DC1"}},
        {"id": "other", "name": {"value": None}},
        {"id": "other", "name": None},
        {"id": "other"},
    ],
    ids=repr,
)
async def test_ff20_one_hit_is_proof_only_when_it_carries_the_values_asked_for(
    lab: WholePath, node: dict[str, Any]
) -> None:
    """A server that widens a filter answers with its only object, whatever was asked."""
    lab.answered_by = server = ScriptedInfrahub(schema_document=field_schema())
    server.will_answer(found("LabSite", node))
    device = create("LabDevice", {"name": "sw1"}, {"name": "sw1"}, one("site", "LabSite", name="dc1"))
    outcome = await lab.apply(lab.hand_made(device))
    assert outcome.exit_code is ExitCode.STOPPED_UNWRITTEN
    (failed,) = lab.events("operation.failed")
    assert (failed["error"], failed["wrote"]) == ("PeerNotFoundError", False)
    assert server.mutations == []


@pytest.mark.rules("P83", "P132", "G5")
@pytest.mark.parametrize("name", [None, "", "  "], ids=repr)
async def test_ff20_a_hand_made_plan_that_refers_to_nothing_writes_nothing(lab: WholePath, name: str | None) -> None:
    only_objects(lab)
    before = lab.content()
    reference = one("backup_site", "LabSite", name=name)
    device = create("LabDevice", {"name": "new"}, {"name": "new"}, one("site", "LabSite", name="dc1"), reference)
    outcome = await lab.apply(lab.hand_made(device))
    assert outcome.exit_code in (ExitCode.REFUSED, ExitCode.STOPPED_UNWRITTEN)
    (failed,) = lab.events("operation.failed")
    assert (failed["error"], failed["wrote"]) == ("PeerNotFoundError", False)
    assert device.operation_id in failed["message"]
    assert "create the peer" not in failed["next_action"]
    assert (lab.mutations(), lab.content()) == ([], before)
