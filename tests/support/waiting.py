"""Waiting for something to become true, bounded by the test's own time-out. Never a fixed time.

The conditions are states of fakes, processes and servers that announce nothing, so there is no event to wait for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

_STEP = 0.002


async def until(condition: Callable[[], bool]) -> None:
    """Let the event loop run until ``condition`` holds."""
    while not condition():  # noqa: ASYNC110 - see the module's first lines
        await asyncio.sleep(_STEP)


async def until_true(condition: Callable[[], Awaitable[object]]) -> None:
    """The same for a condition that has to be asked for."""
    while not await condition():  # noqa: ASYNC110 - see the module's first lines
        await asyncio.sleep(_STEP)
