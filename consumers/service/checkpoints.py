"""Checkpoints that the service publishes by itself: whoever writes a binding also signs its head, now and then.

A checkpoint is made when so many events came since the last one, or when it is so old and anything came. What keeps
one from being made is told, shown by health, and tried again: it must not keep operations from being applied.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import structlog

from ledger.audit.note_files import publish_and_keep
from ledger.audit.publish import Published
from ledger.audit.signed_note import SigningKey, VerifyingKey
from ledger.audit.uncovered import events_uncovered
from ledger.binding import DestinationBinding
from ledger.errors import ApplyLedgerError
from ledger.stopping import wait_unless_stopped
from ledger.store.checkpoints import CheckpointMark
from ledger.store.ledger import Ledger
from ledger.store.records import BindingRow

_log = structlog.get_logger(__name__)
_LOOK_EVERY = 5.0


@dataclass(frozen=True, slots=True)
class CheckpointPolicy:
    """When to publish, and with what.

    Attributes:
        events: as soon as so many events came since the last checkpoint; None: however many.
        seconds: as soon as the last checkpoint is so old, and anything came since; None: however old.
        keys: the keys to sign with, asked for each time: one may be replaced while the service runs.
        folder: where the signed notes are written; what is signed extends the newest one there.
        look_every: seconds between two looks.
        known: public keys whose signatures are ours as well, such as retired ones.
    """

    events: int | None
    seconds: float | None
    keys: Callable[[], Sequence[SigningKey]]
    folder: Path
    look_every: float = _LOOK_EVERY
    known: Callable[[], Sequence[VerifyingKey]] = tuple


class HeadLedger(Protocol):
    """What a look needs of the ledger. Contracts: :class:`ledger.store.ledger.Ledger`."""

    async def binding(self, binding: DestinationBinding) -> BindingRow | None: ...  # noqa: D102 - see the class

    async def last_checkpoint(self, binding_id: int) -> CheckpointMark | None: ...  # noqa: D102

    async def recorded_at(self, binding_id: int, position: int) -> datetime | None: ...  # noqa: D102


@dataclass
class CheckpointKeeper:
    """Publishes for the bindings that this process writes.

    Attributes:
        policy: when, and with what.
        held: the bindings that this process writes now: two that sign one head are both right, and one is enough.
        trouble: why the last one could not be published; empty where it could.
    """

    policy: CheckpointPolicy
    held: Callable[[], Collection[DestinationBinding]]
    trouble: str = ""
    _told: str = field(default="", repr=False)

    async def run_until(self, ledger: Ledger, stop: asyncio.Event) -> None:
        """Look at each binding now and then, until ``stop`` is set.

        Raises:
            StoreError: the ledger is away, or lets nobody in.
        """
        while not stop.is_set():
            for binding in sorted(self.held(), key=str):
                row = await ledger.binding(binding)
                if row is not None and await self.is_due(ledger, row):
                    await self._publish(ledger, row)
            await wait_unless_stopped(stop, self.policy.look_every)

    async def is_due(self, ledger: HeadLedger, row: BindingRow) -> bool:
        """Whether it is time for the next checkpoint of a binding."""
        last = await ledger.last_checkpoint(row.id)
        since = events_uncovered(row.head_position, last)
        if since == 0:
            return False
        if self.policy.events is not None and since >= self.policy.events:
            return True
        began = await ledger.recorded_at(row.id, 1) if last is None else last.recorded_at
        age = 0.0 if began is None else (datetime.now(UTC) - began).total_seconds()
        return self.policy.seconds is not None and age >= self.policy.seconds

    async def _publish(self, ledger: Ledger, row: BindingRow) -> None:
        try:
            policy = self.policy
            done, path = await publish_and_keep(ledger, row, policy.keys(), policy.folder, known=policy.known())
        except ApplyLedgerError as exc:
            self.trouble = f"{type(exc).__name__}: {exc.checked}: {exc.found}"
            if self.trouble != self._told:
                _log.error("no checkpoint was published", url=row.url, branch=row.branch, error=str(exc))
            self._told = self.trouble
            return
        self.trouble = self._told = ""
        _say(done, path)


def _say(done: Published, path: Path) -> None:
    _log.info("published a checkpoint", url=done.url, branch=done.branch, position=done.position, file=str(path))
