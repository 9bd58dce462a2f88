"""The address namespace that every branch is born with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from consumers.infrahub.sandbox import RunningSandbox
from tests.support.graphql_client import GraphQLClient, values

pytestmark = pytest.mark.contract


@pytest.fixture
def real(real_sandbox: RunningSandbox) -> Iterator[GraphQLClient]:
    with GraphQLClient(real_sandbox) as client:
        yield client


def test_a_prefix_without_a_namespace_falls_into_the_default_one(real: GraphQLClient) -> None:
    found = real.query("{ BuiltinIPNamespace { edges { node { id name: display_label } } } }")
    (edge,) = found["BuiltinIPNamespace"]["edges"]
    assert edge["node"]["name"] == "default"
    first = real.write("IpamPrefixUpsert", values(prefix="10.0.0.0/24"))
    namespace = {"ip_namespace": {"id": edge["node"]["id"]}}
    assert real.write("IpamPrefixUpsert", {**values(prefix="10.0.0.0/24"), **namespace}) == first
    read = real.node("IpamPrefix", first, "ip_namespace { node { id } } hfid")
    assert read == {"ip_namespace": {"node": {"id": edge["node"]["id"]}}, "hfid": ["10.0.0.0/24", "default"]}


def test_one_prefix_in_two_namespaces_is_two_objects(real: GraphQLClient) -> None:
    other = real.write("IpamNamespaceUpsert", values(name="other"))
    here = real.write("IpamPrefixUpsert", values(prefix="10.0.0.0/24"))
    there = real.write("IpamPrefixUpsert", {**values(prefix="10.0.0.0/24"), "ip_namespace": {"id": other}})
    assert here != there


def test_a_namespace_takes_its_addresses_along(real: GraphQLClient, real_sandbox: RunningSandbox) -> None:
    other = real.write("IpamNamespaceUpsert", values(name="other"))
    real.write("IpamIPAddressUpsert", {**values(address="10.0.0.1"), "ip_namespace": {"id": other}})
    real.mutate("IpamNamespaceDelete", {"id": other}, "ok")
    assert real_sandbox.store.count("IpamIPAddress") == 0
