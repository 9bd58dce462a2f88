"""Writes that overlap, as a real server lets them: what each read before the other was through is not read again."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from consumers.infrahub.sandbox import FaultRule, RunningSandbox
from consumers.infrahub.sandbox.store_file import store_file
from tests.support.graphql_client import GraphQLClient, values
from tests.support.sandbox_schema import sandbox_schema

pytestmark = pytest.mark.contract

TAGS = "tags { count edges { node { display_label } } }"
BACKUP = "backup_site { node { display_label } }"


@contextmanager
def held_amid(sandbox: RunningSandbox, write: Callable[[GraphQLClient], Any]) -> Iterator[None]:
    """A write that has read what it needs, and is carried out when this is left."""
    fault = sandbox.faults.add(FaultRule(hold="amid-write"))

    def send() -> None:
        with GraphQLClient(sandbox) as other:
            write(other)

    writing = threading.Thread(target=send)
    writing.start()
    try:
        assert fault.wait_reached(20)
        yield
    finally:
        fault.release()
        writing.join(20)


@pytest.fixture
def device(lab: GraphQLClient) -> str:
    site = lab.write("LabSiteUpsert", values(name="dc1", asset="1"))
    return lab.write("LabDeviceUpsert", {**values(name="sw1"), "site": {"id": site}})


def test_two_writes_of_one_set_double_its_edges(lab: GraphQLClient, sandbox: RunningSandbox, device: str) -> None:
    tags = [lab.write("LabTagUpsert", values(name=name)) for name in "ab"]
    data = {"id": device, "tags": [{"id": tag} for tag in tags]}
    with held_amid(sandbox, lambda other: other.write("LabDeviceUpsert", data)):
        lab.write("LabDeviceUpsert", data)
    read = lab.node("LabDevice", device, TAGS)["tags"]
    assert (read["count"], len(read["edges"])) == (4, 2)
    lab.write("LabDeviceUpsert", {"id": device, "tags": []})
    assert lab.node("LabDevice", device, TAGS)["tags"]["count"] == 2, "what is taken away is what was read: one each"


def test_the_same_writes_one_behind_the_other_double_nothing(lab: GraphQLClient, device: str) -> None:
    tags = [lab.write("LabTagUpsert", values(name=name)) for name in "ab"]
    for _ in range(2):
        lab.write("LabDeviceUpsert", {"id": device, "tags": [{"id": tag} for tag in tags]})
    assert lab.node("LabDevice", device, TAGS)["tags"]["count"] == 2


def test_two_writes_of_a_single_peer_make_an_object_that_cannot_be_read(
    lab: GraphQLClient, sandbox: RunningSandbox, device: str
) -> None:
    sites = [lab.write("LabSiteUpsert", values(name=name, asset=name)) for name in ("dc2", "dc3")]
    data = [{"id": device, "backup_site": {"id": site}} for site in sites]
    with held_amid(sandbox, lambda other: other.write("LabDeviceUpsert", data[0])):
        lab.write("LabDeviceUpsert", data[1])
    document = lab.post(f"{{ LabDevice {{ edges {{ node {{ {BACKUP} }} }} }} }}").json()
    assert document["data"] is None
    (error,) = document["errors"]
    assert error["message"] == "At most, one relationship expected"
    assert (error["extensions"]["code"], error["extensions"]["http_status"]) == ("UNDEFINED_ERROR", 500)
    assert lab.node("LabDevice", device, "name { value }") == {"name": {"value": "sw1"}}, "without that peer it can"


def test_attributes_are_those_of_the_last_write(lab: GraphQLClient, sandbox: RunningSandbox, device: str) -> None:
    late = {"id": device, **values(notes="late")}
    with held_amid(sandbox, lambda other: other.write("LabDeviceUpsert", late)):
        lab.write("LabDeviceUpsert", {"id": device, **values(notes="early", height=3)})
    assert lab.node("LabDevice", device, "notes { value } height { value }") == {
        "notes": {"value": "late"},
        "height": {"value": 3},
    }


OWN = "0d3f3f3a-6a0e-4c52-9d5c-3c2c55c6f7aa"


def test_two_creates_under_one_id_make_two_objects_where_nothing_is_unique(
    lab: GraphQLClient, sandbox: RunningSandbox
) -> None:
    with held_amid(sandbox, lambda other: other.write("LabLogCreate", {"id": OWN, **values(name="first")})):
        lab.write("LabLogCreate", {"id": OWN, **values(name="second")})
    read = lab.query("{ LabLog { count edges { node { id } } } }")["LabLog"]
    assert (read["count"], read["edges"]) == (2, [{"node": {"id": OWN}}])
    for left in (1, 0):
        lab.mutate("LabLogDelete", {"id": OWN}, "ok")
        assert lab.query("{ LabLog { count } }")["LabLog"]["count"] == left


def test_two_creates_under_one_id_of_a_kind_with_a_key_make_one(lab: GraphQLClient, sandbox: RunningSandbox) -> None:
    data = {"id": OWN, **values(name="t")}
    refusals: list[dict[str, Any]] = []
    with held_amid(sandbox, lambda other: refusals.append(other.refused("LabTagCreate", data))):
        lab.write("LabTagCreate", data)
    assert [refusal["message"] for refusal in refusals] == [f"{OWN} is already in use at id"]
    assert sandbox.store.count("LabTag") == 1


def test_what_is_doubled_is_in_the_content_and_is_kept_in_a_file(
    lab: GraphQLClient, sandbox: RunningSandbox, device: str, tmp_path: Path
) -> None:
    tag = lab.write("LabTagUpsert", values(name="a"))
    data = {"id": device, "tags": [{"id": tag}]}
    lab.write("LabDeviceUpsert", data)
    sound = sandbox.store.content()
    lab.write("LabDeviceUpsert", {"id": device, "tags": []})
    with held_amid(sandbox, lambda other: other.write("LabDeviceUpsert", data)):
        lab.write("LabDeviceUpsert", data)
    doubled = sandbox.store.content()
    assert doubled != sound
    file = tmp_path / "store"
    with store_file(file, sandbox_schema()) as kept:
        kept.attach(sandbox.store, "lab")
        kept.save()
    with (
        RunningSandbox(sandbox_schema(), token="lab-token", seed="lab") as again,
        store_file(file, sandbox_schema()) as kept,
    ):
        kept.attach(again.store, "lab")
        assert again.store.content() == doubled
