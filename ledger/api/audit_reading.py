"""What routes of audits ask before an audit begins: which binding, which place, which checkpoints and keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version

from ledger.api import audit_models as models
from ledger.api.audit_work import Evidence
from ledger.api.cursors import new_cursor, read_cursor
from ledger.api.errors import InvalidEvidenceError, InvalidPlaceError, not_there
from ledger.api.models import Page
from ledger.api.reading import LedgerReader
from ledger.audit.errors import KeyUnreadableError, NoteUnreadableError
from ledger.audit.heads import TrustedCheckpoint, require_of_these, require_signed, trusted_checkpoint
from ledger.audit.keys import KeyFolder
from ledger.audit.published import KnownCheckpoint, known_checkpoint, known_checkpoints
from ledger.audit.signed_note import VerifyingKey, parse_verifying_key
from ledger.audit.window import last_position, place_of
from ledger.errors import UsageError
from ledger.store.records import BindingRow


@dataclass(frozen=True, slots=True)
class AuditReader:
    """Reads for any number of requests at once. Every method may raise ``StoreError``."""

    reader: LedgerReader
    key_folder: KeyFolder

    async def binding_row(self, binding_id: int) -> BindingRow:
        """A binding with its head as it is now; raises :class:`NotThereError`."""
        return await self.reader.binding_row(binding_id)

    async def last_position(self, row: BindingRow, place: str | None, parameter: str) -> int:
        """The position of the last event that had happened at a place.

        Raises:
            InvalidPlaceError: it is neither a position nor a time.
        """
        try:
            found = None if place is None else place_of(place, option=f"the parameter {parameter}")
        except UsageError as exc:
            raise InvalidPlaceError(
                checked=exc.checked,
                expected=exc.expected,
                found="something else",
                next_action="events have positions and times: GET /api/v1/bindings/{binding_id}/events",
            ) from None
        return await last_position(self.reader.ledger, row, found)

    async def decided_by(self, row: BindingRow, what: str, position: int) -> list[bytes]:
        """Everything that decides a state as of a position: the hash of the event there covers all before it."""
        events = await self.reader.ledger.events_page(row.id, after=position - 1, until=position, limit=1)
        last = events[0].hash if events else b""
        return [version("apply-ledger").encode(), what.encode(), str(row.id).encode(), str(position).encode(), last]

    def evidence(self, row: BindingRow, order: models.VerifyOrder) -> Evidence:
        """What a verification is to compare with.

        Raises:
            InvalidEvidenceError: a note or a key is none.
            NoTrustedKeyError: there is no key to check them with.
            NoteNotTrustedError: none of the keys signed one.
            CheckpointOfNoBindingError: one is of another binding.
            KeyUnreadableError: a key of this installation is none.
        """
        keys = self._keys(order.keys)
        kept = [_trusted(text, f"checkpoints {number}", keys) for number, text in enumerate(order.checkpoints)]
        start = None if order.resume_from is None else _trusted(order.resume_from, "resume_from", keys)
        kept += [] if start is None else [start]
        require_of_these(kept, [row])
        return Evidence(kept, start, keys)

    def _keys(self, given: Sequence[str]) -> list[VerifyingKey]:
        if not given:
            return self.key_folder.public_keys()
        try:
            return [parse_verifying_key(text) for text in given]
        except KeyUnreadableError as exc:
            raise _no_evidence("the keys of the body", exc.expected) from None

    def keys(self) -> list[models.KeyView]:
        """The public keys of this installation; raises :class:`KeyUnreadableError`."""
        return [
            models.KeyView(name=known.key.name, signs=known.signs, key=known.key.text())
            for known in self.key_folder.known()
        ]

    async def checkpoints(self, binding_id: int, *, cursor: str | None, limit: int) -> Page[models.CheckpointView]:
        """Checkpoints, newest first.

        Raises:
            InvalidCursorError, NotThereError: the cursor; the binding.
        """
        row = await self.binding_row(binding_id)
        scope = ["checkpoints", binding_id]
        before = None if cursor is None else read_cursor(cursor, scope, (int,))[0]
        found = await known_checkpoints(self.reader.ledger, row, before=before, limit=limit + 1)
        shown = found[:limit]
        return Page(
            items=[_view(item) for item in shown],
            next=new_cursor(scope, (shown[-1].event_position,)) if len(found) > limit else None,
        )

    async def note(self, binding_id: int, event: int) -> tuple[int, bytes]:
        """The position that a checkpoint covers, and the bytes of its note.

        Raises:
            NotThereError: there is no such binding, and no checkpoint that can be read in this event.
        """
        row = await self.binding_row(binding_id)
        marks = await self.reader.ledger.checkpoints_page(row.id, before=event + 1, limit=1)
        found = [known_checkpoint(mark) for mark in marks if mark.position == event]
        if not found or found[0].body is None:
            raise not_there(
                f"the checkpoint of event {event}", "list them: GET /api/v1/bindings/{binding_id}/checkpoints"
            )
        return found[0].body.position, found[0].body.note.encode()


def _trusted(text: str, name: str, keys: Sequence[VerifyingKey]) -> TrustedCheckpoint:
    try:
        trusted = trusted_checkpoint(text.encode("utf-8", "surrogatepass"), name, keys)
    except NoteUnreadableError as exc:
        raise _no_evidence(f"the note in {name}", exc.expected) from None
    require_signed(trusted, keys)
    return trusted


def _no_evidence(checked: str, expected: str) -> InvalidEvidenceError:
    return InvalidEvidenceError(
        checked=checked,
        expected=expected,
        found="something else",
        next_action="send the text of a file that `apply-ledger checkpoint publish` wrote, and of a public key, whole",
    )


def _view(item: KnownCheckpoint) -> models.CheckpointView:
    body = item.body
    return models.CheckpointView(
        event=item.event_position,
        recorded_at=item.recorded_at,
        readable=body is not None,
        position=None if body is None else body.position,
        head_hash=None if body is None else body.head_hash,
        tree_root=None if body is None else body.tree_root,
        signed_at=None if body is None else body.signed_at,
        keys=None if body is None else body.keys,
    )
