"""Why one writer: what two that do not know of each other do to a server, and that two of ours never do it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import httpx
import pytest

from tests.live.infrahub import LiveBranch
from tests.live.lanes import Lane, Manner, lane, tags_of
from tests.live.objects import changed_site, tags
from tests.live.reading import BranchContent, key_of
from tests.live.writing import LiveWriter, create

pytestmark = pytest.mark.timeout(3600)

_ROUNDS = 40
_UPSERT = "mutation($data: LocationSiteUpsertInput!) { LocationSiteUpsert(data: $data) { ok object { id } } }"
_LONG = 60.0
"""Longer than a hasty worker takes to its second attempt, on any machine."""


async def at_once(branch: LiveBranch, *data: dict[str, Any]) -> list[bool]:
    """Send upserts at the same moment, as writers do that do not know of each other; what each was told."""
    headers = {"X-INFRAHUB-KEY": branch.token}
    async with httpx.AsyncClient(base_url=branch.url, headers=headers, trust_env=False, timeout=60) as client:
        bodies = [{"query": _UPSERT, "variables": {"data": each}} for each in data]
        answers = await asyncio.gather(*(client.post(f"/graphql/{branch.name}", json=body) for body in bodies))
    return [answer.json()["data"]["LocationSiteUpsert"]["ok"] for answer in answers]


@pytest.mark.live
async def test_two_uncoordinated_writers_are_told_ok_twice_and_double_a_relationship(live_branch: LiveBranch) -> None:
    red, blue = tags_of(live_branch, "red", "blue").values()
    for number in range(_ROUNDS):
        site = create(live_branch, "LocationSite", name={"value": f"s{number}"})
        data = {"id": site, "tags": [{"id": red}, {"id": blue}]}
        assert await at_once(live_branch, data, data) == [True, True]
        text = "query($ids: [ID]) { LocationSite(ids: $ids) { edges { node { tags { count } } } } }"
        answer = live_branch.query(text, {"ids": [site]})
        if answer["LocationSite"]["edges"][0]["node"]["tags"]["count"] != 2:
            break
    else:
        raise AssertionError(f"no doubled relationship in {_ROUNDS} rounds: the reason for one writer is gone")
    # what every comparison with a plan looks at notices
    planned = changed_site(f"s{number}", site, tags("red", "blue"))
    ids = {key_of("LocationSite", planned.identity): site}
    ids |= {key_of("BuiltinTag", {"name": name}): tag for name, tag in (("red", red), ("blue", blue))}
    content = await BranchContent.read(live_branch, {"LocationSite"})
    assert any("peers, the server counts" in line for line in content.differences(planned, ids))


@pytest.mark.live
async def test_two_uncoordinated_writers_make_an_object_that_nobody_can_read(live_branch: LiveBranch) -> None:
    tenants = [create(live_branch, "OrganizationTenant", name={"value": f"t{n}"}) for n in range(8)]
    text = "query($ids: [ID]) { LocationSite(ids: $ids) { edges { node { tenant { node { id } } } } } }"
    for number in range(_ROUNDS):
        site = create(live_branch, "LocationSite", name={"value": f"s{number}"}, tenant={"id": tenants[0]})
        told = await at_once(live_branch, *({"id": site, "tenant": {"id": tenant}} for tenant in tenants[1:]))
        assert all(told)
        errors = live_branch.post(text, {"ids": [site]}).json().get("errors") or []
        if any("At most, one relationship expected" in error["message"] for error in errors):
            return
    raise AssertionError(f"every object could be read after {_ROUNDS} rounds: the reason for one writer is gone")


async def faults_of(writer: LiveWriter, administrator: str, *lanes: Sequence[Manner]) -> list[str]:
    """Run lanes beside each other, each turn after turn; everything that is wrong in any of them."""

    async def one_lane(manners: Sequence[Manner]) -> list[str]:
        async with lane(writer, administrator) as running:
            found = [fault for turn, manner in enumerate(manners) for fault in await running.overlap(turn, manner)]
            await running.end()
            return found

    return [fault for found in await asyncio.gather(*map(one_lane, lanes)) for fault in found]


@pytest.mark.live
@pytest.mark.rules("P93", "G2", "G4", "G6")
async def test_g02_two_of_our_workers_that_take_over_from_each_other_never_double_anything(
    live_writer: LiveWriter, postgres18_ledger_dsns: dict[str, str]
) -> None:
    """A worker's request is on its way while the other, or itself, makes the next attempt at the same object."""
    lanes: list[list[Manner]] = [["frozen", "frozen", "late"], ["killed", "late", "frozen"]]
    assert await faults_of(live_writer, postgres18_ledger_dsns["admin"], *lanes) == []


@pytest.mark.live
async def test_without_the_quiet_time_the_same_turns_corrupt_an_object_and_that_is_seen(
    live_writer: LiveWriter, postgres18_ledger_dsns: dict[str, str]
) -> None:
    """What the tests beside this one look at can go wrong, on the repetition and on the take-over alike."""

    async def corrupted(manner: Manner) -> list[str]:
        async with lane(live_writer, postgres18_ledger_dsns["admin"], settle_seconds=0.0) as running:
            return await _until_corrupted(running, manner)

    for faults in await asyncio.gather(corrupted("late"), corrupted("frozen")):
        assert "two attempts at one object were under way at once" in faults


async def _until_corrupted(running: Lane, manner: Manner) -> list[str]:
    for turn in range(_ROUNDS):
        faults = await running.overlap(turn, manner, held=_LONG)
        if any(fault.startswith("corrupted") for fault in faults):
            return faults
    raise AssertionError(f"{_ROUNDS} overlaps corrupted nothing: nothing is shown by those that are avoided")


@pytest.mark.live_crash
@pytest.mark.rules("P93", "G2", "G4", "G6")
async def test_g02_two_hundred_overlaps_of_our_workers_corrupt_nothing(
    live_writer: LiveWriter, postgres18_ledger_dsns: dict[str, str]
) -> None:
    """Half of them a repetition by the same worker, half a take-over by the other."""
    turns: list[Manner] = ["late", "frozen", "late", "killed", "frozen"] * 7
    lanes = [turns] * 6
    assert sum(map(len, lanes)) >= 200
    assert await faults_of(live_writer, postgres18_ledger_dsns["admin"], *lanes) == []
