"""FF01: pages that overlap, shift or miss objects fail the reading; nothing is planned from a part."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest

from consumers.infrahub.sandbox.faults import FaultRule
from ledger.destination import FieldSelection, IncompleteExtractionError, ObservedObject
from ledger.exit_codes import ExitCode
from producers.run_directory import read_run_record
from producers.sources.jsonl import JsonLinesSource
from tests.support.planning import entry, mapped
from tests.support.scripted_infrahub import ScriptedInfrahub, graphql, lab_reader
from tests.support.whole_path import WholePath, operations

TAGS = entry("LabTag", "tags", ["name"], mapped("name"))
SITES = entry("LabSite", "sites", ["name"], mapped("name"), mapped("tags", "tags", "LabTag"))
ALL = range(101)
ROWS = {"tags": [{"id": number, "name": f"t{number}"} for number in ALL]}


def filled(lab: WholePath) -> list[str]:
    """A hundred and one tags, which are two full pages of fifty and one object."""
    return [lab.add("LabTag", name=f"t{number}") for number in ALL]


def before_page(lab: WholePath, number: int, kind: str, change: Callable[[], None]) -> None:
    """Change the destination when the reader asks for that page of a kind; the count before them is no page."""
    rule = FaultRule(operation="query", kind=kind, contains='"offset"', nth=number)
    lab.sandbox.faults.add(rule, before=change)


async def refused(lab: WholePath, **reading: int) -> IncompleteExtractionError:
    """Planning is refused, no plan is left, and nothing was written."""
    with pytest.raises(IncompleteExtractionError) as caught:
        await lab.plan(ROWS, [TAGS], **reading)
    assert caught.value.exit_code is ExitCode.REFUSED
    assert lab.saved_plans() == []
    assert [read_run_record(run).status for run in lab.root.glob("small/*/")] == ["failed"]
    assert lab.mutations() == []
    return caught.value


async def test_ff01_a_destination_at_rest_is_read_whole_whatever_the_page_size(lab: WholePath) -> None:
    filled(lab)
    for page_size in (2, 50, 101, 200):
        run = await lab.plan(ROWS, [TAGS], page_size=page_size)
        assert (run.counts["none"], operations(run)) == (101, [])


@pytest.mark.rules("C37", "A5", "G11")
@pytest.mark.parametrize("page", [1, 2, 3])
@pytest.mark.parametrize("change", ["one deleted", "one made", "the first replaced", "all replaced", "one moved"])
async def test_ff01_a_destination_that_moves_between_pages_is_refused_by_side_and_kind(
    lab: WholePath, page: int, change: str
) -> None:
    ids = filled(lab)
    store = lab.sandbox.store

    def delete(number: int) -> None:
        store.delete(ids[number], branch=lab.branch)

    def move() -> None:
        match change:
            case "one deleted":
                delete(10)
            case "one made":
                lab.add("LabTag", name="inserted")
            case "the first replaced":  # the total stays, and one object is on no page
                delete(0)
                lab.add("LabTag", name="inserted")
            case "all replaced":
                for number in ALL:
                    delete(number)
                filled(lab)
            case _:  # the same objects, one of them under another id
                delete(20)
                lab.add("LabTag", name="t20")

    before_page(lab, page, "LabTag", move)
    if page == 1 and change not in ("one deleted", "one made"):
        # nothing was read yet, and the total is as counted: what is read is whole
        counts = (await lab.plan(ROWS, [TAGS])).counts
        replaced = int(change == "the first replaced")
        assert (counts["none"], counts["create"], counts["remove"]) == (101 - replaced, replaced, replaced)
        return
    error = await refused(lab)
    assert error.checked.startswith("the destination side, ")
    assert "LabTag" in error.checked


@pytest.mark.rules("A5", "C37")
async def test_ff01_an_object_that_others_refer_to_and_no_page_brings_fails_the_reading(lab: WholePath) -> None:
    tag = lab.add("LabTag", name="t0")
    lab.add("LabSite", name="dc1", tags=[tag])
    with_tags = {"tags": [], "sites": [{"id": 1, "name": "dc1"}]}

    def late() -> None:
        lab.add("LabSite", name="late", asset="2", tags=[lab.add("LabTag", name="x")])

    before_page(lab, 1, "LabSite", late)
    with pytest.raises(IncompleteExtractionError, match="the destination side"):
        await lab.plan(with_tags, [TAGS, SITES])
    assert lab.saved_plans() == []


@pytest.mark.rules("A5", "G11")
@pytest.mark.parametrize("again", [3, "3", 100], ids=repr)
async def test_ff01_a_row_that_comes_twice_is_refused_by_endpoint_and_id(lab: WholePath, again: object) -> None:
    rows = {"tags": [*ROWS["tags"], {"id": again, "name": "another"}]}
    with pytest.raises(IncompleteExtractionError) as caught:
        await lab.plan(rows, [TAGS])
    assert caught.value.checked == "the source side, endpoint tags"
    assert caught.value.found == f"id {again} again in row 102"
    assert lab.saved_plans() == []


@pytest.mark.rules("A5", "G11")
@pytest.mark.parametrize("counted", [100, 102])
async def test_ff01_rows_that_are_not_as_many_as_counted_are_refused(
    lab: WholePath, monkeypatch: pytest.MonkeyPatch, counted: int
) -> None:
    monkeypatch.setattr(JsonLinesSource, "count", lambda self, endpoint: counted)
    with pytest.raises(IncompleteExtractionError) as caught:
        await lab.plan(ROWS, [TAGS])
    assert (caught.value.expected, caught.value.found) == (
        f"{counted} rows, as the source counted before",
        "101 rows",
    )
    assert lab.saved_plans() == []


def device(*tags: str, count: int) -> httpx.Response:
    """One device on one page, with as many of its tags as the server is willing to show at once."""
    shown = {"count": count, "edges": [{"node": {"id": tag, "__typename": "BuiltinTag"}} for tag in tags]}
    node = {"id": "d-1", "__typename": "LabDevice", "tags": shown}
    return graphql({"data": {"LabDevice": {"count": 1, "edges": [{"node": node}]}}})


@pytest.mark.rules("C37", "G11")
@pytest.mark.parametrize(
    ("more", "moved"),
    [
        (device("t-3", "t-4", "t-5", count=5), False),
        (device("t-4", "t-5", "t-6", count=5), True),  # t-1 went and t-6 came: the total stays, and t-3 is on no page
        (device("t-2", "t-3", "t-4", count=5), True),
        (device("t-3", "t-1", "t-4", count=5), True),
        (device("t-3", "t-4", count=4), True),
        (device("t-3", "t-4", "t-5", "t-6", count=6), True),
        (device("t-3", count=5), True),
        (device(count=5), True),
    ],
    ids=["at rest", "slipped on", "slipped back", "one twice", "one less", "one more", "no more", "nothing"],
)
async def test_ff01_a_list_of_peers_that_moves_while_it_is_read_on_is_refused(
    more: httpx.Response, moved: bool
) -> None:
    server = ScriptedInfrahub()
    server.will_answer(device("t-1", "t-2", "t-3", count=5), more)
    reading = read_devices(server)
    if moved:
        with pytest.raises(IncompleteExtractionError, match="LabDevice") as caught:
            await reading
        assert "d-1" in caught.value.checked
    else:
        (read,) = await reading
        assert [peer.id for peer in read.many["tags"]] == ["t-1", "t-2", "t-3", "t-4", "t-5"]


async def read_devices(server: ScriptedInfrahub) -> list[ObservedObject]:
    async with lab_reader(server, page_size=3) as reader:
        return [item async for item in reader.read("LabDevice", FieldSelection(many=("tags",)))]
