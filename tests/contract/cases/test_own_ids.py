"""Creates under an id of ours, by the write surface, on the sandbox and on a real server by the same code."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from consumers.infrahub.connection import InfrahubOpener, InfrahubSettings, declared
from consumers.infrahub.errors import OwnIdElsewhereError, UniquenessConflictError
from consumers.infrahub.own_ids import own_node_id
from consumers.infrahub.sandbox import RunningSandbox
from consumers.infrahub.write_surface import InfrahubWriteSurface
from ledger.plan.model import PlannedOperation
from tests.contract.cases.default_branch import require_leave
from tests.contract.cases.recording import place_on
from tests.contract.cases.schema import ensure_probe_kinds, sandbox_document
from tests.contract.cases.talk import Talk, peer, values
from tests.live.infrahub import HOME, LiveInfrahub
from tests.support.operations import create, one
from tests.support.scripted_infrahub import Guard

pytestmark = pytest.mark.contract


@pytest.fixture(scope="module", params=["sandbox", pytest.param("real", marks=pytest.mark.live)])
def served(request: pytest.FixtureRequest) -> Iterator[tuple[str, str]]:
    """Address and token of a server that knows the kinds of the cases."""
    if request.param == "sandbox":
        with RunningSandbox(sandbox_document(), token="contract-token", seed="own ids") as running:
            yield running.url, running.token
        return
    live: LiveInfrahub = request.getfixturevalue("live_infrahub")
    require_leave(live)
    ensure_probe_kinds(live.url, live.token)
    yield live.url, live.token


@pytest.fixture
def talk(served: tuple[str, str], request: pytest.FixtureRequest) -> Iterator[Talk]:
    """Speaks to a branch of the test's own."""
    with place_on(*served, reader=("not used", "not used"), is_thrown_away=HOME in os.environ) as place:
        talk = Talk(place, request.node.name)
        yield talk
        talk.close()


class Surface:
    """The write surface of one run on the branch of a talk."""

    def __init__(self, talk: Talk, run_id: str = "run-1") -> None:
        settings = {"url": talk.place.url, "branch": talk.place.branch, "token": talk.place.token, "retry_wait": 0}
        self._settings = InfrahubSettings(**settings, retry_wait_max=0, request_timeout=60)
        self._run_id = run_id

    async def apply(self, operation: PlannedOperation) -> str:
        opener = InfrahubOpener(declared(self._settings))
        async with opener(self._settings.binding, run_id=self._run_id, guard=Guard()) as destination:
            assert isinstance(destination.writes, InfrahubWriteSurface)
            peers = destination.writes.new_peer_resolver()
            return await destination.writes.apply_planned_operation(operation=operation, peers=peers)

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


UNMATCHED = pytest.mark.parametrize(
    "planned", [port, stall], ids=["constraint alone", "key that only a generic guards"]
)


def found(talk: Talk, kind: str) -> list[Any]:
    """The objects of a kind at the start of this test."""
    place = (
        {"device__name__value": talk.name("device")}
        if kind == "ProbePort"
        else {"site__name__value": talk.name("site")}
    )
    document = talk.find(kind, place, "id").document
    return [edge["node"]["id"] for edge in document["data"][kind]["edges"]]


@pytest.mark.rules("P17", "P45", "P59", "G3", "G5")
@UNMATCHED
async def test_g05_a_create_that_is_sent_again_is_proven_ours_and_not_doubled(talk: Talk, planned: Any) -> None:
    a_start(talk)
    operation, surface = planned(talk), Surface(talk)
    assert await surface.apply(operation) == surface.own_id(operation)
    assert await surface.apply(operation) == surface.own_id(operation), "in use, read back, ours"
    assert found(talk, operation.kind) == [surface.own_id(operation)]


@pytest.mark.rules("P59", "P66", "G5", "G6")
@UNMATCHED
async def test_g06_what_someone_else_created_is_refused_by_its_constraint(talk: Talk, planned: Any) -> None:
    a_start(talk)
    operation = planned(talk)
    first = await Surface(talk, "run-1").apply(operation)
    with pytest.raises(UniquenessConflictError):
        await Surface(talk, "run-2").apply(operation)
    assert found(talk, operation.kind) == [first]


@pytest.mark.rules("G5", "G6")
async def test_g06_our_id_of_a_deleted_object_is_no_proof(talk: Talk) -> None:
    a_start(talk)
    operation, surface = port(talk), Surface(talk)
    talk.write("ProbePortDelete", {"id": await surface.apply(operation)})
    with pytest.raises(OwnIdElsewhereError):
        await surface.apply(operation)
    assert found(talk, "ProbePort") == []


@pytest.mark.rules("G5", "G6")
@pytest.mark.parametrize("elsewhere", ["another kind", "another branch"])
async def test_g06_our_id_in_use_elsewhere_is_no_proof(talk: Talk, elsewhere: str) -> None:
    a_start(talk)
    operation, surface = port(talk), Surface(talk)
    branch = talk.new_branch("other") if elsewhere == "another branch" else None
    data = {"id": surface.own_id(operation), **values(entry="x")}
    assert talk.write("ProbeLogCreate", data, branch=branch).ok
    with pytest.raises(OwnIdElsewhereError):
        await surface.apply(operation)
    assert found(talk, "ProbePort") == []
