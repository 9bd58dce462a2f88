"""A whole inventory from files to a branch: ``infrahub-sync sync`` beside our ``plan`` and ``apply``.

The first round of each is not timed: a relay counts what passes, and what the two branches hold is compared.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tests.bench.frame import Case, Figure, Series, Setting, Target, interleaved_async, ratio
from tests.bench.live.contenders import Contender, Ours, Theirs
from tests.bench.live.content import Objects, differences, read_objects
from tests.bench.live.counting import Traffic, counted
from tests.bench.live.inventory import Inventory
from tests.bench.live.place import Place
from tests.bench.live.processes import Need
from tests.bench.server import ledger_server


def case(name: str, what: str, place: Place, inventory: Inventory, runner: str) -> Case:
    """The case of one inventory."""
    return Case(name, what, partial(_measure, place, inventory), runner)


def _measure(place: Place, inventory: Inventory, setting: Setting) -> Sequence[Figure]:
    async def measured() -> Sequence[Figure]:
        async with ledger_server(setting.scratch):
            ours = Ours(setting.scratch, setting.scratch / "ledger", place.ours)
            theirs = Theirs(setting.scratch, place.sync)
            return await Comparison(place, inventory, setting.scratch, theirs, ours).figures(setting.rounds)

    return asyncio.run(measured())


@dataclass
class _Side:
    """What is known of one program."""

    program: Contender
    traffic: Traffic = field(default_factory=Traffic)
    objects: Objects = field(default_factory=dict)
    needs: list[Need] = field(default_factory=list)
    rounds: int = 0


class Comparison:
    """Two programs, the same rows, a new branch for each measurement."""

    def __init__(self, place: Place, inventory: Inventory, folder: Path, theirs: Contender, ours: Contender) -> None:
        self._place = place
        self._inventory = inventory
        self._folder = folder
        self._theirs, self._ours = _Side(theirs), _Side(ours)

    async def figures(self, rounds: int) -> Sequence[Figure]:
        """Count and compare once, then measure."""
        for side in (self._theirs, self._ours):
            await self._count(side)
        await interleaved_async(
            rounds, {"theirs": partial(self._time, self._theirs), "ours": partial(self._time, self._ours)}
        )
        return [*self._needs(), *self._traffic(), self._sameness()]

    def _rows(self, number: int) -> Path:
        """The rows of a round: the same for both sides, and not those of another round."""
        folder = self._folder / f"rows-{number}"
        return folder / f"r{number}-" if folder.exists() else self._inventory.rows(folder, f"r{number}-")

    async def _count(self, side: _Side) -> None:
        rows = self._rows(0)
        with ExitStack() as stack:
            branch = stack.enter_context(self._place.branch())
            await side.program.prepare(self._inventory, rows, branch)
            async with counted(branch.url) as side.traffic:
                await side.program.bring(self._inventory, rows, branch, url=side.traffic.url)
            side.objects = await read_objects(branch, self._inventory.mapping)

    async def _time(self, side: _Side) -> float:
        side.rounds += 1
        rows = self._rows(side.rounds)
        with self._place.branch() as branch:
            side.needs.append(await side.program.bring(self._inventory, rows, branch, url=branch.url))
        return side.needs[-1].seconds

    def _needs(self) -> list[Figure]:
        return [
            self._ratio("wall time", "s", lambda side: [need.seconds for need in side.needs], Target("at least", 1.0)),
            self._ratio("processor time", "s", lambda side: [need.cpu_seconds for need in side.needs]),
            self._ratio("peak memory", "MiB", lambda side: [need.peak_mib for need in side.needs]),
        ]

    def _traffic(self) -> list[Figure]:
        return [
            self._ratio("requests", "requests", lambda side: [side.traffic.requests]),
            self._ratio("mutations", "requests", lambda side: [side.traffic.mutations]),
            self._ratio("connections", "connections", lambda side: [side.traffic.connections]),
            self._ratio("sent to the server", "bytes", lambda side: [side.traffic.sent]),
            self._ratio("received from it", "bytes", lambda side: [side.traffic.received]),
        ]

    def _ratio(
        self, what: str, unit: str, values: Callable[[_Side], Sequence[float]], target: Target | None = None
    ) -> Figure:
        theirs, ours = (
            Series(side.program.label, unit, tuple(map(float, values(side)))) for side in (self._theirs, self._ours)
        )
        return ratio(f"{what}: {theirs.label} ÷ {ours.label}", theirs, ours, target)

    def _sameness(self) -> Figure:
        lines = tuple(differences(self._ours.objects, self._theirs.objects))
        counts = tuple(
            Series(f"objects, {side.program.label}", "objects", (float(len(side.objects)),))
            for side in (self._theirs, self._ours)
        )
        value = Series("differences", "lines", (float(len(lines)),))
        return Figure("what the two branches hold differs in", value, Target("at most", 0), counts, lines)
