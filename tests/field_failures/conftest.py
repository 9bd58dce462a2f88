"""A ledger, a sandbox of the real schema with a branch for each test, and the program as a person meets it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from consumers.infrahub.sandbox import RunningSandbox
from ledger.store.ledger import Ledger
from tests.integration.cli.conftest import cli, cli_database, cli_sandbox, service
from tests.support.field_schema import field_schema
from tests.support.real_writer import REAL_SCHEMA, TOKEN, RealWriter
from tests.support.whole_path import WholePath

__all__ = ["branch", "cli", "cli_database", "cli_sandbox", "real", "sandbox", "service"]


@pytest.fixture(scope="session")
def sandbox() -> Iterator[RunningSandbox]:
    with RunningSandbox(REAL_SCHEMA, token=TOKEN, seed="field failures") as running:
        yield running


@pytest.fixture
def branch(sandbox: RunningSandbox) -> Iterator[str]:
    """A branch of its own, and no fault left behind."""
    name = f"branch-{len(sandbox.store.branches)}"
    sandbox.store.create_branch(name)
    yield name
    sandbox.faults.clear()


@pytest.fixture
async def real(
    postgres18_ledger_dsns: dict[str, str], sandbox: RunningSandbox, branch: str, tmp_path: Path
) -> AsyncIterator[RealWriter]:
    dsn = postgres18_ledger_dsns["writer"]
    async with await Ledger.open(dsn, allow_unsafe_fsync=True) as ledger:
        yield RealWriter(dsn=dsn, ledger=ledger, sandbox=sandbox, branch=branch, root=tmp_path)


@pytest.fixture(scope="session")
def lab_sandbox() -> Iterator[RunningSandbox]:
    with RunningSandbox(field_schema(), token=TOKEN, seed="field failures of a lab") as running:
        yield running


@pytest.fixture
def lab(lab_sandbox: RunningSandbox, tmp_path: Path) -> Iterator[WholePath]:
    """The path from source rows to events, over a branch of its own; the ledger is in memory."""
    name = f"branch-{len(lab_sandbox.store.branches)}"
    lab_sandbox.store.create_branch(name)
    yield WholePath(tmp_path, lab_sandbox, name)
    lab_sandbox.faults.clear()
