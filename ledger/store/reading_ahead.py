"""Requests the next page from the database while the current one is processed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, TypeVar

K = TypeVar("K")
PAGE = 5000
_PIECE = 500
"""Rows that are given at once. Between two pieces the connection is read: a server whose words nobody takes stops."""


async def read_ahead(
    page_after: Callable[[K], Awaitable[list[Any]]],
    start: K,
    last_of: Callable[[list[Any]], K],
    *,
    piece: int = _PIECE,
) -> AsyncGenerator[list[Any], None]:
    """The rows of all pages, some at a time; the next page is asked for before the one at hand is given.

    Args:
        page_after: asks for up to :data:`PAGE` rows behind a place; fewer are the last ones.
        start: the place behind which the first page begins.
        last_of: the place of the last of some rows.
        piece: how many are given at once.
    """
    rows = await page_after(start)
    while rows:
        more = len(rows) == PAGE
        following = asyncio.ensure_future(page_after(last_of(rows))) if more else None
        try:
            for first in range(0, len(rows), piece):
                await asyncio.sleep(0)
                yield rows[first : first + piece]
            rows = [] if following is None else await following
        finally:
            if following is not None:
                following.cancel()
                await asyncio.gather(following, return_exceptions=True)
