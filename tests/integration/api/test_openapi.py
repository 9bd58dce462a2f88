"""Requests made up from the OpenAPI document: none is a defect, and no answer is another than the document says."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.config import SchemathesisConfig
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from ledger.api.tokens import Role
from ledger.audit.publish import publish_checkpoint
from ledger.audit.signed_note import SigningKey
from ledger.cli.api_orders import CommandOrders
from ledger.cli.settings import DestinationSettings, Settings
from ledger.plan.canonical import object_key
from ledger.store.served import ServedLedger
from tests.integration.api.conftest import several_runs
from tests.support.api import BASE, listening, served
from tests.support.postgres import run_apart
from tests.support.recorded_runs import BINDING, make_plan, recorder

pytestmark = pytest.mark.integration

STREAMS = {f"GET {BASE}/bindings/{{binding_id}}/events/stream",
           f"GET {BASE}/bindings/{{binding_id}}/runs/{{run_id}}/events/stream"}  # fmt: skip
"""They do not come to an end; test_streams.py has them."""

TAKEN = ["2xx", "3xx", "400", "401", "403", "404", "409"]
"""What may be answered to a request that is as documented. 400: no schema can tell a cursor that was handed out from
one that was made up."""

CHECKS_OF_WRONG_REQUESTS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
"""Of a request that is not as documented. Not whether it is refused: a list that ignores what cannot matter may."""


async def _recorded(dsns: dict[str, str]) -> dict[str, Any]:
    """Record something for every route, and say where it is: a value for each parameter of a path, and queries."""
    async with recorder(dsns) as recording:
        await several_runs(recording)
        key = SigningKey("tests", Ed25519PrivateKey.from_private_bytes(bytes(range(32))))
        [row] = await recording.ledger.bindings()
        published = await publish_checkpoint(recording.ledger, row, [key])
        first = make_plan("run-1").operations[0]
        return {
            "binding_id": recording.binding_id,
            "run_id": "run-1",
            "ordinal": 0,
            "operation_id": first.operation_id,
            "object_key": object_key(first.kind, first.identity).hex(),
            "position": 1,
            "checkpoint": published.event_position,
            "of": {
                f"GET {BASE}/objects": {"kind": first.kind, "identity": json.dumps(first.identity)},
                f"GET {BASE}/bindings/{{binding_id}}/state/diff": {"from": "1", "to": str(published.position)},
            },
        }


@pytest.fixture
def served_apart(postgres18_ledger_dsns: dict[str, str], tmp_path: Path) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Address and token of an API that runs on a loop of its own, because the requests come from this thread; and what
    is recorded there."""
    there = run_apart(_recorded(postgres18_ledger_dsns))
    ready: Future[tuple[str, str, asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def serve() -> None:
        destination = DestinationSettings(url=BINDING.url, branch=BINDING.branch)
        installation = Settings(destination=(destination,), cache_dir=tmp_path / "runs")
        stop = asyncio.Event()
        async with await ServedLedger.open(postgres18_ledger_dsns["writer"], allow_unsafe_fsync=True) as ledger:
            orders = CommandOrders(installation, ledger)
            async with served(postgres18_ledger_dsns, orders=orders) as opened, listening(opened) as url:
                ready.set_result((url, opened.tokens[Role.OPERATOR], asyncio.get_running_loop(), stop))
                await stop.wait()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    url, token, loop, stop = ready.result(timeout=60)
    yield url, token, there
    loop.call_soon_threadsafe(stop.set)
    thread.join()


@pytest.mark.timeout(300)  # a dozen requests of each address, some of which export the whole ledger
def test_requests_made_from_the_document_are_answered_as_it_says(
    served_apart: tuple[str, str, dict[str, Any]],
) -> None:
    url, token, there = served_apart
    headers = {"Authorization": f"Bearer {token}"}
    config = SchemathesisConfig.from_dict({"checks": {"positive_data_acceptance": {"expected-statuses": TAKEN}}})
    schema = schemathesis.openapi.from_url(f"{url}{BASE}/openapi.json", headers=headers, config=config)
    asked: dict[str, set[int]] = {}
    for found in schema.get_all_operations():
        operation: Any = found.ok()  # type: ignore[union-attr] # an error ends the test with its own words
        name = f"{operation.method.upper()} {operation.path}"
        if name in STREAMS:
            continue
        named = {part: there[part] for part in re.findall(r"{(\w+)}", operation.path)}
        asked[name] = {
            *_asked(operation.as_strategy(), headers, checks=None),
            *_asked(operation.as_strategy(path_parameters=named, query=there["of"].get(name)), headers, checks=None),
        }
        if operation.definition.raw.keys() & {"parameters", "requestBody"}:  # where nothing is given, nothing is wrong
            wrong = operation.as_strategy(GenerationMode.NEGATIVE)
            asked[name] |= _asked(wrong, headers, checks=CHECKS_OF_WRONG_REQUESTS)
    assert len(asked) == len(list(schema.get_all_operations())) - len(STREAMS)
    never_answered = {name for name, statuses in asked.items() if name.startswith("GET") and 200 not in statuses}
    assert never_answered == set(), "no answer of these was compared with the document"
    assert {401, 404, 422} <= set().union(*asked.values())


def _asked(requests: Any, headers: dict[str, str], *, checks: list[Any] | None) -> set[int]:
    """Send a few of these requests; the statuses of the answers, which are all as the document says."""
    statuses = set()

    @settings(
        max_examples=6,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=requests)
    def ask(case: Any) -> None:
        statuses.add(case.call_and_validate(headers=headers, timeout=30, checks=checks).status_code)

    ask()
    return statuses
