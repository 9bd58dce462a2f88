"""Waiting for the next turn of a loop that ends when its process is told to."""

from __future__ import annotations

import asyncio
from contextlib import suppress


async def wait_unless_stopped(stop: asyncio.Event, seconds: float) -> None:
    """Return after ``seconds``, or as soon as ``stop`` is set."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await stop.wait()
