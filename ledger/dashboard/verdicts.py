"""The state of a destination in one word, and the results of its runs over time; pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from ledger.api.models import BindingView, RunView
from ledger.dashboard.templating import moment
from ledger.projections.binding_status import RunMark

MOST_BUCKETS = 60
_WIDTHS = (
    ("hour", timedelta(hours=1)),
    ("day", timedelta(days=1)),
    ("week", timedelta(weeks=1)),
    ("four weeks", timedelta(weeks=4)),
    ("year", timedelta(weeks=52)),
)
_MONDAY = datetime.fromisoformat("2024-01-01T00:00:00+00:00")


def verdict(binding: BindingView) -> str:
    """The state of a destination, as :data:`ledger.dashboard.states.STATES` has it.

    What needs action comes first: orders without a writer, then the end of the last run.
    """
    if is_running(binding):
        return "applying" if binding.writer.live else "stalled"
    if binding.open_orders:
        return "waiting" if binding.writer.live else "no_writer"
    if binding.last_end is None:
        return "new"
    end = binding.last_end.kind.removeprefix("run.").removeprefix("plan.")
    return "settled" if end == "applied" else end


def is_running(binding: BindingView) -> bool:
    """Whether a run was begun that has not ended."""
    start, end = binding.last_start, binding.last_end
    return start is not None and (end is None or end.position < start.position)


def newest(binding: BindingView) -> RunMark | None:
    """What happened to a run of this destination last."""
    marks = [mark for mark in (binding.last_commit, binding.last_start, binding.last_end) if mark is not None]
    return max(marks, key=lambda mark: mark.position, default=None)


@dataclass(frozen=True, slots=True)
class Bucket:
    """What the runs of one stretch of time did; a run counts where it ended, or else began, or else came."""

    begins: datetime
    runs: int = 0
    applied: int = 0
    skipped: int = 0
    failed: int = 0
    unknown: int = 0

    def plus(self, run: RunView) -> Bucket:
        """With one more run."""
        return Bucket(
            self.begins,
            self.runs + 1,
            self.applied + run.applied,
            self.skipped + run.skipped,
            self.failed + run.failed,
            self.unknown + run.unknown,
        )


@dataclass(frozen=True, slots=True)
class Activity:
    """Runs over time: equal stretches without a gap, oldest first."""

    width: str
    buckets: tuple[Bucket, ...]


def activity(runs: Sequence[RunView]) -> Activity | None:
    """The runs over time, in the narrowest stretches of which there are not too many; None where there are no runs."""
    if not runs:
        return None
    times = [moment(run.ended_at or run.started_at or run.received_at) for run in runs]
    name, width = next(
        (item for item in _WIDTHS if (max(times) - min(times)) / item[1] < MOST_BUCKETS - 1), _WIDTHS[-1]
    )
    first, last = _begin(min(times), width), _begin(max(times), width)
    buckets = {first + number * width: Bucket(first + number * width) for number in range((last - first) // width + 1)}
    for run, when in zip(runs, times, strict=True):
        begins = _begin(when, width)
        buckets[begins] = buckets[begins].plus(run)
    return Activity(name, tuple(buckets.values())[-10 * MOST_BUCKETS :])


def _begin(when: datetime, width: timedelta) -> datetime:
    """The beginning of the stretch that a time is in; weeks begin on Mondays."""
    return _MONDAY + (when - _MONDAY) // width * width
