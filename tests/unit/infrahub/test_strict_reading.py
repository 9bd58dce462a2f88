"""What a destination serves is read strictly: nothing odd is taken for nothing, for another thing, or for an id."""

from __future__ import annotations

import copy
from typing import Any

import httpx
import pytest

from consumers.infrahub import bodies
from consumers.infrahub.answers import MAX_NESTING, Shape, read_answer
from consumers.infrahub.errors import DestinationReadError, PeerNotFoundError
from consumers.infrahub.exchange import Event, Exchange
from ledger.destination import FieldSelection, IncompleteExtractionError
from ledger.errors import ConfigurationError
from ledger.plan.attribute_values import value_faults
from ledger.schema import Attribute, parse_schema
from tests.support.lab_schema import lab_document
from tests.support.scripted_infrahub import ScriptedInfrahub, found, graphql, lab_reader, open_surface
from tests.unit.infrahub.test_reader import everything, page, peers

DEVICE = FieldSelection(attributes=("name",), many=("tags",))


def odd_page(**changes: Any) -> httpx.Response:
    document = {"count": 1, "edges": [{"node": {"id": "a", "__typename": "LabSite", "name": {"value": "a"}}}]}
    return graphql({"data": {"LabSite": {**document, **changes}}})


def one(**changes: Any) -> list[Any]:
    return [{"node": {"id": "a", "__typename": "LabSite", "name": {"value": "a"}, **changes}}]


@pytest.mark.rules("G11", "C37")
@pytest.mark.parametrize(
    "changes",
    [
        {"count": 0, "edges": {}},
        {"count": 0, "edges": ""},
        {"count": 0, "edges": None},
        {"count": True},
        {"count": -1},
        {"count": 1.0},
        {"edges": one(__typename="LabRack")},
        {"edges": one(__typename=None)},
        {"edges": one(id="a b")},
        {"edges": one(id="a\x00")},
        {"edges": one(id="\ud800")},
        {"edges": one(id="x" * 129)},
        {"edges": one(id=7)},
        {"edges": one(name=None)},
        {"edges": one(name={})},
        {"edges": {"node": one()[0]["node"]}},
    ],
    ids=str,
)
async def test_ff01_a_page_with_anything_odd_in_it_is_no_page(changes: dict[str, Any]) -> None:
    server = ScriptedInfrahub()
    server.will_answer(odd_page(**changes))
    with pytest.raises(DestinationReadError):
        await everything(server)


@pytest.mark.parametrize("edges", [{}, "", None, 0])
async def test_ff21_peers_that_are_no_list_are_not_read_as_none(edges: Any) -> None:
    server = ScriptedInfrahub()
    server.will_answer(page("LabDevice", ["d-1"], count=1, tags={"count": 0, "edges": edges}))
    with pytest.raises(DestinationReadError):
        await everything(server, "LabDevice", DEVICE)


async def test_the_peers_of_another_object_are_not_this_ones() -> None:
    server = ScriptedInfrahub()
    others = {"edges": [{"node": {"id": "d-2", "tags": {**peers("t-2"), "count": 2}}}]}
    server.will_answer(
        page("LabDevice", ["d-1"], count=1, tags={**peers("t-1"), "count": 2}), graphql({"data": {"LabDevice": others}})
    )
    with pytest.raises(IncompleteExtractionError, match="the object is gone"):
        await everything(server, "LabDevice", DEVICE)


async def test_pages_that_are_too_large_are_asked_for_in_smaller_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    ids = [f"id-{number:03d}" for number in range(20)]

    def answer(request: httpx.Request) -> httpx.Response:
        variables = server.sent[-1]["variables"]
        start = variables["offset"]
        return page("LabSite", ids[start : start + variables["limit"]], count=len(ids))

    server = ScriptedInfrahub()
    server.will_answer(*[answer] * 40)
    async with lab_reader(server, page_size=16) as reader:
        await reader.schema()
        monkeypatch.setattr(bodies, "MAX_BYTES", 600)
        read = [observed.id async for observed in reader.read("LabSite", FieldSelection(attributes=("name",)))]
    assert read == ids
    assert [body["variables"]["limit"] for body in server.sent][:4] == [16, 8, 4, 4]


async def test_an_object_that_is_too_large_by_itself_is_a_named_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    server = ScriptedInfrahub()
    server.will_answer(*[page("LabSite", ["a"], count=1)] * 10)
    async with lab_reader(server, page_size=16, attempts=3) as reader:
        await reader.schema()
        monkeypatch.setattr(bodies, "MAX_BYTES", 20)
        with pytest.raises(DestinationReadError, match="larger than is read"):
            _ = [observed async for observed in reader.read("LabSite", FieldSelection(attributes=("name",)))]
    assert [body["variables"]["limit"] for body in server.sent] == [16, 8, 4, 2], "and not asked for twice"


@pytest.mark.rules("P77", "P79", "P80")
@pytest.mark.parametrize(
    "node",
    [
        {"id": "\ud800", "name": {"value": "a"}},
        {"id": "a\nb", "name": {"value": "a"}},
        {"id": "s" * 200, "name": {"value": "a"}},
        {"id": "s-1", "name": {"value": "\ud800"}},
        {"id": "s-1", "name": {"value": {"deep": ["er"]}}},
        {"id": "s-1", "name": {"value": 10**600}},
    ],
    ids=lambda node: repr(node)[:50],
)
async def test_ff20_an_object_that_cannot_be_the_peer_is_not_bound(node: dict[str, Any]) -> None:
    server = ScriptedInfrahub()
    server.will_answer(found("LabSite", node))
    async with open_surface(server) as surface:
        with pytest.raises(PeerNotFoundError):
            await surface.new_peer_resolver().resolve(
                peer_kind="LabSite", identity={"name": "a"}, referring_operation_id="op_0000000000000001"
            )


@pytest.mark.rules("P79", "P80")
@pytest.mark.parametrize("shown", [True, 1.0, "1", [1], None])
async def test_ff16_a_value_of_another_type_is_not_the_one_asked_for(shown: Any) -> None:
    for value, bound in ((1, True), (shown, False)):
        server = ScriptedInfrahub()
        server.will_answer(found("LabVlan", {"id": "v-1", "vid": {"value": value}}))
        async with open_surface(server) as surface:
            asked = surface.new_peer_resolver().resolve(
                peer_kind="LabVlan", identity={"vid": 1}, referring_operation_id="op_0000000000000001"
            )
            if bound:
                assert await asked == "v-1"
                continue
            with pytest.raises(PeerNotFoundError):
                await asked


def _named(place: str, name: Any) -> dict[str, Any]:
    document = copy.deepcopy(lab_document())
    site = document["nodes"][0]
    if place == "kind":
        site["kind"] = name
    else:
        site["attributes"].append({**site["attributes"][0], "name": name})
    return document


@pytest.mark.rules("G11", "P18")
@pytest.mark.parametrize("place", ["kind", "attribute"])
@pytest.mark.parametrize(
    "name", ["Lab Site", "LabSite(x: 1) { id }", "Lab-Site", "1Site", "LabSité", "\ud800", 7, ["x"], " "]
)
def test_ff14_a_name_that_is_no_name_in_a_query_makes_no_schema(place: str, name: Any) -> None:
    with pytest.raises(ConfigurationError):
        parse_schema(_named(place, name))


async def test_g11_a_schema_with_half_a_character_in_it_is_refused() -> None:
    document = lab_document()
    document["nodes"][0]["attributes"][1]["enum"] = ["\ud800"]
    async with lab_reader(ScriptedInfrahub(schema_document=document)) as reader:
        with pytest.raises(DestinationReadError):
            await reader.schema()


@pytest.mark.rules("G11")
@pytest.mark.parametrize(
    "regex", ["(", "a{99999999999999999999}", "(" * 5000 + ")" * 5000], ids=["open", "huge", "deep"]
)
def test_g11_a_pattern_that_cannot_be_read_is_a_fault_of_the_schema(regex: str) -> None:
    (fault,) = value_faults(Attribute(name="name", kind="Text", regex=regex), "value")
    assert "a pattern in the schema that can be read" in fault.expected


@pytest.mark.rules("G5")
@pytest.mark.parametrize(("levels", "read"), [(1, True), (MAX_NESTING, True), (MAX_NESTING + 1, False), (900, False)])
@pytest.mark.parametrize(("opens", "closes"), [(b"[", b"]"), (b'{"a":', b"}")], ids=["lists", "objects"])
def test_g05_an_answer_is_nested_so_deeply_and_no_deeper(levels: int, read: bool, opens: bytes, closes: bytes) -> None:
    """What is read can be written again from anywhere, without an end of the stack."""
    inner = levels - 1
    body = b'{"data":' + opens * inner + b"0" + closes * inner + b"}"
    shape = read_answer(Exchange(Event.ANSWERED, status=200, body=body)).shape
    assert (shape is not Shape.NOT_JSON) is read
    wide = b'{"data":[' + b"[]," * 5000 + b"{}]}"
    assert read_answer(Exchange(Event.ANSWERED, status=200, body=wide)).shape is Shape.DATA_UNUSABLE
