"""Heartbeats of processes with the bindings that they serve; for load balancing, never for safety."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from ledger.binding import DestinationBinding
from ledger.store.bindings import BindingQueries


@dataclass(frozen=True, slots=True)
class OtherWorker:
    """Another live worker: what it serves, and how many bindings it holds."""

    worker_id: str
    serves: frozenset[str]
    held: int


class WorkerQueries(BindingQueries):
    """Part of :class:`ledger.store.ledger.Ledger`."""

    async def worker_beat(
        self, worker_id: str, *, host: str, serves: Collection[DestinationBinding], held: int, ttl: float
    ) -> list[OtherWorker]:
        """Say that a worker is alive for ``ttl`` seconds from now; returns the others that are."""
        names = sorted(str(binding) for binding in serves)
        rows = await self._session.rows("worker_beat", worker_id, host, names, held, ttl)
        return [OtherWorker(row["worker_id"], frozenset(row["serves"]), row["held"]) for row in rows]

    async def other_sessions(self, own_name: str) -> dict[str, int]:
        """Connections to this database by the name of their program, without those of ``own_name``."""
        return {row["name"]: row["sessions"] for row in await self._session.rows("other_sessions", own_name)}

    async def worker_gone(self, worker_id: str) -> None:
        """Say that a worker ends."""
        await self._session.value("worker_gone", worker_id)
