"""Run the crash campaign: ``python -m tests.faults.campaign --count N --seed S``; one episode: ``--episode K``."""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import sys
import tempfile
from pathlib import Path

from tests.faults.campaign.runner import run_campaign
from tests.faults.campaign.script import script_of


def main() -> int:
    """0 when every guarantee held in every episode."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.campaign")
    parser.add_argument("--count", type=int, default=100, help="episodes to run")
    parser.add_argument("--seed", type=int, default=1, help="decides everything but the timing")
    parser.add_argument("--episode", type=int, help="run this one only, and keep its folder")
    parser.add_argument("--lanes", type=int, default=2 * (os.cpu_count() or 1), help="episodes at once")
    parser.add_argument("--folder", type=Path, help="where episodes with violations are kept")
    options = parser.parse_args()
    folder = options.folder or Path(tempfile.mkdtemp(prefix="apply-ledger-campaign-"))
    numbers = range(options.count) if options.episode is None else [options.episode]
    if options.episode is not None:
        print(script_of(options.seed, options.episode, ("from-devicetype-library", "from-netbox-demo")))
    report = asyncio.run(
        run_campaign(
            numbers,
            seed=options.seed,
            lanes=min(options.lanes, len(numbers)),
            folder=folder,
            keep=options.episode is not None,
            tell=lambda text: print(text, flush=True),
        )
    )
    print("\n".join(report.lines()))
    if not report.violations and options.episode is None:
        shutil.rmtree(folder)
    else:
        print(f"kept in {folder}")
    return 1 if report.violations else 0


if __name__ == "__main__":
    sys.exit(main())
