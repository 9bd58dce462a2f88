"""Single objects over HTTP: found by kind and identity, their history page by page, and who is behind each value."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from ledger.api.tokens import Role
from ledger.audit.history import ObjectHistory, object_history
from ledger.plan.canonical import object_key
from ledger.store.ledger import Ledger
from tests.support.api import BASE, Served, served
from tests.support.postgres import PostgresServer
from tests.support.recorded_runs import Recorder, recorder
from tests.support.store import connection_to, let_lease_run_out
from tests.support.told_story import TAG, changed_tag, commit, told_database, told_plan

pytestmark = pytest.mark.integration

RED = f"/bindings/1/objects/{object_key(TAG, {'name': 'red'}).hex()}"


@pytest.fixture
def told_dsns(postgres18_server: PostgresServer) -> Iterator[dict[str, str]]:
    yield from told_database(postgres18_server)


@pytest.fixture
async def told(told_dsns: dict[str, str]) -> AsyncIterator[Served]:
    async with served(told_dsns) as opened:
        yield opened


@asynccontextmanager
async def _told_on(dsns: dict[str, str]) -> AsyncIterator[Recorder]:
    """Goes on with the story: who told it so far holds the lease no more."""
    async with connection_to(dsns["admin"]) as admin:
        await let_lease_run_out(admin, 1)
    async with recorder(dsns) as recording:
        yield recording


async def _get(client: httpx.AsyncClient, path: str, **query: Any) -> Any:
    response = await client.get(BASE + path, params=query)
    assert response.status_code == 200, response.text
    return response.json()


async def _whole(dsns: dict[str, str], name: str) -> ObjectHistory:
    async with await Ledger.open(dsns["reader"], allow_unsafe_fsync=True) as ledger:
        found = await object_history(ledger, (await ledger.bindings())[0], TAG, {"name": name})
    assert found is not None
    return found


async def test_an_object_is_found_by_kind_and_identity(told: Served) -> None:
    async with told.client(Role.READER) as client:
        [red] = await _get(client, "/objects", kind=TAG, identity='{"name": "red"}')
        assert (red["binding_id"], red["kind"], red["identity"]) == (1, TAG, {"name": "red"})
        assert (red["outcome"], red["run_id"]) == ("unknown", "run-doubt")
        assert red["object_key"] == object_key(TAG, {"name": "red"}).hex()
        assert await _get(client, "/objects", kind=TAG, identity='{"name": "pink"}') == []
        assert await _get(client, "/objects", kind="DcimDevice", identity='{"name": "red"}', binding=1) == []
        missing = await client.get(f"{BASE}/objects", params={"kind": TAG, "identity": '{"name":"red"}', "binding": 2})
        assert missing.status_code == 404


@pytest.mark.parametrize(
    "identity", ["", "red", "[]", "{}", '"red"', "{", "[" * 5000, '{"name": NaN}', '{"a":"\\u0000"}']
)
@pytest.mark.rules("G11")
async def test_g11_an_identity_that_is_none_is_refused_by_name(told: Served, identity: str) -> None:
    async with told.client() as client:
        response = await client.get(f"{BASE}/objects", params={"kind": TAG, "identity": identity})
        assert response.status_code == 400
        assert response.json()["code"] in ("InvalidIdentityError", "UnserializablePayloadValueError")


@pytest.mark.rules("G3", "H16")
async def test_history_page_by_page_is_the_whole_history(told: Served, told_dsns: dict[str, str]) -> None:
    wanted = (await _whole(told_dsns, "red")).document()["assertions"][::-1]
    async with told.client(Role.AUDITOR) as client:
        for limit in (1, 3, 4, 50):
            items: list[dict[str, Any]] = []
            cursor: dict[str, str] = {}
            for _ in range(len(wanted) + 1):
                page = await _get(client, f"{RED}/history", limit=limit, **cursor)
                assert (page["kind"], page["identity"]) == (TAG, {"name": "red"})
                items += page["items"]
                cursor = {"cursor": page["next"]}
                if page["next"] is None:
                    break
            assert items == wanted, limit
        other = RED.replace("/bindings/1", "/bindings/2")
        assert (await client.get(f"{BASE}{other}/history")).status_code == 404
        unknown = f"/bindings/1/objects/{'0' * 64}"
        for part in ("history", "blame"):
            response = await client.get(f"{BASE}{unknown}/{part}")
            assert (response.status_code, response.json()["code"]) == (404, "NotThereError")


@pytest.mark.rules("G5", "G6")
async def test_blame_over_http_is_that_of_the_command(told: Served, told_dsns: dict[str, str]) -> None:
    whole = (await _whole(told_dsns, "red")).blame()
    async with told.client(Role.AUDITOR) as client:
        blame = await _get(client, f"{RED}/blame")
    assert [attribute["name"] for attribute in blame["attributes"]] == [
        attribute["name"] for attribute in whole["attributes"]
    ]
    for found, wanted in zip(blame["attributes"], whole["attributes"], strict=True):
        for name in ("earlier", "in_doubt"):
            assert found.pop(f"{name}_total") == len(wanted[name])
            told_ones, all_of_them = found.pop(name), wanted.pop(name)[::-1]
            assert [entry["position"] for entry in told_ones] == [entry["position"] for entry in all_of_them]
            for entry, all_of_it in zip(told_ones, all_of_them, strict=True):
                assert entry.items() <= all_of_it.items()
                assert name == "earlier" or entry == all_of_it
        assert found == wanted


async def test_blame_names_only_so_many_earlier_values_and_says_how_many_there_are(
    told: Served, told_dsns: dict[str, str]
) -> None:
    async with _told_on(told_dsns) as recording:
        for number in range(30):
            await _repainted(recording, number)
    async with told.client(Role.AUDITOR) as client:
        blame = await _get(client, f"{RED}/blame")
        [description] = [found for found in blame["attributes"] if found["name"] == "description"]
        assert (description["value"], description["before"]) == ("coat 29", "coat 28")
        assert [entry["value"] for entry in description["earlier"]] == [f"coat {n}" for n in range(28, 8, -1)]
        assert (description["earlier_total"], description["in_doubt"]) == (31, [])
        history = await _get(client, f"{RED}/history", limit=500)
        assert len(history["items"]) == 34


async def _repainted(recording: Recorder, number: int) -> None:
    before = f"coat {number - 1}" if number else "warm"
    plan = told_plan(
        f"run-paint-{number}",
        "painter",
        [changed_tag("red", description=f"coat {number}")],
        {"red": {"description": before}},
    )
    await commit(recording, plan, actor="zoe", reason="again")
    await recording.started(plan)
    await recording.outcome(plan, 0, "applied")
    await recording.ended(plan, "run.applied")


async def test_what_nobody_knows_is_left_out_and_null_is_a_value(told: Served, told_dsns: dict[str, str]) -> None:
    """A create saw nothing; an update whose plan saw null says so."""
    plan = told_plan("run-null", "netbox", [changed_tag("blue", description=None)], {"blue": {"description": None}})
    async with _told_on(told_dsns) as recording:
        await commit(recording, plan, actor="ada", reason="")
        await recording.started(plan)
        await recording.outcome(plan, 0, "applied")
    blue = f"/bindings/1/objects/{object_key(TAG, {'name': 'blue'}).hex()}"
    async with told.client(Role.AUDITOR) as client:
        newest, *_, oldest = (await _get(client, f"{blue}/history"))["items"]
        assert newest["fields"]["description"] == {"value": None, "before": None}
        assert "before" not in oldest["fields"]["description"]
        blame = await _get(client, f"{blue}/blame")
        described = {attribute["name"]: attribute for attribute in blame["attributes"]}
        assert described["description"]["before"] is None
        response = await client.get(f"{BASE}{blue}/blame")
        assert json.loads(response.content) == blame
        again = await client.get(f"{BASE}{blue}/blame", headers={"If-None-Match": response.headers["etag"]})
        assert again.status_code == 304
