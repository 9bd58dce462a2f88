"""The write surface on the branch of a talk, and operations of the probe kinds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from consumers.infrahub.connection import InfrahubOpener, InfrahubSettings, declared
from consumers.infrahub.own_ids import own_node_id
from consumers.infrahub.write_surface import InfrahubWriteSurface
from ledger.plan.model import PlannedOperation
from tests.contract.cases.talk import Talk, peer, values
from tests.support.operations import create, one
from tests.support.scripted_infrahub import Guard


class Surface:
    """The write surface of one run on the branch of a talk, or on another one."""

    def __init__(self, talk: Talk, run_id: str = "run-1", *, branch: str | None = None) -> None:
        settings = {"url": talk.place.url, "branch": branch or talk.place.branch, "token": talk.place.token}
        self._settings = InfrahubSettings(**settings, retry_wait=0, retry_wait_max=0, request_timeout=60)
        self._run_id = run_id

    async def apply(self, *operations: PlannedOperation, known: Mapping[str, str] | None = None) -> str:
        """Write operations one behind the other; the id of the last. ``known`` are ids of ProbeSites by their name."""
        opener = InfrahubOpener(declared(self._settings))
        async with opener(self._settings.binding, run_id=self._run_id, guard=Guard()) as destination:
            assert isinstance(destination.writes, InfrahubWriteSurface)
            peers = destination.writes.new_peer_resolver()
            for name, node_id in (known or {}).items():
                peers.remember("ProbeSite", {"name": name}, node_id)
            ids = [
                await destination.writes.apply_planned_operation(operation=operation, peers=peers)
                for operation in operations
            ]
            return ids[-1]

    def own_id(self, operation: PlannedOperation) -> str:
        """The id under which this run creates the object of an operation."""
        return own_node_id(self._settings.binding, run_id=self._run_id, operation_id=operation.operation_id)


def a_start(talk: Talk) -> None:
    site = talk.write("ProbeSiteUpsert", values(name=talk.name("site"), asset=talk.name())).id
    talk.write("ProbeDeviceUpsert", {**values(name=talk.name("device")), "site": peer(site)})


def port(talk: Talk) -> PlannedOperation:
    device = {"peer_kind": "ProbeDevice", "identity": {"name": talk.name("device")}}
    reference = one("device", "ProbeDevice", name=talk.name("device"))
    return create("ProbePort", {"device": device, "name": "p1"}, {"name": "p1"}, reference)


def stall(talk: Talk) -> PlannedOperation:
    site = {"peer_kind": "ProbeSite", "identity": {"name": talk.name("site")}}
    reference = one("site", "ProbeSite", name=talk.name("site"))
    return create("ProbeStall", {"name": "s1", "site": site}, {"name": "s1"}, reference)


def found(talk: Talk, kind: str) -> list[Any]:
    """The objects of a kind at the start of this test."""
    place = (
        {"device__name__value": talk.name("device")}
        if kind == "ProbePort"
        else {"site__name__value": talk.name("site")}
    )
    document = talk.find(kind, place, "id").document
    return [edge["node"]["id"] for edge in document["data"][kind]["edges"]]
