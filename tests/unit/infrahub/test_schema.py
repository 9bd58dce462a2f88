"""The live schema: fetched once, as complete as the document, and named refusals for everything that is none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from consumers.infrahub.errors import DestinationReadError
from ledger.schema import parse_schema
from tests.contract.cases.schema import sandbox_document
from tests.support.lab_schema import lab_document, lab_schema
from tests.support.scripted_infrahub import Answer, ScriptedInfrahub, graphql, lab_reader, open_surface, text

REAL = json.loads((Path(__file__).parents[2] / "data" / "schema-api.json").read_text(encoding="utf-8"))


class Answering(ScriptedInfrahub):
    """Answers the schema from the script as well."""

    async def handle(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self.script.popleft()
        if isinstance(answer, Exception):
            raise answer
        return answer(request) if callable(answer) else answer


@pytest.mark.rules("P18", "P43")
@pytest.mark.parametrize("document", [REAL, lab_document()], ids=["real", "lab"])
async def test_the_library_loses_nothing_of_the_document(document: dict[str, Any]) -> None:
    async with lab_reader(ScriptedInfrahub(schema_document=document)) as reader:
        assert await reader.schema() == parse_schema(document)


@pytest.mark.rules("P18")
async def test_the_schema_is_fetched_once() -> None:
    server = ScriptedInfrahub()
    async with lab_reader(server) as reader:
        assert await reader.schema() == await reader.schema() == lab_schema()
    assert [str(request.url) for request in server.requests] == ["http://infrahub.test/api/schema?branch=lab1"]


@pytest.mark.rules("P43")
def test_kinds_whose_key_crosses_a_relationship_are_read_from_the_schema() -> None:
    crossing = {
        kind.kind
        for kind in parse_schema(REAL).kinds.values()
        if kind.is_node and any(path.relationship for path in kind.human_friendly_id)
    }
    assert crossing >= {"InterfacePhysical", "InterfaceVirtual", "InterfaceLag", "IpamPrefix", "IpamIPAddress"}


@pytest.mark.rules("G11")
@pytest.mark.parametrize(
    "answer",
    [
        text("broken", 500),
        text("<html>Sign in</html>"),
        graphql([1]),
        graphql({"nodes": "none"}),
        graphql({"nodes": [{"name": "x"}]}),
        graphql({"errors": ["Branch: lab1 not found."]}, 404),
        graphql({"detail": "no"}, 422),
        graphql({"errors": [{"message": "no"}]}, 401),
        httpx.ReadError("reset"),
        httpx.ConnectError("refused"),
    ],
    ids=lambda answer: type(answer).__name__,
)
async def test_g11_a_schema_that_cannot_be_read_is_named(answer: Answer) -> None:
    server = Answering()
    server.will_answer(answer)
    async with lab_reader(server, attempts=1) as reader:
        with pytest.raises(DestinationReadError) as caught:
            await reader.schema()
    assert "http://infrahub.test [lab1]" in caught.value.checked
    assert caught.value.next_action


async def test_a_refused_connection_is_tried_again() -> None:
    server = Answering()
    server.will_answer(httpx.ConnectError("refused"), graphql(lab_document()))
    async with lab_reader(server) as reader:
        assert (await reader.schema()).node("LabSite") is not None


@pytest.mark.rules("G11")
@pytest.mark.parametrize(
    "answer", [text("no", 401), text("away", 503), httpx.ConnectError("refused")], ids=["token", "fault", "refused"]
)
async def test_g11_who_plans_is_told_to_plan_again_and_who_applies_to_resume(answer: Answer) -> None:
    planning, applying = Answering(), Answering()
    for server in (planning, applying):
        server.will_answer(answer)
    with pytest.raises(DestinationReadError) as told:
        async with lab_reader(planning, attempts=1) as reader:
            await reader.schema()
    with pytest.raises(DestinationReadError) as told_a_writer:
        async with open_surface(applying, attempts=1):
            raise AssertionError("the schema was fetched")
    assert not {"resume", "order"} & set(told.value.next_action.split())
    assert {"resume", "order"} & set(told_a_writer.value.next_action.split())


@pytest.mark.rules("P40", "P43", "P59")
def test_a_key_that_only_a_generic_guards_without_having_it_is_not_matched() -> None:
    """What the contract cases show of the real server: such a kind's second upsert is refused."""
    kinds = parse_schema(sandbox_document()).kinds
    found = {name: kinds[f"Probe{name}"] for name in ("Stall", "Booth", "Rack", "Vlan", "Port")}
    assert {name: kind.key_is_matched for name, kind in found.items() if kind.human_friendly_id} == {
        "Stall": False,
        "Booth": True,
        "Rack": True,
        "Vlan": True,
    }
    assert [name for name, kind in found.items() if kind.keyed_by_constraint_alone] == ["Stall", "Port"]
