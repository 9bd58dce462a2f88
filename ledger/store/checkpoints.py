"""Signed heads of a log, the seals of its plans, and what both are computed from."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ledger.events import NewEvent
from ledger.store.records import Appended
from ledger.store.session import Session

_PAGE = 10_000
_BEHIND_ALL = 2**63 - 1


@dataclass(frozen=True, slots=True)
class CheckpointMark:
    """A ``plan.sealed`` or ``checkpoint.published`` event."""

    position: int
    event_id: uuid.UUID
    kind: str
    recorded_at: datetime
    body: bytes


class CheckpointQueries:
    """Part of :class:`ledger.store.ledger.Ledger`."""

    _session: Session

    async def append_control(self, binding_id: int, events: Sequence[NewEvent]) -> Appended:
        """Append control events that belong to no run. Again with the same content is harmless.

        Raises:
            EventConflictError: one of them is known with other content.
            KindNotAllowedError: a kind that only a writer appends.
            LedgerPermissionError: a role that may only read.
        """
        row = await self._session.row(
            "append_control",
            binding_id,
            [event.event_id for event in events],
            [event.kind for event in events],
            [event.schema_version for event in events],
            [event.run_id for event in events],
            [event.body.decode() for event in events],
            None,
        )
        return Appended(row["first_position"], row["last_position"], row["head_hash"])

    async def checkpoint_marks(self, binding_id: int, *, after: int = 0, until: int) -> AsyncIterator[CheckpointMark]:
        """Seals and checkpoints in order of position."""
        while True:
            rows = await self._session.rows("checkpoint_marks", binding_id, after, until, _PAGE)
            for row in rows:
                yield _mark(row)
            if len(rows) < _PAGE:
                return
            after = rows[-1]["position"]

    async def last_checkpoint(self, binding_id: int) -> CheckpointMark | None:
        """The newest checkpoint."""
        row = await self._session.row("last_checkpoint", binding_id)
        return None if row is None else _mark(row)

    async def last_checkpoints(self, binding_ids: Sequence[int]) -> dict[int, CheckpointMark]:
        """The newest checkpoint of each of these bindings; one without any is left out."""
        rows = await self._session.rows("last_checkpoints", list(binding_ids))
        return {row["binding_id"]: _mark(row) for row in rows}

    async def checkpoints_page(
        self, binding_id: int, *, before: int | None = None, limit: int
    ) -> Sequence[CheckpointMark]:
        """Checkpoints, newest first; ``before``: those whose event is in front of this position."""
        rows = await self._session.rows(
            "checkpoints_page", binding_id, _BEHIND_ALL if before is None else before, limit
        )
        return [_mark(row) for row in rows]

    async def event_hashes(self, binding_id: int, *, after: int = 0, until: int) -> AsyncIterator[tuple[int, bytes]]:
        """Position and hash of each event after ``after``, up to ``until``."""
        while after < until:
            rows = await self._session.rows("event_hashes", binding_id, after, until, _PAGE)
            if not rows:
                return
            for row in rows:
                yield row["position"], row["hash"]
            after = rows[-1]["position"]

    async def verified_plans(self, binding_id: int) -> list[str]:
        """The checksums of the plans that were verified for runs on a binding."""
        return [row["plan_checksum"].hex() for row in await self._session.rows("verified_plans", binding_id)]


def _mark(row: Any) -> CheckpointMark:
    return CheckpointMark(row["position"], row["event_id"], row["kind"], row["recorded_at"], row["body"].encode())
