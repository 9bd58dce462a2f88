"""Our reader before the sandbox and a real server, by the same code: pages, and lists of peers."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from consumers.infrahub.connection import InfrahubReader, InfrahubSettings, open_reader
from ledger.destination import FieldSelection, ObservedObject
from tests.contract.cases.talk import Talk, peer, peers, values

pytestmark = pytest.mark.contract


def settings(talk: Talk, **changes: Any) -> InfrahubSettings:
    given = {"url": talk.place.url, "branch": talk.place.branch, "token": talk.place.token, "page_size": 2}
    return InfrahubSettings(**{**given, "retry_wait": 0, "retry_wait_max": 0, **changes})


async def everything(reader: InfrahubReader, kind: str, fields: FieldSelection) -> list[ObservedObject]:
    return [item async for item in reader.read(kind, fields)]


async def test_ff01_pages_of_two_bring_each_object_once_in_the_order_of_ids(talk: Talk) -> None:
    ids = sorted(str(uuid.uuid4()) for _ in range(5))
    for position in (2, 0, 4, 1, 3):
        talk.write("ProbeLeafCreate", {"id": ids[position], **values(name=talk.name("dbeac"[position]))})
    async with open_reader(settings(talk)) as reader:
        found = await everything(reader, "ProbeLeaf", FieldSelection(("name",)))
        assert await reader.counts(("ProbeLeaf",)) == {"ProbeLeaf": 5}
    assert [item.id for item in found] == ids
    assert [item.attributes["name"] for item in found] == [talk.name(name) for name in "dbeac"]


async def test_ff01_peers_come_whole_beside_pages_of_two(talk: Talk) -> None:
    tags = [talk.write("ProbeTagUpsert", values(name=talk.name(name))).id for name in "dbeac"]
    leaves = [
        talk.write("ProbeLeafUpsert", {**values(name=talk.name(name)), "tags": peers(*tags)}).id for name in "zyx"
    ]
    async with open_reader(settings(talk)) as reader:
        found = await everything(reader, "ProbeLeaf", FieldSelection(many=("tags",)))
    whole = set(tags)
    assert {item.id: {pointer.id for pointer in item.many["tags"]} for item in found} == dict.fromkeys(leaves, whole)


async def test_a_single_peer_is_read_as_one(talk: Talk) -> None:
    site = talk.write("ProbeSiteUpsert", values(name=talk.name("site"), asset=talk.name())).id
    talk.write("ProbeDeviceUpsert", {**values(name=talk.name("device")), "site": peer(site)})
    async with open_reader(settings(talk)) as reader:
        (device,) = await everything(reader, "ProbeDevice", FieldSelection(("name",), one=("site", "backup")))
    assert device.one["site"] is not None
    assert (device.one["site"].id, device.one["backup"]) == (site, None)
