"""Outcomes appended one by one through the store, each with the mark of the next operation."""

from __future__ import annotations

import time
from collections.abc import Iterator

from ledger.binding import DestinationBinding
from ledger.events import NewEvent, OperationApplied, new_event
from ledger.store.embedded import Dsns
from ledger.store.ledger import Ledger
from ledger.store.records import InFlight, Lease
from ledger.store.writer import WriterStore


class Appends:
    """A claimed binding; each round writes ``count`` outcomes of a run of its own."""

    def __init__(self, writer: WriterStore, lease: Lease, count: int) -> None:
        self._writer = writer
        self.lease = lease
        self.count = count
        self._rounds = 0

    @classmethod
    async def on(cls, writer: WriterStore, dsns: Dsns, binding: DestinationBinding, count: int) -> Appends:
        """Claim the binding."""
        async with await Ledger.open(dsns.writer) as ledger:
            binding_id = await ledger.register_binding(binding)
        lease = await writer.claim(
            binding_id, owner="bench", ttl=3600, settle=0, body_host="host", body_process_id="process"
        )
        return cls(writer, lease, count)

    async def append(self) -> float:
        """Events in a second through the append function."""
        events = self.events()
        started = time.perf_counter()
        for ordinal, event in enumerate(events, start=1):
            mark = InFlight(event.run_id or "", ordinal, 1) if ordinal < self.count else None
            await self._writer.append(self.lease, [event], in_flight=mark)
        return self.count / (time.perf_counter() - started)

    async def release(self) -> None:
        """Give the lease back."""
        await self._writer.release(self.lease)

    def events(self) -> list[NewEvent]:
        """The outcomes of the next round."""
        self._rounds += 1
        return list(self._outcomes(f"20261130T120000-{self._rounds:08x}"))

    def _outcomes(self, run_id: str) -> Iterator[NewEvent]:
        for ordinal in range(self.count):
            node = f"18c1f3a0-{ordinal:04x}-4c5e-b3a1-0123456789ab"
            yield new_event(
                "operation.applied",
                OperationApplied(node_id=node, sent_ms=ordinal, duration_ms=2),
                url=self.lease.url,
                branch=self.lease.branch,
                run_id=run_id,
                operation_id=f"op_{ordinal * 2654435761 % 2**64:016x}",
                ordinal=ordinal,
                attempt=1,
                n=1,
            )
