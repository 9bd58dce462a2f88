"""A ledger with two recorded runs, recorded once per version and copied for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.support.ordered_runs import record_orders
from tests.support.postgres import ROLES, PostgresServer, migrate_fully
from tests.support.recorded_runs import Recorder, make_plan, recorder
from tests.support.told_story import told_database


async def record_two_runs(recording: Recorder) -> None:
    """One run applied to its end, one that was interrupted, resumed and stopped."""
    await recording.whole_run(make_plan("run-1"))
    stopped = make_plan("run-2", creates=4, deletes=1, source="device-library")
    await recording.commit(stopped)
    await recording.started(stopped)
    await recording.outcome(stopped, 0, "applied")
    await recording.outcome(stopped, 1, "unknown")
    await recording.ended(stopped, "run.interrupted")
    await recording.resumed(stopped, 1)
    await recording.outcome(stopped, 1, "applied", attempt=2)
    await recording.ended(stopped, "run.stopped")


@pytest.fixture
async def recording(ledger_dsns: dict[str, str]) -> AsyncIterator[Recorder]:
    """Two runs, with everything at hand to record more."""
    async with recorder(ledger_dsns) as recorded:
        await record_two_runs(recorded)
        yield recorded


@pytest.fixture
def recorded_dsns(postgres_server: PostgresServer) -> Iterator[dict[str, str]]:
    """DSNs of a new copy of the recorded ledger, on each version."""

    async def migrate_and_record(admin_dsn: str) -> None:
        await migrate_fully(admin_dsn)
        async with recorder(_dsns(postgres_server, postgres_server.database_of(admin_dsn))) as recording:
            await record_two_runs(recording)

    name = postgres_server.create_database(postgres_server.template("two recorded runs", migrate_and_record))
    yield _dsns(postgres_server, name)
    postgres_server.drop_database(name)


def _dsns(server: PostgresServer, name: str) -> dict[str, str]:
    return {"admin": server.dsn(name)} | {key: server.dsn(name, user=role) for key, role in ROLES.items()}


@pytest.fixture
def told_dsns(postgres18_server: PostgresServer) -> Iterator[dict[str, str]]:
    """DSNs of a new copy of a ledger that tells a story (tests/support/told_story.py)."""
    yield from told_database(postgres18_server)


@pytest.fixture
def ordered_dsns(postgres18_server: PostgresServer) -> Iterator[dict[str, str]]:
    """DSNs of a new copy of a ledger whose orders came to every end (tests/support/ordered_runs.py)."""

    async def migrate_and_order(admin_dsn: str) -> None:
        await migrate_fully(admin_dsn)
        async with recorder(_dsns(postgres18_server, postgres18_server.database_of(admin_dsn))) as recording:
            await record_orders(recording)

    name = postgres18_server.create_database(postgres18_server.template("ordered runs", migrate_and_order))
    yield _dsns(postgres18_server, name)
    postgres18_server.drop_database(name)
