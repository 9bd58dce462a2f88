"""How many events a signed head does not cover."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime

import pytest

from ledger.audit.uncovered import events_behind, events_uncovered
from ledger.events import CheckpointPublished
from ledger.store.checkpoints import CheckpointMark


@pytest.mark.rules("G8")
@pytest.mark.parametrize(
    ("head", "signed", "event", "behind"),
    [
        (11, 10, 11, 0),
        (12, 10, 12, 2),  # what came while it was signed, and its own event
        (15, 10, 11, 4),
        (15, 10, None, 5),
        (10, 10, None, 0),
        (5, 10, 11, 0),
    ],
)
def test_g08_an_event_is_covered_by_what_was_signed_behind_it_alone(
    head: int, signed: int, event: int | None, behind: int
) -> None:
    assert events_behind(head, signed, event) == behind


@pytest.mark.rules("G8")
def test_g08_a_checkpoint_that_is_none_covers_nothing() -> None:
    body = CheckpointPublished(
        position=10, head_hash="", tree_root="", frontier=[], signed_at="", keys=[], note=""
    ).canonical_bytes()
    mark = CheckpointMark(11, uuid.UUID(int=0), "checkpoint.published", datetime.now(UTC), body)
    assert events_uncovered(12, None) == 12
    assert events_uncovered(12, mark) == 1
    assert events_uncovered(12, CheckpointMark(11, mark.event_id, mark.kind, mark.recorded_at, b"{}")) == 12
