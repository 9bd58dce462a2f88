"""Orders over HTTP are the orders of the command line, and one that is sent again is one order."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ledger.api.tokens import Role
from ledger.cli.api_orders import CommandOrders
from ledger.cli.settings import DestinationSettings, Settings
from ledger.commit import Policy
from ledger.store.served import ServedLedger
from tests.integration.api.conftest import several_runs
from tests.support.api import BASE, Served, served
from tests.support.recorded_runs import BINDING, Recorder, make_plan

pytestmark = pytest.mark.integration

SECRET = "hunter2-hunter2"  # looked for in what an operator says
RESUME = f"{BASE}/bindings/1/runs/run-2/resume"
STOP = f"{BASE}/bindings/1/runs/run-3/stop"


@pytest.fixture
async def ordering(
    postgres18_ledger_dsns: dict[str, str], recording: Recorder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Served]:
    monkeypatch.setenv("INFRAHUB_API_TOKEN", SECRET)
    await several_runs(recording)
    destination = DestinationSettings(url=BINDING.url, branch=BINDING.branch)
    installation = Settings(destination=(destination,), cache_dir=tmp_path / "runs")
    async with (
        await ServedLedger.open(postgres18_ledger_dsns["writer"], allow_unsafe_fsync=True) as ledger,
        served(postgres18_ledger_dsns, orders=CommandOrders(installation, ledger)) as opened,
    ):
        yield opened


async def _post(api: Served, path: str, body: dict[str, Any], *, key: str | None = None, status: int = 202) -> Any:
    async with api.client() as client:
        headers = {"Content-Type": "application/json"} | ({} if key is None else {"Idempotency-Key": key})
        response = await client.post(path, content=json.dumps(body), headers=headers)
    assert response.status_code == status, response.text
    return response.json()


@pytest.mark.rules("G7")
async def test_g07_a_resume_that_is_sent_again_is_one_order(ordering: Served, recording: Recorder) -> None:
    first = await _post(ordering, RESUME, {"reason": "looked at it"}, key="a")
    again = await _post(ordering, RESUME, {"reason": "looked at it"}, key="a")
    assert (first["first"], again["first"], again["order_id"]) == (True, False, first["order_id"])
    without = await _post(ordering, RESUME, {"reason": "looked at it"})
    assert (without["first"], without["order_id"]) == (False, first["order_id"])
    orders = [order for order in await recording.ledger.open_orders(1) if order.kind == "resume"]
    assert [(str(order.order_id), order.body["reason"]) for order in orders] == [(first["order_id"], "looked at it")]
    assert orders[0].body["by"] == f"the operator (token {ordering.tokens[Role.OPERATOR][4:20]})"


@pytest.mark.rules("G7")
async def test_g07_a_key_that_came_with_another_request_is_refused(ordering: Served) -> None:
    await _post(ordering, RESUME, {"reason": "one"}, key="a")
    other = await _post(ordering, RESUME, {"reason": "two"}, key="a", status=409)
    assert other["code"] == "IdempotencyConflictError"
    assert (await _post(ordering, STOP, {}, key="a", status=409))["code"] == "OrderConflictError"
    policy = {"reason": "one", "policy": {"on_unknown": "converge"}}
    assert (await _post(ordering, RESUME, policy, key="a", status=409))["code"] == "OrderConflictError"


@pytest.mark.rules("G1")
async def test_g01_a_resumption_keeps_the_policy_of_its_commit_where_it_names_no_other(
    ordering: Served, recording: Recorder
) -> None:
    plan = make_plan("run-careful", creates=1, deletes=0)
    await recording.commit(plan, policy=Policy(on_overlap="refuse", on_crash="stop", allow_stale=True))
    await recording.refused(plan)
    chosen = {"on_unknown": "converge", "allow_stale": False}
    path = f"{BASE}/bindings/1/runs/run-careful/resume"
    await _post(ordering, path, {"policy": chosen}, key="a")
    assert not (await _post(ordering, path, {"policy": chosen}, key="a"))["first"]
    (order,) = [order for order in await recording.ledger.open_orders(1) if order.run_id == "run-careful"]
    wanted = Policy(on_overlap="refuse", on_crash="stop", on_unknown="converge", allow_stale=False)
    assert order.body["policy"] == wanted.model_dump()


async def test_where_a_reason_is_wanted_no_order_is_taken_without_one(
    postgres18_ledger_dsns: dict[str, str], recording: Recorder, tmp_path: Path
) -> None:
    await several_runs(recording)
    before = await recording.ledger.open_orders(1)
    destination = DestinationSettings(url=BINDING.url, branch=BINDING.branch)
    strict = Settings(destination=(destination,), cache_dir=tmp_path / "runs", require_reason=True)
    async with (
        await ServedLedger.open(postgres18_ledger_dsns["writer"], allow_unsafe_fsync=True) as ledger,
        served(postgres18_ledger_dsns, orders=CommandOrders(strict, ledger)) as api,
    ):
        commit = {"run": "netbox/run-5", "expected_checksum": "ab" * 32}
        for path, body in ((RESUME, {}), (STOP, {"reason": " "}), (f"{BASE}/commits", commit)):
            refused = await _post(api, path, body, status=422)
            assert refused["code"] == "ReasonRequiredError", path
        assert await recording.ledger.open_orders(1) == before
        await _post(api, STOP, {"reason": "CHG-1"})


async def test_a_stop_reaches_the_inbox(ordering: Served, recording: Recorder) -> None:
    receipt = await _post(ordering, STOP, {"reason": "lunch"})
    stop = await recording.ledger.pending_stop(1, "run-3")
    assert stop is not None
    assert (str(stop.order_id), stop.body["reason"]) == (receipt["order_id"], "lunch")


@pytest.mark.parametrize(
    ("path", "body", "status", "code"),
    [
        (f"{BASE}/bindings/1/runs/run-1/resume", {}, 409, "RunFinishedError"),
        (f"{BASE}/bindings/1/runs/run-1/stop", {}, 409, "RunFinishedError"),
        (f"{BASE}/bindings/1/runs/run-3/resume", {}, 409, "RunStillOpenError"),
        (f"{BASE}/bindings/1/runs/run-9/resume", {}, 404, "UnknownRunError"),
        (f"{BASE}/bindings/9/runs/run-1/stop", {}, 404, "NotThereError"),
        (RESUME, {"reason": f"with {SECRET}"}, 422, "SecretInWordsError"),
        (RESUME, {"reason": "a\0b"}, 422, "InvalidRequestError"),
        (RESUME, {"reason": "\ud800"}, 422, "InvalidRequestError"),
        (RESUME, {"reason": "☃" * 30_000}, 413, "BodyTooLargeError"),
        (RESUME, {"policy": {"on_unknown": "guess"}}, 422, "InvalidRequestError"),
        (RESUME, {"actor": "somebody else"}, 422, "InvalidRequestError"),
        (f"{BASE}/commits", {"run": "../run-1", "expected_checksum": "a" * 64}, 422, "InvalidRequestError"),
        (f"{BASE}/commits", {"run": "a/b", "expected_checksum": "a" * 64}, 404, "NotThereError"),
        (f"{BASE}/commits", {"run": "a/b"}, 422, "InvalidRequestError"),
    ],
)
async def test_what_the_command_refuses_is_refused_by_the_same_name(
    ordering: Served, recording: Recorder, path: str, body: dict[str, Any], status: int, code: str
) -> None:
    before = await recording.ledger.open_orders(1)
    problem = await _post(ordering, path, body, status=status)
    assert problem["code"] == code
    assert SECRET not in str(problem)
    assert await recording.ledger.open_orders(1) == before


@pytest.mark.rules("G12")
async def test_g12_a_token_of_the_api_is_kept_out_of_the_record(ordering: Served, recording: Recorder) -> None:
    token = ordering.tokens[Role.READER]
    problem = await _post(ordering, RESUME, {"reason": f"use {token}"}, status=422)
    assert problem["code"] == "SecretInWordsError"
    assert token not in str(problem)


async def test_a_destination_that_is_not_declared_takes_no_orders(
    postgres18_ledger_dsns: dict[str, str], recording: Recorder
) -> None:
    await several_runs(recording)
    async with (
        await ServedLedger.open(postgres18_ledger_dsns["writer"], allow_unsafe_fsync=True) as ledger,
        served(postgres18_ledger_dsns, orders=CommandOrders(Settings(), ledger)) as opened,
    ):
        assert (await _post(opened, RESUME, {}, status=409))["code"] == "ConfigurationError"


async def test_a_server_that_only_reads_takes_no_orders(api: Served) -> None:
    for path in (RESUME, STOP, f"{BASE}/commits"):
        body = {"run": "a/b", "expected_checksum": "a" * 64} if path.endswith("commits") else {}
        assert (await _post(api, path, body, status=403))["code"] == "OrdersNotTakenError"
