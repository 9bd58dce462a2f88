"""What a list is asked for; applied to rows as the store hands them out."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from ledger.api import models, views
from ledger.audit.bodies import parsed_object
from ledger.store.pages import OperationRow, RunRow


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Which runs to list; None leaves a thing open. By when commits came: from ``since`` on, before ``until``.

    ``text`` stands in the run's id, its source, who committed it, or the beginning of the reason; case does not matter.
    """

    binding_id: int | None = None
    source: str | None = None
    state: models.RunStateName | None = None
    since: datetime | None = None
    until: datetime | None = None
    text: str | None = None

    def takes(self, row: RunRow) -> bool:
        """Whether a run is one of them."""
        state = row.line.state if row.line else "open"
        return (
            self.binding_id in (None, row.binding_id)
            and self.source in (None, row.source)
            and self.state in (None, state)
            and not self.is_behind(row)
            and (self.until is None or row.received_at < self.until)
            and (self.text is None or any(self.text.casefold() in told.casefold() for told in _told(row)))
        )

    def is_behind(self, row: RunRow) -> bool:
        """Whether a run, and with it every one that is older, came too early."""
        return self.since is not None and row.received_at < self.since

    @property
    def by_time(self) -> bool:
        """Whether the list is read by time, over all bindings: it begins where it is to end, however long ago."""
        return self.binding_id is None or self.until is not None

    @property
    def takes_all(self) -> bool:
        """Whether every run of the list that is read is one."""
        of_all = self.binding_id is None or not self.by_time
        return of_all and self.source is None and self.state is None and self.text is None


def _told(row: RunRow) -> tuple[str, ...]:
    """What a list says of a run in words that somebody chose."""
    actor = row.line.commitment.actor if row.line and row.line.commitment else ""
    return (row.run_id, row.source, actor, row.reason or "")


@dataclass(frozen=True, slots=True)
class OperationFilter:
    """Which operations of a run to list.

    ``had``: those with an attempt that ended like this, whatever became of the operation at a later one. ``but``: those
    of any other outcome.
    """

    outcome: models.OutcomeName | None = None
    kind: str | None = None
    had: Literal["failed", "unknown"] | None = None
    but: models.OutcomeName | None = None

    def takes(self, row: OperationRow) -> bool:
        """Whether an operation is one of them."""
        outcome = views.outcome_of(row)
        if self.outcome not in (None, outcome) or outcome == self.but:
            return False
        return self.kind is None or (parsed_object(row.line) or {}).get("kind") == self.kind

    @property
    def takes_all(self) -> bool:
        """Whether every operation is one."""
        return self.outcome is None and self.kind is None and self.had is None and self.but is None
