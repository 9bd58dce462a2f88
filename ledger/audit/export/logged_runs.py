"""What the log of an export says of its runs: the rows that their table must have, and the lists that stand apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ledger.audit.bodies import parsed_object
from ledger.audit.export.reading import ExportedLedger
from ledger.events import Cut, PlanRefused, RunStarted, StoredEvent
from ledger.plan.canonical import canonical_json_text

_SAID = ("source", "actor", "reason", "committed_at", "commit_id", "operations_count", "plan_checksum")
ROW_OF_COMMIT = ("run_id", "committed_position", "commit", *_SAID, "artifact_digest")
"""The columns of the table of runs that follow from the event of a run's commit; those of the stored plan are verified
with the run."""

_CUTS: Mapping[str, type[PlanRefused | RunStarted]] = {"plan.refused": PlanRefused, "run.started": RunStarted}


class LoggedRuns:
    """Reads the events of an export; ``details`` is whole once :meth:`rows` came to its end."""

    def __init__(self, exported: ExportedLedger) -> None:
        self._exported = exported
        self.details: set[str] = set()

    def rows(self) -> Iterator[dict[str, Any]]:
        """The row of each run that was committed, in the order of the log."""
        known: set[str | None] = set()
        for event in self._exported.every_event(kinds={"plan.committed", *_CUTS}):
            if event.kind in _CUTS:
                self._take_cut(event)
            elif event.run_id not in known:
                known.add(event.run_id)
                yield _row(event)

    def _take_cut(self, event: StoredEvent) -> None:
        try:
            cut: Cut | None = _CUTS[event.kind].model_validate_json(event.body).cut
        except ValueError:
            return  # the catalogue names it
        if cut is not None:
            self.details.add(cut.sha256)


def _row(event: StoredEvent) -> dict[str, Any]:
    commit = (parsed_object(event.body) or {}).get("commit")
    said = commit if isinstance(commit, dict) else {}
    return {
        "run_id": event.run_id,
        "committed_position": event.position,
        "commit": canonical_json_text(commit),
        **{name: said.get(name) for name in ROW_OF_COMMIT[3:]},
    }
