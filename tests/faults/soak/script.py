"""What happens in a soak: every decision, drawn from its seed before it begins. Only the timing is real."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from consumers.infrahub.sandbox import FaultAnswer, FaultRule

BINDINGS, SOURCES, WORKERS = 4, 3, 3
LEASE, REQUEST_TIMEOUT, SESSION = 6.0, 2.0, 6.0
"""Seconds: of the workers' leases, of a request to the destination, of the intakes' membership."""

What = Literal[
    "worker kill",
    "worker freeze",
    "worker stop",
    "broker kill",
    "broker freeze",
    "database kill",
    "database kill all",
    "database restart",
    "answer",
]
Poison = Literal["not json", "cut", "tombstone", "no key", "no headers"]

_POISONS: Sequence[Poison] = ("not json", "cut", "tombstone", "no key", "no headers")
_WEIGHTS: dict[What, int] = {
    "worker kill": 5,
    "worker freeze": 5,
    "worker stop": 2,
    "broker kill": 2,
    "broker freeze": 1,
    "database kill": 1,
    "database kill all": 1,
    "database restart": 1,
    "answer": 5,
}
_ALWAYS: Sequence[What] = ("worker kill", "worker freeze", "broker kill", "database kill all", "answer")
"""What even the shortest soak has, in an order of its own."""

_LOST = (FaultAnswer.DROP, FaultAnswer.TEXT_500, FaultAnswer.TRUNCATED, FaultAnswer.UNAVAILABLE_503)
_PAUSE = 3.0
"""Seconds between two strikes, on average."""


@dataclass(frozen=True)
class Strike:
    """Something that is broken at a moment, in seconds after the start, and for how long it stays so."""

    at: float
    what: What
    worker: int
    lasts: float
    answer: FaultRule


@dataclass(frozen=True)
class Order:
    """A run that a source commits at a moment; ``times`` is how often it says so, ``poison`` what it sends behind."""

    at: float
    source: int
    binding: int
    run_id: str
    size: int
    times: int
    poison: Poison | None

    @property
    def seed(self) -> str:
        """Decides what the plan holds."""
        return f"plan {self.run_id}"


@dataclass(frozen=True)
class Script:
    """One soak."""

    seed: int
    seconds: float
    strikes: tuple[Strike, ...]
    orders: tuple[Order, ...]


def script_of(seed: int, seconds: float, *, between: float = 4.0) -> Script:
    """The soak of that seed; ``between`` is how many seconds a source waits between two runs, on average."""
    rng = random.Random(f"soak {seed}")
    orders = [order for source in range(SOURCES) for order in _orders(rng, source, seconds, between)]
    return Script(seed, seconds, tuple(_strikes(rng, seconds)), tuple(sorted(orders, key=lambda order: order.at)))


def _strikes(rng: random.Random, seconds: float) -> Iterator[Strike]:
    first = rng.sample(_ALWAYS, len(_ALWAYS))
    at, pause = seconds * 0.05, min(_PAUSE, seconds * 0.9 / (len(first) + 1))
    while at < seconds * 0.95:
        what = first.pop() if first else rng.choices(tuple(_WEIGHTS), tuple(_WEIGHTS.values()))[0]
        yield Strike(at, what, rng.randrange(WORKERS), _lasts(rng, what), _answer(rng))
        at += pause * rng.uniform(0.5, 1.5) if first else rng.expovariate(1 / pause)


def _lasts(rng: random.Random, what: What) -> float:
    if what == "worker freeze":
        # half of them beyond lease and membership
        return rng.choice((rng.uniform(0.2, LEASE), max(LEASE, SESSION) + rng.uniform(1.0, 4.0)))
    if what == "broker freeze":
        return rng.uniform(1.0, SESSION * 1.5)
    return rng.uniform(0.1, 2.0)


def _answer(rng: random.Random) -> FaultRule:
    """One or a few lost answers in a row; or one that comes after the writer gave up, the write happening meanwhile."""
    if rng.random() < 0.3:
        return FaultRule(answer=FaultAnswer.DROP, delay_before_write=REQUEST_TIMEOUT * rng.uniform(0.5, 1.1))
    return FaultRule(answer=rng.choice(_LOST), write=rng.choice((True, False)), count=rng.choice((1, 1, 2)))


def _orders(rng: random.Random, source: int, seconds: float, between: float) -> Iterator[Order]:
    at, number = rng.uniform(0.0, 1.0), 0
    while at < seconds * 0.9:
        yield Order(
            at=at,
            source=source,
            binding=rng.randrange(BINDINGS),
            run_id=f"s{source}-run-{number:04}",
            size=rng.randint(3, 9),
            times=rng.choice((1, 1, 1, 2, 3)),
            poison=rng.choice(_POISONS) if rng.random() < 0.2 else None,
        )
        at, number = at + rng.expovariate(1 / between), number + 1
