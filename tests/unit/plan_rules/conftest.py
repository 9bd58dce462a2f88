"""A saved plan that has something of everything."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.plan_rules import RUN_ID
from tests.support.reviewed_plans import world


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    """The run directory of it."""
    return world(tmp_path / RUN_ID)
