"""What a case of the bench is, and what it gives back: series of rounds, a ratio, and the target beside it."""

from __future__ import annotations

import operator
import statistics
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Limit = Literal["at least", "at most"]


@dataclass(frozen=True, slots=True)
class Setting:
    """How large a run is. ``smoke`` makes each case small enough to prove in seconds that it works; its figures mean
    nothing. ``scratch`` is a folder of this case alone, on a real disk.
    """

    rounds: int
    scratch: Path
    smoke: bool = False

    def sized(self, full: int, smoke: int) -> int:
        """The size of something in this run."""
        return smoke if self.smoke else full


@dataclass(frozen=True, slots=True)
class Series:
    """One value for each round."""

    label: str
    unit: str
    values: tuple[float, ...]

    @property
    def low(self) -> float:
        """The smallest."""
        return min(self.values)

    @property
    def median(self) -> float:
        """The middle one."""
        return statistics.median(self.values)

    @property
    def high(self) -> float:
        """The largest."""
        return max(self.values)


@dataclass(frozen=True, slots=True)
class Target:
    """What a figure is to reach; the median of all rounds decides."""

    limit: Limit
    bound: float

    def met(self, figure: Series) -> bool:
        """Whether the figure reaches it."""
        return figure.median >= self.bound if self.limit == "at least" else figure.median <= self.bound


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the bench: what was compared, side by side, and the value that is held against a target.

    ``remarks`` are what no number says.
    """

    name: str
    value: Series
    target: Target | None = None
    beside: tuple[Series, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None without one."""
        return None if self.target is None else self.target.met(self.value)


@dataclass(frozen=True, slots=True)
class Case:
    """One thing that is measured.

    Attributes:
        name: as given to ``--only``.
        what: one sentence: what is divided by what, and how large.
        measure: does it and returns its figures.
        runner: the command to which the name is added to run this case alone.
    """

    name: str
    what: str
    measure: Callable[[Setting], Sequence[Figure]]
    runner: str = "python -m tests.bench --only "

    @property
    def command(self) -> str:
        """What runs this case alone."""
        return f"{self.runner}{self.name}"


def ratio(name: str, above: Series, below: Series, target: Target | None = None) -> Figure:
    """``above ÷ below``, round by round: neighbours in time are compared with each other."""
    values = tuple(map(operator.truediv, above.values, below.values))
    return Figure(name, Series("ratio", "×", values), target, beside=(above, below))


def interleaved(rounds: int, variants: Mapping[str, Callable[[], float]]) -> dict[str, tuple[float, ...]]:
    """Run all variants once in each round, every second round in reverse, so that a drift hits all alike."""
    values: dict[str, list[float]] = {name: [] for name in variants}
    for number in range(rounds):
        for name in _order(variants, number):
            values[name].append(variants[name]())
    return {name: tuple(found) for name, found in values.items()}


async def interleaved_async(
    rounds: int, variants: Mapping[str, Callable[[], Awaitable[float]]]
) -> dict[str, tuple[float, ...]]:
    """The same for what has to be awaited."""
    values: dict[str, list[float]] = {name: [] for name in variants}
    for number in range(rounds):
        for name in _order(variants, number):
            values[name].append(await variants[name]())
    return {name: tuple(found) for name, found in values.items()}


def _order(variants: Mapping[str, object], number: int) -> list[str]:
    names = list(variants)
    return names if number % 2 == 0 else names[::-1]
