"""Waiting for something to become true, bounded by the test's own time-out. Never a fixed time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


async def until(condition: Callable[[], bool]) -> None:
    """Let the event loop run until ``condition`` holds."""
    # The conditions are states of fakes and processes that announce nothing; there is no event to wait for.
    while not condition():  # noqa: ASYNC110 - see above
        await asyncio.sleep(0.001)
