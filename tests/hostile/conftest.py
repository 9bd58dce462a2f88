"""Fixtures of the hostile answers: one open destination for all cases of a module, on one event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tests.hostile.answers.trials import OnOneLoop


@pytest.fixture(scope="module")
def hostile() -> Iterator[OnOneLoop]:
    """Everything that is needed to judge many cases one after the other."""
    with asyncio.Runner() as runner, OnOneLoop(runner) as trials:
        yield trials
