"""``python -m tests.bench``: measure, print the figures beside their targets, and keep them in a file."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.bench.cases import CASES
from tests.bench.frame import Case, Setting
from tests.bench.noise import listen
from tests.bench.report import CaseResult, as_json, keep, print_table


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the chosen cases; 0 whether or not targets are met: a bench informs, tests decide."""
    options = _parser().parse_args(arguments)
    chosen = [case for case in CASES if not options.only or case.name in options.only]
    options.state.mkdir(parents=True, exist_ok=True)
    results = []
    for case in chosen:
        print(f"{case.name} …", file=sys.stderr, flush=True)
        results.append(measured(case, options.state, rounds=options.rounds, smoke=options.smoke))
    show(results, options.state, smoke=options.smoke, output=options.output)
    return 0


def show(results: Sequence[CaseResult], state: Path, *, smoke: bool, output: str) -> None:
    """Keep the results below ``state`` and print them: as a table, or as JSON."""
    kept = keep(results, state, smoke=smoke)
    if output == "json":
        print(json.dumps(as_json(results), indent=2, ensure_ascii=False))
    else:
        print_table(results, smoke=smoke)
    print(f"kept in {kept[0]} and {kept[1]}", file=sys.stderr)


def measured(case: Case, state: Path, *, rounds: int, smoke: bool) -> CaseResult:
    """Measure one case, with the noise of the machine before and after it; nothing is left below ``state``."""
    scratch = state / "scratch" / case.name
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    started = time.perf_counter()
    try:
        before = listen(scratch)
        figures = case.measure(Setting(rounds=rounds, smoke=smoke, scratch=scratch))
        noise = before + listen(scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return CaseResult(case, figures, noise, time.perf_counter() - started)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    names = [case.name for case in CASES]
    parser.add_argument("--only", action="append", choices=names, metavar="NAME", help=f"one of: {', '.join(names)}")
    parser.add_argument("--output", choices=("table", "json"), default="table")
    parser.add_argument("--rounds", type=int, default=5, help="of each variant, interleaved (default 5)")
    parser.add_argument("--smoke", action="store_true", help="tiny sizes: shows that the cases work, in seconds")
    parser.add_argument("--state", type=Path, default=Path(".state/bench"), help="where the results are kept")
    return parser


if __name__ == "__main__":
    sys.exit(main())
