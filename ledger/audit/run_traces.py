"""What an audit keeps of each run while the events go by."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256

from ledger.audit.bodies import parsed_object
from ledger.audit.log_order import RunPlace
from ledger.audit.outcome_order import OutcomeOrder
from ledger.events import BODIES, OUTCOME_KINDS, Cut, PlanCommitted, PlanRefused, RunStarted, StoredEvent
from ledger.plan.canonical import canonical_json_bytes


@dataclass(frozen=True, slots=True)
class CommitSaid:
    """What a commit says that is compared with what is stored; there may be very many of them.

    Attributes:
        digest: sha256 over the canonical bytes of the commit, as it was received.
    """

    commit_id: str
    plan_checksum: str
    artifact_digest: str
    operations_count: int
    source: str
    digest: bytes


@dataclass(slots=True)
class RunTrace:
    """What is known of a run, for its audit."""

    run_id: str
    commit: CommitSaid | None = None
    committed_at: int = 0
    started: bool = False
    outcomes: int = 0
    order: OutcomeOrder = field(default_factory=OutcomeOrder)
    last_end: str | None = None
    cuts: list[Cut] = field(default_factory=list)
    place: RunPlace = field(default_factory=RunPlace)

    def take(self, event: StoredEvent, body: object) -> None:
        """Take one of its events, with its body where that is one of its kind."""
        if isinstance(body, PlanCommitted):
            # As it was received, whatever this program's version of a commit would add.
            received = canonical_json_bytes((parsed_object(event.body) or {}).get("commit"))
            said = body.commit
            self.commit = CommitSaid(
                said.commit_id,
                said.plan_checksum,
                said.artifact_digest,
                said.operations_count,
                said.source,
                sha256(received).digest(),
            )
            self.committed_at = event.position
        if isinstance(body, PlanRefused | RunStarted) and body.cut is not None:
            self.cuts.append(body.cut)
        if event.kind == "run.started":
            self.started = True
        elif event.kind in OUTCOME_KINDS:
            self.outcomes += 1
            self.order.take(event)
        elif event.kind.startswith("run.") and event.kind != "run.resumed":
            self.last_end = event.kind


def body_of(event: StoredEvent) -> object | None:
    """The body of an event as one of its kind; None where it is none."""
    try:
        return BODIES[event.kind].model_validate_json(event.body)
    except (KeyError, ValueError):
        return None
