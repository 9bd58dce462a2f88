"""The inbox as an audit reads it: every order beside what the log says of its run."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from ledger.store.session import Session

_PAGE = 20_000
"""Rows without bodies, nearly all of them; each page goes through the numbers of all orders once."""


@dataclass(frozen=True, slots=True)
class AuditedOrder:
    """A row of the inbox, and what the log said of its run in the moment in which the row was read.

    Attributes:
        inbox_id: its number.
        turn: which one it is of all rows by number, from 1 on.
        kind: ``commit``, ``resume`` or ``stop``.
        run_id: its run.
        state: ``open``, ``done`` or ``refused``.
        body: as it was ordered, of a resume and of an order whose run ended in doubt; else None.
        position: the head when it came; of a commit, its own event.
        committed_at: the position of the run's ``plan.committed``.
        began: the kind of the first start, resumption or end of the run behind it, before the next order to resume.
        began_with: the body of that event, of a resume.
        ended: the kind of the last end of the run there.
        ended_with: the body of the ``operation.unknown`` in front of that end, where one stands there.
    """

    inbox_id: int
    turn: int
    kind: str
    run_id: str
    state: str
    body: bytes | None
    position: int
    committed_at: int | None
    began: str | None
    began_with: bytes | None
    ended: str | None
    ended_with: bytes | None


@dataclass(frozen=True, slots=True)
class UnorderedMark:
    """A commit, a start or a refusal in the log to which no order of the inbox led."""

    position: int
    kind: str
    run_id: str
    body: bytes


class AuditedOrderQueries:
    """Part of :class:`ledger.store.ledger.Ledger`."""

    _session: Session

    async def audited_orders(self, binding_id: int) -> AsyncIterator[AuditedOrder]:
        """Every order of a binding by number, open or closed, each with what the log says of it in that moment."""
        after = 0
        while True:
            rows = await self._session.rows("audited_orders", binding_id, after, _PAGE)
            for row in rows:
                yield _audited(row)
            if len(rows) < _PAGE:
                return
            after = rows[-1]["inbox_id"]

    async def unordered_marks(self, binding_id: int) -> list[UnorderedMark]:
        """What the log has of orders that the inbox does not have; a writer that goes on by itself is among them."""
        rows = await self._session.rows("unordered_marks", binding_id)
        return [UnorderedMark(row["position"], row["kind"], row["run_id"], row["body"].encode()) for row in rows]


def _audited(row: Any) -> AuditedOrder:
    bodies = {name: _bytes(row[name]) for name in ("body", "began_with", "ended_with")}
    return AuditedOrder(**(dict(row) | bodies))


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()
