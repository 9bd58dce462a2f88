"""Why one writer: what two that do not know of each other do to a server, and that two of ours never do it."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import httpx
import pytest

from ledger.plan.model import PlannedOperation
from tests.live.infrahub import LiveBranch
from tests.live.writing import LiveWriter, create
from tests.support.http_relay import Fate, HttpRelay
from tests.support.operations import many, update

pytestmark = [pytest.mark.live, pytest.mark.timeout(3600)]

OVERLAPS = "APPLY_LEDGER_TEST_OVERLAPS"
"""How many answers are late in the test of our writers; ``make live-crash`` takes 200."""
_FEW = 6
_ROUNDS = 40
_UPSERT = "mutation($data: LocationSiteUpsertInput!) { LocationSiteUpsert(data: $data) { ok object { id } } }"


def tags_of(branch: LiveBranch, *names: str) -> dict[str, str]:
    return {name: create(branch, "BuiltinTag", name={"value": name}) for name in names}


async def at_once(branch: LiveBranch, *data: dict[str, Any]) -> list[bool]:
    """Send upserts at the same moment, as writers do that do not know of each other; what each was told."""
    headers = {"X-INFRAHUB-KEY": branch.token}
    async with httpx.AsyncClient(base_url=branch.url, headers=headers, trust_env=False, timeout=60) as client:
        bodies = [{"query": _UPSERT, "variables": {"data": each}} for each in data]
        answers = await asyncio.gather(*(client.post(f"/graphql/{branch.name}", json=body) for body in bodies))
    return [answer.json()["data"]["LocationSiteUpsert"]["ok"] for answer in answers]


async def test_two_uncoordinated_writers_are_told_ok_twice_and_double_a_relationship(live_branch: LiveBranch) -> None:
    red, blue = tags_of(live_branch, "red", "blue").values()
    for number in range(_ROUNDS):
        site = create(live_branch, "LocationSite", name={"value": f"s{number}"})
        data = {"id": site, "tags": [{"id": red}, {"id": blue}]}
        assert await at_once(live_branch, data, data) == [True, True]
        text = "query($ids: [ID]) { LocationSite(ids: $ids) { edges { node { tags { count } } } } }"
        answer = live_branch.query(text, {"ids": [site]})
        if answer["LocationSite"]["edges"][0]["node"]["tags"]["count"] != 2:
            return
    raise AssertionError(f"no doubled relationship in {_ROUNDS} rounds: the reason for one writer is gone")


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


def retagged(site: str, name: str, turn: int) -> PlannedOperation:
    """An update that gives the site another set of tags each turn."""
    chosen = [{"name": tag} for tag in (("red", "blue") if turn % 2 else ("blue", "green", "red"))]
    payload = {"name": name, "description": f"turn {turn}"}
    return update("LocationSite", {"name": name}, payload, many("tags", "BuiltinTag", *chosen), destination_id=site)


@pytest.mark.rules("P93", "P94", "P95", "P97", "P98", "G2", "G4")
async def test_g02_two_of_our_writers_with_late_answers_never_double_anything(
    live_writer: LiveWriter, relay: HttpRelay, live_branch: LiveBranch
) -> None:
    """Every first attempt outlives its time-out, at the server or on the way to it, and is followed by a second one.

    Both writers look for orders all the time, and every interrupted run is resumed at once.
    """
    live_writer.changes = {"request_timeout": 0.8, "lease_ttl": 3.0, "settle_seconds": 1.5}
    ids = tags_of(live_branch, "red", "blue", "green")
    site = create(live_branch, "LocationSite", name={"value": "s"})
    stop = asyncio.Event()
    writers = [asyncio.create_task(live_writer.writer().run_until(stop)) for _ in range(2)]
    try:
        for turn in range(int(os.environ.get(OVERLAPS, _FEW))):
            run_id = f"turn-{turn}"
            kind = "hold answer" if turn % 2 else "hold request"
            relay.fates.append(Fate(kind, 1.0))  # type: ignore[arg-type]  # one of its names
            await live_writer.commit(run_id, [retagged(site, "s", turn)], position=await live_writer.head())
            ended = await live_writer.ended(run_id)
            assert ended.count("run.interrupted") >= 1, "no answer was late"
            assert ended[-1] == "run.applied"
            chosen = ("red", "blue") if turn % 2 else ("blue", "green", "red")
            assert live_writer.site(site) == {
                "description": f"turn {turn}",
                "tags": sorted(ids[name] for name in chosen),
                "count": len(chosen),
            }
        assert relay.most_under_way == 1
    finally:
        stop.set()
        await asyncio.gather(*writers)
