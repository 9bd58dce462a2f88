"""Folders for embedded databases, and their end after each test."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from ledger.store.embedded import EmbeddedPostgres


@pytest.fixture
def folder() -> Iterator[Path]:
    """A path for a data folder, below a parent that every account may pass through."""
    parent = Path(tempfile.mkdtemp(prefix="apply-ledger-embedded-"))
    parent.chmod(0o711)
    yield parent / "db"
    for marker in parent.rglob("apply-ledger.json"):
        _end(EmbeddedPostgres(marker.parent))
    shutil.rmtree(parent, ignore_errors=True)


def _end(server: EmbeddedPostgres) -> None:
    """End a server that a test left, without a checkpoint: only the machine is cleaned here."""
    if pid := server.status().pid:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGQUIT)
        gone = Retrying(
            stop=stop_after_delay(20), wait=wait_fixed(0.02), retry=retry_if_result(lambda left: bool(left))
        )
        gone(lambda: server.status().pid)
