"""From what a destination did with one operation to the event that says so (G5, G6).

There are exactly three verdicts: applied, proven unwritten, unknown. Whatever is not one of the named operational
failures is a defect: its operation is recorded as unknown where it may have been dispatched, and the exception goes on
with its traceback. Calling a defect a refusal would send people to repair a destination that works.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from consumers.recorded_text import recordable
from ledger.destination import OutcomeUnknownError, ProvenUnwrittenError
from ledger.errors import ApplyLedgerError
from ledger.events import WRITER_CANCELLED, WRITER_DIED, Body, OperationApplied, OperationFailed, OperationUnknown
from ledger.plan.model import PlannedOperation
from ledger.shortage import shortage_of

OPERATIONAL_FAILURES: tuple[type[ApplyLedgerError], ...] = (ProvenUnwrittenError, OutcomeUnknownError)
"""What an apply reports as a failure of one operation. The list is short on purpose; all else is a defect (P140)."""

_MAY_HAVE_WRITTEN = "It may have written part or all of this operation."
_CHECK_THEN_RESUME = "check the object at the destination, then resume the run; sending the operation again is safe"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is to be recorded of one attempt.

    ``kind`` is the event's kind; ``settle``: the server may still be busy; ``final``: a repeat is no way on.
    """

    kind: Literal["operation.applied", "operation.failed", "operation.unknown"]
    body: Body
    settle: bool = False
    final: bool = False


def applied_verdict(
    operation: PlannedOperation, answered: object, *, sent_ms: int, duration_ms: int, note: str | None = None
) -> Verdict:
    """The verdict on a node id that the destination answered with.

    A missing or blank id, and on an update any other id than the recorded one, is no proof of success (G6).
    """
    if not isinstance(answered, str) or not answered.strip():
        return _unknown("EmptyNodeIdError", "the destination answered without a node id.")
    if operation.action == "update" and answered != operation.destination_id:
        return _unknown(
            "OtherNodeAnsweredError", "the destination answered with another node id than the recorded one."
        )
    return Verdict(
        "operation.applied",
        OperationApplied(node_id=recordable(answered), sent_ms=sent_ms, duration_ms=duration_ms, note=note),
    )


def failure_verdict(failure: ApplyLedgerError) -> Verdict:
    """The verdict on one of :data:`OPERATIONAL_FAILURES`."""
    name = type(failure).__name__
    if isinstance(failure, OutcomeUnknownError):
        body = OperationUnknown(
            error=name,
            message=recordable(f"{failure} {_MAY_HAVE_WRITTEN}" if failure.sent else str(failure)),
            sent=failure.sent,
            http_status=failure.http_status,
            code=None if failure.code is None else recordable(failure.code),
            next_action=recordable(failure.next_action),
        )
        return Verdict("operation.unknown", body, settle=failure.sent, final=failure.final)
    return Verdict(
        "operation.failed",
        OperationFailed(error=name, message=recordable(str(failure)), next_action=recordable(failure.next_action)),
    )


def defect_verdict(defect: BaseException, *, sent: bool) -> Verdict:
    """The verdict where a defect ended the attempt: nothing is known, and nothing is claimed.

    The defect's own text is not recorded: it was written for no reader, and may hold anything.
    """
    shortage = shortage_of(defect)
    if shortage is not None:
        why = f"the writer's machine ran short while this operation was under way: {shortage.expected} was wanted."
        return _unknown(type(shortage).__name__, why, sent=sent, next_action=shortage.next_action)
    return _unknown(
        type(defect).__name__,
        "a defect of the program, no refusal of the destination, ended the operation; its traceback is in the log.",
        sent=sent,
        next_action="report the traceback in the log, then resume the run",
    )


def reason_of_end(defect: Exception) -> str:
    """Why a run was stopped between two operations by what should not have happened there."""
    shortage = shortage_of(defect)
    if shortage is not None:
        return f"the writer's machine ran short: {shortage.expected} was wanted"
    return f"a defect of the program: {type(defect).__name__}"


def died_verdict() -> Verdict:
    """The verdict of a successor on the operation that a dead writer left in flight."""
    return _unknown(WRITER_DIED, "the writer ended while this operation was under way.")


def cancelled_verdict(*, sent: bool) -> Verdict:
    """The verdict where the writer was told to end at once while the operation was under way."""
    return _unknown(WRITER_CANCELLED, "the writer was cancelled while this operation was under way.", sent=sent)


def not_begun_verdict(refusal: ApplyLedgerError, *, sent: bool) -> Verdict:
    """The verdict where the lease's guard held back a request; ``sent`` where an earlier one that may write left."""
    return _unknown(type(refusal).__name__, "the lease became too short while this operation was under way.", sent=sent)


def _unknown(error: str, why: str, *, sent: bool = True, next_action: str = _CHECK_THEN_RESUME) -> Verdict:
    message = f"{why} {_MAY_HAVE_WRITTEN}" if sent else why
    body = OperationUnknown(error=error, message=message, sent=sent, next_action=next_action)
    return Verdict("operation.unknown", body, settle=sent)
