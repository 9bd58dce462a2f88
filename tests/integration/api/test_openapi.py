"""Requests made up from the OpenAPI document: none is a defect, and no answer is another than the document says."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.config import SchemathesisConfig

from ledger.api.tokens import Role
from ledger.cli.api_orders import CommandOrders
from ledger.cli.settings import DestinationSettings, Settings
from ledger.store.served import ServedLedger
from tests.integration.api.conftest import several_runs
from tests.support.api import BASE, listening, served
from tests.support.postgres import run_apart
from tests.support.recorded_runs import BINDING, recorder

pytestmark = pytest.mark.integration

STREAMS = {f"GET {BASE}/bindings/{{binding_id}}/events/stream",
           f"GET {BASE}/bindings/{{binding_id}}/runs/{{run_id}}/events/stream"}  # fmt: skip
"""They do not come to an end; test_streams.py has them."""

TAKEN = ["2xx", "3xx", "400", "401", "403", "404", "409"]
"""What may be answered to a request that is as documented. 400: no schema can tell a cursor that was handed out from
one that was made up."""


async def _recorded(dsns: dict[str, str]) -> None:
    async with recorder(dsns) as recording:
        await several_runs(recording)


@pytest.fixture
def served_apart(postgres18_ledger_dsns: dict[str, str], tmp_path: Path) -> Iterator[tuple[str, str]]:
    """Address and token of an API that runs on a loop of its own, because the requests come from this thread."""
    run_apart(_recorded(postgres18_ledger_dsns))
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
    yield url, token
    loop.call_soon_threadsafe(stop.set)
    thread.join()


def test_requests_made_from_the_document_are_answered_as_it_says(served_apart: tuple[str, str]) -> None:
    url, token = served_apart
    headers = {"Authorization": f"Bearer {token}"}
    config = SchemathesisConfig.from_dict({"checks": {"positive_data_acceptance": {"expected-statuses": TAKEN}}})
    schema = schemathesis.openapi.from_url(f"{url}{BASE}/openapi.json", headers=headers, config=config)
    asked = 0
    for found in schema.get_all_operations():
        operation: Any = found.ok()  # type: ignore[union-attr] # an error ends the test with its own words
        if f"{operation.method.upper()} {operation.path}" in STREAMS:
            continue

        @settings(
            max_examples=12,
            derandomize=True,
            database=None,
            deadline=None,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy())
        def ask(case: Any) -> None:
            case.call_and_validate(headers=headers, timeout=30)

        ask()
        asked += 1
    assert asked == len(list(schema.get_all_operations())) - len(STREAMS)
