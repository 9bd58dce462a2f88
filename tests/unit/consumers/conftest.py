"""The writer's bench: a fresh ledger in memory, a fresh destination, an empty artifact root."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.writer_bench import Bench


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(root=tmp_path)
