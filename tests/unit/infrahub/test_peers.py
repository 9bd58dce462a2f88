"""Peers: found by the destination's own key, proven by the answer, refused loudly in every other case."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from consumers.infrahub.errors import PeerAmbiguousError, PeerLookupFailedError, PeerNotFoundError
from consumers.infrahub.peers import InfrahubPeerResolver
from ledger.destination import ProvenUnwrittenError
from ledger.schema import parse_schema
from tests.support.lab_schema import lab_document
from tests.support.operations import create, one
from tests.support.scripted_infrahub import Answer, ScriptedInfrahub, applied, found, graphql, open_surface, text

OPERATION = "op_00000000000000aa"


async def resolved(
    server: ScriptedInfrahub, kind: str, identity: dict[str, Any], *answers: Answer, times: int = 1
) -> list[str]:
    """The ids of ``times`` look-ups of one peer by one resolver."""
    server.will_answer(*answers)
    async with open_surface(server) as surface:
        resolver = surface.new_peer_resolver()
        return [
            await resolver.resolve(peer_kind=kind, identity=identity, referring_operation_id=OPERATION)
            for _ in range(times)
        ]


def query_of(server: ScriptedInfrahub, number: int = 0) -> tuple[str, dict[str, Any]]:
    body = server.sent[number]
    return body["query"], body["variables"]


@pytest.mark.rules("P68", "P75")
def test_the_resolver_has_one_entry_point_and_remember() -> None:
    assert {name for name in vars(InfrahubPeerResolver) if not name.startswith("_")} == {"resolve", "remember"}
    signature = inspect.signature(InfrahubPeerResolver.resolve)
    assert [name for name, parameter in signature.parameters.items() if parameter.kind is parameter.KEYWORD_ONLY] == [
        "peer_kind",
        "identity",
        "referring_operation_id",
    ]
    assert list(inspect.signature(InfrahubPeerResolver.remember).parameters)[1:] == ["kind", "identity", "node_id"]


@pytest.mark.rules("P77", "P79", "P72")
async def test_a_direct_component_is_looked_up_once_and_kept() -> None:
    server = ScriptedInfrahub()
    hit = found("LabSite", {"id": "s-1", "name": {"value": "dc1"}})
    assert await resolved(server, "LabSite", {"name": "dc1"}, hit, times=3) == ["s-1"] * 3
    assert server.sent == [
        {
            "query": "query Peer($v0: String!) { LabSite(name__value: $v0, limit: 2) "
            "{ edges { node { id name { value } } } } }",
            "variables": {"v0": "dc1"},
        }
    ]


@pytest.mark.rules("P78")
async def test_a_crossing_component_is_read_from_the_nested_identity() -> None:
    server = ScriptedInfrahub()
    identity = {"name": "r1", "site": {"peer_kind": "LabSite", "identity": {"name": "dc1"}}}
    hit = found("LabRack", {"id": "r-1", "name": {"value": "r1"}, "site": {"node": {"name": {"value": "dc1"}}}})
    assert await resolved(server, "LabRack", identity, hit) == ["r-1"]
    query, variables = query_of(server)
    assert "LabRack(site__name__value: $v0, name__value: $v1, limit: 2)" in query
    assert variables == {"v0": "dc1", "v1": "r1"}


@pytest.mark.rules("P84")
async def test_a_kind_without_a_key_resolves_its_own_peer_first_and_filters_by_its_id() -> None:
    server = ScriptedInfrahub()
    identity = {"vid": 7, "place": {"peer_kind": "LabSite", "identity": {"name": "dc1"}}}
    site = found("LabSite", {"id": "s-1", "name": {"value": "dc1"}})
    hit = found("LabVlan", {"id": "v-1", "vid": {"value": 7}, "place": {"node": {"id": "s-1"}}})
    assert await resolved(server, "LabVlan", identity, site, hit) == ["v-1"]
    query, variables = query_of(server, 1)
    assert query.startswith(
        "query Peer($v0: [ID!]!, $v1: BigInt!) { LabVlan(place__ids: $v0, vid__value: $v1, limit: 2)"
    )
    assert variables == {"v0": ["s-1"], "v1": 7}


@pytest.mark.rules("P84")
async def test_what_the_key_leaves_open_of_the_identity_is_a_condition_as_well() -> None:
    server = ScriptedInfrahub()
    identity = {"name": "sw1", "site": {"peer_kind": "LabSite", "identity": {"name": "dc1"}}}
    site = found("LabSite", {"id": "s-1", "name": {"value": "dc1"}})
    hit = found("LabDevice", {"id": "d-1", "name": {"value": "sw1"}, "site": {"node": {"id": "s-2"}}})
    with pytest.raises(PeerNotFoundError, match="does not carry"):
        await resolved(server, "LabDevice", identity, site, hit)
    assert query_of(server, 1)[1] == {"v0": "sw1", "v1": ["s-1"]}


@pytest.mark.rules("P78", "P84")
async def test_a_nested_identity_of_several_parts_is_resolved_by_itself() -> None:
    server = ScriptedInfrahub()
    nested = {"name": "dc1", "description": "x"}
    identity = {"name": "r1", "site": {"peer_kind": "LabSite", "identity": nested}}
    site = found("LabSite", {"id": "s-1", "name": {"value": "dc1"}, "description": {"value": "x"}})
    rack = found("LabRack", {"id": "r-1", "name": {"value": "r1"}, "site": {"node": {"id": "s-1"}}})
    assert await resolved(server, "LabRack", identity, site, rack) == ["r-1"]
    assert query_of(server, 1)[1] == {"v0": ["s-1"], "v1": "r1"}


@pytest.mark.rules("P80", "P82", "P83", "P87", "P132", "G11")
async def test_g11_no_object_is_a_refusal_that_names_everything() -> None:
    with pytest.raises(PeerNotFoundError) as caught:
        await resolved(ScriptedInfrahub(), "LabSite", {"name": "dc1"}, found("LabSite"))
    assert isinstance(caught.value, ProvenUnwrittenError)
    words = str(caught.value)
    assert all(part in words for part in ("LabSite", "dc1", OPERATION, "create the peer"))


@pytest.mark.rules("P81", "P82", "P132")
async def test_several_objects_are_a_refusal_that_names_everything() -> None:
    hits = found("LabSite", *({"id": f"s-{n}", "name": {"value": "dc1"}} for n in (1, 2)))
    with pytest.raises(PeerAmbiguousError) as caught:
        await resolved(ScriptedInfrahub(), "LabSite", {"name": "dc1"}, hits)
    assert isinstance(caught.value, ProvenUnwrittenError)
    words = str(caught.value)
    assert all(part in words for part in ("LabSite", "dc1", OPERATION, "s-1, s-2", "delete or rename"))


@pytest.mark.rules("P73")
async def test_a_miss_is_never_kept() -> None:
    server = ScriptedInfrahub()
    server.will_answer(found("LabSite"), found("LabSite", {"id": "s-1", "name": {"value": "dc1"}}))
    async with open_surface(server) as surface:
        peers = surface.new_peer_resolver()
        wanted = {"peer_kind": "LabSite", "identity": {"name": "dc1"}, "referring_operation_id": OPERATION}
        with pytest.raises(PeerNotFoundError):
            await peers.resolve(**wanted)
        assert await peers.resolve(**wanted) == "s-1"


@pytest.mark.rules("P70", "P71", "P69", "P67")
async def test_what_was_written_is_known_and_only_to_that_resolver() -> None:
    server = ScriptedInfrahub()
    server.will_answer(found("LabSite"))
    async with open_surface(server) as surface:
        peers = surface.new_peer_resolver()
        peers.remember("LabSite", {"name": "dc1"}, "s-1")
        wanted = {"peer_kind": "LabSite", "identity": {"name": "dc1"}, "referring_operation_id": OPERATION}
        assert await peers.resolve(**wanted) == "s-1"
        assert server.sent == []
        with pytest.raises(PeerNotFoundError):
            await surface.new_peer_resolver().resolve(**wanted)


@pytest.mark.rules("P70")
async def test_one_and_true_are_two_peers() -> None:
    identities = [{"name": 1}, {"name": True}, {"name": "1"}, {"name": 1.0}]
    async with open_surface(ScriptedInfrahub()) as surface:
        peers = surface.new_peer_resolver()
        for number, identity in enumerate(identities):
            peers.remember("LabSite", identity, f"s-{number}")
        ids = [
            await peers.resolve(peer_kind="LabSite", identity=identity, referring_operation_id=OPERATION)
            for identity in identities
        ]
    assert ids == ["s-0", "s-1", "s-2", "s-3"]


@pytest.mark.rules("P70", "P80")
async def test_another_spelling_of_an_address_is_the_same_peer() -> None:
    server = ScriptedInfrahub()
    server.will_answer(found("LabAddress", {"id": "a-2", "address": {"value": "10.0.0.2/32"}}))
    async with open_surface(server) as surface:
        peers = surface.new_peer_resolver()
        peers.remember("LabAddress", {"address": "10.0.0.1/32"}, "a-1")
        wanted = {"peer_kind": "LabAddress", "referring_operation_id": OPERATION}
        assert await peers.resolve(identity={"address": "10.0.0.1"}, **wanted) == "a-1"
        assert await peers.resolve(identity={"address": "10.0.0.2"}, **wanted) == "a-2"
    assert query_of(server)[1] == {"v0": "10.0.0.2/32"}


@pytest.mark.rules("P83", "P132", "G5")
@pytest.mark.parametrize(
    ("kind", "identity"),
    [
        ("LabSite", {"name": None}),
        ("LabSite", {"name": ""}),
        ("LabSite", {"name": " \t"}),
        ("LabSite", {"name": []}),
        ("LabSite", {"name": ["dc1"]}),
        ("LabSite", {}),
        ("LabSite", {"description": "x"}),
        ("LabSite", {"name": "a", "colour": "red"}),
        ("LabRack", {"name": "r1"}),
        ("LabRack", {"name": "r1", "site": "dc1"}),
        ("LabRack", {"name": "r1", "site": None}),
        ("LabRack", {"name": "r1", "site": {"peer_kind": "LabSite", "identity": {"name": None}}}),
        ("LabRack", {"name": "r1", "site": {"peer_kind": "LabSite", "identity": {}}}),
        ("LabVlan", {"vid": 7, "place": None}),
        ("LabVlan", {}),
        ("LabDevice", {"name": "a", "secret": "pa55word"}),
        ("LabPlace", {"vid": 1}),
        ("LabUnknown", {"name": "a"}),
    ],
    ids=str,
)
async def test_g05_an_identity_that_names_nothing_is_refused_before_any_query(
    kind: str, identity: dict[str, Any]
) -> None:
    server = ScriptedInfrahub()
    with pytest.raises(PeerNotFoundError) as caught:
        await resolved(server, kind, identity)
    assert server.sent == []
    assert "create the peer" not in caught.value.next_action
    assert "pa55word" not in str(caught.value)


@pytest.mark.rules("P47", "P77")
@pytest.mark.parametrize("vid", [0, 4094])
async def test_zero_is_sent_and_matched(vid: int) -> None:
    server = ScriptedInfrahub()
    hit = found("LabVlan", {"id": "v-1", "vid": {"value": vid}})
    assert await resolved(server, "LabVlan", {"vid": vid}, hit) == ["v-1"]
    assert query_of(server)[1] == {"v0": vid}


@pytest.mark.rules("P83", "G5")
@pytest.mark.parametrize(
    "node",
    [
        {"id": "s-1", "name": {"value": "other"}},
        {"id": "s-1", "name": {"value": None}},
        {"id": "s-1", "name": None},
        {"id": "s-1"},
    ],
)
async def test_g05_one_hit_proves_nothing_unless_it_carries_the_values_asked_for(node: dict[str, Any]) -> None:
    with pytest.raises(PeerNotFoundError, match="does not carry"):
        await resolved(ScriptedInfrahub(), "LabSite", {"name": "dc1"}, found("LabSite", node))


@pytest.mark.parametrize(
    "answer",
    [graphql({"data": {}}), graphql({"data": {"LabSite": None}}), graphql({"data": {"LabSite": {"edges": [None]}}})],
)
async def test_an_answer_without_objects_is_no_hit(answer: Answer) -> None:
    with pytest.raises(PeerNotFoundError, match="without a list"):
        await resolved(ScriptedInfrahub(), "LabSite", {"name": "dc1"}, answer)


@pytest.mark.rules("G5", "P132")
@pytest.mark.parametrize(
    ("answer", "final"),
    [
        (text("broken", 500), False),
        (graphql({"errors": [{"message": "no"}]}, 401), False),
        (graphql({"errors": [{"message": "no"}]}), True),
    ],
    ids=["fault", "token", "refused"],
)
async def test_g05_a_look_up_that_failed_is_unknown_and_the_write_was_not_sent(answer: Answer, final: bool) -> None:
    with pytest.raises(PeerLookupFailedError) as caught:
        await resolved(ScriptedInfrahub(), "LabSite", {"name": "dc1"}, *[answer] * 4)
    assert (caught.value.sent, caught.value.final) == (False, final)


@pytest.mark.parametrize("name", ["$core) { x }", 'a"b', "two\nlines", "\\", "Ünï"])
async def test_values_are_never_part_of_the_query_text(name: str) -> None:
    server = ScriptedInfrahub()
    hit = found("LabSite", {"id": "s-1", "name": {"value": name}})
    assert await resolved(server, "LabSite", {"name": name}, hit) == ["s-1"]
    query, variables = query_of(server)
    assert name not in query
    assert variables == {"v0": name}


@pytest.mark.rules("P77", "P79", "P80", "P81")
@pytest.mark.parametrize(
    ("sites", "racks", "expected"),
    [(["s-1"], [], "s-1"), ([], [], PeerNotFoundError), (["s-1", "s-2"], [], PeerAmbiguousError)],
)
async def test_a_generic_stands_for_the_kinds_whose_key_the_identity_names(
    sites: list[str], racks: list[str], expected: Any
) -> None:
    server = ScriptedInfrahub()
    hits = found("LabSite", *({"id": node_id, "name": {"value": "x"}} for node_id in sites))
    if isinstance(expected, str):
        assert await resolved(server, "LabPlace", {"name": "x"}, hits) == [expected]
    else:
        with pytest.raises(expected):
            await resolved(server, "LabPlace", {"name": "x"}, hits)
    assert len(server.sent) == 1, "a rack has no key without its site"


@pytest.mark.rules("P71", "P81")
async def test_a_written_peer_of_a_generic_is_found_under_its_own_kind() -> None:
    async with open_surface(ScriptedInfrahub()) as surface:
        peers = surface.new_peer_resolver()
        peers.remember("LabSite", {"name": "x"}, "s-1")
        wanted = {"peer_kind": "LabPlace", "identity": {"name": "x"}, "referring_operation_id": OPERATION}
        assert await peers.resolve(**wanted) == "s-1"


@pytest.mark.rules("P70", "P81")
async def test_an_identity_under_a_generic_takes_the_normal_form_of_the_kind_that_has_the_field() -> None:
    document = lab_document()
    address = next(node for node in document["nodes"] if node["name"] == "Address")
    address["inherit_from"] = ["LabPlace"]  # which declares no address, so it cannot know that this is one
    async with open_surface(ScriptedInfrahub()) as surface:
        peers = InfrahubPeerResolver(surface._gateway, parse_schema(document))
        peers.remember("LabAddress", {"address": "10.0.0.1/32"}, "a-1")
        loose = {"address": "10.0.0.1"}
        assert await peers.resolve(peer_kind="LabPlace", identity=loose, referring_operation_id=OPERATION) == "a-1"


class _Untouchable:
    def __getattribute__(self, name: str) -> Any:
        raise AssertionError(f"the store of the library was touched: {name}")


@pytest.mark.rules("P74", "P67")
async def test_the_store_of_the_library_is_never_touched() -> None:
    server = ScriptedInfrahub()
    server.will_answer(
        found("LabSite", {"id": "s-1", "name": {"value": "dc1"}}), applied("LabRackUpsert", "r-1"), found("LabSite")
    )
    async with open_surface(server) as surface:
        surface._gateway.client.store = _Untouchable()
        peers = surface.new_peer_resolver()
        rack = {"name": "r1", "site": {"peer_kind": "LabSite", "identity": {"name": "dc1"}}}
        await surface.apply_planned_operation(
            operation=create("LabRack", rack, {"name": "r1"}, one("site", "LabSite", name="dc1")), peers=peers
        )
        with pytest.raises(PeerNotFoundError):
            await peers.resolve(peer_kind="LabSite", identity={"name": "dc2"}, referring_operation_id=OPERATION)
