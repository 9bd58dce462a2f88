"""A sandbox of everything that a real server's ``GET /api/schema`` describes, kinds of the server itself included."""

from __future__ import annotations

import copy
import json
from typing import Any

import httpx
import pytest

from consumers.infrahub.sandbox import create_app
from tests.contract.sandbox.conftest import REAL_SCHEMA
from tests.support.sandbox_schema import attribute, kind, relationship

pytestmark = pytest.mark.contract

_OWN_GENERICS = ("CoreNode", "LineageOwner", "LineageSource", "CoreGenericAccount")


def _whole() -> dict[str, Any]:
    """The document of the tests with what a real one has besides: generics that answers are made of, and accounts."""
    document: dict[str, Any] = json.loads(REAL_SCHEMA.read_text(encoding="utf-8"))
    like = document["generics"][0]
    for name in _OWN_GENERICS:
        made = copy.deepcopy(like) | {"kind": name, "attributes": [attribute("label", optional=True)]}
        document["generics"].append(made | {"relationships": [], "uniqueness_constraints": None})
    account = kind("Account", attributes=[attribute("name", unique=True)], hfid=["name__value"])
    own = {"kind": "CoreAccount", "namespace": "Core", "inherit_from": list(_OWN_GENERICS[1:])}
    document["nodes"].append(account | own)
    (tag,) = (node for node in document["nodes"] if node["kind"] == "BuiltinTag")
    tag["relationships"].append(relationship("owner_account", "CoreGenericAccount", "tag__account", optional=True))
    tag["inherit_from"] = [*(tag.get("inherit_from") or []), "LineageSource"]
    return document


async def test_it_serves_reads_and_writes_beside_the_servers_own_kinds() -> None:
    app = create_app(_whole(), token="t")
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://sandbox", headers={"X-INFRAHUB-KEY": "t"}) as to:
        created = await to.post(
            "/graphql/main", json={"query": 'mutation { BuiltinTagCreate(data: {name: {value: "red"}}) { ok } }'}
        )
        assert created.json() == {"data": {"BuiltinTagCreate": {"ok": True}}}
        text = "{ BuiltinTag { count edges { node { owner_account { node { id } } } } } CoreAccount { count } }"
        read = await to.post("/graphql/main", json={"query": text})
    edges = [{"node": {"owner_account": {"node": None}}}]
    assert read.json() == {"data": {"BuiltinTag": {"count": 1, "edges": edges}, "CoreAccount": {"count": 0}}}
