"""Run a soak: ``python -m tests.faults.soak --seconds 600 --seed 1``; exit code 1 where a guarantee gave way."""

from __future__ import annotations

import argparse
import asyncio
import logging
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from tests.faults.soak.script import script_of
from tests.faults.soak.soak import Report, Soak


def main() -> int:
    """0 when every guarantee held."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.soak")
    parser.add_argument("--seconds", type=float, default=600.0, help="for how long it is disturbed")
    parser.add_argument("--seed", type=int, default=1, help="decides everything but the timing")
    parser.add_argument("--folder", type=Path, help="where logs and runs of a soak with violations are kept")
    options = parser.parse_args()
    folder = options.folder or Path(tempfile.mkdtemp(prefix="apply-ledger-soak-"))
    folder.mkdir(parents=True, exist_ok=True)
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)  # brokers that are away are what this is about
    script = script_of(options.seed, options.seconds)
    report = asyncio.run(_run(Soak(script, folder.resolve(), lambda text: print(text, flush=True))))
    for violation in report.wrong:
        print(f"VIOLATION: {violation}")
    print("\n".join(report.lines()))
    if report.wrong:
        print(f"kept in {folder}")
        return 1
    shutil.rmtree(folder)
    return 0


async def _run(soak: Soak) -> Report:
    """Whoever ends the soak early by a signal leaves no broker, database or worker behind."""
    task = asyncio.ensure_future(soak.run())
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    return await task


if __name__ == "__main__":
    sys.exit(main())
