"""Creates, updates and sets of peers against a destination that behaves like Infrahub."""

from __future__ import annotations

from typing import Any

import pytest

from consumers.infrahub.errors import PeerAmbiguousError, PeerNotFoundError, StaleDestinationIdError
from ledger.destination import FieldSelection, OutcomeUnknownError, PeerPointer
from ledger.plan.errors import UnkeyedCreateRefusedError
from ledger.plan.model import PlannedOperation
from tests.contract.write_surface.applying import apply, observed, surface_of
from tests.contract.write_surface.conftest import Lab
from tests.support.operations import create, many, one, update

pytestmark = pytest.mark.contract

DC1 = {"peer_kind": "LabSite", "identity": {"name": "dc1"}}


def site(name: str = "dc1", **payload: Any) -> PlannedOperation:
    # Two sites without an asset would collide: the server compares the nulls of a unique attribute.
    return create("LabSite", {"name": name}, {"name": name, "asset": f"asset of {name}", **payload})


def tag(name: str) -> PlannedOperation:
    return create("LabTag", {"name": name}, {"name": name})


def device(name: str = "sw1", *references: Any, **payload: Any) -> PlannedOperation:
    return create(
        "LabDevice", {"name": name}, {"name": name, **payload}, one("site", "LabSite", name="dc1"), *references
    )


AWKWARD: dict[str, Any] = {
    "settings": {"auth-token": 1, "1a": 2, "": 3, "$x": ["$y", 2**40, 'a"b', None, True]},
    "labels": ["$x", 1, "b", True],
    "notes": 'two\r\nlines\t\\ "q" Ünï 😀 $x, a lone \r too, ‐ 8‑Port',
    "height": 0,
    "enabled": False,
    "mac": "00:11:22:AA:BB:CC",
    "address": "10.0.0.1/32",
}


@pytest.mark.rules("P17", "P19", "P20", "P99")
async def test_what_was_written_is_what_is_read(lab: Lab) -> None:
    _, node_id = await apply(lab, site(), device(**AWKWARD))
    fields = FieldSelection(attributes=tuple(AWKWARD), one=("site", "backup_site"))
    (item,) = await observed(lab, "LabDevice", fields)
    assert (item.id, item.kind, item.attributes) == (node_id, "LabDevice", AWKWARD)
    assert item.one["site"] is not None
    assert item.one["site"].kind == "LabSite"
    assert item.one["backup_site"] is None


@pytest.mark.rules("P36", "P40")
async def test_a_create_converges_on_the_destinations_key(lab: Lab) -> None:
    (first,) = await apply(lab, site(description="a"))
    (second,) = await apply(lab, site(description="b"), run_id="another-run")
    assert first == second
    assert lab.sandbox.store.count("LabSite") == 1


@pytest.mark.rules("P24", "P34", "P41", "P54")
async def test_an_update_follows_its_id_through_a_rename(lab: Lab) -> None:
    (node_id,) = await apply(lab, site())
    renamed = update("LabSite", {"name": "dc9"}, {"name": "dc9"}, destination_id=node_id)
    assert await apply(lab, renamed) == [node_id]
    assert [item.attributes for item in await observed(lab, "LabSite", FieldSelection(("name",)))] == [{"name": "dc9"}]


@pytest.mark.rules("P31", "P53")
async def test_an_update_of_a_kind_without_any_key(lab: Lab) -> None:
    node_id = lab.sandbox.store.create("LabLog", {"name": "a"})
    await apply(lab, update("LabLog", {"name": "b"}, {"name": "b"}, destination_id=node_id))
    assert lab.sandbox.store.count("LabLog") == 1


@pytest.mark.rules("P27", "P38", "P39", "P55", "P133", "G5")
@pytest.mark.parametrize("case", ["never there", "deleted", "another kind", "deleted, and the key is there again"])
async def test_g05_a_stale_id_is_proven_unwritten_and_creates_nothing(lab: Lab, case: str) -> None:
    store = lab.sandbox.store
    node_id = "18ec9baa-2624-4515-e315-189fdf3551df"
    if case.startswith("deleted"):
        node_id = store.create("LabSite", {"name": "dc1"})
        store.delete(node_id)
    if case.endswith("again"):
        store.create("LabSite", {"name": "dc1"})
    if case == "another kind":
        node_id = store.create("LabTag", {"name": "dc1"})
    before = store.content()
    with pytest.raises(StaleDestinationIdError, match="fresh plan"):
        await apply(
            lab, update("LabSite", {"name": "dc1"}, {"name": "dc1", "description": "x"}, destination_id=node_id)
        )
    assert store.content() == before


@pytest.mark.rules("P39", "P133", "G5")
async def test_g05_a_peer_that_vanishes_before_the_write_proves_nothing(lab: Lab) -> None:
    (site_id, tag_id) = await apply(lab, site(), tag("a"))
    operation = update(
        "LabSite", {"name": "dc1"}, {"name": "dc1"}, many("tags", "LabTag", {"name": "a"}), destination_id=site_id
    )
    async with surface_of(lab) as surface:
        peers = surface.new_peer_resolver()
        peers.remember("LabTag", {"name": "a"}, tag_id)
        lab.sandbox.store.delete(tag_id)
        with pytest.raises(OutcomeUnknownError) as caught:
            await surface.apply_planned_operation(operation=operation, peers=peers)
    assert (caught.value.code, caught.value.sent) == ("NODE_NOT_FOUND", True)


@pytest.mark.rules("P93", "P94", "P95", "P96", "P97", "P98")
@pytest.mark.parametrize(
    ("planned", "expected"),
    [(["a", "c"], {"a", "c"}), (["c"], {"c"}), ([], set()), (None, {"a", "b"}), (["a", "a"], {"a"})],
    ids=lambda names: str(sorted(names) if isinstance(names, set) else names),
)
async def test_a_set_ends_holding_exactly_the_peers_that_the_plan_names(
    lab: Lab, planned: list[str] | None, expected: set[str]
) -> None:
    await apply(lab, site(), tag("a"), tag("b"), tag("c"))
    (node_id,) = await apply(lab, device("sw1", many("tags", "LabTag", {"name": "a"}, {"name": "b"})))
    before = len(lab.sandbox.journal)
    references = [] if planned is None else [many("tags", "LabTag", *({"name": name} for name in planned))]
    await apply(lab, update("LabDevice", {"name": "sw1"}, {"name": "sw1"}, *references, destination_id=node_id))
    assert len(lab.sandbox.journal) == before + 1, "one write, whatever the set"
    names = {item.id: item.attributes["name"] for item in await observed(lab, "LabTag", FieldSelection(("name",)))}
    (item,) = await observed(lab, "LabDevice", FieldSelection(many=("tags",)))
    assert {names[peer.id] for peer in item.many["tags"]} == expected


async def test_nulls_clear_attributes(lab: Lab) -> None:
    (node_id,) = await apply(lab, site(description="x", priority=3))
    clear = update(
        "LabSite", {"name": "dc1"}, {"name": "dc1", "description": None, "priority": None}, destination_id=node_id
    )
    await apply(lab, clear)
    (item,) = await observed(lab, "LabSite", FieldSelection(("description", "priority")))
    assert item.attributes == {"description": None, "priority": None}


@pytest.mark.rules("P88", "P90")
async def test_a_null_peer_of_an_update_keeps_what_is_there(lab: Lab) -> None:
    _, node_id = await apply(lab, site(), device("sw1", one("backup_site", "LabSite", name="dc1")))
    await apply(lab, update("LabDevice", {"name": "sw1"}, {"name": "sw1", "backup_site": None}, destination_id=node_id))
    (item,) = await observed(lab, "LabDevice", FieldSelection(one=("backup_site",)))
    assert item.one["backup_site"] is not None


@pytest.mark.rules("P77", "P78", "P79", "P84")
async def test_peers_are_found_by_direct_crossing_and_id_conditions(lab: Lab) -> None:
    store = lab.sandbox.store
    ids = {name: store.create("LabSite", {"name": name, "asset": name}) for name in ("dc1", "dc2")}
    rack = store.create("LabRack", {"name": "r1", "site": ids["dc1"]})
    store.create("LabRack", {"name": "r1", "site": ids["dc2"]})
    sw1 = store.create("LabDevice", {"name": "sw1", "site": ids["dc1"]})
    port = store.create("LabPort", {"name": "p1", "device": sw1})
    async with surface_of(lab) as surface:
        peers = surface.new_peer_resolver()

        async def found(kind: str, **identity: Any) -> str:
            return await peers.resolve(peer_kind=kind, identity=identity, referring_operation_id="op_0000000000000001")

        assert await found("LabSite", name="dc2") == ids["dc2"]
        assert await found("LabRack", name="r1", site=DC1) == rack
        assert await found("LabPlace", name="r1", site=DC1) == rack
        assert await found("LabPort", name="p1", device={"peer_kind": "LabDevice", "identity": {"name": "sw1"}}) == port
        store.create("LabLog", {"name": "x"})
        store.create("LabLog", {"name": "x"})
        with pytest.raises(PeerAmbiguousError):
            await found("LabLog", name="x")
        with pytest.raises(PeerNotFoundError):
            await found("LabSite", name="DC1")
    assert len(lab.sandbox.journal) == 0


@pytest.mark.rules("P83")
async def test_a_null_identity_does_not_find_the_only_object(lab: Lab) -> None:
    lab.sandbox.store.create("LabSite", {"name": "dc1"})
    async with surface_of(lab) as surface:
        with pytest.raises(PeerNotFoundError):
            await surface.new_peer_resolver().resolve(
                peer_kind="LabSite", identity={"name": None}, referring_operation_id="op_0000000000000001"
            )


async def test_one_part_of_a_parent_relation_points_back(lab: Lab) -> None:
    child = create("LabSite", {"name": "dc2"}, {"name": "dc2", "asset": "2"}, one("parent", "LabSite", name="dc1"))
    parent_id, _ = await apply(lab, site(), child)
    items = await observed(lab, "LabSite", FieldSelection(("name",), one=("parent",), many=("children",)))
    by_name = {item.attributes["name"]: item for item in items}
    assert by_name["dc2"].one["parent"] == PeerPointer("LabSite", parent_id)
    assert [peer.kind for peer in by_name["dc1"].many["children"]] == ["LabSite"]


@pytest.mark.rules("P21", "P29", "P60", "P63", "P65")
async def test_a_create_without_a_key_reaches_the_destination_never(lab: Lab) -> None:
    with pytest.raises(UnkeyedCreateRefusedError):
        await apply(lab, create("LabLog", {"name": "x"}, {"name": "x"}))
    assert len(lab.sandbox.journal) == 0


@pytest.mark.rules("P86", "P87", "P83")
async def test_a_peer_that_comes_later_in_the_plan_is_a_loud_miss(lab: Lab) -> None:
    itself = create("LabSite", {"name": "dc1"}, {"name": "dc1"}, one("parent", "LabSite", name="dc1"))
    with pytest.raises(PeerNotFoundError):
        await apply(lab, itself)
    assert len(lab.sandbox.journal) == 0
    child = create("LabSite", {"name": "dc2"}, {"name": "dc2", "asset": "2"}, one("parent", "LabSite", name="dc1"))
    with pytest.raises(PeerNotFoundError):
        await apply(lab, child, site())
    assert len(await apply(lab, site(), child)) == 2
