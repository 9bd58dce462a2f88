"""``python -m tests.hostile.answers --count N --seed S``: so many hostile answers, each with the verdict it deserves.

Prints how fast it went, what was said how often, and the slowest and the largest case with what makes it again
(``--seed S --first NUMBER --count 1``). Exits with 1 where one case violated a rule.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import sys
import time
from collections import Counter
from random import Random
from unittest import mock

from consumers.infrahub import write_surface
from consumers.infrahub.classification import Row, classify
from consumers.infrahub.observation import Observation
from tests.hostile.answers.judged import Judged
from tests.hostile.answers.trials import Trials

_SHOWN = 20


def main() -> int:
    """Run the cases; 0 where all of them kept the rules."""
    parser = argparse.ArgumentParser(prog="python -m tests.hostile.answers", description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    options = parser.parse_args()
    rows: Counter[str] = Counter()

    def counted(seen: Observation) -> Row:
        row = classify(seen)
        rows[row.name] += 1
        return row

    with mock.patch.object(write_surface, "classify", counted):
        tally = asyncio.run(_run(options.seed, range(options.first, options.first + options.count)))
    tally.show(options.seed, rows)
    return 1 if tally.violations else 0


class Tally:
    """What came of all cases."""

    def __init__(self) -> None:
        self.said: Counter[str] = Counter()
        self.violations: list[tuple[int, Judged]] = []
        self.slowest: tuple[float, int, str] = (0.0, 0, "")
        self.largest: tuple[int, int, str] = (0, 0, "")
        self.cases = 0
        self.seconds = 0.0
        self.core_seconds = 0.0

    def add(self, number: int, judged: Judged, seconds: float) -> None:
        """Count one case."""
        self.cases += 1
        self.said[judged.said] += 1
        self.slowest = max(self.slowest, (seconds, number, judged.name))
        self.largest = max(self.largest, (judged.size, number, judged.name))
        if judged.violation:
            self.violations.append((number, judged))

    def show(self, seed: int, rows: Counter[str]) -> None:
        """Print it."""
        rate, core = self.cases / self.seconds, self.cases / self.core_seconds
        lines = [
            f"{self.cases:,} answers in {self.seconds:.1f} s, seed {seed}: {rate:,.0f}/s, {core:,.0f}/s of one core"
        ]
        lines += [f"  {count:>9,}  {said}" for said, count in sorted(self.said.items())]
        lines.append("rows of the table that decided a write:")
        lines += [f"  {count:>9,}  {row}" for row, count in rows.most_common()]
        seconds, number, name = self.slowest
        lines.append(f"slowest: {seconds * 1000:.0f} ms, {name}: --seed {seed} --first {number} --count 1")
        size, number, name = self.largest
        lines.append(f"largest: {size:,} bytes, {name}: --seed {seed} --first {number} --count 1")
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        lines.append(f"most memory at any time: {peak:,.0f} MiB")
        lines.append(f"violations: {len(self.violations)}")
        lines += [
            f"  --seed {seed} --first {number} --count 1: {judged.name}: {judged.violation[:500]!r}"
            for number, judged in self.violations[:_SHOWN]
        ]
        sys.stdout.write("\n".join(lines) + "\n")


async def _run(seed: int, numbers: range) -> Tally:
    tally = Tally()
    async with Trials.opened() as trials:
        began, busy = time.perf_counter(), time.process_time()
        for number in numbers:
            start = time.perf_counter()
            judged = await trials.drawn(Random(f"{seed}:{number}"))
            tally.add(number, judged, time.perf_counter() - start)
        tally.seconds, tally.core_seconds = time.perf_counter() - began, time.process_time() - busy
    return tally


if __name__ == "__main__":
    sys.exit(main())
