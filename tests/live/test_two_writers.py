"""Why one writer: what two that do not know of each other do to a server, and that two of ours never do it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import httpx
import pytest

from ledger.plan.model import PlannedOperation
from tests.live.infrahub import LiveBranch
from tests.live.writing import LiveWriter, create
from tests.support.http_relay import Fate, HttpRelay, http_relay
from tests.support.operations import many, update

pytestmark = pytest.mark.timeout(3600)

HASTY = {"request_timeout": 3.0, "lease_ttl": 8.0, "settle_seconds": 8.0}
HELD = 4.5
"""Longer than the time-out, and shorter than time-out and quiet time together by six seconds for a slow server."""
CHOICES = (("blue", "green", "red"), ("red", "blue"))
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
            return
    raise AssertionError(f"no doubled relationship in {_ROUNDS} rounds: the reason for one writer is gone")


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


def retagged(site: str, name: str, turn: int) -> PlannedOperation:
    """An update that gives the site another set of tags each turn."""
    tags = many("tags", "BuiltinTag", *({"name": tag} for tag in CHOICES[turn % 2]))
    payload = {"name": name, "description": f"turn {turn}"}
    return update("LocationSite", {"name": name}, payload, tags, destination_id=site)


@dataclass(frozen=True)
class Lane:
    """One branch behind a relay of its own, two writers that serve it, and a site that they change."""

    writer: LiveWriter
    relay: HttpRelay
    site: str
    tags: dict[str, str]

    async def overlap(self, turn: int, *, held: float = HELD) -> None:
        """One change whose first attempt outlives its time-out, at the server or on the way to it."""
        run_id = f"turn-{turn}"
        self.relay.fates.append(Fate("hold answer" if turn % 2 else "hold request", held))
        position = await self.writer.head()
        await self.writer.commit(run_id, [retagged(self.site, "s", turn)], position=position)
        endings = await self.writer.ended(run_id)
        assert endings[0] == "run.interrupted", "the answer was not late"
        assert endings[-1] == "run.applied"
        chosen = sorted(self.tags[name] for name in CHOICES[turn % 2])
        expected = {"description": f"turn {turn}", "tags": chosen, "count": len(chosen)}
        assert self.writer.site(self.site) == expected
        assert self.relay.most_under_way == 1, "two attempts at one object were under way at once"


@asynccontextmanager
async def lane(first: LiveWriter, **times: float) -> AsyncIterator[Lane]:
    """Another branch with two writers that look for orders all the time; ``times`` replaces some of theirs."""
    branch = first.live.infrahub.new_branch("lane")
    stop = asyncio.Event()
    async with http_relay(branch.url) as relay:
        root = first.root / branch.name
        writer = replace(first, url=relay.url, branch=branch.name, live=branch, root=root, changes=HASTY | times)
        tags = tags_of(branch, "red", "blue", "green")
        site = create(branch, "LocationSite", name={"value": "s"})
        serving = [asyncio.create_task(writer.writer().run_until(stop)) for _ in range(2)]
        try:
            yield Lane(writer, relay, site, tags)
        finally:
            stop.set()
            await asyncio.gather(*serving)
    branch.discard()


async def overlaps(writer: LiveWriter, *, lanes: int, turns: int) -> None:
    async def one_lane() -> None:
        async with lane(writer) as running:
            for turn in range(turns):
                await running.overlap(turn)

    await asyncio.gather(*(one_lane() for _ in range(lanes)))


@pytest.mark.live
@pytest.mark.rules("P93", "P94", "P95", "P97", "P98", "G2", "G4")
async def test_g02_two_of_our_writers_with_late_answers_never_double_anything(live_writer: LiveWriter) -> None:
    """Every interrupted run is resumed at once, and whichever writer holds the lease then repeats the operation."""
    await overlaps(live_writer, lanes=2, turns=3)


@pytest.mark.live
async def test_the_overlaps_show_a_writer_that_does_not_wait_for_quiet(live_writer: LiveWriter) -> None:
    """What the tests beside this one look at is seen where the quiet time is taken away."""
    async with lane(live_writer, settle_seconds=0.0) as running:
        with pytest.raises(AssertionError, match="two attempts at one object were under way at once"):
            await running.overlap(0, held=4 * HELD)


@pytest.mark.live_crash
@pytest.mark.rules("P93", "P94", "P95", "P97", "G2", "G4")
async def test_g02_two_hundred_overlaps_of_our_writers_corrupt_nothing(live_writer: LiveWriter) -> None:
    await overlaps(live_writer, lanes=4, turns=50)
