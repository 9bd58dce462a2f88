"""What a page tells of a run and of an operation, from what the reading layer answers; pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from ledger.api.models import OperationDetail, OrderView, RunDetail, RunView, UnsettledView
from ledger.audit.bodies import parsed_object
from ledger.events import StoredEvent
from ledger.store.pages import RunMark
from ledger.store.story_pages import OpeningMark

_MISSING = object()


@dataclass(frozen=True, slots=True)
class Part:
    """One of the five counts that add up to a plan; ``begins`` and ``width`` are thousandths of it."""

    name: str
    count: int | None
    begins: float
    width: float


def parts(run: RunView) -> list[Part]:
    """The five counts, in the order in which a run goes through them."""
    counts = [(name, getattr(run, name)) for name in ("applied", "skipped", "failed", "unknown", "not_attempted")]
    total = run.planned or 0
    found, begins = [], 0.0
    for name, count in counts:
        width = 1000 * (count or 0) / total if total else 0.0
        if count and name in ("failed", "unknown"):
            width = max(width, 4.0)  # one of a hundred thousand is to be seen
        found.append(Part(name, count, round(begins, 2), round(width, 2)))
        begins += width
    return found


def is_open(run: RunDetail) -> bool:
    """Whether something may still happen to a run without anybody ordering it.

    The order of a run that has come to its end may stand open for a moment; nothing follows from it any more.
    """
    return run.running or (run.order_state == "open" and run.state not in ("applied", "refused"))


@dataclass(frozen=True, slots=True)
class Failure:
    """The operation that stopped a run, and what was said of it; what is not known, or may not be read, is None."""

    unsettled: UnsettledView
    operation: OperationDetail | None
    message: str | None
    next_action: str | None
    http_status: int | None
    code: str | None
    sent: bool | None

    @property
    def is_of_the_plan(self) -> bool:
        """Whether only another plan helps."""
        return only_a_fresh_plan_helps(self.next_action or "")


def failure_of(unsettled: UnsettledView, operation: OperationDetail | None, event: StoredEvent | None) -> Failure:
    """Put together; the body may be of a program that is newer than this one."""
    body = {} if event is None else parsed_object(event.body) or {}
    status, sent = body.get("http_status"), body.get("sent")
    return Failure(
        unsettled=unsettled,
        operation=operation,
        message=without_advice(_text(body.get("message")), _text(body.get("next_action"))),
        next_action=_text(body.get("next_action")),
        http_status=status if type(status) is int else None,
        code=_text(body.get("code")),
        sent=sent if isinstance(sent, bool) else None,
    )


def only_a_fresh_plan_helps(advice: str) -> bool:
    """Whether what is to be done next, as a writer recorded it, is a fresh plan and nothing else.

    Then the same operations under the same run can only end as they did. An advice that names another way as well,
    such as a resumption with another policy, leaves it to whoever reads it.
    """
    return "fresh plan" in advice and re.search(r"\b(?:resume|or make)\b", advice) is None


def without_advice(message: str | None, advice: str | None) -> str | None:
    """A message without what is to be done next, which a page shows beside it."""
    return message.replace(f" Next: {advice}", "", 1) if message and advice else message


class Pace(NamedTuple):
    """How fast a run is carried out since its last start or resumption, and how long it takes at that rate."""

    operations_per_second: float
    seconds_to_go: float


def pace_of(run: RunView, marks: Sequence[RunMark], now: datetime) -> Pace | None:
    """For display; nothing is decided by it. None where nothing can be said yet.

    Args:
        run: with its counts.
        marks: what happened to it, newest first.
        now: by this machine's clock; the marks are by the database's.
    """
    begin = next((mark for mark in marks if mark.kind in ("run.started", "run.resumed")), None)
    if not run.running or begin is None or run.planned is None or run.not_attempted is None:
        return None
    first = (parsed_object(begin.body) or {}).get("from_ordinal", 0)
    done = run.planned - run.not_attempted - (first if type(first) is int else 0)
    seconds = (now - begin.recorded_at).total_seconds()
    if seconds < 1.0 or done <= 0:
        return None
    return Pace(done / seconds, run.not_attempted * seconds / done)


class WriterOfRun(NamedTuple):
    """A process that wrote events of a run, as it said when it claimed the destination."""

    binding_id: int
    epoch: int
    position: int
    opened_at: datetime
    host: str
    process_id: str


def writers_of(openings: Sequence[OpeningMark]) -> list[WriterOfRun]:
    """The newest first; the bodies may be of a program that is newer than this one."""
    found = []
    for opening in openings:
        body = parsed_object(opening.body) or {}
        host, process_id = _text(body.get("host")) or "?", _text(body.get("process_id")) or "?"
        found.append(
            WriterOfRun(opening.binding_id, opening.epoch, opening.position, opening.recorded_at, host, process_id)
        )
    return sorted(found, reverse=True)


def is_ordered(orders: Sequence[OrderView]) -> bool:
    """Whether it is ordered to carry a run out; a stop that came too late for its end orders nothing."""
    return any(order.state == "open" and order.kind != "stop" for order in orders)


def waits_for_a_writer(run: RunDetail, orders: Sequence[OrderView], kind: str) -> bool:
    """Whether an order of this kind was given for a run and nobody has begun to carry it out."""
    return any(order.kind == kind and order.state == "open" for order in orders) and (kind == "stop" or not run.running)


MOST_FINDINGS = 100
"""Findings that the page of a run shows; its event holds all that fit into one."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a plan was refused, as its event has it.

    Attributes:
        findings: that stand in the event.
        more: findings for which the event had no room.
        whole: sha256 under which the whole list is stored beside the events, where it was cut.
    """

    findings: list[dict[str, str]]
    more: int
    whole: str | None

    @property
    def is_of_the_plan(self) -> bool:
        """Whether only another plan helps against one of them."""
        return any(only_a_fresh_plan_helps(finding["next_action"]) for finding in self.findings)

    @property
    def fits_a_page(self) -> bool:
        """Whether the page of the run shows every finding."""
        return not self.more and len(self.findings) <= MOST_FINDINGS


def refusal_in(body: Mapping[str, Any]) -> Refusal:
    """What the body of a ``plan.refused`` says, whatever somebody put there."""
    listed, cut = body.get("findings"), body.get("cut")
    names = ("name", "checked", "expected", "found", "next_action")
    findings = [
        {name: str(finding.get(name, "?")) for name in names}
        for finding in (listed if isinstance(listed, list) else [])
        if isinstance(finding, dict)
    ]
    total, whole = (cut.get("total"), cut.get("sha256")) if isinstance(cut, dict) else (None, None)
    more = total - len(findings) if isinstance(total, int) else 0
    return Refusal(findings, max(0, more), whole if isinstance(whole, str) else None)


def refusal_of(run: RunDetail) -> Refusal | None:
    """Everything that a refused plan was refused for; None for any other run."""
    return refusal_in(run.ending.body) if run.ending is not None and run.ending.kind == "plan.refused" else None


class Change(NamedTuple):
    """One field of an operation: what stood there, where that is known, and what it is to be."""

    field: str
    known: bool
    before: Any
    asserted: bool
    value: Any

    @property
    def differs(self) -> bool:
        """Whether it is known that the operation changes this field."""
        return self.known and self.asserted and self.before != self.value


def changes(asserted: Mapping[str, Any], observed: Mapping[str, Any]) -> list[Change]:
    """Old and new of every field that is asserted or was observed; those that differ first."""
    found = []
    for field in sorted({*asserted, *observed}):
        before, value = observed.get(field, _MISSING), asserted.get(field, _MISSING)
        found.append(
            Change(
                field,
                before is not _MISSING,
                None if before is _MISSING else before,
                value is not _MISSING,
                None if value is _MISSING else value,
            )
        )
    return sorted(found, key=lambda change: not change.differs)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
