"""Folders for embedded databases, and their end after each test."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ledger.store.embedded import EmbeddedPostgres


@pytest.fixture
def folder() -> Iterator[Path]:
    """A path for a data folder, below a parent that every account may pass through."""
    parent = Path(tempfile.mkdtemp(prefix="apply-ledger-embedded-"))
    parent.chmod(0o711)
    yield parent / "db"
    for marker in parent.rglob("apply-ledger.json"):
        if pid := EmbeddedPostgres(marker.parent).status().pid:
            # The tests of a clean stop call stop(); here only the machine is cleaned.
            os.kill(pid, signal.SIGQUIT)
    shutil.rmtree(parent, ignore_errors=True)
