"""Checkpoints: a head of a binding's log, signed, to be kept where whoever owns the database cannot rewrite it.

The text is that of C2SP ``tlog-checkpoint``: origin, size, root, then lines of our own. The tree is RFC 6962's over the
hashes of the events; the head of the hash chain and the time stand below it. A checkpoint says of every event up to its
position what it was; about the events behind it, about events that were never appended, and about the truth of what
was recorded it says nothing.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from datetime import UTC, datetime

from ledger.audit.bodies import parsed
from ledger.audit.errors import NoteUnreadableError
from ledger.audit.signed_note import SignedNote, SigningKey, VerifyingKey, parse_note, sign_note
from ledger.commit import utc_text
from ledger.plan.canonical import canonical_json_text

_ORIGIN = "apply-ledger/chain/v1 "
_HEAD = "head "
_TIME = "time "


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What is signed.

    Attributes:
        url: of the binding.
        branch: of the binding.
        position: of the last event that is covered; also the size of the tree.
        tree_root: RFC 6962 root over the hashes of the events 1 to ``position``.
        head_hash: hash of the event at ``position``.
        signed_at: by the signer's clock, UTC.
    """

    url: str
    branch: str
    position: int
    tree_root: bytes
    head_hash: bytes
    signed_at: datetime

    def text(self) -> str:
        """The lines that are signed."""
        return (
            f"{_ORIGIN}{canonical_json_text([self.url, self.branch])}\n"
            f"{self.position}\n"
            f"{base64.b64encode(self.tree_root).decode()}\n"
            f"{_HEAD}{base64.b64encode(self.head_hash).decode()}\n"
            f"{_TIME}{utc_text(self.signed_at)}\n"
        )

    def note(self, keys: list[SigningKey]) -> str:
        """The signed note."""
        return sign_note(self.text(), keys)


@dataclass(frozen=True, slots=True)
class ReadCheckpoint:
    """A checkpoint as read from a note, and who signed it; nothing of it is proven by itself."""

    checkpoint: Checkpoint
    note: SignedNote

    def signers(self, keys: list[VerifyingKey]) -> list[str]:
        """The names of those keys that signed it."""
        return [key.name for key in self.note.signed_by(keys)]


def read_checkpoint(data: bytes) -> ReadCheckpoint:
    """Read a note that holds a checkpoint.

    Raises:
        NoteUnreadableError: it is no note, or its text is no checkpoint of this program.
    """
    note = parse_note(data)
    lines = note.text.decode().split("\n")[:-1]
    try:
        origin, size, root, head, time = lines
        names = parsed(origin.removeprefix(_ORIGIN).encode())
        checkpoint = Checkpoint(
            url=str(names[0]),
            branch=str(names[1]),
            position=int(size),
            tree_root=_hash(root),
            head_hash=_hash(head.removeprefix(_HEAD)),
            signed_at=datetime.fromisoformat(time.removeprefix(_TIME)),
        )
    except (ValueError, TypeError, IndexError, KeyError, binascii.Error):
        raise _no_checkpoint(lines) from None
    if checkpoint.position < 0 or checkpoint.signed_at.tzinfo is None or checkpoint.text().encode() != note.text:
        raise _no_checkpoint(lines)
    return ReadCheckpoint(checkpoint, note)


def new_checkpoint(url: str, branch: str, position: int, *, root: bytes, head: bytes) -> Checkpoint:
    """A checkpoint of now."""
    return Checkpoint(url, branch, position, root, head, datetime.now(UTC))


def _hash(text: str) -> bytes:
    data = base64.b64decode(text, validate=True)
    if len(data) != 32:
        raise ValueError("no hash of 32 bytes")
    return data


def _no_checkpoint(lines: list[str]) -> NoteUnreadableError:
    first = lines[0][:100] if lines else "nothing"
    return NoteUnreadableError(
        checked="the text of a signed note",
        expected=f"a checkpoint: '{_ORIGIN}[url,branch]', position, root, head, time",
        found=f"{len(lines)} lines that begin with {first!r}",
        next_action="name a file that `apply-ledger checkpoint publish` wrote, unchanged",
    )
