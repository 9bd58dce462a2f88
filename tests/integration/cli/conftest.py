"""One sandbox and one embedded database for all tests of the command line; a branch and a folder for each."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from consumers.infrahub.sandbox.server import RunningSandbox
from ledger.store.embedded import EmbeddedPostgres
from tests.support.command_line import TOKEN, CommandLine

SCHEMA = Path(__file__).resolve().parents[2] / "data" / "schema-api.json"


@pytest.fixture(scope="package")
def cli_sandbox() -> Iterator[RunningSandbox]:
    with RunningSandbox(SCHEMA, token=TOKEN) as sandbox:
        yield sandbox


@pytest.fixture(scope="package")
def cli_database() -> Iterator[Path]:
    # the server's own account must be able to pass through every parent, so not below root's private folders
    folder = Path(tempfile.mkdtemp(prefix="apply-ledger-cli-"))
    os.chmod(folder, 0o755)
    yield folder / "ledger"
    asyncio.run(EmbeddedPostgres(folder / "ledger").stop())
    shutil.rmtree(folder)


@pytest.fixture
def cli(
    request: pytest.FixtureRequest, tmp_path: Path, cli_sandbox: RunningSandbox, cli_database: Path
) -> Iterator[CommandLine]:
    branch = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower())[:60].strip("-")
    cli_sandbox.store.create_branch(branch)
    yield CommandLine(tmp_path, cli_sandbox, branch, cli_database)
    cli_sandbox.faults.clear()
