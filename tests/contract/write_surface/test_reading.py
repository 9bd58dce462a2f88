"""Reading a destination through its pages, and every document that the client can send, against the server's schema."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from graphql import GraphQLSchema, parse, validate

from consumers.infrahub.mutations import mutation_text
from consumers.infrahub.pages import count_text, page_text, peers_page_text
from consumers.infrahub.peer_query import Component, lookup_text
from consumers.infrahub.sandbox import RunningSandbox
from consumers.infrahub.sandbox.graphql_schema import build_schema
from consumers.infrahub.sandbox.model import read_model
from ledger.destination import FieldSelection
from ledger.schema import DestinationSchema, parse_schema
from tests.contract.write_surface.applying import observed
from tests.contract.write_surface.conftest import Lab
from tests.support.sandbox_schema import sandbox_schema

pytestmark = pytest.mark.contract

REAL = Path(__file__).parents[2] / "data" / "schema-api.json"


async def test_pages_bring_every_object_once(lab: Lab) -> None:
    store = lab.sandbox.store
    ids = {store.create("LabSite", {"name": f"dc{n}", "asset": str(n)}) for n in range(7)}
    for page_size in (2, 3, 7, 8):
        items = await observed(lab, "LabSite", FieldSelection(("name",)), page_size=page_size)
        assert {item.id for item in items} == ids
        assert len(items) == 7
    async with lab.reader() as reader:
        assert await reader.counts(("LabSite", "LabTag")) == {"LabSite": 7, "LabTag": 0}


async def test_sets_of_peers_come_whole(lab: Lab) -> None:
    store = lab.sandbox.store
    tags = [store.create("LabTag", {"name": f"t{n}"}) for n in range(9)]
    store.create("LabSite", {"name": "dc1", "tags": tags})
    (item,) = await observed(lab, "LabSite", FieldSelection(many=("tags",)), page_size=2)
    assert {peer.id for peer in item.many["tags"]} == set(tags)


async def test_the_schema_is_the_document_that_was_served(lab: Lab) -> None:
    async with lab.reader() as reader:
        schema = await reader.schema()
    assert schema == parse_schema(sandbox_schema() | {"main": schema.hash})


async def test_every_kind_of_the_real_schema_can_be_read_with_all_its_fields() -> None:
    with RunningSandbox(REAL, token="t", seed="real") as running:
        lab = Lab(running)
        async with lab.reader() as reader:
            schema = await reader.schema()
            for kind in filter(lambda kind: kind.is_node, schema.kinds.values()):
                relationships = kind.relationships.values()
                fields = FieldSelection(
                    attributes=tuple(kind.attributes),
                    one=tuple(item.name for item in relationships if item.cardinality == "one"),
                    many=tuple(item.name for item in relationships if item.cardinality == "many"),
                )
                items = [item async for item in reader.read(kind.kind, fields)]
                assert await reader.counts((kind.kind,)) == {kind.kind: len(items)}


@pytest.mark.rules("P77", "P78", "P84")
def test_every_document_is_valid_at_the_server() -> None:
    document = json.loads(REAL.read_text(encoding="utf-8"))
    server, schema = build_schema(read_model(document)), parse_schema(document)
    texts = [text for kind in schema.kinds.values() if kind.is_node for text in _documents(kind.kind, schema)]
    assert len(texts) > 200
    assert [problem for text in texts for problem in _problems(server, text)] == []


def _documents(name: str, schema: DestinationSchema) -> list[str]:
    kind = schema.kinds[name]
    conditions = [Component.value(attribute) for attribute in kind.attributes.values()]
    conditions += [Component.peer_id(item.name) for item in kind.relationships.values() if item.cardinality == "one"]
    for path in kind.human_friendly_id:
        if path.relationship is not None and path.attribute is not None:
            peer = schema.kinds[kind.relationships[path.relationship].peer]
            conditions.append(Component.value(peer.attributes[path.attribute], across=path.relationship))
    return [
        mutation_text(name, "Upsert"),
        mutation_text(name, "Create"),
        count_text((name,)),
        page_text(name, tuple(kind.attributes), (), ()),
        *(peers_page_text(name, item.name) for item in kind.relationships.values() if item.cardinality == "many"),
        lookup_text(name, tuple(conditions)),
    ]


def _problems(server: GraphQLSchema, text: str) -> list[str]:
    return [f"{problem.message} in {text}" for problem in validate(server, parse(text))]
