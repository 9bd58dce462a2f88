"""The order in which a run's operations succeeded, as one digest: the outcomes of the log beside the lines of a plan.

Nearly every run is applied from its first operation on, one after the other. Then nothing of its million outcomes has
to be kept to compare them with the plan's million lines: both sides are digests of the same records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from ledger.events import StoredEvent

_APPLIED, _SKIPPED = b"a", b"s"
_ID_SIZE = 19
"""Bytes of an operation's id. Records of one size cannot be taken for each other; other ids are compared one by one."""


@dataclass(slots=True)
class OutcomeOrder:
    """What came first, second and so on.

    Attributes:
        count: how many operations have succeeded, from the plan's first one on.
        holds: False as soon as anything came that is no success of the next operation.
    """

    count: int = 0
    holds: bool = True
    _digest: Any = field(default_factory=sha256)

    def applied(self, first: int, operations: Sequence[bytes]) -> None:
        """Take applied operations with ids of 19 bytes that stand together in the plan from ``first`` on."""
        self.holds = self.holds and first == self.count
        self._digest.update(_APPLIED.join(operations) + _APPLIED)
        self.count += len(operations)

    def take(self, event: StoredEvent) -> None:
        """Take one outcome, of any kind."""
        name = (event.operation_id or "").encode()
        is_next = event.ordinal == self.count and len(name) == _ID_SIZE
        self.holds = self.holds and is_next and event.kind in ("operation.applied", "operation.skipped")
        self._digest.update(name + (_SKIPPED if event.kind == "operation.skipped" else _APPLIED))
        self.count += 1

    def is_order_of(self, lines: PlannedOrder) -> bool:
        """Whether these are successes of the plan's first operations, each as its action asks for."""
        return self.holds and lines.at(self.count) == self._digest.digest()


@dataclass(slots=True)
class PlannedOrder:
    """What a run that goes well records for a plan's lines; ``wanted`` is after how many of them it is looked at."""

    wanted: int
    _count: int = 0
    _digest: Any = field(default_factory=sha256)
    _found: bytes | None = None

    def __post_init__(self) -> None:
        self._look()

    def take(self, records: Sequence[bytes]) -> None:
        """Take the records of some lines, in order; see :func:`planned_record`."""
        some = records[: max(self.wanted - self._count, 0)]
        self._digest.update(b"".join(some))
        self._count += len(some)
        self._look()

    def at(self, count: int) -> bytes | None:
        """The digest after so many lines, where there are as many."""
        return self._found if count == self.wanted else None

    def _look(self) -> None:
        if self._count == self.wanted and self._found is None:
            self._found = self._digest.digest()


def planned_record(operation_id: bytes, action: bytes) -> bytes:
    """What a success of an operation adds to the digest; a recorded delete is skipped and never applied."""
    return operation_id + (_SKIPPED if action == b"delete" else _APPLIED)
