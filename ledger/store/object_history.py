"""Who wrote which object: from stored plans and outcomes, without a look at the destination (design of overlaps)."""

from __future__ import annotations

from collections.abc import Sequence

from ledger.store.records import ForeignWrite, LastWrite, ObjectOutcome, RecentOutcome, Resumption
from ledger.store.session import Session

_LAST = 2**63 - 1


class ObjectHistoryQueries:
    """Part of :class:`ledger.store.ledger.Ledger`."""

    _session: Session

    async def foreign_writes(
        self, binding_id: int, *, source: str, after_position: int, object_keys: Sequence[bytes]
    ) -> list[ForeignWrite]:
        """What other sources than ``source`` applied to these objects after a position, in order of position."""
        rows = await self._session.rows("foreign_writes", binding_id, source, after_position, object_keys)
        return [
            ForeignWrite(
                object_key=row["object_key"],
                source=row["source"],
                run_id=row["run_id"],
                position=row["position"],
                operation_id=row["operation_id"],
                line=row["line"].encode(),
            )
            for row in rows
        ]

    async def last_writers(self, binding_id: int, object_keys: Sequence[bytes] | None) -> dict[bytes, LastWrite]:
        """Who applied something to each of these objects last; of all objects where ``object_keys`` is None."""
        if object_keys is None:
            rows = await self._session.rows("all_last_writers", binding_id)
        else:
            rows = await self._session.rows("last_writers", binding_id, object_keys)
        return {row["object_key"]: LastWrite(row["source"], row["run_id"], row["position"]) for row in rows}

    async def newer_apply(self, binding_id: int, *, source: str, run_id: str, after_position: int) -> int | None:
        """The last position after ``after_position`` at which another run of this source applied something."""
        position: int | None = await self._session.value("newer_apply", binding_id, source, run_id, after_position)
        return position

    async def last_applied_manifest(self, binding_id: int, source: str) -> bytes | None:
        """The raw manifest of the last run of this source that was applied to its end."""
        manifest: bytes | None = await self._session.value("last_applied_manifest", binding_id, source)
        return manifest

    async def object_outcomes(
        self, binding_id: int, object_key: bytes, *, before: int | None = None, newest: int | None = None
    ) -> list[ObjectOutcome]:
        """Every outcome of every operation on one object, of all kinds and sources, in order of position.

        Args:
            binding_id: where.
            object_key: of the object.
            before: only outcomes before this position.
            newest: only so many, the last ones.
        """
        rows = await self._session.rows(
            "object_history", binding_id, object_key, _LAST if before is None else before, newest
        )
        return [
            ObjectOutcome(
                position=row["position"],
                event_id=row["event_id"],
                kind=row["kind"],
                recorded_at=row["recorded_at"],
                run_id=row["run_id"],
                operation_id=row["operation_id"],
                ordinal=row["ordinal"],
                attempt=row["attempt"],
                writer_epoch=row["writer_epoch"],
                body=row["body"].encode(),
                plan_checksum=row["plan_checksum"].hex(),
                line=row["line"].encode(),
                commit=row["commit_body"].encode(),
            )
            for row in reversed(rows)
        ]

    async def recent_outcomes(self, binding_id: int, *, among: int) -> list[RecentOutcome]:
        """The outcomes of operations among the last events of a binding, the newest first."""
        rows = await self._session.rows("recent_outcomes", binding_id, among)
        return [
            RecentOutcome(
                row["position"], row["kind"], row["recorded_at"], row["run_id"], row["object_key"], row["line"].encode()
            )
            for row in rows
        ]

    async def resumptions(self, binding_id: int, run_id: str) -> list[Resumption]:
        """Each time a run was started or resumed, in order of position."""
        rows = await self._session.rows("resumptions", binding_id, run_id)
        return [Resumption(row["position"], row["recorded_at"], row["body"].encode()) for row in rows]
