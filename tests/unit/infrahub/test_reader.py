"""Reading a branch completely, or saying that it was not read completely."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from consumers.infrahub.errors import DestinationReadError
from ledger.destination import FieldSelection, IncompleteExtractionError, ObservedObject, PeerPointer
from ledger.exit_codes import ExitCode
from ledger.plan.errors import SchemaMismatchError, SecretValueRefusedError
from tests.support.scripted_infrahub import Answer, ScriptedInfrahub, graphql, lab_reader, text

NAME = FieldSelection(attributes=("name",))


def page(kind: str, ids: list[str], *, count: int, **fields: Any) -> httpx.Response:
    nodes = [{"id": node_id, "__typename": kind, "name": {"value": node_id}, **fields} for node_id in ids]
    return graphql({"data": {kind: {"count": count, "edges": [{"node": node} for node in nodes]}}})


def peers(*ids: str) -> dict[str, Any]:
    return {"count": len(ids), "edges": [{"node": {"id": node_id, "__typename": "BuiltinTag"}} for node_id in ids]}


def more_peers(*ids: str, count: int) -> httpx.Response:
    """A further page of the tags of device d-1."""
    tags = {**peers(*ids), "count": count}
    return graphql({"data": {"LabDevice": {"edges": [{"node": {"id": "d-1", "tags": tags}}]}}})


async def everything(
    server: ScriptedInfrahub, kind: str = "LabSite", fields: FieldSelection = NAME, **changes: Any
) -> list[ObservedObject]:
    async with lab_reader(server, **{"page_size": 3, **changes}) as reader:
        return [observed async for observed in reader.read(kind, fields)]


async def incomplete(server: ScriptedInfrahub, *answers: httpx.Response, **reading: Any) -> IncompleteExtractionError:
    server.will_answer(*answers)
    with pytest.raises(IncompleteExtractionError) as caught:
        await everything(server, **reading)
    assert caught.value.exit_code is ExitCode.REFUSED
    assert "destination" in caught.value.checked
    return caught.value


async def test_pages_overlap_by_one_object_and_each_object_comes_once() -> None:
    server = ScriptedInfrahub()
    server.will_answer(
        page("LabSite", ["a", "b", "c"], count=6),
        page("LabSite", ["c", "d", "e"], count=6),
        page("LabSite", ["e", "f"], count=6),
    )
    assert [observed.id for observed in await everything(server)] == ["a", "b", "c", "d", "e", "f"]
    assert [body["variables"] for body in server.sent] == [{"offset": n, "limit": 3} for n in (0, 2, 4)]
    assert {body["query"] for body in server.sent} == {
        "query Page($offset: Int!, $limit: Int!) { LabSite(offset: $offset, limit: $limit, order: { disable: true }) "
        "{ count edges { node { id __typename name { value } } } } }"
    }


async def test_a_kind_without_objects_is_one_page() -> None:
    server = ScriptedInfrahub()
    server.will_answer(page("LabSite", [], count=0))
    assert await everything(server) == []


async def test_values_and_peers_come_as_served() -> None:
    server = ScriptedInfrahub()
    fields = FieldSelection(attributes=("name", "mtu", "extra"), one=("site", "rack"), many=("tags",))
    server.will_answer(
        page(
            "LabDevice",
            ["d-1"],
            count=1,
            mtu={"value": None},
            extra={"value": {"a": [1, True]}},
            site={"node": {"id": "s-1", "__typename": "LabSite"}},
            rack={"node": None},
            tags=peers("t-1", "t-2"),
        )
    )
    assert await everything(server, "LabDevice", fields) == [
        ObservedObject(
            kind="LabDevice",
            id="d-1",
            attributes={"name": "d-1", "mtu": None, "extra": {"a": [1, True]}},
            one={"site": PeerPointer("LabSite", "s-1"), "rack": None},
            many={"tags": (PeerPointer("BuiltinTag", "t-1"), PeerPointer("BuiltinTag", "t-2"))},
        )
    ]


@pytest.mark.rules("C37", "G11")
async def test_an_object_on_two_pages_is_named_with_side_kind_and_id() -> None:
    refused = await incomplete(
        ScriptedInfrahub(), page("LabSite", ["a", "b", "c"], count=5), page("LabSite", ["c", "b", "e"], count=5)
    )
    assert all(part in refused.checked for part in ("destination", "LabSite", "at b"))


@pytest.mark.rules("C37")
async def test_a_page_that_slipped_by_one_is_noticed_although_nothing_comes_twice() -> None:
    refused = await incomplete(
        ScriptedInfrahub(), page("LabSite", ["a", "b", "c"], count=5), page("LabSite", ["d", "e", "f"], count=5)
    )
    assert "begins with c" in refused.expected


@pytest.mark.rules("C37")
@pytest.mark.parametrize(
    "later",
    [
        page("LabSite", ["c", "d"], count=4),
        page("LabSite", ["c"], count=5),
        page("LabSite", [], count=5),
        page("LabSite", ["c", "d", "e", "f"], count=5),
    ],
    ids=["another total", "nothing new", "nothing at all", "more than the total"],
)
async def test_a_total_that_is_not_met_is_noticed(later: httpx.Response) -> None:
    await incomplete(ScriptedInfrahub(), page("LabSite", ["a", "b", "c"], count=5), later)


@pytest.mark.rules("C37")
async def test_an_object_twice_on_one_page_is_noticed() -> None:
    await incomplete(ScriptedInfrahub(), page("LabSite", ["a", "a"], count=2))


async def test_a_list_of_peers_that_the_server_cut_is_read_on() -> None:
    server = ScriptedInfrahub()
    first = {**peers("t-1", "t-2"), "count": 5}
    rest = [["t-2", "t-3", "t-4"], ["t-4", "t-5"]]
    server.will_answer(page("LabDevice", ["d-1"], count=1, tags=first), *(more_peers(*ids, count=5) for ids in rest))
    (observed,) = await everything(server, "LabDevice", FieldSelection(many=("tags",)))
    assert [peer.id for peer in observed.many["tags"]] == ["t-1", "t-2", "t-3", "t-4", "t-5"]
    assert [body["variables"] for body in server.sent[1:]] == [
        {"ids": ["d-1"], "offset": offset, "limit": 3} for offset in (1, 3)
    ]


@pytest.mark.rules("C37")
@pytest.mark.parametrize(
    ("count", "more"),
    [
        (4, more_peers(count=4)),
        (4, more_peers("t-2", count=4)),
        (4, more_peers("t-2", "t-1", "t-3", count=4)),
        (4, more_peers("t-3", "t-4", count=4)),
        (4, more_peers("t-2", "t-3", count=5)),
        (4, graphql({"data": {"LabDevice": {"edges": []}}})),
        (1, None),
    ],
    ids=["double edges", "nothing new", "one twice", "slipped by one", "another total", "gone", "more than counted"],
)
async def test_a_list_of_peers_that_cannot_be_completed_is_named(count: int, more: httpx.Response | None) -> None:
    tags = {**peers("t-1", "t-2"), "count": count}
    answers = [page("LabDevice", ["d-1"], count=1, tags=tags), *([more] if more is not None else [])]
    refused = await incomplete(ScriptedInfrahub(), *answers, kind="LabDevice", fields=FieldSelection(many=("tags",)))
    assert "d-1" in refused.checked


@pytest.mark.parametrize(
    "answer",
    [
        page("LabSite", ["a"], count=1, name=None),
        page("LabSite", ["a"], count=1, name={}),
        page("LabSite", [""], count=1),
        graphql({"data": {"LabSite": {"edges": []}}}),
        graphql({"data": {"LabSite": {"count": "1", "edges": []}}}),
        graphql({"data": {"LabSite": None}}),
        graphql({"data": {}}),
        graphql({"data": {"LabSite": {"count": 1, "edges": [None]}}}),
        text("broken", 500),
        graphql({"errors": [{"message": "At most, one relationship expected"}], "data": None}),
    ],
)
@pytest.mark.rules("G11")
async def test_a_page_that_cannot_be_read_is_never_an_empty_one(answer: httpx.Response) -> None:
    server = ScriptedInfrahub()
    server.will_answer(answer)
    with pytest.raises(DestinationReadError, match="LabSite"):
        await everything(server, attempts=1)


@pytest.mark.parametrize("passing", [text("broken", 500), text("away", 502), httpx.ReadError("reset")], ids=repr)
async def test_a_read_that_failed_in_passing_is_asked_again(passing: Answer) -> None:
    server = ScriptedInfrahub()
    server.will_answer(passing, page("LabSite", ["a"], count=1))
    assert [observed.id for observed in await everything(server)] == ["a"]
    assert server.sent[0] == server.sent[1]


@pytest.mark.parametrize(
    ("kind", "fields", "refusal"),
    [
        ("LabGone", NAME, SchemaMismatchError),
        ("LabPlace", NAME, SchemaMismatchError),
        ("LabSite", FieldSelection(attributes=("colour",)), SchemaMismatchError),
        ("LabDevice", FieldSelection(attributes=("site",)), SchemaMismatchError),
        ("LabDevice", FieldSelection(one=("tags",)), SchemaMismatchError),
        ("LabDevice", FieldSelection(many=("site",)), SchemaMismatchError),
        ("LabDevice", FieldSelection(one=("name",)), SchemaMismatchError),
        ("LabDevice", FieldSelection(attributes=("secret",)), SecretValueRefusedError),
    ],
    ids=str,
)
@pytest.mark.rules("G12", "G11")
async def test_a_field_that_must_not_or_cannot_be_read_is_refused_before_any_query(
    kind: str, fields: FieldSelection, refusal: type[Exception]
) -> None:
    server = ScriptedInfrahub()
    with pytest.raises(refusal):
        await everything(server, kind, fields)
    assert server.sent == []


async def test_objects_of_several_kinds_are_counted_in_one_request() -> None:
    server = ScriptedInfrahub()
    server.will_answer(graphql({"data": {"LabSite": counted(7), "LabDevice": counted(0)}}))
    async with lab_reader(server) as reader:
        assert str(reader.binding) == "http://infrahub.test [lab1]"
        assert await reader.counts(("LabSite", "LabDevice")) == {"LabSite": 7, "LabDevice": 0}
        with pytest.raises(SchemaMismatchError):
            await reader.counts(("LabSite", "LabGone"))
    assert len(server.sent) == 1


@pytest.mark.rules("G11")
@pytest.mark.parametrize(
    "answer",
    [
        {"count": None, "edges": []},
        {"count": 7},
        {"count": 0, "edges": None},
        {"count": 0, "edges": [{"node": {"id": "1"}}]},
        {"count": 7, "edges": []},
        None,
    ],
    ids=str,
)
async def test_ff01_a_count_that_is_missing_or_contradicts_itself_is_none(answer: Any) -> None:
    server = ScriptedInfrahub()
    server.will_answer(graphql({"data": {"LabDevice": counted(0), "LabSite": answer}}))
    async with lab_reader(server) as reader:
        with pytest.raises(DestinationReadError, match="without a count") as caught:
            await reader.counts(("LabDevice", "LabSite"))
    assert "LabSite" in caught.value.checked


def counted(number: int) -> dict[str, Any]:
    return {"count": number, "edges": [{"node": {"id": "1"}}] * min(number, 1)}
