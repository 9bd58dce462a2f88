"""Whoever does what a refusal advises comes to an end, on the sandbox and on a real server by the same code."""

from __future__ import annotations

import pytest

from consumers.infrahub.errors import (
    DestinationRejectedError,
    KeyElsewhereError,
    OwnIdElsewhereError,
    UniquenessConflictError,
)
from ledger.plan.model import PlannedOperation
from tests.contract.cases.surface import Surface, a_start, found, port
from tests.contract.cases.talk import Talk, peer, values
from tests.support.operations import create, one, update

pytestmark = pytest.mark.contract

REBASE = "mutation R($name: String!) { BranchRebase(wait_until_completion: true, data: {name: $name}) { ok } }"


def tag(talk: Talk, label: str = "a") -> PlannedOperation:
    return create("ProbeTag", {"name": talk.name(label)}, {"name": talk.name(label), "description": "ours"})


def cabinet(talk: Talk, name: str) -> PlannedOperation:
    site = {"peer_kind": "ProbeSite", "identity": {"name": talk.name("site")}}
    reference = one("site", "ProbeSite", name=talk.name("site"))
    return create("ProbeCabinet", {"site": site, "name": name}, {"name": name}, reference)


def rebase(talk: Talk, branch: str) -> None:
    assert talk.post(REBASE, {"name": branch}, branch="main").ok


@pytest.mark.rules("G5", "G11", "P59")
async def test_g11_the_object_of_our_create_was_deleted_and_a_fresh_plan_makes_it_anew(talk: Talk) -> None:
    a_start(talk)
    operation, first = port(talk), Surface(talk, "run-1")
    talk.write("ProbePortDelete", {"id": await first.apply(operation)})
    for _ in range(2):
        with pytest.raises(OwnIdElsewhereError, match="fresh plan") as caught:
            await first.apply(operation)
        assert caught.value.final, "no repeat under this run can end otherwise, so none is made"
    fresh = Surface(talk, "run-2")
    assert await fresh.apply(operation) == fresh.own_id(operation)
    assert found(talk, "ProbePort") == [fresh.own_id(operation)]


@pytest.mark.rules("G5", "G11")
async def test_g11_a_key_made_on_main_since_the_fork_is_there_after_the_rebase(talk: Talk) -> None:
    """A fresh plan alone would not see it either, and be refused again."""
    held = talk.write("ProbeTagUpsert", values(name=talk.name("a")), branch="main").id
    for run_id in ("run-1", "run-2"):
        with pytest.raises(KeyElsewhereError, match="rebase the branch") as caught:
            await Surface(talk, run_id).apply(tag(talk))
        assert (caught.value.final, caught.value.code) == (True, "NODE_NOT_FOUND")
        assert held in caught.value.found
    rebase(talk, talk.place.branch)
    assert await Surface(talk, "run-3").apply(tag(talk)) == held


@pytest.mark.rules("G5", "G11", "P59")
async def test_g11_a_constraint_held_on_main_since_the_fork_is_seen_after_the_rebase(talk: Talk) -> None:
    site = talk.write("ProbeSiteUpsert", values(name=talk.name("site"), asset=talk.name()), branch="main").id
    device = {**values(name=talk.name("device")), "site": peer(site)}
    device_id = talk.write("ProbeDeviceUpsert", device, branch="main").id
    branch = talk.new_branch("fork")
    held = talk.write("ProbePortUpsert", {**values(name="p1"), "device": peer(device_id)}, branch="main").id
    with pytest.raises(UniquenessConflictError, match="on main since the branch was made") as caught:
        await Surface(talk, branch=branch).apply(port(talk))
    assert caught.value.final
    rebase(talk, branch)
    seen = talk.read("ProbePort", held, "id", branch=branch).node["id"]
    payload, reference = {"name": "p1", "description": "ours"}, one("device", "ProbeDevice", name=talk.name("device"))
    change = update("ProbePort", port(talk).identity, payload, reference, destination_id=seen)
    assert await Surface(talk, "run-2", branch=branch).apply(change) == held


@pytest.mark.rules("G5", "G11")
async def test_g11_a_key_of_a_sibling_kind_is_named_as_one_and_another_key_is_taken(talk: Talk) -> None:
    """The server says "please rebase" here too, which would change nothing."""
    a_start(talk)
    site = talk.find("ProbeSite", {"name__value": talk.name("site")}, "id").node["id"]
    rack = talk.write("ProbeRackUpsert", {**values(name="r1"), "site": peer(site)}).id
    with pytest.raises(KeyElsewhereError, match="sibling kind") as caught:
        await Surface(talk).apply(cabinet(talk, "r1"))
    assert rack in caught.value.found
    assert await Surface(talk).apply(cabinet(talk, "c1"))


@pytest.mark.rules("G5", "P39")
async def test_g05_a_missing_peer_of_the_same_kind_is_not_taken_for_a_key_elsewhere(talk: Talk) -> None:
    """The same code, status and kind: what tells them apart is that the id of a peer was sent."""
    reference = one("parent", "ProbeSite", name="gone")
    operation = create("ProbeSite", {"name": talk.name()}, {"name": talk.name(), "asset": talk.name()}, reference)
    with pytest.raises(DestinationRejectedError) as caught:
        await Surface(talk).apply(operation, known={"gone": talk.new_id("gone")})
    assert caught.value.code == "NODE_NOT_FOUND"
    assert not isinstance(caught.value, KeyElsewhereError)


@pytest.mark.rules("G5", "P17")
async def test_g05_the_operation_behind_a_large_value_is_not_lost(talk: Talk) -> None:
    """Behind a write whose event is too large the server gives up its connection, and says so to nobody."""
    large = {"name": talk.name("large"), "area": "x" * 2_000_000}
    operations = [create("ProbeValue", {"name": talk.name("large")}, large), *(tag(talk, label) for label in "abc")]
    last = await Surface(talk).apply(*operations)
    assert talk.read("ProbeTag", last, "name { value }").node["name"]["value"] == talk.name("c")


@pytest.mark.rules("G5", "P17")
async def test_g05_the_operation_behind_one_that_replaced_a_large_value_is_not_lost(talk: Talk) -> None:
    """The event holds the old value too, of which nothing in the update tells."""
    name, small = talk.name("large"), {"name": talk.name("large"), "area": "small"}
    held = talk.write("ProbeValueUpsert", values(name=name, area="x" * 2_000_000)).id
    talk.reconnect()
    change = update("ProbeValue", {"name": name}, small, destination_id=held)
    last = await Surface(talk).apply(change, *(tag(talk, label) for label in "abc"))
    assert talk.read("ProbeTag", last, "name { value }").node["name"]["value"] == talk.name("c")
