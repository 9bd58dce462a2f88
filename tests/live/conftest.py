"""A ledger of the tests' own before a real Infrahub."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ledger.store.embedded import EmbeddedPostgres
from tests.live.infrahub import LiveBranch
from tests.live.program import LiveProgram


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
