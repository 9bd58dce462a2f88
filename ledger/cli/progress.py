"""Progress of long work: a bar with rate and remaining time on a terminal, a plain line every ten seconds elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.progress import Task as ProgressTask
from rich.text import Text

from ledger.cli.output import people

PLAIN_LINE_EVERY = 10.0

Report = Callable[[str, int, int | None], None]
"""Called with the phase, how many are done, and how many there are (None where that is unknown)."""


class _RateColumn(ProgressColumn):
    def render(self, task: ProgressTask) -> Text:
        return Text(f"{task.speed or 0:,.0f}/s", style="dim")


@contextmanager
def progress(unit: str) -> Iterator[Report]:
    """Show progress on stderr while the block runs.

    Args:
        unit: what is counted, for the plain lines ("rows", "operations").
    """
    if people.is_terminal:
        with Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            _RateColumn(),
            TimeRemainingColumn(),
            console=people,
            transient=True,
        ) as bars:
            yield _Bars(bars).report
    else:
        yield _PlainLines(unit).report


class _Bars:
    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._tasks: dict[str, TaskID] = {}

    def report(self, phase: str, done: int, total: int | None) -> None:
        if phase not in self._tasks:
            self._tasks[phase] = self._bars.add_task(phase, total=total, completed=done)
        self._bars.update(self._tasks[phase], completed=done, total=total)


class _PlainLines:
    def __init__(self, unit: str) -> None:
        self._unit = unit
        self._began: dict[str, tuple[float, int]] = {}
        self._last = time.monotonic()

    def report(self, phase: str, done: int, total: int | None) -> None:
        now = time.monotonic()
        began, from_ = self._began.setdefault(phase, (now, done))
        if now - self._last < PLAIN_LINE_EVERY:
            return
        self._last = now
        of = "" if total is None else f" of {total:,}"
        left = None if total is None else total - done
        pace = _pace(done - from_, left, now - began)
        people.print(f"{phase}: {done:,}{of} {self._unit}{pace}", style="dim")


def _pace(done: int, left: int | None, seconds: float) -> str:
    """Rate and remaining time of what was done here; nothing in a phase's first second, where they would be a guess."""
    if seconds < 1.0 or not done:
        return ""
    rate = done / seconds
    return f", {rate:,.0f}/s" + ("" if left is None else f", about {max(left, 0) / rate:,.0f} s to go")
