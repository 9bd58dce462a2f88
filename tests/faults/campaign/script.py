"""What happens in an episode: every decision, drawn from its seed before it begins. Only the timing is real."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from consumers.infrahub.sandbox import FaultAnswer, FaultRule
from consumers.pauses import PausePoint
from ledger.commit import Policy
from tests.faults.campaign.trail import Action, Strike
from tests.support.postgres import Version

Doom = Literal["stale id", "missing peer"]
OnDatabase = Literal["kill postmaster", "kill all", "restart", "lose answer", "lose request", "hold", "cut"]

_NAMED: Sequence[tuple[str, int]] = (
    *((str(point), 2) for point in PausePoint),
    ("claimed", 1),
    ("read sent", 2),
    ("mutation sent", 14),
    ("mutation answered", 4),
    ("append sent", 6),
    ("acknowledged", 3),
    (PausePoint.BEFORE_DISPATCH, 4),
    (PausePoint.AFTER_GUARD, 4),
    (PausePoint.INSIDE_APPEND, 4),
)
"""Steps of a trail at which a writer may be struck, with their weight: where a write is under way is where it hurts."""

_ERRORS = (
    FaultAnswer.DROP,
    FaultAnswer.TEXT_500,
    FaultAnswer.NOT_JSON,
    FaultAnswer.EMPTY_ERRORS,
    FaultAnswer.NOT_OK,
    FaultAnswer.OBJECT_NULL,
    FaultAnswer.EMPTY_ID,
    FaultAnswer.DEFUNCT_CONNECTION,
    FaultAnswer.TRUNCATED,
    FaultAnswer.UNAVAILABLE_503,
    FaultAnswer.UNAUTHORISED_401,
)
"""Answers that are no success, whatever was written. A destination that lies about a success is no part of this."""


@dataclass(frozen=True)
class RunScript:
    """One run: of which source, on which of the episode's branches, how large, under which policy."""

    run_id: str
    branch: int
    source: str
    size: int
    policy: Policy
    doom: Doom | None
    resume_stale: bool


@dataclass(frozen=True)
class Timed:
    """Something at a moment: seconds after the start (of the episode, or of a writer)."""

    at: float
    what: str
    number: int = 0


@dataclass(frozen=True)
class WriterScript:
    """A writer: what it does to itself, or what is done to it from outside (``kill``, ``freeze``, ``term``)."""

    strike: Strike | None
    outside: Timed | None
    frozen_for: float


@dataclass(frozen=True)
class Script:
    """One episode."""

    number: int
    version: Version
    times: dict[str, float]
    branches: int
    runs: tuple[RunScript, ...]
    together: int
    writers: tuple[WriterScript, ...]
    by_relay: bool
    on_database: tuple[Timed, ...]
    faults: tuple[FaultRule, ...]
    sandbox_away: tuple[tuple[float, float], ...]
    orders: tuple[Timed, ...]
    operator_dies_at: float | None
    lasts: float


def script_of(seed: int, number: int, sources: Sequence[str]) -> Script:
    """The episode of that number in the campaign of that seed."""
    rng = random.Random(f"campaign {seed} episode {number}")
    times = _times(rng)
    branches = rng.choice((1, 1, 2))
    runs = tuple(_run(rng, number, place, branches, sources) for place in range(rng.choice((1, 2, 2, 3)) * branches))
    operations = sum(run.size for run in runs)
    lasts = rng.uniform(0.8, 1.6)
    by_relay = rng.random() < 0.4
    return Script(
        number=number,
        version="15" if rng.random() < 0.2 else "18",
        times=times,
        branches=branches,
        runs=runs,
        together=rng.choice((1, 2, 2, 3)),
        writers=tuple(_writer(rng, operations, lasts, times) for _ in range(rng.randint(2, 5))),
        by_relay=by_relay,
        on_database=_on_database(rng, lasts, by_relay=by_relay),
        faults=_faults(rng, operations, times),
        sandbox_away=tuple((rng.uniform(0.1, lasts), rng.uniform(0.02, 0.4)) for _ in range(int(rng.random() < 0.2))),
        orders=_orders(rng, len(runs), lasts),
        operator_dies_at=rng.uniform(0, lasts) if rng.random() < 0.25 else None,
        lasts=lasts,
    )


def _times(rng: random.Random) -> dict[str, float]:
    request_timeout, margin = rng.uniform(0.35, 0.5), rng.uniform(0.05, 0.1)
    return {
        "request_timeout": request_timeout,
        "margin": margin,
        "lease_ttl": request_timeout + margin + rng.uniform(0.15, 0.5),
        "settle_seconds": rng.uniform(0.2, 0.35),
        "converge_wait": 0.05,
        "poll_interval": rng.uniform(0.15, 0.4),
        "stop_poll_interval": rng.choice((0.0, 0.05)),
        "open_attempts": 2,
        "open_retry_wait": 0.05,
    }


def _run(rng: random.Random, number: int, place: int, branches: int, sources: Sequence[str]) -> RunScript:
    return RunScript(
        run_id=f"e{number}-run-{place}",
        branch=place % branches,
        source=rng.choice(sources),
        size=rng.randint(4, 12),
        policy=Policy(
            on_unknown=rng.choice(("stop", "converge", "converge")),
            on_crash=rng.choice(("resume", "resume", "stop")),
            on_overlap="refuse" if rng.random() < 0.1 else "warn",
            allow_stale=rng.random() < 0.8,
        ),
        doom=rng.choice(("stale id", "missing peer")) if rng.random() < 0.12 else None,
        resume_stale=rng.random() < 0.8,
    )


def _writer(rng: random.Random, operations: int, lasts: float, times: dict[str, float]) -> WriterScript:
    frozen_for = times["lease_ttl"] * rng.uniform(0.6, 3.0)
    how = rng.random()
    if how < 0.2:
        what = rng.choice(("kill", "freeze", "term"))
        return WriterScript(None, Timed(rng.uniform(0.05, lasts), what), frozen_for)
    action: Action = rng.choice(("kill", "freeze"))
    if how < 0.45:
        return WriterScript(Strike(action, nth=rng.randint(1, 8 * operations)), None, frozen_for)
    names, weights = zip(*_NAMED, strict=True)
    (at,) = rng.choices(names, weights)
    often = at not in ("before_claim", "claimed", "after_claim", "before_gate", "before_run_started", "before_release")
    delay = rng.uniform(0, 0.012) if at.endswith("sent") or at == PausePoint.INSIDE_APPEND else 0.0
    nth = rng.randint(1, max(2, operations // 3)) if often and rng.random() < 0.7 else 1
    strike = Strike(action, at=at, nth=nth, delay=delay)
    return WriterScript(strike, None, frozen_for)


def _on_database(rng: random.Random, lasts: float, *, by_relay: bool) -> tuple[Timed, ...]:
    happens = []
    if rng.random() < 0.3:
        what: OnDatabase = rng.choice(("kill postmaster", "kill all", "kill all", "restart"))
        happens.append(Timed(rng.uniform(0.1, lasts), what))
    if by_relay:
        for _ in range(rng.randint(1, 4)):
            what = rng.choice(("lose answer", "lose answer", "lose request", "hold", "cut"))
            happens.append(Timed(rng.uniform(0.0, lasts), what, rng.randint(0, 20)))
    return tuple(sorted(happens, key=lambda timed: timed.at))


def _faults(rng: random.Random, operations: int, times: dict[str, float]) -> tuple[FaultRule, ...]:
    rules = [_fault(rng, operations, times) for _ in range(rng.choice((0, 1, 1, 2, 3)))]
    everything = FaultRule(
        delay_before_write=rng.uniform(0, 0.006), delay_before_answer=rng.uniform(0.002, 0.012), count=None
    )
    return (*rules, everything)


def _fault(rng: random.Random, operations: int, times: dict[str, float]) -> FaultRule:
    nth = rng.randint(1, max(2, operations // 2))
    how = rng.random()
    if how < 0.1:
        return FaultRule(answer=FaultAnswer.SHED_429, nth=nth, count=rng.choice((1, 1, 3)))
    if how < 0.25:
        answer = rng.choice((FaultAnswer.DROP, FaultAnswer.TEXT_500, FaultAnswer.TRUNCATED))
        return FaultRule(answer=answer, operation="query", nth=nth, count=rng.choice((1, 1, 4)))
    if how < 0.4:
        late = times["request_timeout"] * rng.uniform(1.05, 2.0)
        return FaultRule(delay_before_answer=late, nth=nth)
    if how < 0.7:
        # written after the writer gave up, and before the destination is quiet again: what settling is for
        late = times["request_timeout"] + times["settle_seconds"] * rng.uniform(0.1, 0.6)
        return FaultRule(answer=FaultAnswer.DROP, delay_before_write=late, nth=nth)
    return FaultRule(answer=rng.choice(_ERRORS), write=rng.choice((True, False)), nth=nth, count=rng.choice((1, 1, 2)))


def _orders(rng: random.Random, runs: int, lasts: float) -> tuple[Timed, ...]:
    orders = [Timed(0.0, "commit", number) for number in range(runs)]
    for number in range(runs):
        orders += [Timed(rng.uniform(0, lasts), "commit", number) for _ in range(rng.randint(0, 2))]
        orders += [Timed(rng.uniform(0.1, lasts), "stop", number) for _ in range(int(rng.random() < 0.3))]
        orders += [Timed(rng.uniform(0.2, lasts), "resume", number) for _ in range(rng.choice((0, 0, 1, 2)))]
    return tuple(sorted(orders, key=lambda order: order.at))


def describe(script: Script) -> dict[str, Any]:
    """The script as a document, for the log of its episode."""
    return {
        "number": script.number,
        "version": script.version,
        "times": script.times,
        "branches": script.branches,
        "runs": [{**vars(run), "policy": run.policy.model_dump()} for run in script.runs],
        "together": script.together,
        "writers": [repr(writer) for writer in script.writers],
        "by_relay": script.by_relay,
        "on_database": [vars(timed) for timed in script.on_database],
        "faults": [rule.model_dump(mode="json", exclude_defaults=True) for rule in script.faults],
        "sandbox_away": script.sandbox_away,
        "orders": [vars(timed) for timed in script.orders],
        "operator_dies_at": script.operator_dies_at,
        "lasts": script.lasts,
    }
