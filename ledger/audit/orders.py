"""The inbox beside the log: orders are those that the log knows, and each is closed as its run's end says.

A writer does what an open order says and leaves a closed one alone, so a state that somebody changed would stop a run
or have it carried out again. The state follows from the log: an order is closed in the transaction that ends its run.
When an order came and who sent it is bound by nothing; the log has its own times and names of what came of it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

from ledger.audit.bodies import parsed_object
from ledger.audit.report import LevelReport
from ledger.commit import Policy
from ledger.events import BY_WRITER, CRASH_ERRORS
from ledger.store.audited_orders import AuditedOrder, UnorderedMark

_OPEN, _DONE, _REFUSED = frozenset({"open"}), frozenset({"done"}), frozenset({"refused"})


async def check_orders(orders: AsyncIterator[AuditedOrder] | None, report: LevelReport) -> None:
    """Compare every order of a binding with the log."""
    if orders is None:
        report.unchecked.append("the inbox of the database that this was exported from")
        return
    async for order in orders:
        report.checked += 1
        _check_place(order, report)
        _check_state(order, report)
        _check_words(order, report)
    report.ended()


def check_marks(marks: Sequence[UnorderedMark], report: LevelReport) -> None:
    """Note what the log has of orders that are not there any more.

    A writer resumes a run whose writer died, and may then refuse it, on the order that stood open: it says so itself.
    """
    for mark in marks:
        by = _object(mark.body).get("by")
        if (mark.kind == "run.resumed" and by == BY_WRITER) or (mark.kind == "plan.refused" and by is None):
            continue
        report.add(
            "OrderMissing",
            checked=f"the order that led to {mark.kind} of run {mark.run_id}",
            expected="one in the inbox, since the run's last end",
            found="none",
            position=mark.position,
        )


def _check_place(order: AuditedOrder, report: LevelReport) -> None:
    """Orders are numbered without a gap and never removed, and nothing is ordered for a run before its commit."""
    if order.inbox_id != order.turn:
        _differs(order, report, "the number", str(order.turn), str(order.inbox_id))
    commit, at = order.committed_at, order.position
    if commit is None or (at != commit if order.kind == "commit" else at < commit):
        expected = "the commit of its run at its place" if order.kind == "commit" else "the commit of its run before it"
        _differs(order, report, "what the log has of it", expected, "none" if commit is None else f"one at {commit}")


def _check_state(order: AuditedOrder, report: LevelReport) -> None:
    expected = _states(order)
    if order.state not in expected:
        _differs(order, report, "the state", " or ".join(sorted(expected)), order.state)


def _states(order: AuditedOrder) -> frozenset[str]:
    """The states that the log allows."""
    end = order.ended
    if order.kind == "stop":
        # A run that ended before it could obey leaves its stop open until somebody looks.
        return _OPEN if end is None else _OPEN | _DONE
    if end is None:
        return _OPEN
    if end == "plan.refused":
        return _REFUSED
    # Where the run ended because its writer did, the operation in flight is recorded together with the end.
    return _after_crash(order) if str(_object(order.ended_with).get("error")) in CRASH_ERRORS else _DONE


def _after_crash(order: AuditedOrder) -> frozenset[str]:
    try:
        policy = Policy.model_validate(_object(order.body).get("policy", {}))
    except ValueError:
        return _OPEN | _DONE  # another version of this program knew what it says
    return _DONE if policy.on_crash == "stop" else _OPEN


def _check_words(order: AuditedOrder, report: LevelReport) -> None:
    """What an order to resume says is recorded with the resumption to which it led, where it led to one."""
    began = order.began
    if order.kind != "resume" or began not in ("run.started", "run.resumed"):
        return
    said, recorded = _object(order.body), _object(order.began_with)
    # A start says it only where an order to resume led to it; those of earlier programs never said it.
    names = ("by", "reason") if began == "run.resumed" or recorded.get("by") is not None else ()
    differ = [name for name in names if said.get(name) != recorded.get(name)]
    if not _within(said.get("policy"), recorded.get("policy")):
        differ.append("policy")
    if differ:
        _differs(order, report, "the words", f"those of {began}", f"another {', '.join(differ)}")


def _object(data: bytes | None) -> dict[str, Any]:
    return parsed_object(data or b"") or {}


def _within(said: Any, recorded: Any) -> bool:
    """Whether a policy is the one that was recorded; a later version records what it knew by default as well."""
    return isinstance(said, dict) and isinstance(recorded, dict) and said.items() <= recorded.items()


def _differs(order: AuditedOrder, report: LevelReport, what: str, expected: str, found: str) -> None:
    report.add(
        "OrderMismatch",
        checked=f"order {order.inbox_id}, to {order.kind} run {order.run_id}: {what}",
        expected=expected,
        found=found,
        position=order.committed_at or order.position,
    )
