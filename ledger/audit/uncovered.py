"""How far a signed head reaches: one count for whoever signs, whoever watches, and whoever shows."""

from __future__ import annotations

from ledger.audit.published import known_checkpoint
from ledger.store.checkpoints import CheckpointMark


def events_behind(head_position: int, signed_position: int, event_position: int | None) -> int:
    """How many events up to the head a signed head does not cover.

    What is appended while a head is signed stands between it and the event that records it, and is covered by neither;
    only an event that stands right behind the signed position says nothing that needs another signature.

    Args:
        head_position: of the last event.
        signed_position: of the last event that is covered.
        event_position: of the event that records the signed head; None where there is none.
    """
    own = event_position == signed_position + 1
    return max(0, head_position - signed_position - (1 if own else 0))


def events_uncovered(head_position: int, last: CheckpointMark | None) -> int:
    """How many events up to the head the last checkpoint of a log does not cover; all, where it is none of ours."""
    if last is None:
        return head_position
    body = known_checkpoint(last).body
    return events_behind(head_position, 0 if body is None else body.position, last.position)
