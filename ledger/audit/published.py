"""The checkpoints that a log knows of: what it says of each, and its signed note. ``verify`` says whether it agrees."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ledger.audit.bodies import parsed_object
from ledger.events import CheckpointPublished
from ledger.store.checkpoints import CheckpointMark
from ledger.store.ledger import Ledger
from ledger.store.records import BindingRow

_PAGE = 500


@dataclass(frozen=True, slots=True)
class KnownCheckpoint:
    """A checkpoint as its event has it; nothing of it is proven by that.

    Attributes:
        event_position: of its event.
        recorded_at: when that was recorded.
        said: the body as it is stored.
        body: the same as one of ours; None where it is none.
    """

    event_position: int
    recorded_at: datetime
    said: dict[str, Any]
    body: CheckpointPublished | None


def known_checkpoint(mark: CheckpointMark) -> KnownCheckpoint:
    """What an event of the kind ``checkpoint.published`` says."""
    said = parsed_object(mark.body) or {}
    try:
        body: CheckpointPublished | None = CheckpointPublished.model_validate(said)
    except ValueError:
        body = None  # shown as it is; a verification says what is wrong with it
    return KnownCheckpoint(mark.position, mark.recorded_at, said, body)


async def known_checkpoints(
    ledger: Ledger, row: BindingRow, *, before: int | None = None, limit: int
) -> list[KnownCheckpoint]:
    """Checkpoints of a binding, newest first.

    Args:
        ledger: open, with any role that may read.
        row: the binding.
        before: those whose event is in front of this position; None begins at the head.
        limit: how many at most.

    Raises:
        StoreError: the database cannot be read.
    """
    return [known_checkpoint(mark) for mark in await ledger.checkpoints_page(row.id, before=before, limit=limit)]


async def all_checkpoints(ledger: Ledger, row: BindingRow) -> list[KnownCheckpoint]:
    """Every checkpoint of a binding, newest first; raises as :func:`known_checkpoints`."""
    found: list[KnownCheckpoint] = []
    while True:
        before = found[-1].event_position if found else None
        page = await known_checkpoints(ledger, row, before=before, limit=_PAGE)
        found += page
        if len(page) < _PAGE:
            return found
