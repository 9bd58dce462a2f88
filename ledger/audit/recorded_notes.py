"""Signed heads that a log records of itself: what such an event says, and whether its note says the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ledger.audit.checkpoint import ReadCheckpoint, read_checkpoint
from ledger.audit.errors import NoteUnreadableError
from ledger.audit.merkle import Frontier
from ledger.events import CheckpointPublished


class Seal(NamedTuple):
    """What the log seals of a plan: how many lines it has, and the root of their tree. One for each plan is kept."""

    operations_count: int
    lines_root: str


@dataclass(slots=True)
class RecordedNotes:
    """The signed heads that the log knows of."""

    count: int = 0
    signed: dict[str, tuple[int, int]] = field(default_factory=dict)
    """By name of a known key: how many it signed, and the last position."""
    events: dict[int, int] = field(default_factory=dict)
    """By signed position: where the first event is that records it."""

    def take(self, position: int, event_position: int, signers: Sequence[str]) -> None:
        """Take one: of which position, in which event, signed by which known keys."""
        self.count += 1
        self.events.setdefault(position, event_position)
        for name in signers:
            count, last = self.signed.get(name, (0, 0))
            self.signed[name] = (count + 1, max(last, position))

    def told(self) -> str:
        """In words."""
        named = "; ".join(
            f"{count:,} by {name}, the last of event {last:,}" for name, (count, last) in sorted(self.signed.items())
        )
        return (
            f"the log records {self.count:,} signed heads of its own (signed with a key that is known here:"
            f" {named or 'none'}): whoever rewrites a log takes them out, so they prove nothing by themselves"
        )


def checkpoint_body(data: bytes) -> CheckpointPublished | None:
    """The body of a recorded checkpoint, where it is one whose hashes are hashes."""
    try:
        body = CheckpointPublished.model_validate_json(data)
        hashes = [bytes.fromhex(text) for text in (body.head_hash, body.tree_root, *body.frontier)]
    except ValueError:
        return None
    return body if body.position >= 0 and all(len(value) == 32 for value in hashes) else None


def note_of(url: str, branch: str, body: CheckpointPublished) -> ReadCheckpoint | None:
    """The note in a recorded checkpoint, where it says what the body says."""
    try:
        read = read_checkpoint(body.note.encode())
    except (NoteUnreadableError, UnicodeEncodeError):
        return None
    said = read.checkpoint
    same = (said.url, said.branch, said.position) == (url, branch, body.position)
    hashes = (said.head_hash.hex(), said.tree_root.hex()) == (body.head_hash, body.tree_root)
    return read if same and hashes else None


def frontier_of(body: CheckpointPublished, root: bytes) -> Frontier | None:
    """The tree at a trusted checkpoint, where the log's account of it leads to the root that was signed."""
    try:
        frontier = Frontier(body.position, [bytes.fromhex(text) for text in body.frontier])
    except ValueError:
        return None
    return frontier if frontier.root() == root else None
