"""What planning refuses because of the keys of a real server's schema and the objects that are there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from consumers.infrahub.connection import InfrahubSettings, open_reader
from producers.errors import PlanRefusedError
from producers.planning import PlannedRun, PlanOptions, make_plan
from tests.live.infrahub import LiveBranch
from tests.live.objects import put_cable_ends
from tests.live.writing import create
from tests.support.planning import CLOCK, entry, mapped, small

pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]

ADDRESSES = entry(
    "IpamIPAddress",
    "addresses",
    ["address", "ip_namespace", "fqdn"],
    mapped("address"),
    mapped("fqdn"),
    mapped("description"),
    {"name": "ip_namespace", "static": "default", "reference": "IpamNamespace"},
)
"""Told apart by more than the destination's key, which is address and namespace."""


async def plan(
    branch: LiveBranch, folder: Path, *rows: dict[str, Any], mapping: dict[str, Any] = ADDRESSES
) -> PlannedRun:
    folder.mkdir()
    settings = InfrahubSettings(url=branch.url, branch=branch.name, token=SecretStr(branch.token))
    async with open_reader(settings) as reader:
        loaded = small(folder, {"addresses": rows}, [mapping])
        return await make_plan(loaded, reader, root=folder, options=PlanOptions(), clock=CLOCK, environ={})


@pytest.mark.rules("P40", "P61", "P62", "G11")
async def test_ff07_creates_that_are_one_object_at_the_destination_are_refused_and_updates_are_not(
    live_branch: LiveBranch, tmp_path: Path
) -> None:
    namespaces = live_branch.query('query { IpamNamespace(name__value: "default") { edges { node { id } } } }')
    namespace = namespaces["IpamNamespace"]["edges"][0]["node"]["id"]
    there = {"address": {"value": "10.0.0.9/32"}, "fqdn": {"value": "theirs"}}
    create(live_branch, "IpamIPAddress", **there, ip_namespace={"id": namespace})
    rows = [
        {"id": 1, "address": "10.0.0.1", "fqdn": "a", "description": ""},
        {"id": 2, "address": "10.0.0.1/32", "fqdn": "b", "description": ""},
        {"id": 3, "address": "10.0.0.2", "fqdn": "c", "description": ""},
        {"id": 4, "address": "10.0.0.9", "fqdn": "ours", "description": ""},
    ]
    with pytest.raises(PlanRefusedError) as caught:
        await plan(live_branch, tmp_path / "refused", *rows)
    assert [finding.name for finding in caught.value.findings] == ["DestinationIdentityCollisionError"] * 2

    update = {"id": 5, "address": "10.0.0.9", "fqdn": "theirs", "description": "changed"}
    planned = await plan(live_branch, tmp_path / "planned", rows[0], rows[2], update)
    assert (planned.counts["create"], planned.counts["update"]) == (2, 1)


@pytest.mark.rules("P56", "P60", "G11")
async def test_ff06_a_create_that_the_server_could_not_match_again_is_refused_while_planning(
    live_branch: LiveBranch, tmp_path: Path
) -> None:
    """Without the part the server would take it, and take it again: another object each time, and each time ok."""
    text = "mutation($data: DcimCableUpsertInput!) { DcimCableUpsert(data: $data) { ok object { id } } }"
    data = {"color": {"value": "red"}, "terminations": put_cable_ends(live_branch)}
    answers = [live_branch.query(text, {"data": data})["DcimCableUpsert"] for _ in range(2)]
    assert [answer["ok"] for answer in answers] == [True, True]
    assert answers[0]["object"]["id"] != answers[1]["object"]["id"]

    rows = [{"id": 1, "address": "10.0.0.1", "fqdn": "a", "description": "not there yet"}]
    for kind, identifier, unproven in (
        ("DcimCable", "color", "neither"),
        ("DcimDeviceType", "name", "manufacturer__name__value"),
    ):
        mapping = entry(kind, "addresses", [identifier], mapped(identifier, "description"))
        with pytest.raises(PlanRefusedError) as caught:
            await plan(live_branch, tmp_path / kind, *rows, mapping=mapping)
        told = [finding.found for finding in caught.value.findings if finding.name == "UnkeyedCreateRefusedError"]
        assert len(told) == 1
        assert unproven in told[0]
