"""A ledger of the tests' own before a real Infrahub."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from ledger.store.embedded import EmbeddedPostgres
from ledger.store.ledger import Ledger
from tests.live.infrahub import LiveBranch
from tests.live.program import LiveProgram
from tests.live.surface import LiveSurface, live_surface
from tests.live.writing import PATIENT, LiveWriter
from tests.support.http_relay import HttpRelay, http_relay


@pytest.fixture(scope="package")
def live_database() -> Iterator[Path]:
    """The folder of an embedded database, which the first command starts."""
    # the database's own account must be able to pass through every parent, so not below root's private folders
    folder = Path(tempfile.mkdtemp(prefix="apply-ledger-live-"))
    os.chmod(folder, 0o755)
    yield folder / "ledger"
    asyncio.run(EmbeddedPostgres(folder / "ledger").stop())
    shutil.rmtree(folder)


@pytest.fixture
def live_program(tmp_path: Path, live_database: Path, live_branch: LiveBranch) -> LiveProgram:
    """The command line, with a branch of the real Infrahub as its destination."""
    return LiveProgram(tmp_path, live_database, live_branch)


@pytest.fixture
async def relay(live_branch: LiveBranch) -> AsyncIterator[HttpRelay]:
    """A relay in front of the real Infrahub."""
    async with http_relay(live_branch.url) as running:
        yield running


@pytest.fixture
async def live_writer(
    postgres18_ledger_dsns: dict[str, str], live_branch: LiveBranch, relay: HttpRelay, tmp_path: Path
) -> AsyncIterator[LiveWriter]:
    """A writer in this process on a ledger of its own; it reaches its branch through the relay."""
    dsn = postgres18_ledger_dsns["writer"]
    async with await Ledger.open(dsn, allow_unsafe_fsync=True) as ledger:
        yield LiveWriter(
            dsn=dsn,
            ledger=ledger,
            url=relay.url,
            token=live_branch.token,
            branch=live_branch.name,
            root=tmp_path,
            changes=dict(PATIENT),
            live=live_branch,
        )


@pytest.fixture
async def live(live_branch: LiveBranch, relay: HttpRelay) -> AsyncIterator[LiveSurface]:
    """The write surface of one run on a branch of the real Infrahub, behind the relay."""
    async with live_surface(live_branch, relay) as surface:
        yield surface
