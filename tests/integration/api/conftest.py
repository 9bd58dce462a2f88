"""A recorded ledger and the API over it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.support.api import Served, served
from tests.support.postgres import PostgresServer
from tests.support.recorded_runs import Recorder, make_plan, recorder
from tests.support.told_story import told_database


@pytest.fixture
async def recording(postgres18_ledger_dsns: dict[str, str]) -> AsyncIterator[Recorder]:
    async with recorder(postgres18_ledger_dsns) as recorded:
        yield recorded


@pytest.fixture
async def api(postgres18_ledger_dsns: dict[str, str], recording: Recorder) -> AsyncIterator[Served]:
    """Over a ledger with an applied run, one that stopped in doubt, and one that waits."""
    await several_runs(recording)
    async with served(postgres18_ledger_dsns) as opened:
        yield opened


@pytest.fixture
def told_dsns(postgres18_server: PostgresServer) -> Iterator[dict[str, str]]:
    """DSNs of a new copy of a ledger that tells a story (tests/support/told_story.py)."""
    yield from told_database(postgres18_server)


async def several_runs(recording: Recorder) -> None:
    """``run-1`` was applied, ``run-2`` was interrupted at its second operation, ``run-3`` waits."""
    await recording.whole_run(make_plan("run-1"))
    broken = make_plan("run-2", creates=4, deletes=2, source="device-library")
    await recording.commit(broken)
    await recording.started(broken)
    await recording.outcome(broken, 0, "applied")
    await recording.outcome(broken, 1, "unknown")
    await recording.ended(broken, "run.interrupted")
    await recording.commit(make_plan("run-3", creates=1), store=False)
