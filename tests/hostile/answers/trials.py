"""Every kind of case behind one door."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from random import Random
from typing import Any, Self

from consumers.infrahub.connection import InfrahubOpener, declared, open_reader
from consumers.infrahub.write_surface import InfrahubWriteSurface
from tests.hostile.answers.judged import Judged
from tests.hostile.answers.lookups import Lookups
from tests.hostile.answers.pages import Pages
from tests.hostile.answers.schemas import Schemas
from tests.hostile.answers.served import HostileLayer
from tests.hostile.answers.writes import BINDING, SCHEMA, TOKEN, Writes
from tests.support.scripted_infrahub import RUN_ID, Guard, lab_settings


class Trials:
    """Draws a case of some kind and judges it."""

    def __init__(self, writes: Writes, lookups: Lookups, pages: Pages) -> None:
        self.writes = writes
        self.lookups = lookups
        self.pages = pages
        self.schemas = Schemas()

    @classmethod
    @asynccontextmanager
    async def opened(cls) -> AsyncIterator[Trials]:
        """All that is needed for many cases: two tries of what never ran, no waits, small pages."""
        layer = HostileLayer(lambda _request: SCHEMA)
        settings = lab_settings(token=TOKEN, attempts=2, page_size=3)
        opener = InfrahubOpener(declared(settings), factory=lambda: layer)
        async with (
            opener(BINDING, run_id=RUN_ID, guard=Guard()) as destination,
            open_reader(settings, factory=lambda: layer) as reader,
        ):
            await reader.schema()
            surface = destination.writes
            assert isinstance(surface, InfrahubWriteSurface)
            yield cls(Writes(surface, layer), Lookups(surface, layer, TOKEN), Pages(reader, layer, TOKEN))

    async def drawn(self, random: Random) -> Judged:
        """One case from nothing but ``random``: five in six are writes; a schema takes as long as forty of them."""
        kind = random.random()
        if kind < 0.84:
            return await self.writes.drawn(random)
        if kind < 0.93:
            return await self.lookups.drawn(random)
        if kind < 0.99:
            return await self.pages.drawn(random)
        return await self.schemas.drawn(random)


class OnOneLoop:
    """The trials for callers that are not asynchronous: opened once, every case on the same loop."""

    def __init__(self, runner: asyncio.Runner) -> None:
        self._runner = runner
        self._opened = Trials.opened()
        self.trials: Trials

    def __enter__(self) -> Self:
        self.trials = self._runner.run(self._opened.__aenter__())
        return self

    def __exit__(self, *exc: object) -> None:
        self._runner.run(self._opened.__aexit__(None, None, None))

    def judge(self, case: Coroutine[Any, Any, Judged]) -> Judged:
        """One case."""
        return self._runner.run(case)
