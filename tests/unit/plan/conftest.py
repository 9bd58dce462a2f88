"""Shared by the tests of the plan format."""

from __future__ import annotations

import pytest

from ledger.plan import verify
from ledger.plan.snapshot_process import read_here


@pytest.fixture
def snapshots_read_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests that verify hundreds of times: snapshots are read without a process of their own, which costs most."""
    monkeypatch.setattr(verify, "read_apart", lambda paths: [read_here(path) for path in paths])
