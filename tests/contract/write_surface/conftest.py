"""A sandbox for each test, and the client as the writer and the plan maker open it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any

import pytest

from consumers.infrahub.connection import InfrahubOpener, InfrahubReader, InfrahubSettings, declared, open_reader
from consumers.infrahub.sandbox import RunningSandbox
from ledger.destination import OpenDestination
from tests.support.sandbox_schema import sandbox_schema
from tests.support.scripted_infrahub import RUN_ID, Guard


@dataclass(frozen=True)
class Lab:
    """One destination that can be opened as often as a test likes."""

    sandbox: RunningSandbox

    def settings(self, **changes: Any) -> InfrahubSettings:
        values = {"url": self.sandbox.url, "branch": "main", "token": self.sandbox.token, "retry_wait": 0}
        return InfrahubSettings(**{**values, "retry_wait_max": 0, "request_timeout": 10, **changes})

    def opened(self, *, run_id: str = RUN_ID, **changes: Any) -> AbstractAsyncContextManager[OpenDestination]:
        settings = self.settings(**changes)
        return InfrahubOpener(declared(settings))(settings.binding, run_id=run_id, guard=Guard())

    def reader(self, **changes: Any) -> AbstractAsyncContextManager[InfrahubReader]:
        return open_reader(self.settings(**changes))


@pytest.fixture
def lab() -> Iterator[Lab]:
    with RunningSandbox(sandbox_schema(), token="lab-token", seed="write-surface") as running:
        yield Lab(running)
