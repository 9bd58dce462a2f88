"""Faults of a destination, switched on for chosen requests.

A rule says which requests it is for, whether their write happens, what waits before and after it, and what is answered
instead of the truth. Rules are tried in the order in which they were added; the first that fits a request serves it.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class FaultAnswer(StrEnum):
    """What the client gets. Those below the line are answered without writing unless the rule says otherwise."""

    TRUE = "true"
    TRUE_THEN_GONE = "true-then-gone"
    """The truth; then the connection is lost with its next request, as behind a write whose event is too large."""
    DROP = "drop"
    TEXT_500 = "text-500"
    NOT_JSON = "not-json"
    EMPTY_ERRORS = "empty-errors"
    NOT_OK = "not-ok"
    OBJECT_NULL = "object-null"
    OTHER_ID = "other-id"
    EMPTY_ID = "empty-id"
    DEFUNCT_CONNECTION = "defunct-connection"
    DATABASE_AWAY = "database-away"
    TRUNCATED = "truncated"
    # --- answered without writing
    SHED_429 = "shed-429"
    UNAVAILABLE_503 = "unavailable-503"
    UNAUTHORISED_401 = "unauthorised-401"
    MERGE_IN_PROGRESS = "merge-in-progress"
    MERGE_RECOVERY_REQUIRED = "merge-recovery-required"


_UNWRITTEN = frozenset(
    {
        FaultAnswer.SHED_429,
        FaultAnswer.UNAVAILABLE_503,
        FaultAnswer.UNAUTHORISED_401,
        FaultAnswer.MERGE_IN_PROGRESS,
        FaultAnswer.MERGE_RECOVERY_REQUIRED,
    }
)


class FaultRule(BaseModel):
    """Which requests fail, and how.

    Matching: ``mutation`` is a field's name (``LocationSiteUpsert``), ``kind`` and ``action`` its parts; for reads set
    ``operation`` to ``query`` and ``kind`` to the root field. ``contains`` has to stand in the request's variables or
    text. Of the requests that fit, the ``nth`` (from 1) and the ``count - 1`` after it are hit; ``count`` None is all.

    ``write`` None means: as the answer implies. Delays are seconds; ``hold`` waits until the rule is released;
    ``amid-write`` between reading and writing, so that what others write meanwhile is not seen.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    answer: FaultAnswer = FaultAnswer.TRUE
    write: bool | None = None
    operation: Literal["mutation", "query", "any"] = "mutation"
    mutation: str | None = None
    kind: str | None = None
    action: str | None = None
    branch: str | None = None
    contains: str | None = None
    nth: int = Field(default=1, ge=1)
    count: int | None = Field(default=1, ge=1)
    delay_before_write: float = Field(default=0.0, ge=0)
    delay_before_answer: float = Field(default=0.0, ge=0)
    hold: Literal["before-write", "amid-write", "before-answer"] | None = None

    @property
    def writes(self) -> bool:
        """Whether the request is executed."""
        return self.answer not in _UNWRITTEN if self.write is None else self.write


@dataclass(frozen=True, slots=True)
class RequestFacts:
    """What rules are matched against; ``roots`` are (field, kind, action) of each root field."""

    operation: Literal["mutation", "query"]
    branch: str
    roots: tuple[tuple[str, str | None, str | None], ...]
    text: Callable[[], str]


@dataclass(slots=True)
class ActiveFault:
    """A rule at work. ``seen`` counts requests that fit, ``fired`` those that it hit."""

    number: int
    rule: FaultRule
    before: Callable[[], None] | None = None
    seen: int = 0
    fired: int = 0
    reached: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)

    def release(self) -> None:
        """Let a held request go on."""
        self.released.set()

    def wait_reached(self, timeout: float) -> bool:
        """Wait until a request is held; False when none came within ``timeout`` seconds."""
        return self.reached.wait(timeout)

    def as_json(self) -> dict[str, Any]:
        """The rule with its counters."""
        return {"number": self.number, "seen": self.seen, "fired": self.fired, **self.rule.model_dump(mode="json")}


class SandboxFaults:
    """The rules of one sandbox; safe to change from any thread while it serves."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._active: list[ActiveFault] = []

    def add(self, rule: FaultRule, *, before: Callable[[], None] | None = None) -> ActiveFault:
        """Switch a rule on. ``before`` is called at each request that it hits, before anything is executed."""
        with self._lock:
            fault = ActiveFault(next(self._numbers), rule, before)
            self._active.append(fault)
            return fault

    def clear(self) -> None:
        """Switch all rules off and let what they hold go on."""
        with self._lock:
            for fault in self._active:
                fault.release()
            self._active.clear()

    def active(self) -> list[ActiveFault]:
        """The rules that are switched on, in the order in which they are tried."""
        with self._lock:
            return list(self._active)

    def hit(self, request: RequestFacts) -> ActiveFault | None:
        """The first rule that serves this request; counts it for every rule that it fits until then."""
        if not self._active:
            return None
        with self._lock:
            for fault in self._active:
                if _fits(fault.rule, request):
                    fault.seen += 1
                    last = None if fault.rule.count is None else fault.rule.nth + fault.rule.count - 1
                    if fault.seen >= fault.rule.nth and (last is None or fault.seen <= last):
                        fault.fired += 1
                        return fault
        return None


def _fits(rule: FaultRule, request: RequestFacts) -> bool:
    if rule.operation not in ("any", request.operation) or rule.branch not in (None, request.branch):
        return False
    if not any(_fits_root(rule, *root) for root in request.roots):
        return False
    return rule.contains is None or rule.contains in request.text()


def _fits_root(rule: FaultRule, name: str, kind: str | None, action: str | None) -> bool:
    return rule.mutation in (None, name) and rule.kind in (None, kind) and rule.action in (None, action)
