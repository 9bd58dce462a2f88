"""What a campaign shows: how much was broken and where, and whether anything gave way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from consumers.pauses import PausePoint

_IN_FLIGHT = frozenset({"mutation sent", PausePoint.AFTER_GUARD})
_MARKED = frozenset(
    {PausePoint.BEFORE_DISPATCH, PausePoint.AFTER_WRITE_BEFORE_APPEND, "mutation answered", "mutation unanswered"}
)
_APPENDING = frozenset({"append sent", PausePoint.INSIDE_APPEND})


@dataclass
class Report:
    """The results of all episodes so far."""

    seed: int
    episodes: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0

    def add(self, result: dict[str, Any]) -> None:
        """One more episode."""
        self.episodes.append(result)

    @property
    def violations(self) -> list[tuple[int, str]]:
        """Episode and text of each."""
        return [(result["episode"], text) for result in self.episodes for text in result["violations"]]

    @property
    def counts(self) -> Counter[str]:
        """What happened, over all episodes."""
        total: Counter[str] = Counter()
        for result in self.episodes:
            total.update(result.get("counts", {}))
        return total

    def phases(self, key: str) -> Counter[str]:
        """Where writers stood: ``killed_in`` or ``frozen_in``."""
        return Counter(phase for result in self.episodes for phase in result.get(key, ()))

    @property
    def killed_in_flight(self) -> int:
        """How many writers died between the sending of a write and its answer."""
        return _among(self.phases("killed_in"), _IN_FLIGHT)

    def lines(self) -> Sequence[str]:
        """The report for a person."""
        killed, frozen, counts = self.phases("killed_in"), self.phases("frozen_in"), self.counts
        versions = Counter(result.get("version", "?") for result in self.episodes)
        return [
            f"seed {self.seed}: {len(self.episodes)} episodes in {self.seconds:.0f} s"
            f" ({', '.join(f'{n} on PostgreSQL {v}' for v, n in sorted(versions.items()))})",
            f"writers killed: {killed.total()}, of them {self.killed_in_flight} with a write between send and"
            f" answer, {_among(killed, _MARKED)} marked and not yet or no longer sending,"
            f" {_among(killed, _APPENDING)} with an append under way",
            f"  by last step: {_listed(killed)}",
            f"writers frozen and thawed: {frozen.total()}, {_among(frozen, _IN_FLIGHT)} of them between the last check"
            " and the answer",
            f"  by last step: {_listed(frozen)}",
            f"what happened: {_listed(counts)}",
            f"violations: {len(self.violations)}",
        ]


def _among(phases: Counter[str], wanted: frozenset[str]) -> int:
    return sum(number for phase, number in phases.items() if phase in wanted)


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {number}" for name, number in counts.most_common() if number) or "none"
