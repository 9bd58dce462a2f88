"""Several lanes at once, each a process of its own that takes the next episode when it has done one."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from tests.faults.campaign.report import Report

_ROOT = Path(__file__).resolve().parents[3]
_LONGEST_EPISODE = 300.0
_LINE_LIMIT = 1 << 24


async def run_campaign(
    numbers: Iterable[int],
    *,
    seed: int,
    lanes: int,
    folder: Path,
    keep: bool = False,
    tell: Callable[[str], None] = lambda _text: None,
) -> Report:
    """Run these episodes of a seed. ``tell`` hears of each violation at once, with the command that repeats it."""
    folder.mkdir(parents=True, exist_ok=True)
    report, left, began = Report(seed), iter(list(numbers)), time.monotonic()

    def take(result: dict[str, Any]) -> None:
        report.add(result)
        with (folder / "results.ndjson").open("a", encoding="utf-8") as results:
            results.write(json.dumps(result) + "\n")
        for violation in result["violations"]:
            tell(f"VIOLATION in episode {result['episode']}: {violation}")
        if result["violations"]:
            tell(f"  again: python -m tests.faults.campaign --seed {seed} --episode {result['episode']}")
        if len(report.episodes) % 25 == 0:
            tell(f"{len(report.episodes)} episodes, {len(report.violations)} violations, {_since(began)} s")

    async with asyncio.TaskGroup() as group:
        for number in range(lanes):
            group.create_task(_lane(folder / f"lane-{number}", seed, left, take, keep=keep))
    report.seconds = time.monotonic() - began
    return report


def _since(began: float) -> int:
    return round(time.monotonic() - began)


async def _lane(
    folder: Path, seed: int, left: Iterator[int], take: Callable[[dict[str, Any]], None], *, keep: bool
) -> None:
    """One lane's process; one that ends or hangs is reported as a violation of the episode that it ran."""
    log = folder.with_suffix(".log").open("wb")
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "tests.faults.campaign.lane", "--folder", str(folder), "--seed", str(seed)),
        *(["--keep"] if keep else []),
        cwd=_ROOT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=log,
        limit=_LINE_LIMIT,
    )
    if process.stdin is None or process.stdout is None:
        raise RuntimeError("the lane has no pipes")
    try:
        for number in left:
            process.stdin.write(f"{number}\n".encode())
            line = b""
            try:
                async with asyncio.timeout(_LONGEST_EPISODE):
                    line = await process.stdout.readline()
            except TimeoutError:
                process.kill()
            if not line:
                take({"episode": number, "violations": [f"its lane ended or hung; see {log.name}"]})
                return
            take(json.loads(line))
    finally:
        process.stdin.close()
        await process.wait()
        log.close()
