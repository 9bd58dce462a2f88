"""One sandbox and one embedded database for all tests of the command line; a branch and a folder for each."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from consumers.infrahub.sandbox.server import RunningSandbox
from ledger.binding import DestinationBinding
from ledger.store.embedded import EmbeddedPostgres
from ledger.store.ledger import Ledger
from tests.support.command_here import CommandHere
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


@pytest.fixture
def here(cli: CommandLine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CommandHere:
    """The program called in this process."""
    return CommandHere(cli, monkeypatch, capsys)


@pytest.fixture
def service(cli: CommandLine) -> Iterator[subprocess.Popen[str]]:
    """`work`, holding the lease of this test's destination."""
    process = cli.start("work")
    asyncio.run(_until_held(cli))
    yield process
    process.send_signal(signal.SIGTERM)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 0, stderr


async def _until_held(cli: CommandLine) -> None:
    dsns = await EmbeddedPostgres(cli.data_dir).ensure_running()
    deadline = time.monotonic() + 60
    async with await Ledger.open(dsns.reader) as ledger:
        while time.monotonic() < deadline:
            row = await ledger.binding(DestinationBinding(url=cli.sandbox.url, branch=cli.branch))
            if row is not None and row.lease_owner is not None:
                return
    raise AssertionError("nobody took the lease")
