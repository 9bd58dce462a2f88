"""Whole runs by the product's own writer, from a saved plan to the terminal event."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from consumers.ports import StoreConnector
from consumers.settings import WriterSettings
from consumers.writer import BindingWriter
from ledger.binding import DestinationBinding
from ledger.destination import DestinationOpener
from ledger.store.ledger import Ledger
from tests.bench.destination import BRANCH, REQUEST_TIMEOUT, inventory, opener
from tests.support.committed_plans import commit_of, save


class WriterRuns:
    """Each round applies ``count`` creates of its own; ``prefix`` keeps them apart from those of others.

    ``opening`` and ``connect`` replace the product's own ways to the destination and to the ledger.
    """

    def __init__(
        self,
        url: str,
        dsn: str,
        ledger: Ledger,
        root: Path,
        count: int,
        *,
        prefix: str = "run",
        branch: str = BRANCH,
        opening: DestinationOpener | None = None,
        connect: StoreConnector | None = None,
    ) -> None:
        self._opening = opening or opener(url)
        self._connect = connect
        self._dsn = dsn
        self._ledger = ledger
        self._root = root
        self._count = count
        self._prefix = prefix
        self._rounds = 0
        self._binding = DestinationBinding(url=url, branch=branch)

    async def loop(self) -> float:
        """Operations in a second between run.started and run.applied, by the times of these events."""
        run_id = await self._commit()
        await self._work(run_id)
        at = await self._times(run_id)
        return self._count / (at["run.applied"] - at["run.started"]).total_seconds()

    async def whole(self) -> float:
        """Seconds from the claim to the release: the gate, the plan's way into the ledger and the loop."""
        run_id = await self._commit()
        started = time.perf_counter()
        await self._work(run_id)
        return time.perf_counter() - started

    async def _commit(self) -> str:
        self._rounds += 1
        run_id = f"{self._prefix}-{self._rounds}"
        run_dir = save(self._root, run_id, inventory(run_id, self._count), binding=self._binding)
        row = await self._ledger.binding(self._binding)
        position = 0 if row is None else row.head_position
        commit = commit_of(self._root, run_dir, binding=self._binding, ledger_position=position)
        await self._ledger.submit_commit(await self._ledger.register_binding(self._binding), commit)
        return run_id

    async def _work(self, run_id: str) -> None:
        settings = WriterSettings(artifact_root=self._root, request_timeout=REQUEST_TIMEOUT)
        writer = BindingWriter(self._dsn, self._binding, self._opening, settings, connect=self._connect)
        outcome = await writer.drain(run_id, by="bench")
        if outcome.ending != "run.applied":
            raise RuntimeError(f"the bench's own run ended with {outcome.ending}: {outcome.findings}")

    async def _times(self, run_id: str) -> Mapping[str, datetime]:
        binding_id = await self._ledger.register_binding(self._binding)
        return {event.kind: event.recorded_at async for event in self._ledger.events(binding_id, run_id=run_id)}
