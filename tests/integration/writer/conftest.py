"""A real ledger on the embedded version, and a sandbox of the real schema with a branch for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from consumers.infrahub.sandbox import RunningSandbox
from ledger.store.ledger import Ledger
from tests.support.real_writer import REAL_SCHEMA, TOKEN, RealWriter


@pytest.fixture(scope="module")
def sandbox() -> Iterator[RunningSandbox]:
    with RunningSandbox(REAL_SCHEMA, token=TOKEN, seed="writer") as running:
        yield running


@pytest.fixture
def branch(sandbox: RunningSandbox, request: pytest.FixtureRequest) -> str:
    name = f"branch-{len(sandbox.store.branches)}"
    sandbox.store.create_branch(name)
    return name


@pytest.fixture
async def real(
    postgres18_ledger_dsns: dict[str, str], sandbox: RunningSandbox, branch: str, tmp_path: Path
) -> AsyncIterator[RealWriter]:
    dsn = postgres18_ledger_dsns["writer"]
    async with await Ledger.open(dsn, allow_unsafe_fsync=True) as ledger:
        yield RealWriter(dsn=dsn, ledger=ledger, sandbox=sandbox, branch=branch, root=tmp_path)
