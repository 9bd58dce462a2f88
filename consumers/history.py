"""What the ledger says of one run so far: a fold over its events in stored order.

This is what resuming, taking over and counting attempts stand on. It reads events only; no state of a process.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from ledger.errors import Finding
from ledger.events import CRASH_ERRORS, OUTCOME_KINDS, TERMINAL_KINDS, NewEvent, StoredEvent


@dataclass(slots=True)
class RunHistory:
    """All attempts of one run.

    ``episodes`` counts the terminal events: the number of the start or resumption that comes next, or runs now.
    ``applied`` and ``skipped`` are the identifiers with a terminal success, in stored order. ``in_doubt`` are those
    with an attempt that may have written and no success since: a later refusal does not prove anything about it.
    ``refusal`` is what the last terminal event refused, where it is a refusal (as far as its body holds it).
    ``ended_at`` is the ledger position of the last terminal event that was read; 0 without one.
    """

    run_id: str
    started: bool = False
    episodes: int = 0
    open: bool = False
    last_terminal: str | None = None
    applied: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    attempts: dict[str, int] = field(default_factory=dict)
    unknown_in_episode: dict[str, int] = field(default_factory=dict)
    in_doubt: set[str] = field(default_factory=set)
    interrupted_by_crash: bool = False
    last_ordinal: int | None = None
    refusal: tuple[Finding, ...] = ()
    ended_at: int = 0

    _done: set[str] = field(default_factory=set, repr=False)

    def has_success(self, operation_id: str) -> bool:
        """Whether the operation needs no further attempt in this run."""
        return operation_id in self._done

    def take(self, event: StoredEvent | NewEvent) -> None:
        """Fold one event of this run; events of other kinds change nothing."""
        if event.kind in OUTCOME_KINDS and event.operation_id is not None:
            self._take_outcome(event, event.operation_id)
        elif event.kind in ("run.started", "run.resumed"):
            self._take_start()
        elif event.kind in TERMINAL_KINDS:
            self.last_terminal = event.kind
            self.refusal = _findings(event) if event.kind == "plan.refused" else ()
            self.episodes += 1
            self.open = False
            self.ended_at = event.position if isinstance(event, StoredEvent) else self.ended_at

    def _take_outcome(self, event: StoredEvent | NewEvent, operation_id: str) -> None:
        self.last_ordinal = event.ordinal
        self.interrupted_by_crash = False
        if event.kind == "operation.skipped":
            self.skipped.append(operation_id)
            self._done.add(operation_id)
            return
        self.attempts[operation_id] = max(self.attempts.get(operation_id, 0), event.attempt or 0)
        if event.kind == "operation.applied":
            self.applied.append(operation_id)
            self._done.add(operation_id)
            self.in_doubt.discard(operation_id)
        elif event.kind == "operation.unknown":
            self.in_doubt.add(operation_id)
            self.unknown_in_episode[operation_id] = self.unknown_in_episode.get(operation_id, 0) + 1
            self.interrupted_by_crash = json.loads(event.body).get("error") in CRASH_ERRORS

    def _take_start(self) -> None:
        self.started = True
        self.open = True
        self.interrupted_by_crash = False
        self.unknown_in_episode.clear()


def _findings(event: StoredEvent | NewEvent) -> tuple[Finding, ...]:
    return tuple(Finding.model_validate(finding) for finding in json.loads(event.body)["findings"])


async def read_history(run_id: str, events: AsyncIterator[StoredEvent]) -> RunHistory:
    """Fold all events of a run, in stored order."""
    history = RunHistory(run_id=run_id)
    async for event in events:
        history.take(event)
    return history
