"""Every kind of case behind one door."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

from tests.hostile.answers.judged import Judged
from tests.hostile.answers.writes import Writes


class Trials:
    """Draws a case of some kind and judges it."""

    def __init__(self, writes: Writes) -> None:
        self._writes = writes

    @classmethod
    @asynccontextmanager
    async def opened(cls) -> AsyncIterator[Trials]:
        """All that is needed for many cases."""
        async with Writes.opened() as writes:
            yield cls(writes)

    async def drawn(self, random: Random) -> Judged:
        """One case from nothing but ``random``."""
        return await self._writes.drawn(random)
