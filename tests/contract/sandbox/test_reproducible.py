"""A run with a seed is the same as the last one; content compares two stores."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from consumers.infrahub.sandbox import RunningSandbox, SandboxStore
from tests.support.graphql_client import GraphQLClient, values
from tests.support.sandbox_schema import sandbox_schema

pytestmark = pytest.mark.contract

QUERY = "{ LabTag { edges { node { id name { value updated_at } } node_metadata { created_at updated_at } } } }"


def _run(seed: str | None) -> object:
    def clock() -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    with (
        RunningSandbox(sandbox_schema(), token="t", seed=seed, clock=clock) as sandbox,
        GraphQLClient(sandbox) as client,
    ):
        for name in ("a", "b"):
            client.write("LabTagUpsert", values(name=name))
        return client.query(QUERY), sandbox.store.deployment_id


def test_the_same_seed_gives_the_same_bytes() -> None:
    assert _run("one") == _run("one")


def test_another_seed_or_none_gives_other_ids() -> None:
    assert len({str(_run(seed)) for seed in ("one", "two", None, None)}) == 4


def test_content_is_equal_whatever_the_order_of_writing_and_the_ids() -> None:
    def fill(store: SandboxStore, names: list[str]) -> None:
        tags = {name: store.create("LabTag", {"name": name}) for name in names}
        site = store.create("LabSite", {"name": "s", "tags": list(tags.values())})
        for name in reversed(names):
            store.create("LabRack", {"name": name, "site": site})

    one, two = SandboxStore(sandbox_schema()), SandboxStore(sandbox_schema())
    fill(one, ["a", "b"])
    fill(two, ["b", "a"])
    assert one.content() == two.content()
    two.create("LabTag", {"name": "c"})
    assert one.content() != two.content()


def test_content_names_peers_by_their_keys() -> None:
    store = SandboxStore(sandbox_schema())
    site = store.create("LabSite", {"name": "s"})
    store.create("LabRack", {"name": "r", "site": site})
    rack = next(row for row in store.content() if row["kind"] == "LabRack")
    assert rack["name"] == ["LabRack", ["LabSite", "s"], "r"]
    assert rack["relationships"] == {"site": [["LabSite", "s"]]}
