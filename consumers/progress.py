"""Progress of a writer, for display only; the ledger is the record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from ledger.events import NewEvent

Phase = Literal["claiming", "taking_over", "settling", "verifying", "applying", "ended"]


@dataclass(frozen=True, slots=True)
class WriterProgress:
    """The state of one binding's writer.

    ``done`` of ``total`` operations have an outcome; ``seconds`` is how long a wait will last (settling) or how long
    the lease is held by another process (claiming).
    """

    phase: Phase
    run_id: str | None = None
    done: int = 0
    total: int = 0
    seconds: float = 0.0
    detail: str = ""


class WriterObserver(Protocol):
    """Receives each step. Must return at once and must not raise."""

    def __call__(self, progress: WriterProgress) -> None:
        """Show it."""
        ...


def unobserved(progress: WriterProgress) -> None:
    """An observer that does nothing."""


RecordedEvents = Callable[[Sequence[NewEvent]], None]
"""Receives the events of each append that the database has committed, to count them. Must return at once and must not
raise."""


def uncounted(events: Sequence[NewEvent]) -> None:
    """A counter that does nothing."""
