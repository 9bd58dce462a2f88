"""Creates under an id of ours, by the write surface, on the sandbox and on a real server by the same code."""

from __future__ import annotations

from typing import Any

import pytest

from consumers.infrahub.errors import OwnIdElsewhereError, UniquenessConflictError
from tests.contract.cases.surface import Surface, a_start, found, port, stall
from tests.contract.cases.talk import Talk, values

pytestmark = pytest.mark.contract

UNMATCHED = pytest.mark.parametrize(
    "planned", [port, stall], ids=["constraint alone", "key that only a generic guards"]
)


@pytest.mark.rules("P17", "P45", "P59", "G3", "G5")
@UNMATCHED
async def test_g05_a_create_that_is_sent_again_is_proven_ours_and_not_doubled(talk: Talk, planned: Any) -> None:
    a_start(talk)
    operation, surface = planned(talk), Surface(talk)
    assert await surface.apply(operation) == surface.own_id(operation)
    assert await surface.apply(operation) == surface.own_id(operation), "in use, read back, ours"
    assert found(talk, operation.kind) == [surface.own_id(operation)]


@pytest.mark.rules("P59", "G5", "G6")
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
