"""The figures of one run: as a table for people, as JSON for programs, both kept in a file."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tests.bench.frame import Case, Figure, Series
from tests.bench.noise import Noise


@dataclass(frozen=True, slots=True)
class CaseResult:
    """One case as it was measured. ``noise`` is that of the machine right before and right after it."""

    case: Case
    figures: Sequence[Figure]
    noise: Noise
    seconds: float


def machine() -> str:
    """What was measured on, in one line."""
    return f"{os.cpu_count()} cores, {_processor()}, {platform.system()} {platform.release()}, Python {_python()}"


def as_json(results: Sequence[CaseResult]) -> dict[str, Any]:
    """Everything, with each round's values."""
    return {"machine": machine(), "cases": [_case_record(result) for result in results]}


def print_table(results: Sequence[CaseResult], *, smoke: bool, file: TextIO | None = None) -> None:
    """One line a figure with its parts below it; min – median – max of all rounds."""
    console = Console(file=file, width=150, highlight=False)
    console.print(machine())
    if smoke:
        console.print("A smoke run: it shows that the cases work; its figures mean nothing.")
    for result in results:
        console.print()
        console.print(_table(result))
        console.print(f"{result.seconds:.0f} s · {_noise_line(result.noise)}")
        console.print(f"again: {result.case.command}", markup=False, soft_wrap=True)


def keep(results: Sequence[CaseResult], folder: Path, *, smoke: bool) -> tuple[Path, Path]:
    """Write both forms below ``folder``; returns their paths."""
    table, document = folder / "bench.txt", folder / "bench.json"
    with table.open("w", encoding="utf-8") as file:
        print_table(results, smoke=smoke, file=file)
    document.write_text(json.dumps(as_json(results), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return table, document


def _table(result: CaseResult) -> Table:
    table = Table(
        title=f"{result.case.name}: {result.case.what}", title_justify="left", expand=True, title_style="bold"
    )
    table.add_column("figure", ratio=3)
    for heading in ("min", "median", "max"):
        table.add_column(heading, justify="right", ratio=1)
    table.add_column("unit", ratio=1)
    table.add_column("target", ratio=1)
    table.add_column("", ratio=1)
    for figure in result.figures:
        told = "" if figure.met is None else ("met" if figure.met else "MISSED")
        target = "" if figure.target is None else f"{figure.target.limit} {figure.target.bound:g}"
        table.add_row(figure.name, *_spread(figure.value), figure.value.unit, target, told, style="bold")
        for part in figure.beside:
            table.add_row(f"  {part.label}", *_spread(part), part.unit, "", "")
        for remark in figure.remarks:
            table.add_row(Text(f"  {remark}"))
    return table


def _spread(series: Series) -> Iterator[str]:
    for value in (series.low, series.median, series.high):
        yield f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _noise_line(noise: Noise) -> str:
    return (
        f"noise: fixed loop {noise.loop_median * 1000:.1f} ms, slowest {noise.loop_spread:.0%} above the fastest;"
        f" fdatasync {noise.sync_median * 1000:.2f} ms, one in twenty above {noise.sync_slow * 1000:.2f} ms"
    )


def _case_record(result: CaseResult) -> dict[str, Any]:
    return {
        "name": result.case.name,
        "what": result.case.what,
        "command": result.case.command,
        "seconds": round(result.seconds, 1),
        "noise": {
            "loop_ms": round(result.noise.loop_median * 1000, 3),
            "loop_spread": round(result.noise.loop_spread, 3),
            "fdatasync_ms": round(result.noise.sync_median * 1000, 3),
            "fdatasync_p95_ms": round(result.noise.sync_slow * 1000, 3),
        },
        "figures": [_figure_record(figure) for figure in result.figures],
    }


def _figure_record(figure: Figure) -> dict[str, Any]:
    target = None if figure.target is None else {"limit": figure.target.limit, "bound": figure.target.bound}
    return {
        "name": figure.name,
        "target": target,
        "met": figure.met,
        "value": _series_record(figure.value),
        "beside": [_series_record(series) for series in figure.beside],
        "remarks": list(figure.remarks),
    }


def _series_record(series: Series) -> dict[str, Any]:
    return {
        "label": series.label,
        "unit": series.unit,
        "min": series.low,
        "median": series.median,
        "max": series.high,
        "rounds": list(series.values),
    }


def _processor() -> str:
    """The processor's name; the standard library does not know it on Linux."""
    cpus = Path("/proc/cpuinfo")
    if cpus.exists():
        for line in cpus.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _python() -> str:
    return ".".join(map(str, sys.version_info[:3]))
