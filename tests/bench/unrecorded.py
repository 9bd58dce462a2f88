"""The writer's loop without a ledger.

It has the same write surface, client and checks, and the same operations in the same order, one after the other; its
guard lets every request go. There is no PostgreSQL, no lease, no gate and no record.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import cast

from ledger.binding import DestinationBinding
from ledger.destination import DestinationOpener, PlannedWriteDestination
from ledger.plan.model import PlannedOperation


async def unrecorded_seconds(
    opening: DestinationOpener, binding: DestinationBinding, operations: Sequence[PlannedOperation], *, run_id: str
) -> float:
    """Write all operations and give the seconds from the first one to the last; opening and schema are outside."""
    async with opening(binding, run_id=run_id, guard=_Guard()) as opened:
        writes = cast("PlannedWriteDestination", opened.writes)  # the gate looks; there is none here
        peers = writes.new_peer_resolver()
        started = time.perf_counter()
        for operation in operations:
            await writes.apply_planned_operation(operation=operation, peers=peers)
        return time.perf_counter() - started


class _Guard:
    """Lets every request go."""

    async def ready(self) -> None:
        """Go."""

    def before_send(self, *, write: bool = True) -> None:
        """Go."""
