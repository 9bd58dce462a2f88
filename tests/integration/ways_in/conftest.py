"""A sandbox, a ledger, a broker; and the two ways in which a commit reaches the inbox."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from consumers.infrahub.sandbox import RunningSandbox
from ledger.store.ledger import Ledger
from tests.field_failures.broker.conftest import topic
from tests.support.commit_topic import CommitTopic
from tests.support.real_writer import REAL_SCHEMA, TOKEN, RealWriter
from tests.support.ways_in import Direct, ThroughKafka, WayIn

__all__ = ["topic"]


@pytest.fixture(scope="package")
def sandbox() -> Iterator[RunningSandbox]:
    with RunningSandbox(REAL_SCHEMA, token=TOKEN, seed="ways in") as running:
        yield running


@pytest.fixture
async def writer(
    postgres18_ledger_dsns: dict[str, str], sandbox: RunningSandbox, tmp_path: Path
) -> AsyncIterator[RealWriter]:
    branch = f"branch-{len(sandbox.store.branches)}"
    sandbox.store.create_branch(branch)
    dsn = postgres18_ledger_dsns["writer"]
    async with await Ledger.open(dsn, allow_unsafe_fsync=True) as ledger:
        yield RealWriter(dsn=dsn, ledger=ledger, sandbox=sandbox, branch=branch, root=tmp_path)
    sandbox.faults.clear()


@pytest.fixture(params=["inbox", "kafka"])
def way(request: pytest.FixtureRequest, writer: RealWriter) -> WayIn:
    """Each test of this suite runs once over each way in."""
    if request.param == "inbox":
        return Direct(writer)
    found: CommitTopic = request.getfixturevalue("topic")
    return ThroughKafka(writer, found)
