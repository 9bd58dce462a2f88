"""What a real server makes of creates under one id that overlap, and how two objects of one id are read."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import httpx
import pytest

from consumers.infrahub.connection import InfrahubSettings, open_gateway
from consumers.infrahub.own_ids import count_of, own_id_text
from tests.contract.cases.default_branch import require_leave
from tests.contract.cases.recording import place_on
from tests.contract.cases.schema import ensure_probe_kinds
from tests.contract.cases.surface import a_start
from tests.contract.cases.talk import Talk, peer, values
from tests.live.infrahub import LiveInfrahub

pytestmark = pytest.mark.live

_TRIES = 40
"""Pairs of creates until two overlap at the server; where it has nothing else to do nearly every pair does."""

_PAIRS = 10


@pytest.fixture
def talk(live_infrahub: LiveInfrahub, request: pytest.FixtureRequest) -> Iterator[Talk]:
    """Speaks to a branch of the test's own."""
    require_leave(live_infrahub)
    ensure_probe_kinds(live_infrahub.url, live_infrahub.token)
    with place_on(live_infrahub.url, live_infrahub.token, reader=("not used", "not used")) as place:
        talk = Talk(place, request.node.name)
        yield talk
        talk.close()


async def created_at_once(talk: Talk, kind: str, inputs: Sequence[Mapping[str, Any]]) -> int:
    """How many of these creates succeed, sent together over connections that were opened before."""
    text = f"mutation Create($data: {kind}CreateInput!) {{ {kind}Create(data: $data) {{ ok }} }}"
    bodies = [{"query": text, "variables": {"data": data}} for data in inputs]
    headers = {"X-INFRAHUB-KEY": talk.place.token}
    async with httpx.AsyncClient(base_url=talk.place.url, headers=headers, trust_env=False, timeout=120) as client:
        await asyncio.gather(*(client.get("/api/config") for _ in bodies))
        path = f"/graphql/{talk.place.branch}"
        answers = await asyncio.gather(*(client.post(path, json=body) for body in bodies))
    return sum("errors" not in answer.json() for answer in answers)


async def counted(talk: Talk, kind: str, node_id: str) -> int | None:
    """The count on which the write surface decides whether a create under our id is there."""
    settings = InfrahubSettings(url=talk.place.url, branch=talk.place.branch, token=talk.place.token)
    async with open_gateway(settings) as gateway:
        return count_of(node_id, await gateway.read(own_id_text(kind), {"ids": [node_id]}), kind)


@pytest.mark.rules("G5", "G6")
async def test_g06_two_objects_of_one_id_are_counted_although_they_look_like_one(talk: Talk) -> None:
    for number in range(_TRIES):
        own_id = talk.new_id(f"own {number}")
        inputs = [{"id": own_id, **values(entry=f"{number} {which}")} for which in range(2)]
        if await created_at_once(talk, "ProbeLog", inputs) == 2:
            break
    rows = talk.read("ProbeLog", own_id, "id").document["data"]["ProbeLog"]["edges"]
    assert (len(rows), await counted(talk, "ProbeLog", own_id)) == (1, 2)
    for left in (1, 0):
        assert talk.write("ProbeLogDelete", {"id": own_id}).ok
        assert await counted(talk, "ProbeLog", own_id) == left


@pytest.mark.rules("P59", "G5")
async def test_g05_creates_under_one_id_of_a_kind_with_a_constraint_make_one_object(talk: Talk) -> None:
    """Only such kinds are created under ids of ours; each pair would be two objects of its constraint."""
    a_start(talk)
    device = talk.find("ProbeDevice", {"name__value": talk.name("device")}, "id").node["id"]
    made = []
    for number in range(_PAIRS):
        own_id = talk.new_id(f"own {number}")
        names = (f"{number} a", f"{number} b")
        inputs = [{"id": own_id, **values(name=name), "device": peer(device)} for name in names]
        made.append((await created_at_once(talk, "ProbePort", inputs), await counted(talk, "ProbePort", own_id)))
    assert made == [(1, 1)] * _PAIRS
