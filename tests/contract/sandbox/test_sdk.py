"""infrahub-sdk itself reads from and writes to the sandbox, on the real schema."""

from __future__ import annotations

from typing import Any

import pytest
from infrahub_sdk import Config, InfrahubClient, InfrahubClientSync
from infrahub_sdk.exceptions import (
    AuthenticationError,
    GraphQLError,
    JsonDecodeError,
    NodeNotFoundError,
    ServerNotReachableError,
    URLNotFoundError,
)

from consumers.infrahub.sandbox import FaultAnswer, FaultRule, RunningSandbox

pytestmark = pytest.mark.contract


def _config(sandbox: RunningSandbox, token: str | None = None) -> Config:
    return Config(
        address=sandbox.url, api_token=token or sandbox.token, default_branch="main", retry_on_failure=False, timeout=20
    )


@pytest.fixture
async def client(real_sandbox: RunningSandbox) -> InfrahubClient:
    return InfrahubClient(config=_config(real_sandbox))


async def _device_type(client: InfrahubClient) -> tuple[str, str]:
    maker = await client.create("OrganizationManufacturer", name="ACME")
    await maker.save(allow_upsert=True)
    made = await client.create("DcimDeviceType", name="X1", manufacturer=maker.id, height=2)
    await made.save(allow_upsert=True)
    return str(maker.id), str(made.id)


async def test_the_schema_is_read_by_the_sdk(client: InfrahubClient) -> None:
    kinds = await client.schema.all(branch="main")
    assert {"DcimDevice", "BuiltinTag", "LocationPlace"} <= set(kinds)


async def test_create_and_save_upserts(client: InfrahubClient, real_sandbox: RunningSandbox) -> None:
    awkward = 'say "hi"\n$x \\ Ünï 🙂'
    for _ in range(2):
        tag = await client.create("BuiltinTag", name="red", description=awkward)
        await tag.save(allow_upsert=True)
    stored = real_sandbox.store.get(str(tag.id))
    assert stored is not None
    assert stored.values["description"] == awkward
    assert real_sandbox.store.count("BuiltinTag") == 1


async def test_relationships_by_id_and_by_hfid(client: InfrahubClient) -> None:
    maker, first = await _device_type(client)
    second = await client.create("DcimDeviceType", name="X2", manufacturer=["ACME"])
    await second.save(allow_upsert=True)
    read: Any = await client.get("DcimDeviceType", id=first)
    assert (read.manufacturer.id, read.height.value, read.display_label) == (maker, 2, "X1")
    every: list[Any] = await client.all("DcimDeviceType")
    assert {node.name.value for node in every} == {"X1", "X2"}


async def test_filters_pages_and_metadata(client: InfrahubClient) -> None:
    client.pagination_size = 2
    for number in range(5):
        tag = await client.create("BuiltinTag", name=f"t{number}")
        await tag.save(allow_upsert=True)
    tags: list[Any] = await client.filters("BuiltinTag", include_metadata=True, property=True)
    assert sorted(str(tag.name.value) for tag in tags) == [f"t{number}" for number in range(5)]
    assert await client.count("BuiltinTag", name__values=["t1", "t2"]) == 2
    metadata = tags[0].get_node_metadata()
    assert metadata is not None
    assert metadata.updated_at is not None


async def test_generics_with_fragments_and_prefetched_peers(client: InfrahubClient) -> None:
    await _device_type(client)
    parties: list[Any] = await client.filters("OrganizationParty", fragment=True)
    assert [(node.get_kind(), node.name.value) for node in parties] == [("OrganizationManufacturer", "ACME")]
    found: list[Any] = await client.filters(
        "DcimDeviceType", manufacturer__name__value="ACME", prefetch_relationships=True
    )
    assert [node.manufacturer.peer.name.value for node in found] == ["ACME"]


async def test_get_change_save_and_delete(client: InfrahubClient, real_sandbox: RunningSandbox) -> None:
    _, device_type = await _device_type(client)
    read: Any = await client.get("DcimDeviceType", id=device_type)
    read.name.value = "X9"
    await read.save()
    assert (await client.get("DcimDeviceType", name__value="X9")).id == device_type
    await client.delete("DcimDeviceType", device_type)
    with pytest.raises(NodeNotFoundError):
        await client.get("DcimDeviceType", id=device_type)
    assert real_sandbox.store.count("DcimDeviceType") == 0


async def test_branches_by_the_sdk(client: InfrahubClient) -> None:
    made = await client.branch.create("lab1", sync_with_git=False)
    assert (made.name, made.is_default, made.origin_branch) == ("lab1", False, "main")
    tag = await client.create("BuiltinTag", branch="lab1", name="there")
    await tag.save(allow_upsert=True)
    assert (await client.count("BuiltinTag"), await client.count("BuiltinTag", branch="lab1")) == (0, 1)
    assert list(await client.branch.all()) == ["main", "lab1"]
    assert (await client.branch.get("lab1")).id == made.id
    assert await client.branch.delete("lab1") is True
    with pytest.raises(URLNotFoundError):
        await client.count("BuiltinTag", branch="lab1")


async def test_execute_graphql_with_variables(client: InfrahubClient) -> None:
    text = "mutation Apply($data: BuiltinTagUpsertInput!) { BuiltinTagUpsert(data: $data) { ok object { id } } }"
    data = await client.execute_graphql(text, variables={"data": {"name": {"value": "red"}}}, branch_name="main")
    assert data["BuiltinTagUpsert"]["ok"] is True
    with pytest.raises(GraphQLError) as caught:
        await client.execute_graphql(text, variables={"data": {"id": "gone"}}, branch_name="main")
    assert caught.value.errors[0]["extensions"]["data"] == {"node_kind": "BuiltinTag", "identifier": "gone"}


async def test_version_and_deployment(client: InfrahubClient, real_sandbox: RunningSandbox) -> None:
    information = await client.get_server_information()
    assert (information.version, information.deployment_id) == ("1.11.9", real_sandbox.store.deployment_id)


async def test_a_wrong_token_is_an_authentication_error(real_sandbox: RunningSandbox) -> None:
    client = InfrahubClient(config=_config(real_sandbox, "wrong"))
    with pytest.raises(AuthenticationError):
        await client.execute_graphql("query { BuiltinTag { count } }")


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (FaultAnswer.DROP, ServerNotReachableError),
        (FaultAnswer.TEXT_500, JsonDecodeError),
        (FaultAnswer.NOT_JSON, JsonDecodeError),
        (FaultAnswer.EMPTY_ERRORS, GraphQLError),
        (FaultAnswer.DEFUNCT_CONNECTION, GraphQLError),
        (FaultAnswer.UNAVAILABLE_503, GraphQLError),
    ],
)
async def test_faults_surface_in_the_sdk_as_on_a_real_server(
    client: InfrahubClient, real_sandbox: RunningSandbox, answer: FaultAnswer, error: type[Exception]
) -> None:
    real_sandbox.faults.add(FaultRule(answer=answer))
    tag = await client.create("BuiltinTag", name="red")
    with pytest.raises(error):
        await tag.save(allow_upsert=True)
    assert real_sandbox.store.count("BuiltinTag") == int(answer is not FaultAnswer.UNAVAILABLE_503)


def test_the_synchronous_client_writes_too(real_sandbox: RunningSandbox) -> None:
    client = InfrahubClientSync(config=_config(real_sandbox))
    tag = client.create("BuiltinTag", name="red")
    tag.save(allow_upsert=True)
    assert [node.id for node in client.all("BuiltinTag")] == [tag.id]
