"""``python -m tests.hostile.artifacts --count N --seed S``: so many hostile artifacts, each a named refusal or a plan.

Prints how fast it went, what the verdicts were, and the slowest and the largest case with what makes it again. Exits
with 1 where one case violated a rule: another exception, a refusal without words, an admission that is none, a trace.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import traceback
import tracemalloc
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.hostile.artifact_cases import run_case
from tests.hostile.artifact_judge import Judge

_MEASURED_EVERY = 200
"""Every so many cases one is measured with tracemalloc, which makes it several times slower."""
_KEPT = 50


@dataclass
class Tally:
    """What became of a number of cases."""

    cases: int = 0
    admitted: int = 0
    seconds: float = 0.0
    peak_rss_mib: float = 0.0
    refusals: Counter[str] = field(default_factory=Counter)
    findings: Counter[str] = field(default_factory=Counter)
    mutations: Counter[str] = field(default_factory=Counter)
    slowest: tuple[float, int, str] = (0.0, -1, "")
    largest: tuple[int, int, str] = (0, -1, "")
    violations: list[str] = field(default_factory=list)
    violated: int = 0

    def add(self, other: Tally) -> None:
        """Add what another process found."""
        self.cases += other.cases
        self.admitted += other.admitted
        self.violated += other.violated
        self.peak_rss_mib = max(self.peak_rss_mib, other.peak_rss_mib)
        for mine, theirs in (
            (self.refusals, other.refusals),
            (self.findings, other.findings),
            (self.mutations, other.mutations),
        ):
            mine.update(theirs)
        self.slowest = max(self.slowest, (other.slowest[0], other.slowest[1], other.slowest[2]))
        self.largest = max(self.largest, (other.largest[0], other.largest[1], other.largest[2]))
        self.violations += other.violations[: _KEPT - len(self.violations)]


def run(seed: int, numbers: range, root: Path) -> Tally:
    """Judge the cases of these numbers below ``root``."""
    import resource

    tally, judge = Tally(), Judge(root)
    run_case(judge, seed, -1)  # what is loaded and compiled the first time is not counted
    began = time.perf_counter()
    try:
        for number in numbers:
            _one(tally, judge, seed, number)
    finally:
        judge.close()
    tally.seconds = time.perf_counter() - began
    tally.peak_rss_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return tally


def _one(tally: Tally, judge: Judge, seed: int, number: int) -> None:
    measured = number % _MEASURED_EVERY == 0
    if measured:
        tracemalloc.start()
    began = time.perf_counter()
    try:
        case = run_case(judge, seed, number)
    except Exception:  # noqa: BLE001 - whatever escapes is what this program looks for
        tally.cases += 1
        _violation(tally, seed, number, traceback.format_exc(limit=-8))
        if measured:
            tracemalloc.stop()
        return
    took = time.perf_counter() - began
    if measured:
        tally.largest = max(tally.largest, (tracemalloc.get_traced_memory()[1], number, case.made_by))
        tracemalloc.stop()
    else:
        tally.slowest = max(tally.slowest, (took, number, case.made_by))
    tally.cases += 1
    tally.admitted += case.verdict.admitted
    tally.refusals[case.verdict.refusal or "(admitted)"] += 1
    tally.findings.update(case.verdict.names)
    tally.mutations.update(set(case.made_by.split("+")))
    if case.violations:
        _violation(tally, seed, number, f"{case.made_by}: " + "; ".join(case.violations[:5]))


def _violation(tally: Tally, seed: int, number: int, what: str) -> None:
    tally.violated += 1
    if len(tally.violations) < _KEPT:
        tally.violations.append(f"--seed {seed} --only {number}: {what}")


def main() -> int:
    """Parse the arguments, run the cases in one or several processes, print the report."""
    parser = argparse.ArgumentParser(prog="python -m tests.hostile.artifacts", description=__doc__)
    parser.add_argument("--count", type=int, default=10_000, help="how many artifacts")
    parser.add_argument("--seed", type=int, default=1, help="the same seed makes the same artifacts")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--only", type=int, help="one case, with its findings")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--raw", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="apply-ledger-hostile-", dir=_fast_folder()) as folder:
        if given.only is not None:
            return _show_one(Path(folder), given.seed, given.only)
        if given.raw:
            tally = run(given.seed, range(given.first, given.first + given.count), Path(folder))
            print(json.dumps(vars(tally)))
            return 0
        return _report(_in_processes(given.count, given.seed, given.jobs), given.seed)


def _fast_folder() -> str | None:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def _in_processes(count: int, seed: int, jobs: int) -> Tally:
    """The cases shared out to processes: each is this program with a range of numbers."""
    share = -(-count // jobs)
    starts = range(0, count, share)
    began = time.perf_counter()
    children = [
        subprocess.Popen(
            [
                *(sys.executable, "-m", "tests.hostile.artifacts", "--raw", "--seed", str(seed)),
                *("--first", str(first), "--count", str(min(share, count - first))),
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        for first in starts
    ]
    whole = Tally()
    for first, child in zip(starts, children, strict=True):
        output, _ = child.communicate()
        if child.returncode != 0:
            whole.violated += 1
            whole.violations.append(f"the process of the cases from {first} on ended with {child.returncode}")
            continue
        whole.add(_tally(json.loads(output)))
    whole.seconds = time.perf_counter() - began
    return whole


def _tally(document: dict[str, Any]) -> Tally:
    found = Tally(**document)
    for name in ("refusals", "findings", "mutations"):
        setattr(found, name, Counter(document[name]))
    found.slowest, found.largest = tuple(document["slowest"]), tuple(document["largest"])
    return found


def _show_one(root: Path, seed: int, number: int) -> int:
    judge = Judge(root)
    try:
        case = run_case(judge, seed, number)
    finally:
        judge.close()
    print(f"{case.made_by}: {case.verdict.refusal or 'admitted'}")
    for finding in case.verdict.findings:
        print(f"  {finding}")
    for violation in case.violations:
        print(f"VIOLATION {violation}")
    return 1 if case.violations else 0


def _report(tally: Tally, seed: int) -> int:
    rate = tally.cases / tally.seconds if tally.seconds else 0.0
    print(f"{tally.cases:,} artifacts of seed {seed} in {tally.seconds:,.0f} s: {rate:,.0f} a second")
    print(f"{tally.admitted:,} admitted, each a valid plan by an independent judgement; the rest was refused:")
    for name, count in tally.refusals.most_common():
        print(f"  {count:>9,} {name}")
    print("findings in the refusals (a case may have several):")
    for name, count in tally.findings.most_common():
        print(f"  {count:>9,} {name}")
    print("made by: " + ", ".join(f"{name} {count:,}" for name, count in tally.mutations.most_common()))
    seconds, number, made_by = tally.slowest
    print(f"slowest: {seconds * 1000:,.0f} ms, --seed {seed} --only {number} ({made_by})")
    size, number, made_by = tally.largest
    print(f"largest of every {_MEASURED_EVERY}th: {size / 2**20:,.1f} MiB, --seed {seed} --only {number} ({made_by})")
    print(f"peak memory of a process: {tally.peak_rss_mib:,.0f} MiB")
    print(f"{tally.violated:,} violations")
    for violation in tally.violations:
        print(f"  {violation}")
    return 1 if tally.violated else 0


if __name__ == "__main__":
    sys.exit(main())
