"""The plan that every run of the state machine carries out, and its events, built as the product builds them."""

from __future__ import annotations

from typing import Any

from ledger.binding import DestinationBinding
from ledger.commit import PlanCommit, Policy, commit_id
from ledger.events import (
    Body,
    NewEvent,
    OperationApplied,
    OperationFailed,
    OperationSkipped,
    OperationUnknown,
    PlanCommitted,
    RunEnded,
    RunResumed,
    RunStarted,
    RunStopped,
    WriterOpened,
    new_event,
)

RUNS = ("run-1", "run-2")
OPERATIONS = tuple(f"op_{ordinal:016x}" for ordinal in range(5))
"""Three creates, then two recorded deletes."""
CREATES = 3
HOST = "host"
ROLE = "ledger_writer"
POLICIES = (Policy(), Policy(on_unknown="converge"))

_OUTCOMES: dict[str, Body] = {
    "operation.applied": OperationApplied(node_id="node", sent_ms=1, duration_ms=2),
    "operation.skipped": OperationSkipped(why="recorded delete"),
    "operation.failed": OperationFailed(error="PeerNotFoundError", message="no such peer", next_action="plan again"),
    "operation.unknown": OperationUnknown(error="ReadTimeout", message="no answer", sent=True, next_action="resume"),
}
_OTHER_OUTCOMES: dict[str, Body] = {
    "operation.applied": OperationApplied(node_id="another node", sent_ms=1, duration_ms=2),
    "operation.skipped": OperationSkipped(why="another reason"),
    "operation.failed": OperationFailed(error="SchemaError", message="no such field", next_action="plan again"),
    "operation.unknown": OperationUnknown(error="ReadTimeout", message="no answer", sent=False, next_action="resume"),
}
_ENDED = RunEnded(
    applied=0, skipped=0, not_attempted=0, failed_operation=None, failed_operation_wrote=None, last_ordinal=None
)
_MARKS: dict[str, Body] = {
    "run.started": RunStarted(
        plan_checksum="c" * 64, operations_count=len(OPERATIONS), policy=Policy(), source="netbox", overlaps=[]
    ),
    "run.resumed": RunResumed(by="somebody", reason="again", from_ordinal=0, policy=Policy()),
    "run.stopped": RunStopped(by="somebody", reason="lunch", last_ordinal=None),
    "run.applied": _ENDED,
    "run.failed": _ENDED,
    "run.interrupted": _ENDED,
}


def outcome(
    kind: str, binding: DestinationBinding, run_id: str, ordinal: int, attempt: int, *, other: bool = False
) -> NewEvent:
    """The outcome of one attempt; ``other`` gives it another body under the same id."""
    return new_event(
        kind,
        (_OTHER_OUTCOMES if other else _OUTCOMES)[kind],
        url=binding.url,
        branch=binding.branch,
        n=attempt,
        run_id=run_id,
        operation_id=OPERATIONS[ordinal],
        ordinal=ordinal,
        attempt=attempt,
    )


def run_mark(kind: str, binding: DestinationBinding, run_id: str, n: int) -> NewEvent:
    """A start, resumption or end of a run; ``n`` counts its starts."""
    return new_event(kind, _MARKS[kind], url=binding.url, branch=binding.branch, n=n, run_id=run_id)


def opened(binding: DestinationBinding, owner: str, epoch: int) -> NewEvent:
    """``writer.opened`` as a claim of that owner records it."""
    body = WriterOpened(epoch=epoch, process_id=f"process of {owner}", host=HOST, role=ROLE)
    return new_event("writer.opened", body, url=binding.url, branch=binding.branch, n=epoch)


def commit(binding: DestinationBinding, run_id: str, **changes: Any) -> PlanCommit:
    """The commit of a run, or one that differs in ``changes``."""
    checksum = changes.pop("plan_checksum", "c" * 64)
    values: dict[str, Any] = {
        "commit_id": commit_id(run_id, checksum),
        "run_id": run_id,
        "binding": binding,
        "plan_checksum": checksum,
        "artifact_digest": "d" * 64,
        "format_version": 3,
        "operations_count": len(OPERATIONS),
        "config_version": "config",
        "source": "netbox",
        "artifact": f"netbox/{run_id}",
        "actor": "somebody",
        "committed_at": "2026-11-29T19:00:00.000000+00:00",
    }
    return PlanCommit(**(values | changes))


def committed(commit: PlanCommit) -> NewEvent:
    """``plan.committed`` of that commit."""
    return new_event(
        "plan.committed",
        PlanCommitted(commit=commit),
        url=commit.binding.url,
        branch=commit.binding.branch,
        run_id=commit.run_id,
        n=commit.commit_id,
    )
